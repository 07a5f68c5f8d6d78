#!/usr/bin/env bash
# Counts the instructions of one 10 KB review with callgrind: the difference of two runs, per review.
set -euo pipefail
cd "$(dirname "$0")/../.."

program=build/tests/bench/bench_review
ninja -C build --quiet tests/bench/bench_review

count() {
    PINFOLD_BENCH_RUNS=$1 valgrind --tool=callgrind --callgrind-out-file=/dev/null "$program" 2>&1 |
        sed -n 's/.*Collected : //p'
}

few=$(count 10)
many=$(count 210)
echo "review: $(((many - few) / 200)) instructions each"
