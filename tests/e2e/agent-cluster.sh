#!/bin/bash
#
# The node agent and its Node object: a real etcd and API server, a real containerd, and this script in
# the place of the kubelet. Needs root and two CPUs. RUNTIME=containerd-1.7 takes the older one.

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

# soon WHAT WANT COMMAND...: until COMMAND prints WANT; says how long that took.
soon() {
	local what=$1 want=$2 began
	shift 2
	began=$(date +%s%N)
	# shellcheck disable=SC2016  # expanded by the inner shell
	wait_for "${LIMIT:-20}" prints "$want" "$@" || die "$what: got '$("$@")', want '$want'"
	checks=$((checks + 1))
	echo "  $what: $((($(date +%s%N) - began) / 1000000)) ms" >&2
}
prints() { [ "$("${@:2}" 2>/dev/null)" = "$1" ]; }

k() { cp_kubectl "$dir" "$@"; }
node() { k get node "$name" -o "jsonpath=$1"; }
amount() { node "{.status.$1['${2//./\\.}']}"; } # LIST RESOURCE
# shellcheck disable=SC2317  # called by name
condition() { node "{.status.conditions[?(@.type==\"PartitioningReady\")].$1}"; }
# shellcheck disable=SC2317
taints() { node '{.spec.taints[*].key}' | tr ' ' '\n' | grep -c pinfold.io/unpartitioned || :; }
# The first Event of a reason: what it is about and what it says.
event() { k get events -A --field-selector "reason=$1" -o 'jsonpath={.items[0].involvedObject.kind} {.items[0].involvedObject.name}: {.items[0].message}'; }
status_patch() { k patch node "$name" --subresource=status --type=merge -p "$1" >/dev/null; }

# A kubelet's registration and its next reports; only the part that matters here.
kubelet_registers() {
	k create -f - >/dev/null <<-EOF
	apiVersion: v1
	kind: Node
	metadata: {name: $name, labels: {kubernetes.io/hostname: $name}}
	EOF
	status_patch '{"status":{"capacity":{"cpu":"2","memory":"4Gi","pods":"110"},"allocatable":{"cpu":"2","memory":"4Gi","pods":"110"},"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","message":"played"}]}}'
}

# A kubeconfig with a token of the agent's ServiceAccount, bound to a node as the token of its pod is.
agent_kubeconfig() { # FILE NODE
	k create token pinfold-agent -n pinfold-agent --bound-object-kind Node --bound-object-name "$2" >"$1.token"
	cat >"$1" <<-EOF
	apiVersion: v1
	kind: Config
	current-context: agent
	clusters:
	- name: test
	  cluster: {server: "https://127.0.0.1:$(cat "$dir/port")", certificate-authority: $dir/pki/ca.crt}
	users:
	- name: agent
	  user: {tokenFile: $1.token}
	contexts:
	- name: agent
	  context: {cluster: test, user: agent}
	EOF
}

agent_up() { # FLAG...
	agent_start --nri-socket "$dir/nri.sock" --reassert 2 --node-name "$name" "$@"
	wait_for 30 agent_ready || die "the agent is not ready"
}
agent_down() { process_stop "$dir" agent; }
rss() { awk '/VmRSS/ { print $2 }' "/proc/$(cut -d' ' -f1 "$dir/agent.pid")/status"; }

management_pod() { # NAME: a converted management pod, in $NATIVE_NAMESPACE; prints its cgroup
	native_pod "$dir" "$1" burstable/ "$target,\"resources.workload.openshift.io/c\":\"{\\\"cpushares\\\":51}\"" >/dev/null
	native_cgroup "$dir" "$(native_container "$dir" "$1" '"cpu_shares":2,"cpu_period":100000')"
}

