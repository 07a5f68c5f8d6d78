#!/bin/bash
#
# The manifests of deploy/, as they are, on a stock cluster whose network plugin and DNS server are management pods: a
# node joins while the webhook is registered and not running, after it, and before it. Each time everything runs, the
# node has its resources and no taint. Then a management Deployment, a shared one and a Guaranteed pod: their CPUs, from
# the node's kernel.
#
#	RUNTIME=containerd          or containerd-1.7
#	TESTS="during workloads"    these only, in this order; all others need "during"
#	KEEP=DIR                    the node in DIR is used if it runs, and left running

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
RUNTIME=${RUNTIME:-$([ -n "${SMOKE:-}" ] && echo containerd-1.7 || echo containerd)}
# shellcheck source=tests/e2e/lib/node.sh
. "$here/lib/node.sh"
# shellcheck source=tests/e2e/lib/agent-pods.sh
. "$here/lib/agent-pods.sh"
# shellcheck source=tests/e2e/lib/guest-cluster.sh
. "$here/lib/guest-cluster.sh"

tests=${TESTS:-during after before workloads}
deploy=$here/../../deploy
top=${KEEP:-$(mktemp -d /tmp/pinfold-deploy-XXXXXX)}
cp=$top/cp
cores=management.workload.openshift.io/cores
node=worker-0
LIMIT=1200 # seconds, for every state: the node is slow

explain() {
	kubectl get pods -A -o wide
	kubectl get nodes -o 'custom-columns=NAME:.metadata.name,TAINTS:.spec.taints[*].key,CONDITIONS:.status.conditions[?(@.status=="True")].type'
	kubectl get events -A --sort-by .lastTimestamp | tail -n 15
	kubectl get events -A --field-selector reason=Killing
	in_guest 'cat /var/log/pods/pinfold*/*/*.log 2>/dev/null | tail -n 30'
}

# --- the cluster ---

# A partitioned node that the cluster has already, as an object only: pods that need a running node tolerate no such taint.
# The controller manager waits long for heartbeats.
other_node() {
	kubectl create -f - >/dev/null <<-EOF
	apiVersion: v1
	kind: Node
	metadata: {name: control-0}
	spec: {taints: [{key: object-only, effect: NoSchedule}]}
	status:
	  capacity: {cpu: "8", memory: 8Gi, pods: "110", $cores: "8k"}
	  allocatable: {cpu: "8", memory: 8Gi, pods: "110", $cores: "8k"}
	  conditions: [{type: Ready, status: "True", reason: KubeletReady, message: object}]
	EOF
	kubectl taint node control-0 node.kubernetes.io/not-ready- >/dev/null 2>&1 || :
}

start_cluster() {
	local image
	start_control_plane
	apply_platform
	kubectl apply -k "$deploy" >/dev/null
	partition_cluster
	other_node
	image=$(kubectl kustomize "$deploy" | sed -n 's/^ *image: //p' | sort -u)
	is "images in the manifests" "$(wc -w <<<"$image")" 1
	image_pinfold "$top/pinfold.tar" "$image"
	# 2 CPUs of 3,6-7 are on one NUMA node only when they are 6-7.
	echo '{"reserved":"0-1","shared":"2,4-5","guaranteed":"3,6-7"}' >"$top/openshift-cpu-pools"
	NODE_PAYLOAD=("$top/pinfold.tar" "$top/openshift-cpu-pools")
	# shellcheck disable=SC2034  # read by node.sh
	NODE_CNI=none
	node_start "$top/node" "$cp" "$node" "$RUNTIME"
	start_egress
}

# --- states ---

