#!/bin/bash
#
# A profile partitions a running cluster: the manifests of deploy/, as they are, and two nodes of different size, the second
# of which joins later. Installed without a profile, a profile applied, its sizes changed, a node joins, a second profile
# for another role and a node relabelled to it and back, the profile deleted. After every step: the CPUs of containers
# in the nodes' kernels, the NodePartitions, and the status of the profile. Last, `pinfold uninstall`: no pod is stranded, and the
# hosts are as before.
#
#	RUNTIME=containerd          or containerd-1.7, crio
#	TESTS="none applied"        these only, in this order; all others need "none"
#	KEEP=DIR                    the cluster in DIR is used if it runs, and left running

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
RUNTIME=${RUNTIME:-containerd}
# shellcheck source=tests/e2e/lib/node.sh
. "$here/lib/node.sh"
# shellcheck source=tests/e2e/lib/guest-cluster.sh
. "$here/lib/guest-cluster.sh"

deploy=$here/../../deploy
top=${KEEP:-$(mktemp -d /tmp/pinfold-profile-nodes-XXXXXX)}
cp=$top/cp
mkdir -p "$top"
cores=management.workload.openshift.io/cores
worker="node-role.kubernetes.io/worker"
edge="node-role.kubernetes.io/edge"
LIMIT=2400 # seconds, for every state: the nodes are slow

on() { guest_run "$top/$1" "${@:2}"; } # NODE COMMAND

explain() {
	kubectl get pods -A -o wide
	kubectl get np -o yaml
	kubectl get performanceprofiles -o yaml
	kubectl get events -A --sort-by .lastTimestamp | tail -n 20
	on worker-0 'cat /var/log/pods/pinfold*/*/*.log 2>/dev/null | tail -n 40'
}

# --- the cluster ---

# A node is a directory of $top. worker-0 has 8 CPUs on two NUMA nodes, worker-1 has 4 on one.
add_node() { # NAME NUMBER TOPOLOGY
	join_segment "$2"
	# shellcheck disable=SC2034  # read by guest.sh and node.sh
	GUEST_TOPOLOGY=$3 GUEST_MEMORY_MB=3072 NODE_PAYLOAD=("$top/pinfold.tar") NODE_CNI=none
	node_start "$top/$1" "$cp" "$1" "$RUNTIME"
}

start_cluster() {
	local image
	start_control_plane
	apply_platform
	kubectl apply -k "$deploy" >/dev/null
	partition_cluster
	image=$(kubectl kustomize "$deploy" | sed -n 's/^ *image: //p' | sort -u)
	image_pinfold "$top/pinfold.tar" "$image"
	add_node worker-0 1 "2 2 2"
	start_egress "$top/worker-0"
}

# --- states ---

# One line a node: profile, management, shared and guaranteed CPUs, Ready. What else differs on the host (kubelet, kernel
# arguments) waits and is not the subject.
# shellcheck disable=SC2317
overview() {
	kubectl get np --no-headers -o 'custom-columns=N:.metadata.name,P:.status.profile.name,M:.status.cpus.management,S:.status.cpus.shared,G:.status.cpus.guaranteed,R:.status.conditions[?(@.type=="Ready")].status' |
		tr -s ' ' | sed 's/ $//'
}
# shellcheck disable=SC2317
profile_status() { # NAME: "Available Degraded selected ready observed"
	kubectl get performanceprofile "$1" -o 'jsonpath={.status.conditions[?(@.type=="Available")].status} {.status.conditions[?(@.type=="Degraded")].status} {.status.nodes.selected} {.status.nodes.ready} {.status.observedGeneration}'
}
# shellcheck disable=SC2317
capacity() { kubectl get node "$1" -o "jsonpath={.status.allocatable['${cores//./\\.}']} {.spec.taints}"; }

# kernel NODE APP...: the CPUs of each app's container on the node, by the kernel. Which cgroup it is comes from the API server's
# container id, not from Pinfold.
# shellcheck disable=SC2317
kernel() {
	local node=$1 app id
	shift
	for app; do
		id=$(kubectl get pods -A -l "app=$app" --field-selector "spec.nodeName=$node,status.phase=Running" -o 'jsonpath={.items[0].status.containerStatuses[0].containerID}')
		echo "${id##*/}"
	done | on "$node" 'scopes=$(find /sys/fs/cgroup/kubepods.slice -name "*.scope"); while read -r id; do cat "$(grep "$id" <<<"$scopes")/cpuset.cpus.effective"; done' | tr '\n' ' ' | sed 's/ $//'
}

