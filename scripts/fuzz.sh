#!/usr/bin/env bash
# Continuous fuzzing with libFuzzer. FUZZ_TARGETS names targets, otherwise all are meant.
#
#   fuzz.sh run      Every target for FUZZ_SECONDS, or, with RUNS, that number of mutated inputs in all, slow targets with
#                    smaller shares: a bound that does not depend on the speed of the machine. FUZZ_SEED repeats a round,
#                    FUZZ_JOBS targets run at the same time.
#   fuzz.sh campaign RUNS inputs in pieces. Every finished piece is a line of the file `campaign` in the cache directory, with
#                    its seed and its number of inputs; a campaign that was interrupted goes on with the pieces that are
#                    missing, so many nights make one campaign. FUZZ_PIECES: how many of each target.
#   fuzz.sh campaign-status  What the campaign has done so far.
#   fuzz.sh corpus   Removes from the cache what reaches nothing of its own, takes into tests/fuzz/corpus the inputs that
#                    reach code which the inputs there do not reach, and removes from there what is no longer needed.
#
# Every new input is kept in the cache directory, where the next round starts from it. In the corpus, files that libFuzzer
# named, by their SHA-1, are replaced; all others are hand-written and stay.
set -euo pipefail
cd "$(dirname "$0")/.."

cache=${XDG_CACHE_HOME:-$HOME/.cache}/pinfold/fuzz
corpus=tests/fuzz/corpus
campaign=$cache/campaign
max_files=150 max_kib=150 # of generated inputs of one target in the corpus
generated='^[0-9a-f]{40}$'
all=$(basename -a -s .c tests/fuzz/fuzz_*.c | sed 's/^fuzz_//' | tr '\n' ' ')
read -ra targets <<<"${FUZZ_TARGETS:-$all}"

# The last lines of a failed target's log, from the report on.
print_failure() {
    sed -nE '/(ERROR: |SUMMARY: |runtime error|WARNING: MemorySanitizer|^==[0-9]+==)/,$p' "$1" | grep -v '^stat::' | head -n 60
    echo "   repeat it with: build-fuzz/tests/fuzz/fuzz_$2 FILE, where FILE is named above"
}

# The share of a target follows its speed, so that none takes most of the time: 1 for those that need milliseconds for an input, 4 above
# 150 us, 20 above 40 us, 160 below 11 us, and 40 for all others.
weight_of() {
    case $1 in
    node | topology) echo 1 ;;
    json | node_profile | nri_session | profile | static_manifest | sysfs | watch_events | yaml) echo 4 ;;
    http1 | kubeconfig | mux | nri_message | oci | podres | review | topology_expr) echo 20 ;;
    dbus | host_files_record | partition | proc | quantity) echo 160 ;;
    *) echo 40 ;;
    esac
}

# share_of NAME RUNS: how many of the inputs are this target's.
share_of() {
    local name sum=0
    for name in "${targets[@]}"; do
        sum=$((sum + $(weight_of "$name")))
    done
    echo $(($2 * $(weight_of "$1") / sum + 1))
}

count_files() { find "$@" -type f | wc -l; }

# execute NAME SEED LIMIT LOG: one process of a target.
execute() {
    mkdir -p "$cache/$1" "$cache/crashes"
    # A quarantine of 256 MiB, the default, costs a page fault for almost every block.
    ASAN_OPTIONS=quarantine_size_mb=16:${ASAN_OPTIONS:-} \
        "build-fuzz/tests/fuzz/fuzz_$1" "$3" -seed="$2" -len_control=10 -timeout=60 -rss_limit_mb=2048 \
        -print_final_stats=1 -artifact_prefix="$cache/crashes/$1-" "$cache/$1" "$corpus/$1" >"$4" 2>&1
}

executed_units() { sed -n 's/^stat::number_of_executed_units: *//p' "$1"; }

