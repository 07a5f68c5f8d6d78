#!/bin/bash
#
# Part "placement" of scenarios.sh on a cluster of one node, for combinations of Kubernetes version, runtime and topology. MATRIX=pairwise
# (the default) is a selection in which every two values meet, MATRIX=full has all (tests/e2e/matrix prints them). A combination that
# fails does not end the round.
#
#	ONLY="1.37.0 crio 8 2 on"   this combination only
#	RESULTS=FILE                a line for each combination is added to it (scripts/compatibility reads them)
#
# One part of cgroup v1 is in agent.sh, on machines that have it.

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/e2e/lib/record.sh
. "$here/lib/record.sh"
failed=0 count=0
while read -r kubernetes runtime cpus numa smt <&3; do
	count=$((count + 1))
	echo "# matrix: Kubernetes $kubernetes, $runtime, $cpus CPUs in $numa NUMA nodes, SMT $smt"
	# The states of clusters of so many kinds would fill the disk.
	SAVE=${SAVE:-0} NODES=1 CPUS=$cpus NUMA=$numa SMT=$smt KUBERNETES=$kubernetes RUNTIME=$runtime PARTS=placement \
		"$here/scenarios.sh" </dev/null || {
		failed=$((failed + 1))
		record "$kubernetes" "$runtime" "$cpus/$numa/$smt" "scenarios placement" failed -
	}
done 3< <(if [ -n "${ONLY:-}" ]; then echo "$ONLY"; else "$here/matrix" "${MATRIX:-pairwise}"; fi)
[ $failed = 0 ] || { echo "matrix.sh: $failed of $count combinations failed" >&2; exit 1; }
[ $count -gt 0 ] || { echo "matrix.sh: no combination" >&2; exit 1; }
echo "matrix.sh: $count combinations passed in $SECONDS s"