test_capacity() {
	kubelet_registers
	agent_kubeconfig "$dir/agent.kubeconfig" "$name"
	agent_up --reserved 0 --kubeconfig "$dir/agent.kubeconfig"
	echo "  agent $(rss) kB, connected to both" >&2
	soon "capacity appears" "$want_cores" amount capacity $cores
	is "allocatable" "$(amount allocatable $cores)" "$want_cores"
	is "no pools in classic mode" "$(amount capacity openshift.io/shared-cpus)" ""
	is "the kubelet's own stays" "$(amount capacity cpu)" 2
	soon "condition" True condition status
	is "reason" "$(condition reason)" Pinning
	is "the kubelet's condition stays" "$(node '{.status.conditions[?(@.type=="Ready")].status}')" True
	since=$(condition lastTransitionTime)
	is "status says so" "$("$pinfold" status --run-dir "$dir/run" | sed -n 2p)" "Node $name, 2 namespaces may use reserved CPUs"
	is "metrics, too" "$(curl -sf --unix-socket "$dir/run/agent.sock" http://agent/metrics | grep '^pinfold_cluster_connected')" "pinfold_cluster_connected 1"
}

# What a kubelet does to extended resources when it takes itself for new, and worse.
test_comes_back() {
	status_patch "{\"status\":{\"capacity\":{\"$cores\":\"0\"},\"allocatable\":{\"$cores\":\"0\"}}}"
	soon "after zeroing" "$want_cores" amount capacity $cores
	soon "after zeroing, allocatable" "$want_cores" amount allocatable $cores
	status_patch "{\"status\":{\"capacity\":{\"$cores\":null},\"allocatable\":{\"$cores\":null}}}"
	soon "after removal" "$want_cores" amount allocatable $cores
	status_patch '{"status":{"conditions":[]}}'
	soon "the condition, after removal" True condition status
	soon "an Event about it" "Node $name: resources of CPU partitioning were missing or changed and are back" event ResourcesRestored
	k delete node "$name" >/dev/null
	sleep 2
	is "a deleted Node stays deleted" "$(k get nodes -o name)" ""
	kubelet_registers
	agent_kubeconfig "$dir/agent.kubeconfig" "$name" # the old token was bound to the old Node
	soon "after deletion and registration" "$want_cores" amount allocatable $cores
	soon "with the condition" True condition status
}

test_namespaces() {
	local path
	path=$(NATIVE_NAMESPACE=good management_pod welcome)
	is "namespace that permits" "$(cpus_of "$path")" 0
	path=$(NATIVE_NAMESPACE=bad management_pod impostor)
	is "namespace that does not" "$(cpus_of "$path")" 1
	soon "an Event about it" "Pod impostor: container c: its annotations are not believed: its namespace does not allow the workload type" \
		event AnnotationNotBelieved
	k annotate namespace bad workload.openshift.io/allowed=management >/dev/null
	sleep 1
	path=$(NATIVE_NAMESPACE=bad management_pod reformed)
	is "permitted later" "$(cpus_of "$path")" 0
	k annotate namespace bad workload.openshift.io/allowed- >/dev/null
}

test_refused() {
	local pod
	native_pod "$dir" alone "" >/dev/null
	native_container "$dir" alone '"cpu_shares":1024,"cpu_period":100000,"cpu_quota":100000' >/dev/null
	native_pod "$dir" second "" >/dev/null
	for _ in 1 2 3; do # as a kubelet tries again and again
		native_container "$dir" second '"cpu_shares":1024,"cpu_period":100000,"cpu_quota":100000' >"$dir/second.out" 2>&1 &&
			die "a CPU was given twice"
	done
	soon "an Event for the refused container" \
		"Pod second: container c: not enough cpus available to satisfy request: requested=1, available=0" event ContainerRefused
	sleep 2
	is "one Event, not three" "$(k get events -A --field-selector reason=ContainerRefused -o name | wc -l)" 1
	is "with its source" "$(k get events -A --field-selector reason=ContainerRefused -o 'jsonpath={.items[0].source.component} {.items[0].source.host}')" "pinfold-agent $name"
	for pod in alone second; do native_crictl "$dir" rmp -f "$(cat "$dir/pod-$pod.id")" >/dev/null; done
}

