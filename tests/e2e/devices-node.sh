#!/bin/bash
#
# Devices and CPUs on one NUMA node, beside a stock kubelet in a guest: a device plugin registers devices with NUMA nodes, the
# agent asks the kubelet's PodResources for them when a pod starts. Each NUMA node has two guaranteed CPUs. Without a device a
# pod gets those of node 0, with a device of node 1 those of node 1; with the policy single-numa-node also its memory, and a second
# such pod is refused although node 0 is free. Needs Go.
#
#	RUNTIME=containerd-1.7   or containerd, crio
#	KEEP=DIR                 the node in DIR is used if it runs, also one of host-node.sh, and left running

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
RUNTIME=${RUNTIME:-containerd-1.7}
# shellcheck source=tests/e2e/lib/node.sh
. "$here/lib/node.sh"
# shellcheck source=tests/e2e/lib/agent-pods.sh
. "$here/lib/agent-pods.sh"

pinfold=$here/../../build/pinfold
top=${KEEP:-$(mktemp -d /tmp/pinfold-devices-XXXXXX)}
mkdir -p "$top"
cp=$top/cp
device=example.com/device

start_node() {
	cp_start "$cp"
	# shellcheck disable=SC2034  # read by node.sh, as below
	NODE_PAYLOAD=("$pinfold" "$here/../../deploy/agent/pinfold-agent.service")
	# shellcheck disable=SC2034
	NODE_TOOLS=
	node_start "$top/node" "$cp" worker-0 "$RUNTIME"
	node_wait_ready "$top/node"
	agent_install "--allow-namespace shop"
}
start_plugin() {
	in_guest 'test -e /root/podresources' || guest_put "$top/node" "$peer" /root
	in_guest "systemctl is-active -q devices || systemd-run -q --unit=devices /root/podresources plugin $device 1 1"
}
pools() { # MORE
	in_guest "echo '{\"reserved\":\"0-1\",\"shared\":\"4-5\",\"guaranteed\":\"2-3,6-7\"$1}' >/etc/kubernetes/openshift-cpu-pools"
}
# shellcheck disable=SC2317
allocatable() { kubectl get node worker-0 -o "jsonpath={.status.allocatable['${device//./\\.}']}"; }
# The NUMA nodes of the pod's devices, by the kubelet.
nodes_of() { # POD
	in_guest /root/podresources client /var/lib/kubelet/pod-resources/kubelet.sock list |
		jq -c --arg pod "$1" '[.podResources[] | select(.name == $pod) | .containers[].devices[]?.topology.nodes[].ID | tonumber]'
}
run_pod() { # NAME RESOURCES
	pod_manifest "$1" '' '' "limits: {cpu: 2, memory: 256Mi$2}" | kubectl apply -f - >/dev/null
}
with_device=", $device: 1"

# The agent does not wait for the kubelet's response (docs/numa.md), so on a slow machine a container may be created before it.
test_aligned() {
	local attempt
	for attempt in 1 2 3 4 5; do
		run_pod "near-$attempt" "$with_device"
		wait_running "near-$attempt"
		is "the NUMA node of its device" "$(nodes_of "near-$attempt")" '[1]'
		near=near-$attempt
		[ "$(value "$near" cpuset.cpus.effective)" != 6-7 ] || break
		remove near
	done
	is "CPUs of a pod with a device of node 1 (attempt $attempt)" "$(value "$near" cpuset.cpus.effective)" 6-7
	e2e_say "aligned at attempt $attempt"
}

test_plain() {
	run_pod plain ''
	wait_running plain
	is "CPUs of a pod without a device" "$(value plain cpuset.cpus.effective)" 2-3
	is "devices of a pod without a device" "$(nodes_of plain)" '[]'
	remove plain
}

test_refused() {
	pools ',"topologyPolicy":"single-numa-node"'
	wait_for 120 has_policy || die "the policy is not in force: $(in_guest pinfold status)"
	remove near
	test_aligned
	is "its memory" "$(value "$near" cpuset.mems)" 1
	run_pod second "$with_device"
	wait_for 600 is_refused || die "a second pod with a device of node 1 is not refused: $(kubectl get pods; in_guest pinfold status --containers)"
	is "CPUs that stay free" "$(in_guest pinfold status -o json | jq -r .pools.guaranteed.free)" 2-3
	checks=$((checks + 1))
}
# shellcheck disable=SC2317
has_policy() { [ "$(in_guest pinfold status -o json | jq -r .topologyPolicy)" = single-numa-node ]; }
# shellcheck disable=SC2317
is_refused() { in_guest pinfold status -o json | jq -e '.refused[]? | select(.pod == "second" and .reason == "TopologyAffinityError")' >/dev/null; }

command -v go >/dev/null || { echo "devices-node.sh: skipped, there is no go" >&2; exit 77; }
peer=$("$here/../bench/peers/build" podresources)
# shellcheck disable=SC2064  # expanded now
[ -n "${KEEP:-}" ] || trap "node_stop '$top/node'; cp_stop '$cp'; rm -rf '$top'" EXIT
if ! { [ -e "$top/node/node" ] && guest_is_up "$top/node"; }; then start_node; fi
in_guest "systemctl stop pinfold-agent; echo 'PINFOLD_AGENT_FLAGS=--allow-namespace shop' >/etc/default/pinfold-agent"
start_plugin
pools ''
LIMIT=600 soon "the devices are registered" 2 allocatable
agent_start
for t in ${TESTS:-plain aligned refused}; do
	e2e_say "$RUNTIME: $t ($SECONDS s)"
	"test_$t"
done
echo "devices-node.sh: $RUNTIME, $checks checks passed in $SECONDS s"
