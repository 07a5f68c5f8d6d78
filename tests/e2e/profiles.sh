#!/bin/bash
#
# The agent follows the profiles of the cluster and keeps its NodePartition: a real etcd and API server with the CRDs, roles
# and policies of deploy/, a real containerd, and this script in place of the kubelet. After every step: the CPUs of
# containers in the kernel, the NodePartition, and what `pinfold status` says. Needs root and two CPUs.

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/e2e/lib/native-runtime.sh
. "$here/lib/native-runtime.sh"
# shellcheck source=tests/e2e/lib/control-plane.sh
. "$here/lib/control-plane.sh"
# shellcheck source=tests/e2e/lib/native-agent.sh
. "$here/lib/native-agent.sh"

deploy=$here/../../deploy
worker=node-role.kubernetes.io/worker
edge=node-role.kubernetes.io/edge

np() { kubectl get np "$name" -o "jsonpath={.status$1}"; }
# shellcheck disable=SC2317  # called by name
condition() { np ".conditions[?(@.type==\"$1\")].status}:{.status.conditions[?(@.type==\"$1\")].reason"; } # TYPE
# The overview as a user sees it, without the age.
# shellcheck disable=SC2317
overview() { kubectl get np "$name" --no-headers | awk '{ $NF = ""; print }' | sed 's/ *$//'; }
# "management shared": the CPUs of the two pods' containers in the kernel.
# shellcheck disable=SC2317
kernel() { echo "$(cpus_of "$management") $(cpus_of "$shared")"; }
# shellcheck disable=SC2317
source_line() { "$pinfold" status --run-dir "$dir/run" | grep -E '^(pools from|no profile)'; }
# shellcheck disable=SC2317
warnings() { "$pinfold" status --run-dir "$dir/run" | grep -E '^warning: (no )?profile'; }

node_create() {
	kubectl create -f - >/dev/null <<-EOF
	apiVersion: v1
	kind: Node
	metadata: {name: $name, labels: {$worker: ""}}
	EOF
	kubectl patch node "$name" --subresource status --type merge -p '{"status":{"capacity":{"cpu":"2"},"allocatable":{"cpu":"2"}}}' >/dev/null
	agent_kubeconfig "$dir/agent.kubeconfig" "$name"
}
agent_begin() { agent_up --node-name "$name" --pools-file "$dir/pools" --marker-file "$dir/marker" --kubeconfig "$dir/agent.kubeconfig"; }

# Installed, and no profile yet: every container may use all CPUs.
test_none() {
	node_create
	agent_begin
	kubectl annotate namespace default workload.openshift.io/allowed=management >/dev/null
	soon "the permission is known" 1 agent_status .cluster.allowedNamespaces
	native_pod "$dir" m burstable/ "$target,\"resources.workload.openshift.io/c\":\"{\\\"cpushares\\\":51}\"" >/dev/null
	management=$(native_cgroup "$dir" "$(native_container "$dir" m '"cpu_shares":2,"cpu_period":100000')")
	native_pod "$dir" s burstable/ >/dev/null
	shared=$(native_cgroup "$dir" "$(native_container "$dir" s '"cpu_shares":102,"cpu_period":100000')")
	soon "CPUs without a profile" "0-1 0-1" kernel
	soon "Ready without a profile" True:NoProfile condition Ready
	soon "the overview without a profile" "$name 0-1 0-1 0-1 True" overview
	is "the owner" "$(kubectl get np "$name" -o 'jsonpath={.metadata.ownerReferences[0].kind} {.metadata.ownerReferences[0].uid}')" \
		"Node $(kubectl get node "$name" -o 'jsonpath={.metadata.uid}')"
	is "the source" "$(np .source)" None
	prints "status" "no profile and no pools: containers may use all CPUs" source_line
	echo "  agent $(agent_rss) kB without a profile" >&2
}