test_drift() {
	local path
	path=$(NATIVE_NAMESPACE=good management_pod pushed)
	echo 0-1 >"/sys/fs/cgroup/cpuset$path/cpuset.cpus" 2>/dev/null || echo 0-1 >"/sys/fs/cgroup$path/cpuset.cpus"
	soon "drift is repaired" 0 cpus_of "$path"
	soon "an Event about it" "Pod pushed: container c: somebody changed its CPU settings; it is back on CPUs 0" event DriftRepaired
}

test_runtime_lost() {
	process_stop "$dir" containerd
	soon "condition" False condition status
	is "reason" "$(condition reason)" RuntimeDisconnected
	[ "$(condition lastTransitionTime)" != "$since" ] || die "the transition has no time of its own"
	soon "an Event about it" 1 count_events RuntimeDisconnected
	native_daemon "$dir"
	LIMIT=40 soon "condition, when it is back" True condition status
}
# shellcheck disable=SC2317
count_events() { k get events -A --field-selector "reason=$1" -o name | wc -l; }

# While the API server is away, and after it is back.
test_api_lost() {
	local path
	process_stop "$dir" kube-apiserver
	path=$(NATIVE_NAMESPACE=good management_pod offline)
	is "pinned without an API server" "$(cpus_of "$path")" 0
	path=$(NATIVE_NAMESPACE=bad management_pod offline-impostor)
	is "what was known goes on to count" "$(cpus_of "$path")" 1
	agent_down
	agent_up --reserved 0 --kubeconfig "$dir/agent.kubeconfig"
	path=$(NATIVE_NAMESPACE=good management_pod offline-later)
	is "also after a restart" "$(cpus_of "$path")" 0
	path=$(NATIVE_NAMESPACE=bad management_pod sly)
	is "who looks converted is believed while nobody can say" "$(cpus_of "$path")" 0
	cp_start_apiserver "$dir"
	status_patch "{\"status\":{\"capacity\":{\"$cores\":\"0\"},\"allocatable\":{\"$cores\":\"0\"}}}"
	LIMIT=40 soon "capacity, when it is back" "$want_cores" amount capacity $cores
	LIMIT=40 soon "and no longer when somebody can" 1 cpus_of "$path"
	LIMIT=40 soon "the condition" True condition status
}

test_taint() {
	k taint node "$name" pinfold.io/unpartitioned:NoSchedule other=1:NoSchedule >/dev/null
	soon "the taint goes" 0 taints
	is "the other stays" "$(node '{.spec.taints[?(@.key=="other")].value}')" 1
	agent_down
	is "stopped" "$(condition status) $(condition reason)" "Unknown AgentStopped"
	k taint node "$name" pinfold.io/unpartitioned:NoSchedule >/dev/null
	process_stop "$dir" containerd
	process_start "$dir" agent "$pinfold" agent --run-dir "$dir/run" --nri-socket "$dir/nri.sock" --kubelet-state /nonexistent \
		--node-name "$name" --reserved 0 --kubeconfig "$dir/agent.kubeconfig" --taint-unready
	soon "not ready" False condition status
	is "the taint stays until we are ready" "$(taints)" 1
	native_daemon "$dir"
	LIMIT=40 soon "ready: the taint goes" 0 taints
	process_stop "$dir" containerd
	LIMIT=60 soon "with --taint-unready it comes back" 1 taints
	native_daemon "$dir"
	LIMIT=40 soon "and goes again" 0 taints
	agent_down
}

# kubectl would read the status first, which agents need not. NODE KIND BODY
status_as_agent() {
	curl -s --fail-with-body --cacert "$dir/pki/ca.crt" -X PATCH -H "Content-Type: application/$2-patch+json" \
		-H "Authorization: Bearer $(cat "$dir/agent.kubeconfig.token")" -d "$3" \
		"https://127.0.0.1:$(cat "$dir/port")/api/v1/nodes/$1/status"
}

