# shellcheck shell=bash disable=SC2154  # "dir" is the caller's
#
# A test suite of another project (ginkgo's), without Pinfold and with it: the results have to be the same, spec by spec. Source it, then:
#
#	suite_same FOCUS            ends the test when a spec has another result with Pinfold; those that differ are run three times more,
#	                            because some depend on time
#	suite_result RUNTIME NAME   prints the numbers and records them (record.sh), with KUBERNETES and TOPOLOGY; and each spec in a
#	                            file of the directory suites beside $RESULTS
#
# The caller has dir and both NAME FOCUS, which writes the reports $dir/NAME-without.json and $dir/NAME-with.json.

# shellcheck source=tests/e2e/lib/record.sh
. "$e2e_lib/record.sh"

suite_compare() { python3 "$e2e_lib/compare-specs.py" "${@:2}" "$dir/$1-without.json" "$dir/$1-with.json"; } # NAME

suite_same() {
	local differing focus try
	both all "$1"
	suite_compare all && return
	mapfile -t differing < <(suite_compare all --names | grep .)
	[ ${#differing[@]} -gt 0 ] || die "no spec passed"
	e2e_say "${#differing[@]} differ; again, three times"
	focus=$(printf '%s\n' "${differing[@]}" | sed 's/[][().*+?^$|{}\\/]/./g' | paste -sd '|')
	for try in 1 2 3; do
		both "again$try" "$focus"
		! suite_compare "again$try" || return 0
	done
	die "these specs have other results with Pinfold"
}

# suite_specs: the results of all specs; a spec that ran again has its last.
suite_specs() {
	local try reports=("$dir/all-without.json" "$dir/all-with.json")
	for try in 1 2 3; do
		[ ! -e "$dir/again$try-with.json" ] || reports+=("$dir/again$try-without.json" "$dir/again$try-with.json")
	done
	python3 "$e2e_lib/compare-specs.py" --tsv "${reports[@]}"
}
suite_result() {
	local text
	suite_specs >"$dir/specs.tsv"
	text="$(awk -F '\t' '{ n[$3]++ } END { printf "%d passed, %d failed", n["passed"], n["failed"] }' "$dir/specs.tsv"), the same without Pinfold,"
	record "${KUBERNETES:--}" "$1" "${TOPOLOGY:--}" "$2" "$text" "$SECONDS"
	[ -z "${RESULTS:-}" ] || install -D -m 644 "$dir/specs.tsv" "$(dirname "$RESULTS")/suites/$2-$1.tsv"
	echo "$(basename "$0"): $1: $text in $SECONDS s"
}