# The host of a node whose agent has no profile yet, without the list of all CPUs that the agent may have given to units.
host_before() { node_host_state "$top/$1" | sed '/system.control/d; s/AllowedCPUs=[^ ]*/AllowedCPUs=/' >"$top/$1.before"; }

# --- objects ---

pod_spec() { # RESOURCES
	cat <<-EOF
	automountServiceAccountToken: false
	terminationGracePeriodSeconds: 1
	containers:
	- {name: c, image: "localhost/busybox:1", imagePullPolicy: Never, args: ["-c", "exec sleep 1000000"], resources: {$1}}
	EOF
}
# A pod on every node.
daemon_set() { # NAME [ANNOTATION]
	cat <<-EOF
	apiVersion: apps/v1
	kind: DaemonSet
	metadata: {name: $1, namespace: shop}
	spec:
	  selector: {matchLabels: {app: $1}}
	  template:
	    metadata: {labels: {app: $1}, annotations: {${2:-}}}
	    spec:
	$(pod_spec 'requests: {cpu: 100m, memory: 32Mi}' | sed 's/^/      /')
	---
	EOF
}
workloads() {
	kubectl create namespace shop --dry-run=client -o yaml | kubectl apply -f - >/dev/null
	kubectl annotate namespace shop --overwrite workload.openshift.io/allowed=management >/dev/null
	{
		daemon_set platform "target.workload.openshift.io/management: '{\"effect\":\"PreferredDuringScheduling\"}'"
		daemon_set web
	} | kubectl apply -f - >/dev/null
}
# A pod with CPUs of its own, on worker-0.
exclusive() {
	kubectl apply -f - >/dev/null <<-EOF
	apiVersion: v1
	kind: Pod
	metadata: {name: alone, namespace: shop, labels: {app: alone}}
	spec:
	  nodeSelector: {kubernetes.io/hostname: worker-0}
	$(pod_spec 'limits: {cpu: 2, memory: 256Mi}' | sed 's/^/  /')
	EOF
}

# --- steps ---

# Installed, and no profile: management pods are converted, and everything may use every CPU.
test_none() {
	soon "worker-0 without a profile" "worker-0 <none> 0-7 0-7 0-7 True" overview
	soon "resource and taints without a profile" "8k " capacity worker-0
	host_before worker-0
	soon "the webhook serves" "true true" kubectl -n pinfold get endpointslices -o 'jsonpath={.items[*].endpoints[*].conditions.ready}'
	kubectl label node worker-0 "$worker=" >/dev/null
	workloads
	soon "CPUs without a profile" "0-7 0-7" kernel worker-0 platform web
	is "the management pod's request" "$(kubectl -n shop get pods -l app=platform -o "jsonpath={.items[0].spec.containers[0].resources.requests['${cores//./\\.}']}")" 100
}

test_applied() {
	profile worker "$worker" 'reserved: first 1 core, isolated: rest'
	soon "CPUs with a profile" "0-1 2-7" kernel worker-0 platform web
	soon "the overview with a profile" "worker-0 worker 0-1 2-7 2-7 True" overview
	soon "the status of the profile" "True False 1 1 1" profile_status worker
	exclusive
	soon "CPUs of a Guaranteed pod, and of the others" "2-3 0-1 4-7" kernel worker-0 alone platform web
}

# A resize moves the others; the pod with CPUs of its own keeps them.
test_resized() {
	profile worker "$worker" 'reserved: first 1 core of each numa, isolated: rest'
	soon "CPUs after the sizes were changed" "2-3 0-1,4-5 6-7" kernel worker-0 alone platform web
	soon "the overview after the sizes were changed" "worker-0 worker 0-1,4-5 2-3,6-7 2-3,6-7 True" overview
	# The services were moved live; their present CPUs are not those of the boot.
	prints "boot parameters that differ" "" kubectl get np worker-0 -o 'jsonpath={.status.pending[?(@.reason=="BootParameterDiffers")]}'
	soon "the status of the profile" "True False 1 1 2" profile_status worker
}

# The same profile on another machine.
test_joined() {
	add_node worker-1 2 "1 2 2"
	soon "resource and taints of the node that joined" "4k " capacity worker-1
	soon "CPUs on a node without its role" "0-3 0-3" kernel worker-1 platform web
	host_before worker-1
	kubectl label node worker-1 "$worker=" >/dev/null
	soon "CPUs on the node that joined" "0-1 2-3" kernel worker-1 platform web
	soon "both nodes" "worker-0 worker 0-1,4-5 2-3,6-7 2-3,6-7 True
worker-1 worker 0-1 2-3 2-3 True" overview
	soon "the status of the profile" "True False 2 2 2" profile_status worker
}

