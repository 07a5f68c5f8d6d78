#!/usr/bin/env bash
# Continuous fuzzing with libFuzzer. FUZZ_TARGETS names targets, otherwise all are meant.
#
#   fuzz.sh run      Every target for FUZZ_SECONDS, or, with RUNS, that number of mutated inputs in all, in equal shares:
#                    a bound that does not depend on the speed of the machine. FUZZ_SEED repeats a round, FUZZ_JOBS
#                    targets run at the same time.
#   fuzz.sh corpus   Removes from the cache what reaches nothing of its own, takes into tests/fuzz/corpus the inputs that
#                    reach code which the inputs there do not reach, and removes from there what is no longer needed.
#
# Every new input is kept in the cache directory, where the next round starts from it. In the corpus, files that libFuzzer
# named, by their SHA-1, are replaced; all others are hand-written and stay.
set -euo pipefail
cd "$(dirname "$0")/.."

cache=${XDG_CACHE_HOME:-$HOME/.cache}/pinfold/fuzz
corpus=tests/fuzz/corpus
max_files=150 max_kib=150 # of generated inputs of one target in the corpus
generated='^[0-9a-f]{40}$'
all=$(basename -a -s .c tests/fuzz/fuzz_*.c | sed 's/^fuzz_//' | tr '\n' ' ')
read -ra targets <<<"${FUZZ_TARGETS:-$all}"

# The last lines of a failed target's log, from the report on.
print_failure() {
    sed -nE '/(ERROR: |SUMMARY: |runtime error|WARNING: MemorySanitizer|^==[0-9]+==)/,$p' "$1" | grep -v '^stat::' | head -n 60
    echo "   repeat it with: build-fuzz/tests/fuzz/fuzz_$2 FILE, where FILE is named above"
}

# The limit of one target. libFuzzer counts the inputs that it starts from; RUNS does not.
limit_of() {
    if [ -n "${RUNS:-}" ]; then
        echo "-runs=$((RUNS / ${#targets[@]} + 1 + $(find "$cache/$1" "$corpus/$1" -type f | wc -l)))"
    else
        echo "-max_total_time=${FUZZ_SECONDS:-60}"
    fi
}

# run_one NAME LOGS: one target; its number of runs in LOGS/NAME.runs.
run_one() {
    local name=$1 log=$2/$1.log status=0 began=$SECONDS runs
    mkdir -p "$cache/$name" "$cache/crashes"
    "build-fuzz/tests/fuzz/fuzz_$name" "$(limit_of "$name")" -seed="$FUZZ_SEED" -len_control=10 -timeout=60 -rss_limit_mb=2048 \
        -print_final_stats=1 -artifact_prefix="$cache/crashes/$name-" \
        "$cache/$name" "$corpus/$name" >"$log" 2>&1 || status=$?
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    echo "${runs:-0}" >"$2/$name.runs"
    echo "fuzz $name: ${runs:-0} runs in $((SECONDS - began)) s$([ $status = 0 ] || echo ", FAILED")"
    [ $status = 0 ] || print_failure "$log" "$name"
    return $status
}

run() {
    local logs failed=0
    export FUZZ_SEED=${FUZZ_SEED:-$((RANDOM * 32768 + RANDOM + 1))} FUZZ_TARGETS="${targets[*]}"
    echo "fuzz: ${#targets[@]} targets, ${RUNS:+$RUNS runs, }FUZZ_SEED=$FUZZ_SEED"
    logs=$(mktemp -d)
    # shellcheck disable=SC2064 # `logs` is local: expand it now
    trap "rm -rf '$logs'" EXIT
    printf '%s\n' "${targets[@]}" | xargs -P "${FUZZ_JOBS:-$(nproc)}" -I NAME "$0" one NAME "$logs" || failed=1
    awk -v n="${#targets[@]}" '{ sum += $1 } END { printf "fuzz: %d runs over %d targets", sum, n }' "$logs"/*.runs
    if [ $failed = 0 ]; then echo ", nothing found"; else echo ", failing inputs are in $cache/crashes"; fi
    return $failed
}

# The generated inputs of a directory that exceed the limits, the largest first.
list_excess() {
    find "$1" -type f -regextype egrep -regex '.*/[0-9a-f]{40}' -printf '%s %f\n' | sort -n |
        awk -v files=$max_files -v bytes=$((max_kib * 1024)) \
            '{ size += $1 } NR > files || size > bytes { print $2 }'
}

# merge NAME INTO FROM... [-FLAG...]: copies to INTO the inputs that add coverage.
merge() {
    local name=$1 log
    shift
    log=$(mktemp)
    "build-fuzz/tests/fuzz/fuzz_$name" -set_cover_merge=1 -timeout=60 -rss_limit_mb=2048 "$@" >"$log" 2>&1 ||
        { cat "$log"; rm -f "$log"; return 1; }
    rm -f "$log"
}

merge_one() {
    local name=$1 kept=$corpus/$1 work file
    work=$(mktemp -d)
    mkdir -p "$work"/{named,cache} "$cache/$name"
    merge "$name" "$work/cache" "$kept" "$cache/$name" || { rm -rf "$work"; return 1; }
    for file in "$kept"/*; do
        [[ ${file##*/} =~ $generated ]] || cp "$file" "$work/named"
    done
    # By edges only: one input for each piece of code, not one for each number of iterations.
    merge "$name" "$work/named" "$work/cache" -use_counters=0 || { rm -rf "$work"; return 1; }
    list_excess "$work/named" | (cd "$work/named" && xargs -r rm)
    find "$kept" -type f -regextype egrep -regex '.*/[0-9a-f]{40}' -delete
    find "$work/named" -type f -regextype egrep -regex '.*/[0-9a-f]{40}' -exec cp -t "$kept" {} +
    rm -rf "${cache:?}/$name"
    mv "$work/cache" "$cache/$name"
    echo "fuzz $name: $(find "$kept" -type f | wc -l) inputs, $(cat "$kept"/* | wc -c) bytes; $(find "$cache/$name" -type f | wc -l) in the cache"
    rm -rf "$work"
}

corpus() {
    local name failed=0
    for name in "${targets[@]}"; do
        merge_one "$name" || failed=1
    done
    return $failed
}

mode=${1:-run}
[ "$mode" != one ] || { shift; run_one "$@"; exit; }
ninja -C build-fuzz --quiet fuzz-targets
for name in "${targets[@]}"; do
    [ -x "build-fuzz/tests/fuzz/fuzz_$name" ] ||
        { echo "fuzz.sh: no target is named $name; targets: $all" >&2; exit 2; }
done
case $mode in
run | corpus) "$mode" ;;
*) echo "fuzz.sh: run or corpus?" >&2; exit 2 ;;
esac