test_applied() {
	profile worker "$worker" 'reserved: "0", isolated: "1"'
	soon "CPUs with a profile" "0 1" kernel
	soon "the overview with a profile" "$name worker 0 1 1 True" overview
	is "the source" "$(np .source)" Profile
	is "the generation" "$(np .profile.generation)" 1
	is "the conditions" "$(condition Ready) $(condition Conflict)" "True:Partitioned False:NoConflict"
	prints "status" "pools from profile worker, generation 1" source_line
	soon "use of the management pool" "1 50" np '.pools[?(@.name=="management")].containers} {.status.pools[?(@.name=="management")].requestedMillicores'
	is "use of NUMA node 0" "$(np '.numaNodes[0].cpus} {.status.numaNodes[0].freeCPUs')" "0-1 1"
	is "the metric" "$(curl -sf --unix-socket "$dir/run/agent.sock" http://agent/metrics | grep -E '^pinfold_(pools_source|profile_state).* 1$' | sort | tr '\n' ' ')" \
		'pinfold_pools_source{source="Profile"} 1 pinfold_profile_state{state="selected"} 1 '
}

test_resized() {
	local writes
	profile worker "$worker" 'reserved: "1", isolated: "0"'
	soon "CPUs after a change of the profile" "1 0" kernel
	soon "the overview after a change" "$name worker 1 0 0 True" overview
	soon "the generation after a change" 2 np .profile.generation
	# A change that is not one for the node: an annotation of another component.
	sleep 2
	writes=$(counter nodepartition_writes)
	kubectl annotate performanceprofile worker example.com/note=1 >/dev/null
	sleep 3
	is "writes without a change" "$(counter nodepartition_writes)" "$writes"
}

test_relabelled() {
	profile edge "$edge" 'reserved: 1 cpu, shared: rest'
	kubectl label node "$name" "$edge=" >/dev/null # worker, too: the more specific role wins
	soon "CPUs after the node got another role" "0 1" kernel
	soon "the overview after the node got another role" "$name edge 0 1 True" overview
	kubectl label node "$name" "$edge-" >/dev/null
	soon "CPUs after the role was removed" "1 0" kernel
	kubectl label node "$name" "$edge=" "$worker-" >/dev/null
	soon "CPUs after the node changed its role" "0 1" kernel
}

test_conflict() {
	profile rival "$edge" 'reserved: "1", isolated: "0"'
	soon "Conflict" True:ProfilesOverlap condition Conflict
	is "Ready" "$(condition Ready)" False:ProfileConflict
	is "the message" "$(np '.conditions[?(@.type=="Conflict")].message')" "more than one profile selects the node: edge, rival"
	is "the last good profile" "$(np .profile.name)" edge
	is "CPUs during a conflict" "$(kernel)" "0 1"
	prints "status" "warning: no profile is applied: more than one profile selects the node: edge, rival" warnings
	agent_down # also across a restart
	agent_begin
	soon "Conflict after a restart" True:ProfilesOverlap condition Conflict
	is "CPUs during a conflict after a restart" "$(kernel)" "0 1"
	kubectl delete performanceprofile rival >/dev/null
	soon "Conflict after its end" False:NoConflict condition Conflict
	soon "Ready after the conflict" True:Partitioned condition Ready
	is "CPUs after the conflict" "$(kernel)" "0 1"
}

test_invalid() {
	profile edge "$edge" 'reserved: 0-9'
	soon "Ready with CPUs that the machine does not have" False:ProfileInvalid condition Ready
	is "the message" "$(np '.conditions[?(@.type=="Ready")].message')" "profile edge: spec.cpu.reserved: the machine has no CPUs 2-9, only 0-1"
	is "CPUs with a bad profile" "$(kernel)" "0 1"
	is "the profile in force" "$(np '.profile.name} {.status.profile.generation')" "edge 1"
	profile edge "$edge" 'reserved: all of numa 7, shared: rest'
	soon "the message for an expression that cannot be resolved" 'profile edge: spec.cpu.reserved: "all of numa 7": this machine has no numa 7' \
		np '.conditions[?(@.type=="Ready")].message'
	is "CPUs with an expression that cannot be resolved" "$(kernel)" "0 1"
	profile edge "$edge" 'reserved: 1 cpu, shared: rest'
	soon "Ready with a good profile" True:Partitioned condition Ready
	soon "the generation" 4 np .profile.generation
}

