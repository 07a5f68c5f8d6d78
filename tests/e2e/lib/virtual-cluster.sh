# shellcheck shell=bash disable=SC2154  # "top" is the caller's
#
# A whole cluster: a control plane as processes of this machine, nodes as guests, a network plugin, kube-proxy and CoreDNS on them, and
# Pinfold from its chart. Source it; top is its directory, cp is set to $top/cp, and:
#
#	vc_settings                 reads and checks the variables below; fails with a message
#	vc_up                       starts it: from a saved state where there is one, otherwise step by step, and saves it
#	vc_down                     stops it; logs stay
#	vc_running                  whether it runs
#	vc_nodes                    the names of its nodes
#	vc_boot_node NAME NUMBER    one more node, which joins now
#	vc_load NODE FILE           an archive of lib/image.sh, as an image of the node's runtime
#	on NODE COMMAND...          a command on a node
#	vc_pinfold ARG...           the program of this tree, with the cluster's kubeconfig
#	vc_helm ARG...
#
# The variables: NODES (2) nodes; CPUS ("8"), NUMA ("1"), SMT ("on") and MEMORY_MB ("3072") of each, as a list whose last word
# is for all further nodes; RUNTIME (containerd, containerd-1.7, crio), KUBERNETES (a version), KUBELET_CONFIG (YAML to
# add), IMAGE (an archive of `make image`; made by default). REBUILD=1 ignores saved states, SAVE=0 makes none.
#
# A saved state is memory, devices and disks of every node and the data of etcd, at two points: nodes that are Ready, without
# Pinfold; and with it. Its name is a hash of all that went into it. Every start works on a copy, so that the cluster is
# always the same after vc_up.

# shellcheck source=tests/e2e/lib/node.sh
. "$(dirname "${BASH_SOURCE[0]}")/node.sh"
# shellcheck source=tests/e2e/lib/guest-cluster.sh
. "$(dirname "${BASH_SOURCE[0]}")/guest-cluster.sh"

vc_source=$(cd "$e2e_lib/../../.." && pwd)
vc_cache=${XDG_CACHE_HOME:-$HOME/.cache}/pinfold/clusters
vc_days=14 # a saved state is younger: its certificates are valid for 30 days
cp=$top/cp
vc_began=$SECONDS

# --- what is wanted ---

vc_die() { echo "cluster: $*" >&2; return 1; }

# vc_word INDEX WORD...: that word, or the last one.
vc_word() {
	local i=$1
	shift
	[ "$i" -lt $# ] || i=$(($# - 1))
	shift "$i"
	echo "$1"
}

# vc_topology INDEX: "SOCKETS CORES THREADS" of a node.
vc_topology() {
	local cpus numa threads=1
	# shellcheck disable=SC2086  # lists
	cpus=$(vc_word "$1" $CPUS) numa=$(vc_word "$1" $NUMA)
	# shellcheck disable=SC2086
	case $(vc_word "$1" $SMT) in
	on) threads=2 ;;
	off) ;;
	*) vc_die "SMT=\"$SMT\": use on or off" || return ;;
	esac
	[[ $cpus =~ ^(2|4|8|16)$ ]] || vc_die "CPUS=\"$CPUS\": a node has 2, 4, 8 or 16 CPUs" || return
	[[ $numa =~ ^[12]$ ]] || vc_die "NUMA=\"$NUMA\": a node has 1 or 2 NUMA nodes" || return
	[ "$cpus" -ge $((numa * threads)) ] || vc_die "$cpus CPUs are too few for $numa NUMA nodes of cores with $threads threads" || return
	echo "$numa $((cpus / numa / threads)) $threads"
}

vc_settings() {
	local i
	# shellcheck source=tests/e2e/components/versions
	. "$e2e_lib/../components/versions"
	: "${NODES:=2}" "${CPUS:=8}" "${NUMA:=1}" "${SMT:=on}" "${MEMORY_MB:=3072}" "${RUNTIME:=containerd}"
	: "${KUBERNETES:=$KUBERNETES_VERSION}" "${KUBELET_CONFIG:=}"
	[[ $NODES =~ ^[1-7]$ ]] || vc_die "NODES=\"$NODES\": 1 to 7 nodes" || return
	[[ $MEMORY_MB =~ ^[0-9\ ]+$ ]] || vc_die "MEMORY_MB=\"$MEMORY_MB\" is not a list of numbers" || return
	[[ $KUBERNETES =~ ^1\.[0-9]+\.[0-9]+$ ]] || vc_die "KUBERNETES=\"$KUBERNETES\": a version as $KUBERNETES_VERSION" || return
	[[ $RUNTIME =~ ^(containerd|containerd-1\.7|crio)$ ]] || vc_die "RUNTIME=\"$RUNTIME\": containerd, containerd-1.7 or crio" || return
	for ((i = 0; i < NODES; i++)); do
		vc_topology "$i" >/dev/null || return
	done
	vc_version=$(sed -n "s/^  version: '\(.*\)',/\1/p" "$vc_source/meson.build")
}