topology() { echo "{\"apiVersion\":\"topology.node.k8s.io/v1alpha2\",\"kind\":\"NodeResourceTopology\",\"metadata\":{\"name\":\"$1\"},\"topologyPolicies\":[],\"zones\":[]}"; }

# Its rights end at its own Node, and there at what is ours.
test_policy() {
	local as=(--kubeconfig "$dir/agent.kubeconfig") kubectl
	kubectl=$(cp_bin "$dir" kubectl)
	k create -f - >/dev/null <<-EOF
	apiVersion: v1
	kind: Node
	metadata: {name: other}
	EOF
	# shellcheck disable=SC2317  # called by name
	policy_active() { ! "$kubectl" "${as[@]}" label node "$name" probe=1 --overwrite >/dev/null 2>&1; }
	wait_for 30 policy_active || die "the policy does not bind"
	refused() { # WORDS COMMAND...
		"${@:2}" >"$dir/refused.out" 2>&1 && die "allowed: ${*:2}"
		grep -q "$1" "$dir/refused.out" || die "refused otherwise: $(cat "$dir/refused.out")"
		checks=$((checks + 1))
	}
	refused "may not write what is another node" status_as_agent other merge "{\"status\":{\"capacity\":{\"$cores\":\"1k\"}}}"
	refused "may not write what is another node" "$kubectl" "${as[@]}" taint node other pinfold.io/unpartitioned:NoSchedule
	refused "name its own node" "$kubectl" "${as[@]}" create -f - <<-EOF
	{"apiVersion":"v1","kind":"Event","metadata":{"name":"forged","namespace":"default"},"source":{"host":"other"},
	 "involvedObject":{"kind":"Node","name":"other"},"reason":"Forged","message":"forged","type":"Normal"}
	EOF
	refused "may not change labels" "$kubectl" "${as[@]}" label node "$name" a=b
	refused "only change the taint" "$kubectl" "${as[@]}" taint node "$name" mine:NoSchedule
	refused "only change the taint" "$kubectl" "${as[@]}" patch node "$name" --type=merge -p '{"spec":{"unschedulable":true}}'
	refused "only change the resources" status_as_agent "$name" merge \
		'{"status":{"capacity":{"cpu":"64"}}}'
	refused "only change the resources" status_as_agent "$name" merge \
		'{"status":{"allocatable":{"memory":null}}}'
	refused "only change the condition" status_as_agent "$name" strategic-merge \
		'{"status":{"conditions":[{"type":"Ready","status":"False"}]}}'
	# What deploy/topology lets it write is its own node's as well.
	k apply -k "$deploy/../topology" >/dev/null
	k wait --for=condition=Established crd/noderesourcetopologies.topology.node.k8s.io >/dev/null
	refused "may not write what is another node" "$kubectl" "${as[@]}" create -f - <<<"$(topology other)"
	"$kubectl" "${as[@]}" create -f - <<<"$(topology "$name")" >/dev/null || die "its own topology object is refused"
	refused "cannot delete" "$kubectl" "${as[@]}" delete node other
	refused "cannot create" "$kubectl" "${as[@]}" create -f - <<<'{"apiVersion":"v1","kind":"Node","metadata":{"name":"third"}}'
	refused "cannot list resource \"pods\"" "$kubectl" "${as[@]}" get pods -A
	refused "cannot list resource \"secrets\"" "$kubectl" "${as[@]}" get secrets -A
	# A token that says nothing about a node is good for nothing.
	k create token pinfold-agent -n pinfold-agent >"$dir/agent.kubeconfig.token"
	refused "not bound to a node" status_as_agent "$name" merge \
		"{\"status\":{\"capacity\":{\"$cores\":\"1k\"}}}"
	agent_kubeconfig "$dir/agent.kubeconfig" "$name"
	k delete node other >/dev/null
}