# Without an API server, after a restart and after a reboot, which empties the run directory.
test_offline() {
	process_stop "$dir" kube-apiserver
	agent_down
	agent_begin
	is "CPUs after a restart without an API server" "$(kernel)" "0 1"
	prints "status" "pools from profile edge, generation 4" source_line
	agent_down
	rm -rf "$dir/run"
	agent_begin
	native_pod "$dir" late burstable/ >/dev/null
	is "CPUs of a new container without an API server" "$(cpus_of "$(native_cgroup "$dir" "$(native_container "$dir" late '"cpu_shares":102,"cpu_period":100000')")")" 1
	cp_start_apiserver "$dir"
	soon "CPUs when the API server is back" "0 1" kernel
	native_crictl "$dir" rmp -f "$(cat "$dir/pod-late.id")" >/dev/null
	profile edge "$edge" 'reserved: "1", shared: "0"'
	LIMIT=40 soon "a change after the API server is back" "1 0" kernel
	soon "the generation" 5 np .profile.generation
}

# A file of the administrator comes before the profile, and the marker after it.
test_precedence() {
	echo '{"reserved":"0"}' >"$dir/pools"
	soon "CPUs with a pools file" "0 1" kernel
	soon "Ready with a pools file" False:Overridden condition Ready
	is "the source" "$(np .source)" File
	is "the profile in force" "$(np .profile.name)" ""
	prints "status" "warning: profile edge is not applied: the pools of $dir/pools come first" warnings
	rm "$dir/pools"
	soon "CPUs without the pools file" "1 0" kernel
	soon "Ready without the pools file" True:Partitioned condition Ready
	echo '{"management":{"cpuset":"0"}}' >"$dir/marker"
	sleep 2
	is "CPUs with a marker" "$(kernel)" "1 0"
	kubectl delete performanceprofile edge >/dev/null
	soon "CPUs after the profile was deleted, with a marker" "0 1" kernel
	soon "the source" KubeletMarker np .source
	rm "$dir/marker"
	soon "CPUs after the marker was removed" "0-1 0-1" kernel
	soon "Ready after all were removed" True:NoProfile condition Ready
	[ ! -e "$dir/state/profile.json" ] || die "the deleted profile is still kept"
}

# A container that owns CPUs blocks a resize; deferred, it is applied when the container ends.
test_deferred() {
	local pod
	profile edge "$edge" 'reserved: "0", isolated: "1"'
	soon "CPUs" "0 1" kernel
	pod=$(native_pod "$dir" exclusive "")
	native_container "$dir" exclusive '"cpu_shares":1024,"cpu_period":100000,"cpu_quota":100000' >/dev/null
	LIMIT=30 soon "exclusive CPUs in use" 1 np '.pools[?(@.name=="guaranteed")].exclusiveCPUs'
	is "free CPUs of NUMA node 0" "$(np '.numaNodes[0].exclusiveCPUs} {.status.numaNodes[0].freeCPUs')" "1 0"
	# Nothing is left for the shared pool but the management CPU (D23).
	soon "CPUs beside the exclusive container" "0 0" kernel
	soon "Ready without a shared CPU" True:SharedPoolEmpty condition Ready
	prints "status without a shared CPU" "warning: no CPU of the shared pool is left, its containers use management CPUs 0: give the profile a shared list" \
		eval '"$pinfold" status --run-dir "$dir/run" | grep "^warning: no CPU"'
	soon "the Event" "Node $name" kubectl get events -A --field-selector reason=SharedPoolEmpty -o 'jsonpath={.items[*].involvedObject.kind} {.items[*].involvedObject.name}'
	is "the metric" "$(curl -sf --unix-socket "$dir/run/agent.sock" http://agent/metrics | grep '^pinfold_shared_pool_empty')" "pinfold_shared_pool_empty 1"
	profile edge "$edge" 'reserved: "1", isolated: "0"'
	soon "Ready while a container owns the CPU" False:ResizeRefused condition Ready
	soon "what waits" "Resize ResizeRefused" np '.pending[0].what} {.status.pending[0].reason'
	kubectl annotate performanceprofile edge pinfold.io/resize=defer >/dev/null
	soon "Ready while the resize is deferred" False:ResizeDeferred condition Ready
	is "the overview" "$(overview)" "$name edge 0 1 1 False Resize"
	native_crictl "$dir" rmp -f "$pod" >/dev/null
	soon "CPUs after the container has ended" "1 0" kernel
	soon "nothing waits" "" np '.pending[*].what'
	soon "Ready" True:Partitioned condition Ready
}

