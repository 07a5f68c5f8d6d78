#!/bin/bash
#
# `tests/e2e/cluster up` is interrupted while it makes the nodes' disks, and while they boot: it ends with status 1, and no process of
# it is left that runs, or that would start a node later.

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/e2e/lib/process.sh
. "$here/lib/process.sh"
dir=$(mktemp -d /tmp/pinfold-interrupt-XXXXXX)
export CLUSTER=$dir/c SAVE=0 REBUILD=1 NODES=2 CPUS=2 SMT=off RUNTIME=${RUNTIME:-containerd-1.7}
trap '"$here/cluster" down >/dev/null; rm -rf "$dir"' EXIT

explain() { cat "$dir/out"; }

# Commands of all processes that were started with this cluster's environment, except for those of this script.
left() {
	local environment pid
	for environment in /proc/[0-9]*/environ; do
		pid=$(basename "$(dirname "$environment")")
		{ tr '\0' '\n' <"$environment"; } 2>/dev/null | grep -qx "CLUSTER=$CLUSTER" || continue
		[ "$pid" = $$ ] || [ "$(ps -o ppid= -p "$pid" | tr -d ' ')" = $$ ] || [ "$pid" = $BASHPID ] || ps -o pid=,args= -p "$pid" || :
	done
}
disks_are_made() { [ -d "$CLUSTER/worker-0/payload" ]; }
nodes_boot() { [ -s "$CLUSTER/worker-0/console.log" ] && [ -s "$CLUSTER/worker-1/console.log" ]; }

for moment in disks_are_made nodes_boot; do
	"$here/cluster" up >"$dir/out" 2>&1 &
	up=$!
	wait_for 3600 $moment || die "$moment: not reached"
	left | grep -qv "^ *$up " || die "control: nothing of the cluster runs"
	kill "$up"
	status=0
	wait "$up" || status=$?
	is "status after an interrupt when $moment" "$status" 1
	prints "processes that are left when $moment" "" left
	echo "  $moment: interrupted" >&2
done
echo "cluster-interrupt.sh: $checks checks passed in $SECONDS s"
