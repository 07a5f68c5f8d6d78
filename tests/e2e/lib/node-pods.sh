# shellcheck shell=bash
#
# Pods of the namespace "shop" in a cluster of virtual-cluster.sh, and what the kernels of its nodes give them. Source node-kernel.sh first.
#
#	shop_namespace              it allows management
#	$management                 the annotation of a management pod
#	pod NAME NODE ANNOTATIONS RESOURCES [COMMAND]     creates one; again when the API server gave up a call of the webhook
#	pod_manifest ...            the same, only its manifest
#	pod_template NAME ANNOTATIONS RESOURCES [COMMAND] [MORE-OF-SPEC]   metadata and spec, as YAML of one line
#	controller KIND NAME ANNOTATIONS RESOURCES [MORE-OF-SPEC]          a DaemonSet, Deployment or StatefulSet
#	running NAME...             waits until they are Ready
#	remove NAME...              without waiting; pods_gone NAME... is true afterwards
#	cpus NODE APP...            the CPUs that the kernel allows the container of each app
#	container_ids NODE          "APP=ID ..." of the pods that run there
#	identity APP...             the containers of these pods, and how often they were restarted
#	truth NODE ID NUMBER...     fields of a container's line of kernel_truth
#	pod_truth NAMESPACE SELECTOR NODE NUMBER...       the same for a pod

# shellcheck disable=SC2034  # the callers read it
management="target.workload.openshift.io/management: '{\"effect\":\"PreferredDuringScheduling\"}'"
LIMIT=${LIMIT:-2400} # seconds, for every state: the nodes are slow

shop_namespace() {
	kubectl apply -f - >/dev/null <<<'{apiVersion: v1, kind: Namespace, metadata: {name: shop, annotations: {workload.openshift.io/allowed: management}}}'
}

# truth NODE ID NUMBER...: fields of the container's line of kernel_truth; "gone" when it has no process.
truth() {
	node_truth "$1" | awk -F '\t' -v id="$2" -v fields="${*:3}" '
		index($1, id) && !index($1, "conmon") { n = split(fields, f, " "); for (i = 1; i <= n; i++) printf "%s%s", (i > 1 ? " " : ""), $f[i]; print ""; found = 1 }
		END { if (!found) print "gone" }'
}
# pod_truth NAMESPACE SELECTOR NODE FIELD...: of the first container of the first such pod on the node ("-": on any).
pod_truth() {
	local id node where=status.phase=Running
	[ "$3" = - ] || where+=,spec.nodeName=$3
	read -r node id < <(kubectl -n "$1" get pods -l "$2" --field-selector "$where" \
		-o 'jsonpath={.items[0].spec.nodeName} {.items[0].status.containerStatuses[0].containerID}{"\n"}' 2>/dev/null) || return 1
	[ -n "$id" ] && truth "$node" "${id##*/}" "${@:4}"
}
container_ids() {
	kubectl -n shop get pods --field-selector "status.phase=Running,spec.nodeName=$1" \
		-o 'jsonpath={range .items[*]}{.metadata.labels.app}={.status.containerStatuses[0].containerID}{" "}{end}' | sed 's,=[a-z-]*://,=,g'
}
identity() {
	kubectl -n shop get pods -l "app in ($(tr ' ' , <<<"$*"))" \
		-o 'jsonpath={range .items[*]}{.status.containerStatuses[0].containerID} {.status.containerStatuses[0].restartCount}{"\n"}{end}' | sort
}
# cpus NODE APP...: the CPUs that the kernel allows the container of each app on the node, from its threads. All of them in one read: a
# command takes a node seconds.
cpus() {
	local node=$1 ids
	shift
	ids=$(container_ids "$node") || return
	node_truth "$node" | awk -F '\t' -v ids="$ids" -v apps="$*" '
		BEGIN { for (n = split(ids, pod, " "); n > 0; n--) { at = index(pod[n], "="); id[substr(pod[n], 1, at - 1)] = substr(pod[n], at + 1) } }
		!index($1, "conmon") { for (app in id) if (id[app] != "" && index($1, id[app])) cpus[app] = $3 }
		END { n = split(apps, name, " "); for (i = 1; i <= n; i++) printf "%s%s", (i > 1 ? " " : ""), (name[i] in cpus ? cpus[name[i]] : "gone"); print "" }'
}

pod_template() {
	cat <<-EOF2
	{metadata: {labels: {app: $1}, annotations: {$2}}, spec: {automountServiceAccountToken: false, terminationGracePeriodSeconds: 1, ${5:-}
	  containers: [{name: c, image: "localhost/busybox:1", imagePullPolicy: Never, args: [-c, "${4:-exec sleep 1000000}"], resources: {$3}}]}}
	EOF2
}
controller() {
	echo "{apiVersion: apps/v1, kind: $1, metadata: {name: $2, namespace: shop}, spec: {selector: {matchLabels: {app: $2}}, ${5:-}"
	echo "  template: $(pod_template "$2" "$3" "$4")}}"
	echo ---
}
pod() {
	local missed
	while :; do
		missed=$(calls_missed)
		pod_manifest "$@" | kubectl apply -f - >/dev/null || die "pod $1 is not created"
		[ "$(calls_missed)" != "$missed" ] || return 0
		e2e_say "creating pod $1 again, because the API server gave up a call"
		kubectl -n shop delete pod "$1" --now >/dev/null
	done
}
pod_manifest() {
	local spec
	spec=$(pod_template "$1" "$3" "$4" "${5:-}" "nodeSelector: {kubernetes.io/hostname: $2},")
	echo "{apiVersion: v1, kind: Pod, metadata: {name: $1, namespace: shop, labels: {app: $1}, annotations: {$3}}, ${spec#*\}\}, }"
}
remove() { kubectl -n shop delete pod "$@" --ignore-not-found --now --wait=false >/dev/null; }
pods_gone() { [ -z "$(kubectl -n shop get pods "$@" --ignore-not-found -o name)" ]; }
is_running() { [ "$(kubectl -n shop get pod "$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}' 2>/dev/null)" = True ]; }
running() {
	local name
	for name; do wait_for "$LIMIT" is_running "$name" || die "pod $name does not run"; done
}