# Without a kept profile an agent waits for the profiles of the cluster before it assigns exclusive CPUs: a container that runs
# already gets none that the profile reserves.
test_first_start() {
	local pod cgroup
	profile edge "$edge" 'reserved: "0", isolated: "1"'
	soon "CPUs" "0 1" kernel
	agent_down
	rm -rf "$dir/run" "$dir/state/profile.json"
	pod=$(native_pod "$dir" exclusive "")
	cgroup=$(native_cgroup "$dir" "$(native_container "$dir" exclusive '"cpu_shares":1024,"cpu_period":100000,"cpu_quota":100000')")
	is "CPUs without an agent" "$(cpus_of "$cgroup")" 0-1
	agent_begin
	soon "CPUs of a container that ran before the agent" 1 cpus_of "$cgroup"
	LIMIT=30 soon "Ready beside a container that ran before the agent" True:SharedPoolEmpty condition Ready
	native_crictl "$dir" rmp -f "$pod" >/dev/null
	# Without an API server it does not wait forever.
	process_stop "$dir" kube-apiserver
	agent_down
	rm -rf "$dir/run" "$dir/state/profile.json"
	agent_begin
	LIMIT=30 soon "CPUs without an API server and without a kept profile" "0-1 0-1" kernel
	cp_start_apiserver "$dir"
	LIMIT=60 soon "CPUs when the API server is back" "0 1" kernel
	profile edge "$edge" 'reserved: "1", isolated: "0"'
	LIMIT=40 soon "CPUs" "1 0" kernel
}

# One profile, two machines of different size; the second joins later. Its agent has a described machine and no runtime.
test_sizes() {
	profile edge "$edge" 'reserved: first 1 core of each numa, isolated: rest'
	kubectl create -f - >/dev/null <<-EOF
	apiVersion: v1
	kind: Node
	metadata: {name: big, labels: {$edge: ""}}
	EOF
	agent_kubeconfig "$dir/big.kubeconfig" big
	process_start "$dir" big "$pinfold" agent --run-dir "$dir/run-big" --state-dir "$dir/state-big" --kubelet-state /nonexistent \
		--nri-socket "$dir/none.sock" --topology 'numa:2 core:4 pu:1' --node-name big --kubeconfig "$dir/big.kubeconfig" \
		--pools-file "$dir/none" --marker-file "$dir/none"
	# shellcheck disable=SC2317
	cpus_by_node() { kubectl get np -o 'jsonpath={range .items[*]}{.metadata.name} {.status.cpus.management} {.status.cpus.guaranteed} {.status.profile.name};{end}'; }
	LIMIT=40 soon "CPUs of a large and a small node" "big 0,4 1-3,5-7 edge;$name 0 1 edge;" cpus_by_node
	soon "CPUs of the small node in the kernel" "0 1" kernel
	is "Ready without a runtime" "$(kubectl get np big -o 'jsonpath={.status.conditions[?(@.type=="Ready")].reason}')" RuntimeDisconnected
	process_stop "$dir" big
	kubectl delete np big >/dev/null
	kubectl delete node big >/dev/null
	profile edge "$edge" 'reserved: "1", isolated: "0"'
	soon "CPUs" "1 0" kernel
}

as_agent() { "$(cp_bin "$dir" kubectl)" --kubeconfig "$dir/agent.kubeconfig" "$@"; }
# NAME BODY: kubectl would read the object's status first
status_as_agent() {
	curl -s --fail-with-body --cacert "$dir/pki/ca.crt" -X PATCH -H "Content-Type: application/merge-patch+json" \
		-H "Authorization: Bearer $(cat "$dir/agent.kubeconfig.token")" -d "$2" \
		"https://127.0.0.1:$(cat "$dir/port")/apis/pinfold.io/v1alpha1/nodepartitions/$1/status"
}
refused() { # TEXT COMMAND...
	"${@:2}" >"$dir/refused.out" 2>&1 && die "allowed: ${*:2}"
	grep -q "$1" "$dir/refused.out" || die "refused for another reason: $(cat "$dir/refused.out")"
	checks=$((checks + 1))
}
operator() { kubectl --as system:serviceaccount:pinfold:pinfold-operator "$@"; }

