# shellcheck shell=bash
#
# A real containerd or CRI-O as a process of this machine, in its own directory, with runc and this machine's cgroups:
# no guest, no kubelet. crictl makes the CRI calls that a kubelet would make. Source it, then:
#
#	native_start DIR [RUNTIME]         RUNTIME: containerd (default), containerd-1.7 or crio
#	native_load DIR FILE               an archive of image.sh, as an image of the runtime
#	native_stop DIR                    with every pod
#	native_crictl DIR ARG...
#	native_pod DIR NAME CLASS ANNOTATIONS        runs a sandbox, prints its id; CLASS: "burstable/" or ""
#	native_container DIR NAME RESOURCES [ARGS]   creates and starts a container in that pod, prints its id
#	native_cgroup DIR CONTAINER-OR-POD-ID        its cgroup path, with a slash in front
#	control CONTROLLER FILE PATH       a control file of a cgroup, on either version of them
#	cpus_of PATH                       its cpuset
#	has_cpus PATH CPUS                 its cpuset is CPUS
#	set_cpus PATH CPUS                 writes its cpuset, as another process might
#
# NATIVE_CONFIG is TOML to append to containerd's configuration.
# Needs root. NRI listens on DIR/nri.sock. ANNOTATIONS and RESOURCES are members of JSON objects.

# shellcheck source=tests/e2e/lib/process.sh
. "$(dirname "${BASH_SOURCE[0]}")/process.sh"
# shellcheck source=tests/e2e/lib/image.sh
. "$(dirname "${BASH_SOURCE[0]}")/image.sh"

