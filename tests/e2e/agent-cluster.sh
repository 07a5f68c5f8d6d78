#!/bin/bash
#
# The node agent and its Node object: a real etcd and API server, a real containerd, and this script in
# place of the kubelet. Needs root and two CPUs. RUNTIME=containerd-1.7 uses the older containerd.

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/e2e/lib/native-runtime.sh
. "$here/lib/native-runtime.sh"
# shellcheck source=tests/e2e/lib/control-plane.sh
. "$here/lib/control-plane.sh"
# shellcheck source=tests/e2e/lib/native-agent.sh
. "$here/lib/native-agent.sh"

deploy=$here/../../deploy/agent
cores=management.workload.openshift.io/cores
want_cores=$(nproc --all)k

node() { kubectl get node "$name" -o "jsonpath=$1"; }
amount() { node "{.status.$1['${2//./\\.}']}"; } # LIST RESOURCE
# shellcheck disable=SC2317  # called by name
condition() { node "{.status.conditions[?(@.type==\"PartitioningReady\")].$1}"; }
# shellcheck disable=SC2317
taints() { node '{.spec.taints[*].key}' | awk '{ print gsub("pinfold.io/unpartitioned", "") + 0 } END { if (NR == 0) print 0 }'; }
# The first Event of a reason: its object and its message.
event() { kubectl get events -A --field-selector "reason=$1" -o 'jsonpath={.items[0].involvedObject.kind} {.items[0].involvedObject.name}: {.items[0].message}'; }
status_patch() { kubectl patch node "$name" --subresource=status --type=merge -p "$1" >/dev/null; }

# A kubelet's registration and its first status, as far as they matter here.
kubelet_registers() {
	kubectl create -f - >/dev/null <<-EOF
	apiVersion: v1
	kind: Node
	metadata: {name: $name, labels: {kubernetes.io/hostname: $name}}
	EOF
	status_patch '{"status":{"capacity":{"cpu":"2","memory":"4Gi","pods":"110"},"allocatable":{"cpu":"2","memory":"4Gi","pods":"110"},"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","message":"test"}]}}'
}

node_exists() { agent_status .cluster.registered; }

management_pod() { # NAME: a converted management pod, in $NATIVE_NAMESPACE; prints its cgroup
	native_pod "$dir" "$1" burstable/ "$target,\"resources.workload.openshift.io/c\":\"{\\\"cpushares\\\":51}\"" >/dev/null
	native_cgroup "$dir" "$(native_container "$dir" "$1" '"cpu_shares":2,"cpu_period":100000')"
}

test_capacity() {
	kubelet_registers
	agent_kubeconfig "$dir/agent.kubeconfig" "$name"
	agent_up --node-name "$name" --management 0 --kubeconfig "$dir/agent.kubeconfig"
	echo "  agent $(agent_rss) kB, connected to runtime and API server" >&2
	soon "capacity after the start" "$want_cores" amount capacity $cores
	is "allocatable of the Node" "$(amount allocatable $cores)" "$want_cores"
	prints "no shared CPUs in classic mode" "" amount capacity openshift.io/shared-cpus
	is "the kubelet's CPU capacity" "$(amount capacity cpu)" 2
	soon "condition" True condition status
	is "reason of the condition" "$(condition reason)" Pinning
	is "the kubelet's own condition" "$(node '{.status.conditions[?(@.type=="Ready")].status}')" True
	since=$(condition lastTransitionTime)
	is "the Node in the status" "$("$pinfold" status --run-dir "$dir/run" | sed -n 2p)" "Node $name, 2 namespaces may use the management pool"
	is "the connection in the metrics" "$(curl -sf --unix-socket "$dir/run/agent.sock" http://agent/metrics | grep '^pinfold_cluster_connected')" "pinfold_cluster_connected 1"
}

# A kubelet sets extended resources to zero when it considers its node new.
test_restored() {
	status_patch "{\"status\":{\"capacity\":{\"$cores\":\"0\"},\"allocatable\":{\"$cores\":\"0\"}}}"
	soon "capacity after zeroing" "$want_cores" amount capacity $cores
	soon "allocatable after zeroing" "$want_cores" amount allocatable $cores
	status_patch "{\"status\":{\"capacity\":{\"$cores\":null},\"allocatable\":{\"$cores\":null}}}"
	soon "allocatable after removal" "$want_cores" amount allocatable $cores
	status_patch '{"status":{"conditions":[]}}'
	soon "condition after removal" True condition status
	soon "an Event about it" "Node $name: CPU partitioning resources were removed or changed and are restored" event ResourcesRestored
	kubectl delete node "$name" >/dev/null
	soon "the agent has seen the deletion" false node_exists
	prints "a deleted Node stays deleted" "" kubectl get nodes -o name
	kubelet_registers
	agent_kubeconfig "$dir/agent.kubeconfig" "$name" # the old token was bound to the old Node
	soon "allocatable after deletion and registration" "$want_cores" amount allocatable $cores
	soon "condition after deletion and registration" True condition status
}