# Lines "NAMESPACE APP READY" of the pods on the node.
pods_here() {
	kubectl get pods -A --field-selector "spec.nodeName=$node" -o 'go-template={{range .items}}{{.metadata.namespace}} {{index .metadata.labels "app"}}{{index .metadata.labels "app.kubernetes.io/name"}}{{range .status.conditions}}{{if eq .type "Ready"}} {{.status}}{{end}}{{end}}{{if .metadata.deletionTimestamp}} ends{{end}}{{"\n"}}{{end}}' |
		sed 's/<no value>//' | LC_ALL=C sort
}
all_run() {
	[ "$(pods_here | grep -v '^shop ' | tr '\n' ';')" = \
		"kube-system cni True;kube-system dns True;$(printf 'pinfold pinfold True;%.0s' webhook webhook operator operator)pinfold-agent pinfold-agent True;" ]
}
node_field() { kubectl get node "$node" -o "jsonpath=$1"; }
is_partitioned() {
	[ "$(node_field "{.status.capacity['${cores//./\\.}']} {.status.allocatable['${cores//./\\.}']} {.spec.taints} {.status.conditions[?(@.type==\"PartitioningReady\")].status}")" = "8k 8k  True" ]
}
came_up() {
	wait_for 3600 all_run || die "$1: not everything runs"
	wait_for 900 is_partitioned || die "$1: the Node is not partitioned: $(node_field '{.status.capacity} {.spec.taints}')"
	checks=$((checks + 2))
	e2e_say "$1: everything runs ($SECONDS s)"
}

pod_of() { kubectl -n "$1" get pods -l "$2" --field-selector "spec.nodeName=$node" -o 'jsonpath={.items[*].metadata.name}'; }
request_of() { kubectl -n kube-system get pods -l "app=$1" --field-selector "spec.nodeName=$node" -o "jsonpath={.items[*].spec.containers[0].resources.requests['${cores//./\\.}']}"; }
is_converted() { [ "$(request_of "$1")" = 100 ]; }

# node_leaves [NAMESPACE]: the node forgets everything but its images. The containers of NAMESPACE run on.
node_leaves() {
	local namespace pod
	in_guest systemctl stop kubelet
	kubectl get pods -A -o 'jsonpath={range .items[*]}{.metadata.namespace} {.metadata.name}{"\n"}{end}' |
		while read -r namespace pod; do
			[ "$namespace" = "${1:-}" ] ||
				kubectl -n "$namespace" delete pod "$pod" --force >/dev/null 2>&1 </dev/null || :
		done
	in_guest "cli='/payload/bin/crictl -t 600s -c /payload/crictl.yaml'
		keep=\$(\$cli pods -q --namespace '^${1:-none}\$')
		for pod in \$(\$cli pods -q); do
			case \$keep in *\$pod*) ;; *) \$cli rmp -f \$pod ;; esac
		done
		rm -f /etc/cni/net.d/*" >/dev/null
}
# The old Node goes only now: the controller manager removes pods whose node has been gone for 40 s.
node_joins() {
	kubectl delete node "$node" >/dev/null
	in_guest systemctl start kubelet
}

# --- the orders ---

# The manifests are applied, then the first node joins: the webhook is registered, and no replica of it runs.
test_during() { came_up "the node joins while the webhook is registered"; }

# The webhook serves when the node joins: the node gets the taint, and the agent removes it. The network plugin's pod is
# converted and needs the agent, which therefore needs no network plugin. Where the API server gave up a call meanwhile, the
# node joins, or the pod is created, again.
test_after() {
	local missed before
	is "the webhook's endpoints" "$(kubectl -n pinfold get endpointslices -o 'jsonpath={.items[*].endpoints[*].conditions.ready}')" "true true"
	process_start "$top" watch "$(cp_bin "$cp" kubectl)" --kubeconfig "$cp/admin.kubeconfig" get nodes --watch \
		-o 'jsonpath={.metadata.name}: {.spec.taints[*].key}{"\n"}'
	node_leaves pinfold
	before=$(calls_missed)
	missed=$before
	node_joins
	came_up "the node joins after the webhook"
	until grep -q "^$node: .*pinfold.io/unpartitioned" "$top/logs/watch.log"; do
		[ "$(calls_missed)" != "$missed" ] || die "the joining Node had no taint"
		missed=$(calls_missed)
		in_guest systemctl stop kubelet
		node_joins
		came_up "the node joins again, because the API server gave up a call"
	done
	process_stop "$top" watch
	if [ "$(calls_missed)" != "$before" ]; then
		wait_for 3600 converted_again || die "management pods are not converted"
		came_up "management pods are created again, because the API server gave up a call"
	fi
	is "cores that the network plugin requests" "$(request_of cni)" 100
	is "cores that the DNS server requests" "$(request_of dns)" 100
	checks=$((checks + 1))
}

# The node is there first, then the manifests are applied. Pods that are created from then on are converted.
test_before() {
	kubectl delete -k "$deploy" --wait=false >/dev/null
	node_leaves
	wait_for 1800 nothing_left || die "the manifests are not deleted"
	node_joins
	wait_for 3600 node_is_up || die "the node is not Ready"
	prints "cores that the network plugin requests without the webhook" "" request_of cni
	prints "taints without the webhook" "" node_field '{.spec.taints}'
	kubectl apply -k "$deploy" >/dev/null
	partition_cluster
	came_up "the node joins before the webhook"
	wait_for 3600 converted_again || die "new management pods are not converted"
	came_up "management pods are created again"
}
# Deletes a pod again when the webhook did not answer in time for its successor.
converted_again() {
	local app
	for app in cni dns; do
		is_converted $app && continue
		kubectl -n kube-system delete pods -l "app=$app" --field-selector "spec.nodeName=$node" --now >/dev/null
		return 1
	done
}
nothing_left() {
	[ -z "$(kubectl get namespaces pinfold pinfold-agent --ignore-not-found -o name)$(kubectl get crd -o name)" ]
}
node_is_up() { [ "$(node_field '{.status.conditions[?(@.type=="Ready")].status}{.spec.taints}' 2>/dev/null)" = True ]; }

# --- pods ---

deployment() { # NAME ANNOTATIONS
	cat <<-EOF
	apiVersion: apps/v1
	kind: Deployment
	metadata: {name: $1, namespace: shop}
	spec:
	  selector: {matchLabels: {app: $1}}
	  template:
	    metadata: {labels: {app: $1}, annotations: {$2}}
	    spec:
	      automountServiceAccountToken: false
	      terminationGracePeriodSeconds: 1
	      containers:
	      - name: c
	        image: localhost/busybox:1
	        imagePullPolicy: Never
	        args: ["-c", "exec sleep 1000000"]
	        resources: {requests: {cpu: 200m, memory: 32Mi}}
	---
	EOF
}
guaranteed() {
	cat <<-EOF
	apiVersion: v1
	kind: Pod
	metadata: {name: alone, namespace: shop, labels: {app: alone}}
	spec:
	  automountServiceAccountToken: false
	  terminationGracePeriodSeconds: 1
	  containers:
	  - name: c
	    image: localhost/busybox:1
	    imagePullPolicy: Never
	    args: ["-c", "exec sleep 1000000"]
	    resources: {limits: {cpu: 2, memory: 256Mi}}
	EOF
}
shop_runs() { [ "$(pods_here | grep '^shop ' | tr '\n' ';')" = "shop alone True;shop mgmt True;shop share True;" ]; }

# container_value NAMESPACE SELECTOR FILE: from the cgroup of the app's container on the node.
container_value() {
	local id
	id=$(kubectl -n "$1" get pods -l "$2" --field-selector "spec.nodeName=$node" -o 'jsonpath={.items[0].status.containerStatuses[0].containerID}')
	echo "${id##*/} $3" | values
}
# The NUMA nodes of CPUs, by the kernel.
numa_of() { in_guest "for cpu in $*; do basename /sys/devices/system/cpu/cpu\$cpu/node*; done | sort -u"; }

