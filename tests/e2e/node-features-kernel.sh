#!/bin/bash
#
# Isolated partitions, pool resizes and memory bound to NUMA nodes with the kernels of Debian 13 (6.12, with remote
# partitions) and Debian 12 (6.1, without): cgroup v2, 8 CPUs, two NUMA nodes, 400 containers. SMOKE=1: 40 containers.

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/e2e/lib/kernel.sh
. "$here/lib/kernel.sh"

build=${BUILD:-$here/../../build}
dir=$(mktemp -d /tmp/pinfold-node-features-XXXXXX)
trap 'rm -rf "$dir"' EXIT
ninja -C "$build" pinfold tests/bench/nri_runtime tests/bench/cpuset_sampler >/dev/null
{
	echo "N=$([ -n "${SMOKE:-}" ] && echo 40 || echo "${CONTAINERS:-400}")"
	cat "$here/lib/checks.sh" "$here/node-features/kernel-guest.sh"
} >"$dir/script"
for suite in ${SUITES:-trixie bookworm}; do
	echo "node-features-kernel.sh: kernel of $suite" >&2
	kernel_run "$dir" "$suite" "$dir/script" "$build/pinfold" "$build/tests/bench/nri_runtime" \
		"$build/tests/bench/cpuset_sampler" || { echo "FAIL: $suite"; tail -n 30 "$dir/console.log"; exit 1; }
done