# A second role with a shared pool.
test_relabelled() {
	profile edge "$edge" 'reserved: "0", shared: "1", isolated: rest'
	kubectl label node worker-1 "$edge=" "$worker-" >/dev/null
	soon "CPUs of the node with another role" "0 1" kernel worker-1 platform web
	soon "both roles" "worker-0 worker 0-1,4-5 2-3,6-7 2-3,6-7 True
worker-1 edge 0 1 2-3 True" overview
	soon "the status of the first profile" "True False 1 1 2" profile_status worker
	soon "the status of the second profile" "True False 1 1 1" profile_status edge
	kubectl label node worker-1 "$worker=" "$edge-" >/dev/null
	soon "CPUs of the node with its first role" "0-1 2-3" kernel worker-1 platform web
	soon "the status of the profile that selects no node" "False False 0 0 1" profile_status edge
	kubectl delete performanceprofile edge >/dev/null
}

# The default is in force again, on every node, and management pods are converted as before.
test_deleted() {
	kubectl delete performanceprofile worker >/dev/null
	soon "CPUs on the large node without a profile" "0-1,4-7 0-1,4-7" kernel worker-0 platform web
	soon "CPUs on the small node without a profile" "0-3 0-3" kernel worker-1 platform web
	soon "both nodes without a profile" "worker-0 <none> 0-7 0-7 0-7 True
worker-1 <none> 0-3 0-3 0-3 True" overview
	is "resources without a profile" "$(capacity worker-0)$(capacity worker-1)" "8k 4k "
	kubectl -n shop delete pod alone --wait=false >/dev/null
	soon "CPUs after the Guaranteed pod" "0-7 0-7" kernel worker-0 platform web
}

# shellcheck disable=SC2317
services() { on "$1" cat /sys/fs/cgroup/system.slice/cpuset.cpus.effective; }
# Containers of the workloads, which must neither be restarted nor replaced.
containers() { kubectl -n shop get pods -o 'jsonpath={range .items[*]}{.metadata.name} {.status.containerStatuses[0].containerID}{"\n"}{end}' | sort; }
# shellcheck disable=SC2317
request() { kubectl -n shop get pods -l app=platform --field-selector "spec.nodeName=worker-0,status.phase=Running" -o 'jsonpath={.items[0].spec.containers[0].resources.requests.cpu}'; }

# With a profile in force and pods running, on the nodes that there are.
test_uninstalled() {
	local before node nodes
	nodes=$(kubectl get nodes -o 'jsonpath={.items[*].metadata.name}')
	profile worker "$worker" 'reserved: first 1 core, isolated: rest'
	for node in $nodes; do
		soon "CPUs on $node before the removal" "0-1 $(rest "$node")" kernel "$node" platform web
		soon "CPUs of services on $node before the removal" 0-1 services "$node"
	done
	before=$(containers)
	KUBECONFIG=$cp/admin.kubeconfig "$here/../../build/pinfold" uninstall --yes --timeout 1200 >"$top/uninstall.out" 2>&1 || die "uninstall: $(cat "$top/uninstall.out")"
	for node in $nodes; do
		soon "CPUs on $node after the removal" "$(whole "$node") $(whole "$node")" kernel "$node" platform web
		node_host_state "$top/$node" >"$top/$node.after"
		diff "$top/$node.before" "$top/$node.after" >&2 || die "the host of $node is not as before"
		prints "the state directory of $node" '' on "$node" 'ls -A /var/lib/pinfold 2>/dev/null || :'
		prints "resource and taints of $node" ' ' capacity "$node"
		checks=$((checks + 1))
	done
	is "containers" "$(containers)" "$before"
	prints "objects that are left" '' kubectl get namespace pinfold pinfold-agent --ignore-not-found -o name
	prints "pods that do not run" '' kubectl get pods -A --field-selector status.phase!=Running -o name
	kubectl -n shop delete pod -l app=platform --field-selector spec.nodeName=worker-0 --wait=false >/dev/null
	soon "the request of the next platform pod" 100m request
}
whole() { on "$1" cat /sys/devices/system/cpu/online; }
rest() { whole "$1" | sed 's/^0/2/'; }

if [ -z "${KEEP:-}" ] || ! process_alive "$top/worker-0" qemu; then
	# shellcheck disable=SC2064  # expanded now
	[ -n "${KEEP:-}" ] || trap "stop_cluster '$top/worker-0' '$top/worker-1'; rm -rf '$top'" EXIT
	start_cluster
fi
for t in ${TESTS:-none applied resized joined relabelled deleted uninstalled}; do
	e2e_say "$RUNTIME: $t ($SECONDS s)"
	"test_$t"
done
echo "profile-nodes.sh: $RUNTIME, $checks checks passed in $SECONDS s"
