#!/usr/bin/env bash
# Runs each libFuzzer target, or those named by FUZZ_TARGETS, for FUZZ_SECONDS. The corpus in the tree
# holds only seeds; new inputs go to the cache directory, where the next run finds them.
set -euo pipefail
cd "$(dirname "$0")/.."

cache=${XDG_CACHE_HOME:-$HOME/.cache}/pinfold/fuzz
ninja -C build-fuzz --quiet
all=$(basename -a -s .c tests/fuzz/fuzz_*.c | sed 's/^fuzz_//' | tr '\n' ' ')
failed=0
for name in ${FUZZ_TARGETS:-$all}; do
    target=build-fuzz/tests/fuzz/fuzz_$name
    [ -x "$target" ] || { echo "fuzz.sh: no target is named $name; targets: $all" >&2; exit 2; }
    mkdir -p "$cache/$name" "$cache/crashes"
    echo "== fuzz $name for ${FUZZ_SECONDS:-60} s"
    "$target" -max_total_time="${FUZZ_SECONDS:-60}" -timeout=10 -rss_limit_mb=2048 \
        -print_final_stats=1 -artifact_prefix="$cache/crashes/$name-" \
        "$cache/$name" "tests/fuzz/corpus/$name" 2>&1 |
        grep -vE '^#[0-9]+\s+(NEW|REDUCE|pulse|RELOAD)' || failed=1
done
exit $failed
