#!/usr/bin/env bash
# The cost of picking CPUs on machines with 16 to 1024 CPUs, for our code and the kubelet's in one run.
set -euo pipefail
cd "$(dirname "$0")/../.."

command -v go >/dev/null || { echo "pick: skipped, Go is not installed"; exit 0; }
ninja -C build tests/bench/pick_cases >/dev/null
results=$(mktemp)
trap 'rm -f "$results"' EXIT
peer=$(tests/bench/peers/cpumanager/build)
build/tests/bench/pick_cases emit-bench | "$peer" >"$results"
build/tests/bench/pick_cases bench "$results"