# Three pools, and pools that change while all runs. This machine has CPUs enough for that only in
# a description.
test_pools() {
	local pod
	agent_down
	for pod in $(native_crictl "$dir" pods -q); do native_crictl "$dir" rmp -f "$pod" >/dev/null; done
	agent_up --topology 'pack:1 core:4 pu:2' --pools-file "$dir/pools" --kubeconfig "$dir/agent.kubeconfig"
	soon "management" 8k amount capacity $cores
	soon "shared" 2k amount allocatable openshift.io/shared-cpus
	is "guaranteed" "$(amount capacity openshift.io/guaranteed-cpus)" 4k
	is "message" "$(condition message)" "containerd: reserved CPUs 0-1, shared 2-3, guaranteed 4-7"
	echo '{"reserved":"0-1","shared":"2-4","guaranteed":"5-7"}' >"$dir/pools"
	kill -HUP "$(cut -d' ' -f1 "$dir/agent.pid")"
	soon "resized: shared" 3k amount capacity openshift.io/shared-cpus
	soon "resized: guaranteed" 3k amount allocatable openshift.io/guaranteed-cpus
	echo '{"reserved":"0-1","shared":"1-4","guaranteed":"5-7"}' >"$dir/pools"
	kill -HUP "$(cut -d' ' -f1 "$dir/agent.pid")"
	soon "refused pools show" PoolsRefused condition reason
	echo '{"reserved":"0-1"}' >"$dir/pools"
	kill -HUP "$(cut -d' ' -f1 "$dir/agent.pid")"
	soon "back to one pool: no amount is left" "" amount capacity openshift.io/shared-cpus
	soon "in allocatable neither" "" amount allocatable openshift.io/guaranteed-cpus
	agent_down
}

# What the webhook's --require-agent puts on a pod, and a runtime that heeds it.
test_required() {
	local words required='"required-plugins.noderesource.dev":"[\"pinfold\"]"'
	[ "${RUNTIME:-containerd}" = containerd ] || return 0 # 1.7 has no validator
	agent_down
	agent_up --reserved 0 --no-cluster
	native_pod "$dir" asks burstable/ "$target,$required" >/dev/null
	is "with the agent" "$(cpus_of "$(native_cgroup "$dir" "$(native_container "$dir" asks '"cpu_shares":2,"cpu_period":100000')")")" 0
	agent_down
	native_pod "$dir" asks-again burstable/ "$target,$required" >/dev/null
	words=$(native_container "$dir" asks-again '"cpu_shares":2,"cpu_period":100000' 2>&1) && die "started without the agent"
	case $words in
	*'required plugin \"pinfold\" not present'* | *'required plugin "pinfold" not present'*) checks=$((checks + 1)) ;;
	*) die "refused otherwise: $words" ;;
	esac
	native_pod "$dir" tolerates burstable/ "$target,$required,\"tolerate-missing-nri-plugins.noderesource.dev\":\"true\"" >/dev/null
	native_container "$dir" tolerates '"cpu_shares":2,"cpu_period":100000' >/dev/null || die "a pod that tolerates it did not start"
	checks=$((checks + 1))
}

test_uninstall() {
	local path
	agent_down
	agent_up --reserved 0 --kubeconfig "$dir/agent.kubeconfig"
	soon "capacity" "$want_cores" amount capacity $cores
	path=$(NATIVE_NAMESPACE=good management_pod leaving)
	is "pinned" "$(cpus_of "$path")" 0
	"$pinfold" agent --uninstall --run-dir "$dir/run" --node-name "$name" --kubeconfig "$dir/agent.kubeconfig" \
		2>"$dir/uninstall.out" && die "uninstalled under a running agent"
	grep -q "an agent runs" "$dir/uninstall.out" || die "$(cat "$dir/uninstall.out")"
	agent_down
	k taint node "$name" pinfold.io/unpartitioned:NoSchedule other=1:NoSchedule --overwrite >/dev/null
	"$pinfold" agent --uninstall --run-dir "$dir/run" --node-name "$name" --kubeconfig "$dir/agent.kubeconfig" || die "uninstall"
	is "widened" "$(cpus_of "$path")" 0-1
	is "capacity is gone" "$(amount capacity $cores)" ""
	is "allocatable, too" "$(amount allocatable $cores)" ""
	is "the condition, too" "$(condition status)" ""
	is "our taint, too" "$(taints)" 0
	is "the other taint stays" "$(node '{.spec.taints[?(@.key=="other")].value}')" 1
	is "the kubelet's own stays" "$(amount capacity cpu)" 2
}

