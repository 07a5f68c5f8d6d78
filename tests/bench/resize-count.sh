#!/usr/bin/env bash
# Resizes the pools of CONTAINERS (400) containers on cgroup v2, from 2 to 4 management CPUs and back, in a machine
# whose clock counts instructions, one per nanosecond: the times in the agent, from the request to the last write that
# was read back, do not depend on the load of the host. Then counts the CPU time of an idle agent. Debian 13's kernel
# boots with such a clock, Debian 12's does not.
#
# Compare programs in the same machine only: lib/kernel.sh has two NUMA nodes now, and the kernel's part of the
# work depends on that. Times of resizes vary by 5 % or more, because the clock also counts what the other CPUs do
# meanwhile: use the smallest.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/kernel.sh
. tests/e2e/lib/kernel.sh

dir=$(mktemp -d /tmp/pinfold-resize-XXXXXX)
trap 'rm -rf "$dir"' EXIT
ninja -C build pinfold tests/bench/nri_runtime >/dev/null
{
    echo "N=${CONTAINERS:-400} COUNT=1"
    cat tests/e2e/lib/checks.sh tests/e2e/node-features/kernel-guest.sh
} >"$dir/script"
KERNEL_COUNTS=1 kernel_run "$dir" trixie "$dir/script" build/pinfold build/tests/bench/nri_runtime ||
    { tail -n 30 "$dir/console.log"; exit 1; }
