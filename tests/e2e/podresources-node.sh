#!/bin/bash
#
# The PodResources API beside a stock kubelet in a guest: its own Go client reads our socket and the
# kubelet's. CPUs agree with the guest's kernel, and all else, memory of the kubelet's memory manager
# included, with what the kubelet says. Needs Go.

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/e2e/lib/node.sh
. "$here/lib/node.sh"
# shellcheck source=tests/e2e/lib/agent-pods.sh
. "$here/lib/agent-pods.sh"

pinfold=$here/../../build/pinfold
top=$(mktemp -d /tmp/pinfold-podres-node-XXXXXX)
kubelet=/var/lib/kubelet/pod-resources/kubelet.sock
ours=/run/pinfold/podresources.sock

# ask SOCKET WORD...: the answer as JSON, with its lists in an order that can be compared.
ask() {
	in_guest "/payload/extra/podresources client $*" |
		jq -cS '(.podResources | arrays) |= sort_by(.namespace, .name) | del(.. | .cpuIds?)'
}
ids() { in_guest "/payload/extra/podresources client $ours $*" | jq -r '[.. | .cpuIds? // empty] | flatten | join(",")'; }

command -v go >/dev/null || { echo "podresources-node.sh: skipped, there is no go" >&2; exit 77; }
peer=$("$here/../bench/peers/build" podresources)
# Expanded now: at the end of a failed function "top" may be anything.
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
cp_namespace "$top/cp" shop >/dev/null
in_guest 'mkdir -p /usr/local/bin && cp /payload/extra/pinfold /usr/local/bin/ &&
	cp /payload/extra/pinfold-agent.service /etc/systemd/system/ &&
	echo "{\"reserved\":\"0-1\",\"shared\":\"2-3\",\"guaranteed\":\"4-7\"}" >/etc/kubernetes/openshift-cpu-pools &&
	echo "PINFOLD_AGENT_FLAGS=--podresources '$ours'" >/etc/default/pinfold-agent && systemctl daemon-reload'
agent_start
make_three node
all_hold node 4-5

is "List is the kubelet's" "$(ask $ours list)" "$(ask $kubelet list)"
[ "$(ask $kubelet list | jq '[.. | .memory? // empty | .[]] | length')" -gt 0 ] || die "the kubelet pins no memory: nothing was tried"
is "allocatable is the kubelet's" "$(ask $ours allocatable)" "$(ask $kubelet allocatable)"
is "the kubelet knows no CPU" "$(in_guest "/payload/extra/podresources client $kubelet list" | jq '[.. | .cpuIds? // empty] | length')" 0
is "CPUs of the one who owns some" "$(ids get shop node-alone)" 4,5
is "as the guest's kernel has it" "$(value node-alone cpuset.cpus.effective)" 4-5
is "and nobody else" "$(ids list)" 4,5
is "allocatable CPUs" "$(ids allocatable)" 4,5,6,7

in_guest systemctl stop kubelet
in_guest "rm -f $kubelet; /payload/extra/podresources client $ours list" >"$top/away" 2>&1 && die "devices vanished without a word"
grep -q 'code = Unavailable' "$top/away" || die "a kubelet that is away: $(cat "$top/away")"
in_guest systemctl start kubelet
kubelet_is_back() { in_guest "/payload/extra/podresources client $ours list" >/dev/null 2>&1; }
wait_for 300 kubelet_is_back || die "the kubelet is back, and is not asked"
checks=$((checks + 2))
echo "podresources-node.sh: $checks checks passed in $SECONDS s"