vc_nodes() { cat "$top/nodes" 2>/dev/null; }
on() { guest_run "$top/$1" "${@:2}"; }

# --- progress ---

# vc_step TEXT COMMAND...: says what it does and how long that took; output goes to $top/logs/up.log. COMMAND is a process of its own, so
# that an interrupt does not have to wait for its end.
vc_step() {
	local text=$1 began=$SECONDS status=0
	shift
	printf '[%4d s] %s ... ' $((SECONDS - vc_began)) "$text"
	echo "== $text" >>"$top/logs/up.log"
	"$@" >>"$top/logs/up.log" 2>&1 &
	wait $! || status=$?
	if [ $status != 0 ]; then
		echo "failed after $((SECONDS - began)) s"
		tail -n 15 "$top/logs/up.log" | sed 's/^/    /'
		return $status
	fi
	echo "$((SECONDS - began)) s"
}

# --- parts ---

vc_components() {
	guest_packages && "$e2e_build" etcd "kubernetes-$KUBERNETES:kube-apiserver,kubectl,kubelet,kube-scheduler,kube-controller-manager,kube-proxy" \
		"$RUNTIME" crictl coredns helm && "$e2e_lib/../components/guest-image"
}

vc_image() {
	if [ -n "${IMAGE:-}" ]; then
		cp "$IMAGE" "$top/pinfold.tar"
	else
		image_pinfold "$top/pinfold.tar" "localhost/pinfold:$vc_version"
	fi
}

# The hashes of what a saved state depends on.
vc_key_base() {
	{
		echo "$NODES|$CPUS|$NUMA|$SMT|$MEMORY_MB|$RUNTIME|$KUBERNETES|$KUBELET_CONFIG|$(qemu-system-x86_64 --version | head -n 1)"
		"$e2e_lib/../components/guest-image"
		cat "$e2e_lib"/{guest,node,guest-cluster,control-plane,image,virtual-cluster}.sh "$e2e_lib/../components/versions" \
			"$e2e_lib/../deploy/network.yaml"
	} | sha256sum | cut -c1-12
}
vc_key_installed() {
	{
		echo "$1"
		cat "$top/pinfold.tar"
		find "$vc_source/deploy/chart" -type f | LC_ALL=C sort | xargs cat
	} | sha256sum | cut -c1-12
}

# vc_node_environment NUMBER: what guest.sh and node.sh read.
vc_node_environment() {
	join_segment "$1"
	GUEST_TOPOLOGY=$(vc_topology $(($1 - 1))) || return
	# shellcheck disable=SC2034,SC2086  # a list; read by guest.sh and node.sh
	GUEST_MEMORY_MB=$(vc_word $(($1 - 1)) $MEMORY_MB) NODE_CNI=none NODE_PROXY=yes NODE_PAYLOAD=() NODE_TOOLS="crictl coredns"
	# shellcheck disable=SC2034
	NODE_KUBELET_CONFIG="clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
$KUBELET_CONFIG"
}

vc_boot_node() { # NAME NUMBER
	local GUEST_TOPOLOGY GUEST_MEMORY_MB GUEST_OVERLAY=$top/$1/disk.qcow2
	vc_node_environment "$2" || return
	mkdir -p "$top/$1"
	echo "$2" >"$top/$1/number"
	rm -f "$GUEST_OVERLAY"
	node_start "$top/$1" "$cp" "$1" "$RUNTIME"
}

# vc_each FUNCTION: FUNCTION NODE NUMBER for all nodes at once; fails when one fails.
vc_each() {
	local node pids=() status=0 pid number=0
	for node in $(vc_nodes); do
		number=$((number + 1))
		"$1" "$node" "$number" &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || status=1
	done
	return $status
}

# One kubeconfig serves kube-proxy on all nodes.
vc_start_control_plane() {
	CP_VERSION=$KUBERNETES start_control_plane && cp_kubeconfig "$cp" kube-proxy /CN=system:kube-proxy 10.0.2.2
}
vc_network() { kubectl apply -f "$e2e_lib/../deploy/network.yaml"; }
vc_node_ready() { node_wait_ready "$top/$1"; }
# kubectl gives up at the progress deadline of a Deployment, ten minutes. A node may need longer to boot, and the Deployment goes on then.
vc_rollout() { wait_for 1800 kubectl -n "$1" rollout status "$2" --timeout 30m; }
vc_dns_runs() { vc_rollout kube-system deployment/coredns && vc_rollout kube-system daemonset/kube-proxy; }
vc_egress() { start_egress "$top/$(vc_nodes | head -n 1)"; }