test_policy() {
	kubectl create -f - >/dev/null <<<'{"apiVersion":"pinfold.io/v1alpha1","kind":"NodePartition","metadata":{"name":"other"}}'
	kubectl create clusterrole writes-partitions --verb get,list,patch,create --resource nodepartitions.pinfold.io,nodepartitions.pinfold.io/status >/dev/null
	kubectl create clusterrolebinding operator-writes --clusterrole writes-partitions --serviceaccount pinfold:pinfold-operator >/dev/null
	kubectl create clusterrolebinding agent-writes --clusterrole writes-partitions --serviceaccount pinfold-agent:pinfold-agent >/dev/null
	kubectl create clusterrolebinding user-writes --clusterrole writes-partitions --user someone >/dev/null
	# attack: partition-status: a compromised agent writes the NodePartition of another node
	refused "may not write the NodePartition of another node" status_as_agent other '{"status":{"source":"Flags"}}'
	refused "may not write the NodePartition of another node" as_agent create -f - <<<'{"apiVersion":"pinfold.io/v1alpha1","kind":"NodePartition","metadata":{"name":"third"}}'
	refused "may not write the NodePartition of another node" as_agent delete np other
	# attack: partition-grant: a compromised agent grants itself a disruptive change
	refused "only the operator writes the spec" as_agent patch np "$name" --type merge -p '{"spec":{"granted":"ab"}}'
	refused "only the agent of the node writes the status" operator patch np "$name" --subresource status --type merge -p '{"status":{"source":"Flags"}}'
	refused "only the operator writes the spec" kubectl --as someone patch np "$name" --type merge -p '{"spec":{"granted":"ab"}}'
	refused "only the agent of the node writes the status" kubectl --as someone patch np "$name" --subresource status --type merge -p '{"status":{"source":"Flags"}}'
	refused "may not write the NodePartition of another node" kubectl --as system:node:worker-9 --as-group system:nodes delete np other
	# attack: partition-owner: a compromised agent keeps its Node from being deleted by a NodePartition that blocks it
	kubectl delete np "$name" >/dev/null
	refused "does not delay the deletion" as_agent create -f - <<-EOF
	{"apiVersion":"pinfold.io/v1alpha1","kind":"NodePartition","metadata":{"name":"$name","finalizers":["example.com/stay"]}}
	EOF
	wait_for 20 kubectl get np "$name" >/dev/null 2>&1 || die "the object was not created again"
	operator patch np "$name" --type merge -p '{"spec":{"granted":"ab12"}}' >/dev/null || die "the operator cannot grant"
	soon "the agent has seen the grant" "$(kubectl get np "$name" -o 'jsonpath={.metadata.generation}')" np .observedGeneration
	kubectl patch np "$name" --type merge -p '{"spec":{"granted":null}}' >/dev/null || die "an administrator cannot write the spec"
	kubectl delete np other >/dev/null
	checks=$((checks + 2))
}

# Deleted by a user, changed by a user, and gone with its Node.
test_lost() {
	local old
	kubectl delete np "$name" >/dev/null
	soon "the object after it was deleted" "$name edge 1 0 0 True" overview
	kubectl patch np "$name" --subresource status --type merge -p '{"status":{"cpus":{"management":"7"},"profile":null}}' >/dev/null
	soon "the object after it was changed" "$name edge 1 0 0 True" overview
	cp_start_controller_manager "$dir" --controllers=garbage-collector-controller
	old=$(kubectl get np "$name" -o 'jsonpath={.metadata.uid}')
	kubectl delete node "$name" >/dev/null
	# shellcheck disable=SC2317
	is_gone() { [ -z "$(kubectl get np -o name)" ]; }
	wait_for 60 is_gone || die "the object outlives its Node"
	is "CPUs without a Node" "$(kernel)" "1 0"
	node_create
	kubectl label node "$name" "$edge=" "$worker-" >/dev/null
	LIMIT=40 soon "the object of the new Node" "$name edge 1 0 0 True" overview
	[ "$(kubectl get np "$name" -o 'jsonpath={.metadata.uid}')" != "$old" ] || die "it is the old object"
	is "the new owner" "$(kubectl get np "$name" -o 'jsonpath={.metadata.ownerReferences[0].uid}')" "$(kubectl get node "$name" -o 'jsonpath={.metadata.uid}')"
	process_stop "$dir" kube-controller-manager
}