test_namespaces() {
	local path count
	path=$(NATIVE_NAMESPACE=good management_pod opted-in)
	is "CPUs in a namespace that allows management pods" "$(cpus_of "$path")" 0
	path=$(NATIVE_NAMESPACE=bad management_pod distrusted)
	is "CPUs in a namespace that does not" "$(cpus_of "$path")" 1
	soon "an Event about it" "Pod distrusted: container c: annotations rejected: its namespace does not allow the workload type" \
		event AnnotationRejected
	count=$(allowed_namespaces)
	kubectl annotate namespace bad workload.openshift.io/allowed=management >/dev/null
	soon "the agent has seen the annotation" $((count + 1)) allowed_namespaces
	path=$(NATIVE_NAMESPACE=bad management_pod allowed-later)
	is "CPUs after the namespace opted in" "$(cpus_of "$path")" 0
	soon "CPUs of the pod that was distrusted before" 0 cpus_of "$(native_cgroup "$dir" "$(native_crictl "$dir" ps -q --pod "$(cat "$dir/pod-distrusted.id")")")"
	kubectl annotate namespace bad workload.openshift.io/allowed- >/dev/null
	soon "the agent has seen that it is gone" "$count" allowed_namespaces
}
allowed_namespaces() { agent_status .cluster.allowedNamespaces; }

test_refused() {
	local pod
	native_pod "$dir" alone "" >/dev/null
	native_container "$dir" alone '"cpu_shares":1024,"cpu_period":100000,"cpu_quota":100000' >/dev/null
	native_pod "$dir" second "" >/dev/null
	for _ in 1 2 3; do # a kubelet retries
		native_container "$dir" second '"cpu_shares":1024,"cpu_period":100000,"cpu_quota":100000' >"$dir/second.out" 2>&1 &&
			die "one CPU was assigned twice"
	done
	soon "an Event for the refused container" \
		"Pod second: container c: not enough cpus available to satisfy request: requested=1, available=0" event ContainerRefused
	# Events are sent in order: when the Event of a third pod is there, no more Events of the second are on their way.
	native_pod "$dir" third "" >/dev/null
	native_container "$dir" third '"cpu_shares":1024,"cpu_period":100000,"cpu_quota":100000' >"$dir/third.out" 2>&1 &&
		die "one CPU was assigned twice"
	soon "Events of a third pod" 1 count_events ContainerRefused,involvedObject.name=third
	is "Events of a container refused three times" "$(count_events ContainerRefused,involvedObject.name=second)" 1
	is "source of the Event" "$(kubectl get events -A --field-selector reason=ContainerRefused -o 'jsonpath={.items[0].source.component} {.items[0].source.host}')" "pinfold-agent $name"
	for pod in alone second third; do native_crictl "$dir" rmp -f "$(cat "$dir/pod-$pod.id")" >/dev/null; done
}

test_drift() {
	local path
	path=$(NATIVE_NAMESPACE=good management_pod drifted)
	set_cpus "$path" 0-1
	soon "CPUs after drift" 0 cpus_of "$path"
	soon "an Event about it" "Pod drifted: container c: restored CPU settings changed externally, CPUs 0" event DriftCorrected
}

test_runtime_lost() {
	process_stop "$dir" containerd
	soon "condition without a runtime" False condition status
	is "reason without a runtime" "$(condition reason)" RuntimeDisconnected
	[ "$(condition lastTransitionTime)" != "$since" ] || die "lastTransitionTime has not changed"
	soon "an Event about it" 1 count_events RuntimeDisconnected
	native_daemon "$dir"
	LIMIT=40 soon "condition when the runtime is back" True condition status
}
# shellcheck disable=SC2317
count_events() { kubectl get events -A --field-selector "reason=$1" -o name | wc -l; } # REASON[,FIELD=VALUE]