# All paths are below DIR, so that it runs beside any other runtime of the machine.
native_config() {
	cat <<-EOF
	version = 2
	root = "$1/root"
	state = "$1/state"
	[grpc]
	  address = "$1/cri.sock"
	[ttrpc]
	  address = "$1/cri.sock.ttrpc"
	[plugins."io.containerd.grpc.v1.cri"]
	  sandbox_image = "localhost/pause:1"
	  restrict_oom_score_adj = true
	  disable_apparmor = true
	[plugins."io.containerd.grpc.v1.cri".containerd]
	  snapshotter = "native"
	[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
	  runtime_type = "io.containerd.runc.v2"
	  snapshotter = "native"
	[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
	  BinaryName = "$(command -v runc)"
	  Root = "$1/runc"
	[plugins."io.containerd.nri.v1.nri"]
	  disable = false
	  socket_path = "$1/nri.sock"
	  plugin_path = "$1/nri-plugins"
	  plugin_config_path = "$1/nri-conf"
	${NATIVE_CONFIG:-}
	EOF
}

native_crio_config() {
	cat <<-EOF
	[crio]
	root = "$1/root"
	runroot = "$1/state"
	storage_driver = "vfs"
	log_dir = "$1/pod-logs"
	version_file = "$1/version"
	clean_shutdown_file = "$1/clean-shutdown"
	[crio.api]
	listen = "$1/cri.sock"
	[crio.image]
	pause_image = "localhost/pause:1"
	signature_policy = "$1/policy.json"
	[crio.network]
	network_dir = "$1/cni"
	plugin_dirs = ["$1/cni"]
	[crio.runtime]
	cgroup_manager = "cgroupfs"
	conmon_cgroup = "pod"
	pinns_path = "$(cat "$1/bin")/pinns"
	default_runtime = "runc"
	apparmor_profile = "unconfined"
	drop_infra_ctr = false
	disable_hostport_mapping = true
	namespaces_dir = "$1/namespaces"
	container_exits_dir = "$1/exits"
	container_attach_socket_dir = "$1/attach"
	[crio.runtime.runtimes.runc]
	runtime_path = "$1/runc-wrapper"
	runtime_root = "$1/runc"
	monitor_path = "$(command -v conmon)"
	[crio.nri]
	enable_nri = true
	nri_listen = "$1/nri.sock"
	nri_plugin_dir = "$1/nri-plugins"
	nri_plugin_config_dir = "$1/nri-conf"
	EOF
}

# CRI-O always sets oomScoreAdj, which root of a container may not lower; containerd has restrict_oom_score_adj.
native_runc_wrapper() {
	cat <<-'EOF'
	#!/bin/bash
	for argument; do
		if [ "${previous:-}" = --bundle ]; then
			jq 'del(.process.oomScoreAdj)' "$argument/config.json" >"$argument/config.new" &&
				mv "$argument/config.new" "$argument/config.json" || exit
		fi
		previous=$argument
	done
	exec runc "$@"
	EOF
}

native_crictl() {
	"$(cat "$1/crictl")" --config /dev/null --timeout 120s --runtime-endpoint "unix://$1/cri.sock" \
		--image-endpoint "unix://$1/cri.sock" "${@:2}" 2> >(grep -v 'does not exist, trying next' >&2)
}

native_is_up() { native_crictl "$1" info >/dev/null 2>&1; }

# The daemon alone: a second call is a restart, with the same state.
native_daemon() {
	local bin
	bin=$(cat "$1/bin")
	if [ -x "$bin/crio" ]; then
		process_start "$1" crio "$bin/crio" --config "$1/crio.conf" --config-dir ''
		wait_ready "$1" crio 60 native_is_up "$1"
		return
	fi
	PATH=$bin:$PATH process_start "$1" containerd "$bin/containerd" -c "$1/config.toml"
	wait_ready "$1" containerd 60 native_is_up "$1"
}

native_load() {
	local flags=()
	if [ -e "$1/crio.conf" ]; then
		skopeo --policy "$1/policy.json" copy -q "docker-archive:$2" "containers-storage:[vfs@$1/root+$1/state]$(image_name "$2")"
		return
	fi
	[[ $(cat "$1/bin") != */containerd-2* ]] || flags=(--local)
	"$(cat "$1/bin")/ctr" -a "$1/cri.sock" -n k8s.io images import "${flags[@]}" --snapshotter native "$2" >>"$1/logs/import.log" 2>&1
}

# CRI-O's first images come before the daemon, whose pause image is one of them.
native_start() {
	local dir=$1 runtime=${2:-containerd}
	command -v runc >/dev/null && command -v busybox >/dev/null ||
		"$e2e_lib/../components/host-packages" runc busybox-static || return
	mkdir -p "$dir"
	echo "$("$e2e_build" "$runtime")/bin" >"$dir/bin" && echo "$("$e2e_build" crictl)/bin/crictl" >"$dir/crictl" ||
		return
	image_busybox "$dir/busybox.tar" && image_pause "$dir/pause.tar" || return
	if [ "$runtime" = crio ]; then
		native_configure_crio "$dir" && native_load "$dir" "$dir/pause.tar" && native_load "$dir" "$dir/busybox.tar" && native_daemon "$dir"
	else
		native_config "$dir" >"$dir/config.toml"
		native_daemon "$dir" && native_load "$dir" "$dir/pause.tar" && native_load "$dir" "$dir/busybox.tar"
	fi
}

native_configure_crio() {
	command -v conmon >/dev/null && command -v skopeo >/dev/null && command -v jq >/dev/null ||
		"$e2e_lib/../components/host-packages" conmon skopeo jq || return
	mkdir -p "$1/cni"
	echo '{"default":[{"type":"insecureAcceptAnything"}]}' >"$1/policy.json"
	native_runc_wrapper >"$1/runc-wrapper" && chmod +x "$1/runc-wrapper" && native_crio_config "$1" >"$1/crio.conf"
}

native_stop() {
	local pod
	if native_is_up "$1"; then
		for pod in $(native_crictl "$1" pods -q); do
			native_crictl "$1" rmp -f "$pod" >/dev/null || :
		done
	fi
	process_stop "$1" containerd
	process_stop "$1" crio
	find /sys/fs/cgroup -depth -type d -path "*/$(basename "$1")-pods/*" -exec rmdir {} + 2>/dev/null || :
	find /sys/fs/cgroup -maxdepth 3 -depth -type d -name "$(basename "$1")-pods" -exec rmdir {} + 2>/dev/null || :
}

native_pod() {
	local dir=$1 name=$2 class=$3 annotations=${4:-} parent
	parent=/$(basename "$dir")-pods/${class}pod-$name
	cat >"$dir/pod-$name.json" <<-EOF
	{"metadata":{"name":"$name","namespace":"${NATIVE_NAMESPACE:-default}","uid":"uid-$name"},
	 "annotations":{$annotations},"log_directory":"$dir/pod-logs",
	 "linux":{"cgroup_parent":"$parent","security_context":{"namespace_options":{"network":2}}}}
	EOF
	native_crictl "$dir" runp "$dir/pod-$name.json" | tee "$dir/pod-$name.id"
}

# With the label that a kubelet sets: CRI-O sends it to NRI plugins as the container's name.
native_container() {
	local dir=$1 name=$2 resources=$3 script=${4:-grep Cpus_allowed_list /proc/self/status; exec sleep 100000} id
	cat >"$dir/container-$name.json" <<-EOF
	{"metadata":{"name":"c"},"image":{"image":"localhost/busybox:1"},"log_path":"$name.log",
	 "labels":{"io.kubernetes.container.name":"c"},
	 "args":["-c","$script"],"linux":{"resources":{$resources}}}
	EOF
	id=$(native_crictl "$dir" create --no-pull "$(cat "$dir/pod-$name.id")" "$dir/container-$name.json" \
		"$dir/pod-$name.json") || return
	native_crictl "$dir" start "$id" >/dev/null && echo "$id"
}

native_cgroup() {
	local pid
	pid=$(native_crictl "$1" inspect -o go-template --template '{{.info.pid}}' "$2" 2>/dev/null) ||
		pid=$(native_crictl "$1" inspectp -o go-template --template '{{.info.pid}}' "$2") || return
	awk -F: '$2 == "cpuset" || $2 == "" { print $3; exit }' "/proc/$pid/cgroup"
}

control() {
	if [ -e "/sys/fs/cgroup/$1$3/$2" ]; then cat "/sys/fs/cgroup/$1$3/$2"; else cat "/sys/fs/cgroup$3/$2"; fi
}
cpus_of() { control cpuset cpuset.cpus "$1"; }
has_cpus() { [ "$(cpus_of "$1")" = "$2" ]; }
set_cpus() { echo "$2" 2>/dev/null >"/sys/fs/cgroup/cpuset$1/cpuset.cpus" || echo "$2" >"/sys/fs/cgroup$1/cpuset.cpus"; }