# Figures are written at most once in ten seconds, and nothing is written without a change.
test_writes() {
	local before i
	sleep 12
	before=$(counter nodepartition_writes)
	sleep 12
	is "writes of an idle node in 12 s" $(($(counter nodepartition_writes) - before)) 0
	for i in $(seq 1 12); do
		set_cpus "$shared" 0-1
		sleep 1
	done
	i=$(($(counter nodepartition_writes) - before))
	[[ $i =~ ^[123]$ ]] || die "$i writes for 12 s of corrections"
	LIMIT=15 soon "corrections are counted" "$(counter drift_corrected)" np .counters.driftCorrected
	echo "  agent $(agent_rss) kB with profiles" >&2
	[ "$(agent_rss)" -le 6144 ] || die "the agent has $(agent_rss) kB"
	checks=$((checks + 2))
}

# An upgraded agent whose manifests are older: no CRD, no rights.
test_without_manifests() {
	local before
	agent_down
	kubectl delete crd nodepartitions.pinfold.io >/dev/null
	kubectl delete clusterrole pinfold-agent >/dev/null
	agent_begin
	is "CPUs without rights" "$(kernel)" "1 0"
	before=$(counter cluster_failures)
	sleep 5
	is "the kept profile" "$(agent_status .source.profile)" edge
	echo "  $(($(counter cluster_failures) - before)) failed requests in 5 s" >&2
	kubectl apply -f "$deploy/agent/rbac.yaml" -f "$deploy/base/crd-nodepartitions.yaml" >/dev/null
	agent_down # with rights again the agent retries after two minutes; a new one at once
	agent_begin
	LIMIT=60 soon "the object with the manifests" "$name edge 1 0 0 True" overview
}

test_uninstall() {
	agent_down
	"$pinfold" agent --uninstall --run-dir "$dir/run" --state-dir "$dir/state" --node-name "$name" --kubeconfig "$dir/agent.kubeconfig" ||
		die "uninstall"
	is "CPUs after --uninstall" "$(kernel)" "0-1 0-1"
	prints "the object after --uninstall" "" kubectl get np -o name
	[ ! -e "$dir/state/profile.json" ] || die "the profile is still kept"
}

[ "$(nproc)" -ge 2 ] || { echo "profiles.sh: needs two CPUs" >&2; exit 77; }
dir=$(mktemp -d "/tmp/pinfold-profiles-XXXXXX")
name="worker-0"
cp=$dir
trap 'process_stop "$dir" agent; process_stop "$dir" big; native_stop "$dir"; cp_stop "$dir"; [ -n "${KEEP:-}" ] || rm -rf "$dir"' EXIT
cp_start "$dir"
native_start "$dir" "${RUNTIME:-containerd}"
agent_flags=(--nri-socket "$dir/nri.sock" --reconcile-interval 2)
kubectl apply -f "$deploy/base/crd-performanceprofiles.yaml" -f "$deploy/base/crd-nodepartitions.yaml" \
	-f "$deploy/base/policy-nodepartitions.yaml" -f "$deploy/agent/namespace.yaml" -f "$deploy/agent/rbac.yaml" \
	-f "$deploy/agent/policy.yaml" -f "$deploy/agent/node-rbac.yaml" >/dev/null
kubectl wait --for condition=Established crd --all --timeout 60s >/dev/null
for t in ${TESTS:-none applied resized relabelled conflict invalid offline precedence deferred first_start sizes policy lost writes without_manifests uninstall}; do
	echo "$t" >&2
	"test_$t"
done
echo "profiles.sh: $checks checks passed"