# Without the API server, and after it is back.
test_api_lost() {
	local path
	process_stop "$dir" kube-apiserver
	path=$(NATIVE_NAMESPACE=good management_pod offline)
	is "CPUs without an API server" "$(cpus_of "$path")" 0
	path=$(NATIVE_NAMESPACE=bad management_pod offline-distrusted)
	is "without an API server the last known allowlist is used" "$(cpus_of "$path")" 1
	agent_down
	agent_up --node-name "$name" --management 0 --kubeconfig "$dir/agent.kubeconfig"
	path=$(NATIVE_NAMESPACE=good management_pod offline-later)
	is "CPUs after a restart of the agent without an API server" "$(cpus_of "$path")" 0
	path=$(NATIVE_NAMESPACE=bad management_pod offline-still-distrusted)
	is "CPUs of a distrusted pod after a restart of the agent" "$(cpus_of "$path")" 1
	# The state of the last agent is lost, as after a reboot: nothing is permitted until the API server is back.
	agent_down
	rm "$dir/run/namespaces.json"
	agent_up --node-name "$name" --management 0 --kubeconfig "$dir/agent.kubeconfig"
	path=$(NATIVE_NAMESPACE=good management_pod unverified)
	is "CPUs of a management pod while its permission is unknown" "$(cpus_of "$path")" 1
	cp_start_apiserver "$dir"
	status_patch "{\"status\":{\"capacity\":{\"$cores\":\"0\"},\"allocatable\":{\"$cores\":\"0\"}}}"
	LIMIT=40 soon "capacity when the API server is back" "$want_cores" amount capacity $cores
	LIMIT=40 soon "CPUs of the pod once its permission is known" 0 cpus_of "$path"
	LIMIT=40 soon "condition when the API server is back" True condition status
}

test_taint() {
	kubectl taint node "$name" pinfold.io/unpartitioned:NoSchedule other=1:NoSchedule >/dev/null
	soon "the taint is removed" 0 taints
	is "other taints stay" "$(node '{.spec.taints[?(@.key=="other")].value}')" 1
	agent_down
	is "condition of a stopped agent" "$(condition status) $(condition reason)" "Unknown AgentStopped"
	kubectl taint node "$name" pinfold.io/unpartitioned:NoSchedule >/dev/null
	process_stop "$dir" containerd
	agent_start --node-name "$name" --management 0 --kubeconfig "$dir/agent.kubeconfig" --taint-unready
	soon "condition before the runtime starts" False condition status
	is "the taint stays until the agent is ready" "$(taints)" 1
	native_daemon "$dir"
	LIMIT=40 soon "the taint is removed when the agent is ready" 0 taints
	process_stop "$dir" containerd
	LIMIT=60 soon "--taint-unready adds the taint when the runtime stops" 1 taints
	native_daemon "$dir"
	LIMIT=40 soon "--taint-unready removes the taint when the runtime is back" 0 taints
	agent_down
}

# kubectl would read the status first, which the agent's rights do not cover. NODE KIND BODY
status_as_agent() {
	curl -s --fail-with-body --cacert "$dir/pki/ca.crt" -X PATCH -H "Content-Type: application/$2-patch+json" \
		-H "Authorization: Bearer $(cat "$dir/agent.kubeconfig.token")" -d "$3" \
		"https://127.0.0.1:$(cat "$dir/port")/api/v1/nodes/$1/status"
}

topology() { echo "{\"apiVersion\":\"topology.node.k8s.io/v1alpha2\",\"kind\":\"NodeResourceTopology\",\"metadata\":{\"name\":\"$1\"},\"topologyPolicies\":[],\"zones\":[]}"; }