# run_one NAME LOGS: one target; its number of runs in LOGS/NAME.runs.
run_one() {
    local name=$1 log=$2/$1.log status=0 began=$SECONDS runs limit=-max_total_time=${FUZZ_SECONDS:-60}
    mkdir -p "$cache/$name"
    # libFuzzer counts the inputs that it starts from; RUNS does not.
    [ -z "${RUNS:-}" ] || limit=-runs=$(($(share_of "$name" "$RUNS") + $(count_files "$cache/$name" "$corpus/$name")))
    execute "$name" "$FUZZ_SEED" "$limit" "$log" || status=$?
    runs=$(executed_units "$log")
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

# run_piece PIECE NAME: a target's part of a piece, as a line of the campaign: piece, target, seed, inputs, seconds, commit, time.
# Inputs that a process only starts from are not counted.
run_piece() {
    local piece=$1 name=$2 log status=0 began=$SECONDS start runs seed=$((FUZZ_SEED + $1))
    log=$(mktemp)
    mkdir -p "$cache/$name"
    start=$(count_files "$cache/$name" "$corpus/$name")
    execute "$name" "$seed" "-runs=$(($(share_of "$name" $((RUNS / FUZZ_PIECES))) + start))" "$log" || status=$?
    runs=$(executed_units "$log")
    if [ $status = 0 ] && [ -n "$runs" ]; then
        echo "$piece $name $seed $((runs - start)) $((SECONDS - began)) $FUZZ_COMMIT $(date -u +%FT%TZ)" >>"$campaign"
    elif [ $status -lt 128 ]; then # not ended by a signal
        echo "fuzz $name: FAILED in piece $piece"
        print_failure "$log" "$name"
        cp "$log" "$cache/crashes/$name-$seed.log"
    fi
    rm -f "$log"
    return $status
}

# The parts that are not in the campaign yet: piece and target.
list_missing() {
    local piece name
    for ((piece = 1; piece <= FUZZ_PIECES; piece++)); do
        for name in "${targets[@]}"; do
            grep -q "^$piece $name " "$campaign" || echo "$piece $name"
        done
    done
}

campaign_status() {
    [ -s "$campaign" ] || { echo "fuzz: there is no campaign"; return; }
    awk 'NR == 1 { begun = $NF; wanted = $2; pieces = $4; seed = $6; next }
        { inputs += $4; seconds += $5; last = $7; of[$2] += $4; commits[$6] += $4 }
        END {
            for (t in of) { targets++; if (!least || of[t] < least) least = of[t] }
            printf "fuzz: %d of %d inputs in %d parts over %d targets (at least %d each), %d s of processes\n", inputs, wanted, NR - 1, targets, least, seconds
            printf "fuzz: FUZZ_SEED=%d, %d pieces, begun %s, last part %s\n", seed, pieces, begun, last
            for (c in commits) printf "fuzz: %d inputs at %s\n", commits[c], c
        }' "$campaign"
}

# The first line of the campaign's file: what was asked for. A later call has to ask for the same.
begin_campaign() {
    local asked
    mkdir -p "$cache"
    [ -s "$campaign" ] || echo "runs $RUNS pieces ${FUZZ_PIECES:-20} seed ${FUZZ_SEED:-$((RANDOM * 32768 + RANDOM + 1))} begun $(date -u +%FT%TZ)" >"$campaign"
    read -r _ asked _ FUZZ_PIECES _ FUZZ_SEED _ <"$campaign"
    [ "$asked" = "$RUNS" ] ||
        { echo "fuzz.sh: $campaign is one of RUNS=$asked; move it away to begin another" >&2; exit 2; }
    FUZZ_COMMIT=$(git describe --always --dirty 2>/dev/null || echo unknown)
    export FUZZ_PIECES FUZZ_SEED FUZZ_COMMIT RUNS FUZZ_TARGETS="${targets[*]}"
}

campaign() {
    local failed=0
    begin_campaign
    trap campaign_status EXIT
    list_missing | xargs -P "${FUZZ_JOBS:-$(nproc)}" -L 1 "$0" piece || failed=1
    if [ $failed = 0 ]; then echo "fuzz: the campaign is complete, nothing found"; else echo "fuzz: failing inputs are in $cache/crashes"; fi
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
case $mode in
one) shift; run_one "$@"; exit ;;
piece) shift; run_piece "$@"; exit ;;
campaign-status) campaign_status; exit ;;
campaign) : "${RUNS:?fuzz.sh: campaign needs RUNS}" ;;
esac
ninja -C build-fuzz --quiet fuzz-targets
for name in "${targets[@]}"; do
    [ -x "build-fuzz/tests/fuzz/fuzz_$name" ] ||
        { echo "fuzz.sh: no target is named $name; targets: $all" >&2; exit 2; }
done
case $mode in
run | campaign | corpus) "$mode" ;;
*) echo "fuzz.sh: run, campaign, campaign-status or corpus?" >&2; exit 2 ;;
esac