test_workloads() {
	kubectl create namespace shop --dry-run=client -o yaml | kubectl apply -f - >/dev/null
	kubectl annotate namespace shop --overwrite workload.openshift.io/allowed=management >/dev/null
	{
		deployment mgmt "target.workload.openshift.io/management: '{\"effect\":\"PreferredDuringScheduling\"}'"
		deployment share ''
		guaranteed
	} | kubectl apply -f - >/dev/null
	wait_for 3600 shop_runs || die "the pods do not run"
	soon "CPUs of the management pod" 0-1 container_value shop app=mgmt cpuset.cpus.effective
	soon "weight of the management pod" 8 container_value shop app=mgmt cpu.weight
	soon "CPUs of the shared pod" 2,4-5 container_value shop app=share cpuset.cpus.effective
	soon "CPUs of the Guaranteed pod" 6-7 container_value shop app=alone cpuset.cpus.effective
	soon "quota of the Guaranteed pod" "max 100000" container_value shop app=alone cpu.max
	is "NUMA nodes of these CPUs" "$(numa_of 6 7)" node1
	is "NUMA nodes of all guaranteed CPUs" "$(numa_of 3 6 7 | wc -l)" 2
	soon "CPUs of the network plugin" 0-1 container_value kube-system app=cni cpuset.cpus.effective
	soon "CPUs of the DNS server" 0-1 container_value kube-system app=dns cpuset.cpus.effective
	soon "CPUs of the agent's container" 0-1 container_value pinfold-agent app.kubernetes.io/name=pinfold-agent cpuset.cpus.effective
	soon "CPUs that the agent may use" 0-1 in_guest "sed -n 's/Cpus_allowed_list:\t//p' /proc/\$(pgrep -f '^/usr/local/bin/pinfold agent')/status"
}

if [ -z "${KEEP:-}" ] || ! process_alive "$top/node" qemu; then
	# Expanded now: a trap must not depend on what a test does to "top".
	# shellcheck disable=SC2064
	[ -n "${KEEP:-}" ] || trap "process_stop '$top' watch; process_stop '$top' egress; node_stop '$top/node'; cp_stop '$cp'; rm -rf '$top'" EXIT
	start_cluster
fi
for t in $tests; do
	e2e_say "$RUNTIME: $t ($SECONDS s)"
	"test_$t"
done
echo "deploy.sh: $RUNTIME, $checks checks passed in $SECONDS s"