# The agent's rights cover its own Node only, and there only the fields that it manages.
test_policy() {
	local as_agent
	as_agent=("$(cp_bin "$dir" kubectl)" --kubeconfig "$dir/agent.kubeconfig")
	kubectl create -f - >/dev/null <<-EOF
	apiVersion: v1
	kind: Node
	metadata: {name: other}
	EOF
	# shellcheck disable=SC2317  # called by name
	policy_active() { ! "${as_agent[@]}" label node "$name" probe=1 --dry-run=server >/dev/null 2>&1; }
	wait_for 30 policy_active || die "the policy is not in force"
	refused() { # TEXT COMMAND...
		"${@:2}" >"$dir/refused.out" 2>&1 && die "allowed: ${*:2}"
		grep -q "$1" "$dir/refused.out" || die "refused for another reason: $(cat "$dir/refused.out")"
		checks=$((checks + 1))
	}
	refused "may not write objects of another node" status_as_agent other merge "{\"status\":{\"capacity\":{\"$cores\":\"1k\"}}}"
	refused "may not write objects of another node" "${as_agent[@]}" taint node other pinfold.io/unpartitioned:NoSchedule
	refused "name its own node" "${as_agent[@]}" create -f - <<-EOF
	{"apiVersion":"v1","kind":"Event","metadata":{"name":"forged","namespace":"default"},"source":{"host":"other"},
	 "involvedObject":{"kind":"Node","name":"other"},"reason":"Forged","message":"forged","type":"Normal"}
	EOF
	refused "may not change labels" "${as_agent[@]}" label node "$name" a=b
	refused "only change the taint" "${as_agent[@]}" taint node "$name" mine:NoSchedule
	refused "only change the taint" "${as_agent[@]}" patch node "$name" --type=merge -p '{"spec":{"unschedulable":true}}'
	refused "only change the resources" status_as_agent "$name" merge \
		'{"status":{"capacity":{"cpu":"64"}}}'
	refused "only change the resources" status_as_agent "$name" merge \
		'{"status":{"allocatable":{"memory":null}}}'
	refused "only change the condition" status_as_agent "$name" strategic-merge \
		'{"status":{"conditions":[{"type":"Ready","status":"False"}]}}'
	# With deploy/topology it may write the topology object of its own node only.
	kubectl apply -k "$deploy/../topology" >/dev/null
	kubectl wait --for=condition=Established crd/noderesourcetopologies.topology.node.k8s.io >/dev/null
	refused "may not write objects of another node" "${as_agent[@]}" create -f - <<<"$(topology other)"
	"${as_agent[@]}" create -f - <<<"$(topology "$name")" >/dev/null || die "its own topology object is refused"
	refused "cannot delete" "${as_agent[@]}" delete node other
	refused "cannot create" "${as_agent[@]}" create -f - <<<'{"apiVersion":"v1","kind":"Node","metadata":{"name":"third"}}'
	refused "cannot list resource \"pods\"" "${as_agent[@]}" get pods -A
	refused "cannot list resource \"secrets\"" "${as_agent[@]}" get secrets -A
	# A token that is bound to no node gives no rights.
	kubectl create token pinfold-agent -n pinfold-agent >"$dir/agent.kubeconfig.token"
	refused "not bound to a node" status_as_agent "$name" merge \
		"{\"status\":{\"capacity\":{\"$cores\":\"1k\"}}}"
	agent_kubeconfig "$dir/agent.kubeconfig" "$name"
	kubectl delete node other >/dev/null
}

# Three pools, and a resize. --topology describes a machine with enough CPUs for that.
test_pools() {
	local pod
	agent_down
	for pod in $(native_crictl "$dir" pods -q); do native_crictl "$dir" rmp -f "$pod" >/dev/null; done
	agent_up --node-name "$name" --topology 'pack:1 core:4 pu:2' --pools-file "$dir/pools" --kubeconfig "$dir/agent.kubeconfig"
	soon "capacity of management CPUs" 8k amount capacity $cores
	soon "allocatable shared CPUs" 2k amount allocatable openshift.io/shared-cpus
	is "capacity of guaranteed CPUs" "$(amount capacity openshift.io/guaranteed-cpus)" 4k
	is "message of the condition" "$(condition message)" "containerd: management CPUs 0-1, shared 2-3, guaranteed 4-7"
	echo '{"reserved":"0-1","shared":"2-4","guaranteed":"5-7"}' >"$dir/pools"
	kill -HUP "$(cut -d' ' -f1 "$dir/agent.pid")"
	soon "capacity of shared CPUs after a resize" 3k amount capacity openshift.io/shared-cpus
	soon "allocatable guaranteed CPUs after a resize" 3k amount allocatable openshift.io/guaranteed-cpus
	echo '{"reserved":"0-1","shared":"2-4","guaranteed":"5-7","types":{"ran":"1"}}' >"$dir/pools"
	kill -HUP "$(cut -d' ' -f1 "$dir/agent.pid")"
	soon "capacity of another workload type" 8k amount capacity ran.workload.openshift.io/cores
	soon "its allocatable" 8k amount allocatable ran.workload.openshift.io/cores
	echo '{"reserved":"0-1","shared":"2-4","guaranteed":"5-7"}' >"$dir/pools"
	kill -HUP "$(cut -d' ' -f1 "$dir/agent.pid")"
	soon "capacity of a workload type that is gone" "" amount capacity ran.workload.openshift.io/cores
	echo '{"reserved":"0-1","shared":"1-4","guaranteed":"5-7"}' >"$dir/pools"
	kill -HUP "$(cut -d' ' -f1 "$dir/agent.pid")"
	soon "reason of the condition when pools are refused" PoolsRefused condition reason
	echo '{"reserved":"0-1"}' >"$dir/pools"
	kill -HUP "$(cut -d' ' -f1 "$dir/agent.pid")"
	soon "capacity of shared CPUs in classic mode" "" amount capacity openshift.io/shared-cpus
	soon "allocatable guaranteed CPUs in classic mode" "" amount allocatable openshift.io/guaranteed-cpus
	agent_down
}

