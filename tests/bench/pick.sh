#!/usr/bin/env bash
# Picks of 16 to 1024 CPUs, ours and the kubelet's own in one run; `make bench` calls this.
set -euo pipefail
cd "$(dirname "$0")/../.."

command -v go >/dev/null || { echo "pick: no go, the kubelet's side is not measured"; exit 0; }
ninja -C build tests/bench/pick_cases >/dev/null
answers=$(mktemp)
trap 'rm -f "$answers"' EXIT
peer=$(tests/bench/peers/cpumanager/build)
build/tests/bench/pick_cases emit-bench | "$peer" >"$answers"
build/tests/bench/pick_cases bench "$answers"
