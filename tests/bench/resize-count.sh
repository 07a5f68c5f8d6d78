#!/usr/bin/env bash
# Pools resized under CONTAINERS (400) containers on cgroup v2, from 2 to 4 reserved CPUs and back, in a
# machine whose clock counts instructions, one a nanosecond: the microseconds inside the agent, from the
# request to the last write that was read back, do not depend on what else this machine does. Nor does the
# CPU time of doing nothing, which is counted after that. Debian 12's kernel does not start with such a
# clock; 13's does.
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