# The annotation of the webhook's --require-agent, with a runtime that validates it.
test_required() {
	local out required='"required-plugins.noderesource.dev":"[\"pinfold\"]"'
	[ "${RUNTIME:-containerd}" = containerd ] || return 0 # 1.7 has no validator
	agent_down
	agent_up --node-name "$name" --management 0 --no-cluster --allow-namespace default
	native_pod "$dir" requires burstable/ "$target,$required" >/dev/null
	is "CPUs with the agent" "$(cpus_of "$(native_cgroup "$dir" "$(native_container "$dir" requires '"cpu_shares":2,"cpu_period":100000')")")" 0
	agent_down
	native_pod "$dir" requires-again burstable/ "$target,$required" >/dev/null
	out=$(native_container "$dir" requires-again '"cpu_shares":2,"cpu_period":100000' 2>&1) && die "started without the agent"
	case $out in
	*'required plugin \"pinfold\" not present'* | *'required plugin "pinfold" not present'*) checks=$((checks + 1)) ;;
	*) die "refused for another reason: $out" ;;
	esac
	native_pod "$dir" tolerates burstable/ "$target,$required,\"tolerate-missing-nri-plugins.noderesource.dev\":\"true\"" >/dev/null
	native_container "$dir" tolerates '"cpu_shares":2,"cpu_period":100000' >/dev/null || die "a pod that tolerates it did not start"
	checks=$((checks + 1))
}

test_uninstall() {
	local path
	agent_down
	agent_up --node-name "$name" --management 0 --kubeconfig "$dir/agent.kubeconfig"
	soon "capacity before --uninstall" "$want_cores" amount capacity $cores
	path=$(NATIVE_NAMESPACE=good management_pod uninstalled)
	is "CPUs before --uninstall" "$(cpus_of "$path")" 0
	"$pinfold" agent --uninstall --run-dir "$dir/run" --state-dir "$dir/state" --node-name "$name" --kubeconfig "$dir/agent.kubeconfig" \
		2>"$dir/uninstall.out" && die "--uninstall ran beside a running agent"
	grep -q "an agent is running" "$dir/uninstall.out" || die "$(cat "$dir/uninstall.out")"
	agent_down
	kubectl taint node "$name" pinfold.io/unpartitioned:NoSchedule other=1:NoSchedule --overwrite >/dev/null
	"$pinfold" agent --uninstall --run-dir "$dir/run" --state-dir "$dir/state" --node-name "$name" --kubeconfig "$dir/agent.kubeconfig" || die "uninstall"
	is "CPUs after --uninstall" "$(cpus_of "$path")" 0-1
	prints "capacity after --uninstall" "" amount capacity $cores
	prints "allocatable after --uninstall" "" amount allocatable $cores
	prints "condition after --uninstall" "" condition status
	prints "taint after --uninstall" 0 taints
	is "other taints after --uninstall" "$(node '{.spec.taints[?(@.key=="other")].value}')" 1
	is "the kubelet's CPU capacity" "$(amount capacity cpu)" 2
}

