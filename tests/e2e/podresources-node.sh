#!/bin/bash
#
# The PodResources API beside a stock kubelet in a guest: the kubelet's Go client reads the agent's socket and the
# kubelet's. CPUs agree with the guest's kernel, and everything else, memory of the memory manager included, with
# the kubelet. Needs Go.

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/e2e/lib/node.sh
. "$here/lib/node.sh"
# shellcheck source=tests/e2e/lib/agent-pods.sh
. "$here/lib/agent-pods.sh"

pinfold=$here/../../build/pinfold
top=$(mktemp -d /tmp/pinfold-podres-node-XXXXXX)
cp=$top/cp
kubelet=/var/lib/kubelet/pod-resources/kubelet.sock
ours=/run/pinfold/podresources.sock

# call SOCKET ARG...: the response as JSON without CPUs, with its lists sorted.
call() {
	in_guest "/payload/extra/podresources client $*" |
		jq -cS '(.podResources | arrays) |= sort_by(.namespace, .name) | del(.. | .cpuIds?)'
}
ids() { in_guest "/payload/extra/podresources client $ours $*" | jq -r '[.. | .cpuIds? // empty] | flatten | join(",")'; }

command -v go >/dev/null || { echo "podresources-node.sh: skipped, there is no go" >&2; exit 77; }
peer=$("$here/../bench/peers/build" podresources)
# Expanded now: a trap must not depend on what a test does to "top".
# shellcheck disable=SC2064
trap "node_stop '$top/node'; cp_stop '$top/cp'; rm -rf '$top'" EXIT
cp_start "$top/cp"
# shellcheck disable=SC2034  # read by node.sh, as below
NODE_PAYLOAD=("$pinfold" "$here/../../deploy/agent/pinfold-agent.service" "$peer")
# shellcheck disable=SC2034  # what is reserved is the sum of the kubelet's own and its eviction threshold
NODE_KUBELET_CONFIG='memoryManagerPolicy: Static
kubeReserved: {memory: 100Mi}
reservedMemory: [{numaNode: 0, limits: {memory: 150Mi}}]'
node_start "$top/node" "$top/cp" worker-0 "${RUNTIME:-containerd}"
node_wait_ready "$top/node"
agent_install "--podresources $ours --allow-namespace shop"
agent_start
make_three node
all_hold node 4-5

is "List without CPUs agrees with the kubelet" "$(call $ours list)" "$(call $kubelet list)"
[ "$(call $kubelet list | jq '[.. | .memory? // empty | .[]] | length')" -gt 0 ] || die "the kubelet pins no memory, so nothing was tested"
is "allocatable without CPUs agrees with the kubelet" "$(call $ours allocatable)" "$(call $kubelet allocatable)"
is "CPUs that the kubelet lists" "$(in_guest "/payload/extra/podresources client $kubelet list" | jq '[.. | .cpuIds? // empty] | length')" 0
is "CPUs of the pod with exclusive CPUs" "$(ids get shop node-alone)" 4,5
is "its cpuset in the guest's kernel" "$(value node-alone cpuset.cpus.effective)" 4-5
is "CPUs of all pods" "$(ids list)" 4,5
is "allocatable CPUs" "$(ids allocatable)" 4,5,6,7

in_guest systemctl stop kubelet
in_guest "rm -f $kubelet; /payload/extra/podresources client $ours list" >"$top/away" 2>&1 && die "List succeeds without the kubelet"
grep -q 'code = Unavailable' "$top/away" || die "List without the kubelet: $(cat "$top/away")"
in_guest systemctl start kubelet
kubelet_is_back() { in_guest "/payload/extra/podresources client $ours list" >/dev/null 2>&1; }
wait_for 300 kubelet_is_back || die "List fails after the kubelet is back"
checks=$((checks + 2))
echo "podresources-node.sh: $checks checks passed in $SECONDS s"