vc_load() {
	local file=/root/${2##*/}
	guest_put "$top/$1" "$2" /root/ || return
	if [ "$RUNTIME" = crio ]; then
		on "$1" "skopeo copy -q $(image_transport "$2"):$file containers-storage:$(image_name "$2") && rm $file"
	else
		on "$1" "/payload/bin/ctr -n k8s.io images import $file && rm $file"
	fi
}
vc_load_image() { vc_load "$1" "$top/pinfold.tar"; } # NODE

vc_helm() {
	KUBECONFIG=$cp/admin.kubeconfig HELM_CACHE_HOME=$top/helm HELM_CONFIG_HOME=$top/helm HELM_DATA_HOME=$top/helm \
		"$("$e2e_build" helm)/bin/helm" --namespace pinfold "$@"
}
vc_pinfold() { KUBECONFIG=$cp/admin.kubeconfig "${PINFOLD:-$vc_source/build/pinfold}" "$@"; }

# On emulated CPUs a review may take longer than the 5 s of the default.
vc_chart() {
	vc_helm install pinfold "$vc_source/deploy/chart" --create-namespace --set image.pullPolicy=Never --set webhook.timeoutSeconds=30
}
vc_pinfold_runs() {
	vc_rollout pinfold deployment/pinfold-webhook && vc_rollout pinfold deployment/pinfold-operator &&
		vc_rollout pinfold-agent daemonset/pinfold-agent
}
# Every node has the resource, and no taint.
vc_partitioned() {
	local nodes
	nodes=$(kubectl get nodes -o 'jsonpath={range .items[*]}{.status.allocatable.management\.workload\.openshift\.io/cores} {.spec.taints}{"\n"}{end}') &&
		! grep -vq '^[0-9]\+k $' <<<"$nodes"
}
vc_enable() { partition_cluster && wait_for 1800 vc_partitioned; }
# Pods that ran before the webhook are converted when they are created again.
vc_convert_platform() {
	local each
	for each in daemonset/cni daemonset/kube-proxy deployment/coredns; do
		kubectl -n kube-system rollout restart "$each" || return
	done
	for each in daemonset/cni daemonset/kube-proxy deployment/coredns; do
		vc_rollout kube-system "$each" || return
	done
}

# --- saved states ---

vc_saved() { # KEY
	[ "${REBUILD:-}" != 1 ] && [ -e "$vc_cache/$1/complete" ] && [ -z "$(find "$vc_cache/$1/complete" -mtime "+$vc_days")" ]
}

vc_save_node() { GUEST_OVERLAY=$top/$1/disk.qcow2 guest_save "$top/$1" "$vc_saving/$1" && cp "$top/$1/number" "$top/$1/node" "$vc_saving/$1/"; }

# Everything stops: first the nodes, so that nothing of what they know is missing in etcd.
vc_save() { # KEY
	local vc_saving=$vc_cache/$1 node
	rm -rf "$vc_saving"
	mkdir -p "$vc_saving" || return
	process_stop "$top" egress
	vc_each vc_save_node || return
	for node in $(vc_nodes); do
		vc_heartbeat "$node" >"$vc_saving/$node/lease" || return
	done
	cp_stop "$cp"
	cp -a "$cp" "$vc_saving/cp" && rm -rf "$vc_saving/cp/logs" && cp "$top/nodes" "$vc_saving/" || return
	touch "$vc_saving/complete"
	vc_prune
	rm -rf "$cp/etcd"
}

# States that are too old to be used.
vc_prune() {
	find "$vc_cache" -mindepth 2 -maxdepth 2 -name complete -mtime "+$vc_days" -printf '%h\0' | xargs -0 -r rm -rf
}

vc_restore_node() { # NODE
	local GUEST_TOPOLOGY GUEST_MEMORY_MB GUEST_OVERLAY=$top/$1/disk.qcow2
	mkdir -p "$top/$1"
	cp "$vc_restoring/$1/number" "$vc_restoring/$1/node" "$top/$1/" && echo "$cp" >"$top/$1/cp" || return
	rm -f "$GUEST_OVERLAY"
	vc_node_environment "$(cat "$top/$1/number")" && guest_restore "$top/$1" "$vc_restoring/$1"
}

vc_heartbeat() { kubectl -n kube-node-lease get lease "$1" -o 'jsonpath={.metadata.resourceVersion}'; }
vc_beats() { # NODE BEFORE
	local now
	now=$(vc_heartbeat "$1") && [ "$now" != "$2" ] && node_is_ready "$top/$1"
}
# The Node in etcd was Ready when it was saved. It is Ready now when its kubelet reports again.
vc_wait_beats() {
	local node began=$SECONDS
	for node in $(vc_nodes); do
		wait_ready "$top/$node" qemu 600 vc_beats "$node" "$(cat "$vc_restoring/$node/lease")" || return
	done
	echo "all nodes report $((SECONDS - began)) s later"
}

vc_restore_control_plane() {
	local clients=()
	cp -a "$vc_restoring/cp/." "$cp/" && mkdir -p "$cp/logs" || return
	! (: <"/dev/tcp/127.0.0.1/$(cat "$cp/port")") 2>/dev/null || vc_die "port $(cat "$cp/port") of the saved cluster is in use; try REBUILD=1" || return
	# The saved flags name the directory that the cluster had then.
	awk -v file="$top/egress.yaml" '{ print before == "--egress-selector-config-file" ? file : $0; before = $0 }' \
		"$vc_restoring/cp/apiserver-flags" >"$cp/apiserver-flags"
	cp_resume "$cp" || return
	cp_start_scheduler "$cp" &
	clients+=($!)
	cp_start_controller_manager "$cp" --node-monitor-grace-period 24h &
	clients+=($!)
	wait "${clients[0]}" && wait "${clients[1]}"
}

# Memory is read while the control plane starts.
vc_restore() { # KEY
	local vc_restoring=$vc_cache/$1 guests status=0 node
	cp "$vc_restoring/nodes" "$top/nodes" && mkdir -p "$cp" || return
	[ -e "$top/segment" ] || free_port >"$top/segment"
	for node in $(vc_nodes); do mkdir -p "$top/$node"; done
	cp_egress "$top/egress.yaml" "$top/egress.sock"
	vc_each vc_restore_node &
	guests=$!
	vc_restore_control_plane || status=1
	wait $guests || status=1
	[ $status = 0 ] && vc_egress && vc_wait_beats
}

# --- the whole ---

vc_running() { process_alive "$cp" kube-apiserver; }

vc_cold() {
	local i
	for ((i = 0; i < NODES; i++)); do echo "worker-$i"; done >"$top/nodes"
	[ -e "$top/segment" ] || free_port >"$top/segment" # now: the nodes start at the same time
	vc_step "starting the control plane of Kubernetes $KUBERNETES" vc_start_control_plane || return
	vc_step "booting $NODES nodes with $RUNTIME" vc_each vc_boot_node || return
	vc_step "installing network plugin, kube-proxy and CoreDNS" vc_network || return
	vc_egress || return
	vc_step "waiting for the nodes" vc_each vc_node_ready || return
	vc_step "waiting for kube-proxy and CoreDNS" vc_dns_runs
}

vc_install() {
	vc_step "loading Pinfold's image on the nodes" vc_each vc_load_image || return
	vc_step "installing Pinfold's chart" vc_chart || return
	vc_step "waiting for webhook, operator and agents" vc_pinfold_runs || return
	vc_step "turning partitioning on" vc_enable || return
	vc_step "creating network plugin, kube-proxy and CoreDNS again, as management pods" vc_convert_platform
}

vc_keep() { # KEY TEXT
	[ "${SAVE:-1}" != 0 ] || return 0
	vc_step "saving the cluster $2" vc_save "$1" && vc_step "starting it again" vc_restore "$1"
}

vc_up() {
	local base installed
	mkdir -p "$top/logs" "$vc_cache"
	vc_began=$SECONDS
	vc_step "building components that are missing" vc_components || return
	vc_step "building Pinfold's image" vc_image || return
	base=$(vc_key_base) && installed=$(vc_key_installed "$base") || return
	echo "$base $installed" >"$top/keys"
	if [ "${PINFOLD_INSTALL:-yes}" = yes ] && vc_saved "$installed"; then
		vc_step "starting the saved cluster with Pinfold" vc_restore "$installed"
		return
	fi
	if vc_saved "$base"; then
		vc_step "starting the saved cluster" vc_restore "$base" || return
	else
		vc_cold && vc_keep "$base" "without Pinfold" || return
	fi
	[ "${PINFOLD_INSTALL:-yes}" = yes ] || return 0
	vc_install && vc_keep "$installed" "with Pinfold"
}

vc_stop_node() { # NODE; its disk is of no use any more, so it is not powered off
	local dir=$top/$1
	! process_alive "$dir" qemu || guest_disconnect "$dir"
	process_stop "$dir" qemu
	rm -rf "$dir/disk.qcow2" "$dir/payload.img" "$dir/payload" "$(cat "$dir/ssh-control" 2>/dev/null || echo /nonexistent)"
}

# After an interrupt something may still start nodes.
vc_down() {
	local node
	stop_descendants $$
	process_stop "$top" egress
	for node in $(vc_nodes); do
		[ ! -d "$top/$node" ] || vc_stop_node "$node"
	done
	[ ! -d "$cp" ] || cp_stop "$cp"
	rm -rf "$cp/etcd" "$top/pinfold.tar" "$top/segment"
}