# With the kubelet's identity, before the Node exists; then the kubelet finds it.
test_register() {
	agent_down
	name=fresh
	cp_node_kubeconfig "$dir" fresh 127.0.0.1
	agent_up --node-name "$name" --management 0 --kubeconfig "$dir/fresh.kubeconfig" --register --register-label rack=r1 \
		--register-taint dedicated=ran:NoSchedule
	soon "capacity of a registered Node" "$want_cores" amount capacity $cores
	is "allocatable of the Node" "$(amount allocatable $cores)" "$want_cores"
	is "label of a registered Node" "$(node '{.metadata.labels.rack}')" r1
	is "taint of a registered Node" "$(node '{.spec.taints[?(@.key=="dedicated")].value}')" ran
	soon "condition" True condition status
	status_patch "{\"status\":{\"capacity\":{\"cpu\":\"2\",\"$cores\":\"0\"},\"allocatable\":{\"cpu\":\"2\",\"$cores\":\"0\"}}}"
	is "CPUs of a management pod when the agent may not read namespaces" "$(cpus_of "$(NATIVE_NAMESPACE=good management_pod unread)")" 1
	agent_down
	kubectl apply -f "$deploy/node-rbac.yaml" >/dev/null
	agent_up --node-name "$name" --management 0 --kubeconfig "$dir/fresh.kubeconfig" --register
	soon "CPUs of the pod with node-rbac.yaml" 0 cpus_of "$(native_cgroup "$dir" "$(native_crictl "$dir" ps -q --pod "$(cat "$dir/pod-unread.id")")")"
	status_patch "{\"status\":{\"capacity\":{\"cpu\":\"2\",\"$cores\":\"0\"},\"allocatable\":{\"cpu\":\"2\",\"$cores\":\"0\"}}}"
	soon "allocatable after the kubelet's registration" "$want_cores" amount allocatable $cores
	kubectl delete node fresh >/dev/null
	soon "the agent has seen the deletion" false node_exists
	prints "a deleted Node is not registered again" "" kubectl get nodes -o name --field-selector metadata.name=fresh
	agent_down
	agent_up --node-name "$name" --management 0 --kubeconfig "$dir/fresh.kubeconfig" --register
	soon "a restarted agent registers it" "$want_cores" amount allocatable $cores
	agent_down
}

# The kubeconfig is created after the agent starts, as at the first boot of a node.
test_late_kubeconfig() {
	agent_down
	name=late
	cp_node_kubeconfig "$dir" late 127.0.0.1
	mv "$dir/late.kubeconfig" "$dir/aside"
	agent_up --node-name "$name" --management 0 --kubeconfig "$dir/late.kubeconfig" --register
	is "CPUs without a kubeconfig" "$(cpus_of "$(NATIVE_NAMESPACE=good management_pod early)")" 1
	mv "$dir/aside" "$dir/late.kubeconfig"
	LIMIT=40 soon "capacity of a registered Node" "$want_cores" amount capacity $cores
	LIMIT=40 soon "CPUs of the pod once its permission is known" 0 cpus_of "$(native_cgroup "$dir" "$(native_crictl "$dir" ps -q --pod "$(cat "$dir/pod-early.id")")")"
	agent_down
}

[ "$(nproc)" -ge 2 ] || { echo "agent-cluster.sh: needs two CPUs" >&2; exit 77; }
dir=$(mktemp -d "/tmp/pinfold-cluster-XXXXXX")
name=worker-0
cp=$dir
echo '{"reserved":"0-1","shared":"2-3","guaranteed":"4-7"}' >"$dir/pools"
trap 'process_stop "$dir" agent; native_stop "$dir"; cp_stop "$dir"; [ -n "${KEEP:-}" ] || rm -rf "$dir"' EXIT
cp_start "$dir"
if [ "${RUNTIME:-containerd}" = containerd ]; then
	NATIVE_CONFIG='[plugins."io.containerd.nri.v1.nri".default_validator]
	  enable = true
	  tolerate_missing_plugins_annotation = "tolerate-missing-nri-plugins.noderesource.dev"'
fi
native_start "$dir" "${RUNTIME:-containerd}"
agent_flags=(--nri-socket "$dir/nri.sock" --reconcile-interval 2)
kubectl apply -f "$deploy/namespace.yaml" -f "$deploy/rbac.yaml" -f "$deploy/policy.yaml" >/dev/null
cp_namespace "$dir" good >/dev/null
kubectl annotate namespace good kube-public workload.openshift.io/allowed=management >/dev/null
cp_namespace "$dir" bad >/dev/null
kubectl apply -k "$deploy" --dry-run=server >/dev/null # the server accepts the DaemonSet, too
for t in ${TESTS:-capacity restored namespaces refused drift runtime_lost api_lost taint policy pools required uninstall register late_kubeconfig}; do
	echo "$t" >&2
	"test_$t"
done
echo "agent-cluster.sh: $checks checks passed"