# With the kubelet's own identity, before there is a Node; then a kubelet that finds it.
test_register() {
	agent_down
	name=fresh
	cp_node_kubeconfig "$dir" fresh 127.0.0.1
	agent_up --reserved 0 --kubeconfig "$dir/fresh.kubeconfig" --register --register-label rack=r1 \
		--register-taint dedicated=ran:NoSchedule
	soon "the Node is there" "$want_cores" amount capacity $cores
	is "allocatable" "$(amount allocatable $cores)" "$want_cores"
	is "label" "$(node '{.metadata.labels.rack}')" r1
	is "taint" "$(node '{.spec.taints[?(@.key=="dedicated")].value}')" ran
	soon "condition" True condition status
	status_patch "{\"status\":{\"capacity\":{\"cpu\":\"2\",\"$cores\":\"0\"},\"allocatable\":{\"cpu\":\"2\",\"$cores\":\"0\"}}}"
	is "who may not read namespaces goes by looks" "$(cpus_of "$(NATIVE_NAMESPACE=bad management_pod unread)")" 0
	soon "after the kubelet's registration" "$want_cores" amount allocatable $cores
	k delete node fresh >/dev/null
	sleep 3
	is "a Node that was deleted is not made again" "$(k get nodes -o name | grep -c fresh || :)" 0
	agent_down
	agent_up --reserved 0 --kubeconfig "$dir/fresh.kubeconfig" --register
	soon "but when the agent starts" "$want_cores" amount allocatable $cores
	agent_down
}

# A kubeconfig that comes later, as at the first boot of a node.
test_late_kubeconfig() {
	agent_down
	name=late
	cp_node_kubeconfig "$dir" late 127.0.0.1
	mv "$dir/late.kubeconfig" "$dir/aside"
	agent_up --reserved 0 --kubeconfig "$dir/late.kubeconfig" --register
	is "pinning goes on" "$(cpus_of "$(management_pod early)")" 0
	mv "$dir/aside" "$dir/late.kubeconfig"
	LIMIT=40 soon "the Node is there" "$want_cores" amount capacity $cores
	agent_down
}

[ "$(nproc)" -ge 2 ] || { echo "agent-cluster.sh: needs two CPUs" >&2; exit 77; }
dir=$(mktemp -d "/tmp/pinfold-cluster-XXXXXX")
name=worker-0
echo '{"reserved":"0-1","shared":"2-3","guaranteed":"4-7"}' >"$dir/pools"
trap 'process_stop "$dir" agent; native_stop "$dir"; cp_stop "$dir"; [ -n "${KEEP:-}" ] || rm -rf "$dir"' EXIT
cp_start "$dir"
if [ "${RUNTIME:-containerd}" = containerd ]; then
	NATIVE_CONFIG='[plugins."io.containerd.nri.v1.nri".default_validator]
	  enable = true
	  tolerate_missing_plugins_annotation = "tolerate-missing-nri-plugins.noderesource.dev"'
fi
native_start "$dir" "${RUNTIME:-containerd}"
k apply -f "$deploy/namespace.yaml" -f "$deploy/rbac.yaml" -f "$deploy/policy.yaml" >/dev/null
cp_namespace "$dir" good >/dev/null
k annotate namespace good workload.openshift.io/allowed=management >/dev/null
cp_namespace "$dir" bad >/dev/null
k apply -k "$deploy" --dry-run=server >/dev/null # the DaemonSet as well is what the server takes
for t in ${TESTS:-capacity comes_back namespaces refused drift runtime_lost api_lost taint policy pools required uninstall register late_kubeconfig}; do
	echo "$t" >&2
	"test_$t"
done
echo "agent-cluster.sh: $checks checks passed"
