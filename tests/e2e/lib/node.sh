# shellcheck shell=bash
#
# A real node: the guest of guest.sh with a stock kubelet (systemd cgroup driver) and a stock runtime
# with NRI, joined to the control plane of control-plane.sh. Source it (it brings both), then:
#
#	node_start DIR CPDIR NODE [RUNTIME]   RUNTIME: containerd (default), containerd-1.7 or crio
#	node_wait_ready DIR                   Ready, without taints
#	node_host_state DIR                   all host state that an agent may change, one line each
#	node_stop DIR
#
# guest_run DIR works on it. Files in the array NODE_PAYLOAD appear below /payload/extra, and image archives
# among them (*.tar) are loaded. NODE_KUBELET_CONFIG is YAML to be added to the kubelet's configuration, for
# example "cpuManagerPolicy: static". A directory crio.conf.d in NODE_PAYLOAD goes to /etc/crio. Pods use
# localhost/busybox:1 with imagePullPolicy: Never. NODE_TOOLS names more components for the guest (default:
# crictl); set it to nothing to save their build. With NODE_CNI=none the node has no network configuration: a pod has to
# install it, and the node is not Ready before. A file openshift-cpu-pools in NODE_PAYLOAD goes to /etc/kubernetes. The
# kubelet's kubeconfig is where kubeadm puts it, /etc/kubernetes/kubelet.conf. With GUEST_SEGMENT (guest.sh), NODE_ADDRESS is
# the node's address there, with which it registers. With NODE_PROXY=yes kube-proxy and its configuration are in /payload, for a pod
# that starts it.

# shellcheck source=tests/e2e/lib/control-plane.sh
. "$(dirname "${BASH_SOURCE[0]}")/control-plane.sh"
# shellcheck source=tests/e2e/lib/guest.sh
. "$(dirname "${BASH_SOURCE[0]}")/guest.sh"
# shellcheck source=tests/e2e/lib/image.sh
. "$(dirname "${BASH_SOURCE[0]}")/image.sh"

node_kubelet_config() {
	cat <<-EOF
	apiVersion: kubelet.config.k8s.io/v1beta1
	kind: KubeletConfiguration
	cgroupDriver: systemd
	containerRuntimeEndpoint: unix://$1
	authentication:
	  anonymous: {enabled: false}
	  x509: {clientCAFile: /payload/ca.crt}
	authorization: {mode: AlwaysAllow}
	staticPodPath: /etc/kubernetes/manifests
	failSwapOn: false
	# The small emulated disk must not cause disk pressure.
	localStorageCapacityIsolation: false
	evictionHard: {memory.available: 50Mi, nodefs.available: 1%, imagefs.available: 1%}
	nodeStatusUpdateFrequency: 5s
	runtimeRequestTimeout: 10m
	${NODE_KUBELET_CONFIG:-}
	EOF
}

# conntrack: its limits are the kernel's.
node_proxy_config() {
	cat <<-EOF
	apiVersion: kubeproxy.config.k8s.io/v1alpha1
	kind: KubeProxyConfiguration
	mode: nftables
	hostnameOverride: $1
	clusterCIDR: 10.88.0.0/16
	clientConnection: {kubeconfig: /payload/kube-proxy.kubeconfig}
	conntrack: {maxPerCore: 0, min: 0}
	EOF
}

# Version 2 of the format is containerd 1.7's; 2.x reads it, too.
node_containerd_config() {
	cat <<-'EOF'
	version = 2
	[plugins."io.containerd.grpc.v1.cri"]
	  sandbox_image = "localhost/pause:1"
	[plugins."io.containerd.grpc.v1.cri".cni]
	  bin_dir = "/usr/lib/cni"
	  conf_dir = "/etc/cni/net.d"
	[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
	  runtime_type = "io.containerd.runc.v2"
	[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
	  SystemdCgroup = true
	# The defaults, 5 s and 2 s, are too short on an emulated machine: the runtime drops a late plugin.
	[plugins."io.containerd.nri.v1.nri"]
	  disable = false
	  plugin_registration_timeout = "120s"
	  plugin_request_timeout = "120s"
	EOF
}

node_crio_config() {
	cat <<-'EOF'
	[crio]
	storage_driver = "vfs"
	[crio.api]
	listen = "/run/crio/crio.sock"
	[crio.image]
	pause_image = "localhost/pause:1"
	signature_policy = "/etc/containers/policy.json"
	[crio.network]
	plugin_dirs = ["/usr/lib/cni"]
	[crio.runtime]
	cgroup_manager = "systemd"
	conmon = "/usr/bin/conmon"
	pinns_path = "/payload/bin/pinns"
	default_runtime = "runc"
	apparmor_profile = "unconfined"
	disable_hostport_mapping = true
	# By default most pods have no pause process, and the test checks its CPUs.
	drop_infra_ctr = false
	[crio.runtime.runtimes.runc]
	runtime_path = "/usr/sbin/runc"
	[crio.nri]
	enable_nri = true
	nri_plugin_registration_timeout = "120s"
	nri_plugin_request_timeout = "120s"
	EOF
}

node_cni_config() {
	echo '{"cniVersion":"1.0.0","name":"pods","plugins":[{"type":"bridge","bridge":"cni0","isGateway":true,
		"ipMasq":false,"ipam":{"type":"host-local","ranges":[[{"subnet":"10.88.0.0/16"}]]}}]}'
}

# node_unit COMMAND [PROPERTY...]: Delegate, because these services create cgroups below their own.
node_unit() {
	printf '%s\n' '[Service]' 'Environment=PATH=/payload/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
		"ExecStart=$1" Delegate=yes KillMode=process Restart=on-failure LimitNOFILE=1048576 \
		TasksMax=infinity "${@:2}"
}

# The script that the guest runs.
node_up_script() {
	echo '#!/bin/bash'
	declare -f image_transport image_name
	cat <<-'EOF'
	set -euo pipefail
	runtime=$1
	mkdir -p /etc/cni/net.d /etc/kubernetes/manifests /etc/containers /etc/crio/crio.conf.d
	cp /payload/crio.conf /etc/crio/
	[ ! -d /payload/extra/crio.conf.d ] || cp /payload/extra/crio.conf.d/* /etc/crio/crio.conf.d/
	[ ! -e /payload/cni.conflist ] || cp /payload/cni.conflist /etc/cni/net.d/10-pods.conflist
	[ ! -e /payload/extra/openshift-cpu-pools ] || cp /payload/extra/openshift-cpu-pools /etc/kubernetes/
	install -m 600 /payload/kubeconfig /etc/kubernetes/kubelet.conf
	cp /payload/units/* /etc/systemd/system/
	hostname "$(cat /payload/node)"
	echo '{"default":[{"type":"insecureAcceptAnything"}]}' >/etc/containers/policy.json
	printf '[storage]\ndriver = "vfs"\nrunroot = "/run/containers/storage"\n' >/etc/containers/storage.conf
	echo 'graphroot = "/var/lib/containers/storage"' >>/etc/containers/storage.conf
	systemctl daemon-reload
	# On cgroup v2 the runtimes use one instance for each container, and containerd does not start without one.
	sysctl -q fs.inotify.max_user_instances=8192
	# udev changes the address of new interfaces while CRI-O sets them up.
	mkdir -p /etc/systemd/network
	printf '%s\n' '[Match]' 'OriginalName=veth*' '[Link]' 'MACAddressPolicy=none' >/etc/systemd/network/00-veth.link
	udevadm control --reload
	if [ -e /payload/address ]; then
		ip addr add "$(cat /payload/address)/24" dev eth1
		ip link set eth1 up
	fi
	shopt -s nullglob
	images=(/payload/images/*.tar /payload/extra/*.tar)
	if [ "$runtime" = crio ]; then
		for image in "${images[@]}"; do
			skopeo copy -q "$(image_transport "$image"):$image" "containers-storage:$(image_name "$image")"
		done
		systemctl start crio
	else
		systemctl start containerd
		for image in "${images[@]}"; do
			/payload/bin/ctr -n k8s.io images import "$image"
		done
	fi
	systemctl start kubelet
	EOF
}

node_payload() {
	local dir=$1 cp=$2 node=$3 runtime=$4 payload=$1/payload made socket=/run/containerd/containerd.sock
	[ "$runtime" != crio ] || socket=/run/crio/crio.sock
	mkdir -p "$payload"/{bin,images,units,extra} || return
	# shellcheck disable=SC2086  # NODE_TOOLS is a list
	for made in "$runtime" ${NODE_TOOLS-crictl} "kubernetes-$(cat "$cp/version"):kubelet${NODE_PROXY:+,kube-proxy}"; do
		made=$("$e2e_build" "$made") && ln -sf "$made"/bin/* "$payload/bin/" || return
	done
	# The rest of Kubernetes runs on the host.
	rm -f "$payload"/bin/kube-{apiserver,scheduler,controller-manager} "$payload/bin/kubectl"
	if [ -n "${NODE_PROXY:-}" ]; then
		[ -e "$cp/kube-proxy.kubeconfig" ] || cp_kubeconfig "$cp" kube-proxy /CN=system:kube-proxy 10.0.2.2 || return
		cp "$cp/kube-proxy.kubeconfig" "$payload/"
		node_proxy_config "$node" >"$payload/kube-proxy.yaml"
	else
		rm -f "$payload/bin/kube-proxy"
	fi
	command -v busybox >/dev/null || "$e2e_lib/../components/host-packages" busybox-static || return
	image_busybox "$payload/images/busybox.tar" && image_pause "$payload/images/pause.tar" || return
	[ ${#NODE_PAYLOAD[@]} -eq 0 ] || cp -r "${NODE_PAYLOAD[@]}" "$payload/extra/" || return

	cp_node_kubeconfig "$cp" "$node" && cp "$cp/$node.kubeconfig" "$payload/kubeconfig" || return
	cp "$cp/pki/ca.crt" "$payload/"
	echo "$node" >"$payload/node"
	[ -z "${NODE_ADDRESS:-}" ] || echo "$NODE_ADDRESS" >"$payload/address"
	echo "runtime-endpoint: unix://$socket" >"$payload/crictl.yaml"
	node_kubelet_config "$socket" >"$payload/kubelet.yaml"
	node_containerd_config >"$payload/containerd.toml"
	node_crio_config >"$payload/crio.conf"
	[ "${NODE_CNI:-}" = none ] || node_cni_config >"$payload/cni.conflist"
	node_unit "/payload/bin/containerd -c /payload/containerd.toml" Type=notify >"$payload/units/containerd.service"
	node_unit "/payload/bin/crio" Type=notify >"$payload/units/crio.service"
	node_unit "/payload/bin/kubelet --config /payload/kubelet.yaml --kubeconfig /etc/kubernetes/kubelet.conf \
--hostname-override $node --node-ip ${NODE_ADDRESS:-10.0.2.15}" >"$payload/units/kubelet.service"
	node_up_script >"$payload/up"
	chmod +x "$payload/up"
}

node_start() {
	local dir=$1 cp=$2 node=$3 runtime=${4:-containerd}
	mkdir -p "$dir" && printf '%s\n' "$cp" >"$dir/cp" && printf '%s\n' "$node" >"$dir/node" || return
	node_payload "$dir" "$cp" "$node" "$runtime" || return
	guest_start "$dir" "$dir/payload" || return
	guest_run "$dir" /payload/up "$runtime" >>"$dir/logs/up.log" 2>&1 ||
		{ tail -n 20 "$dir/logs/up.log" >&2; return 1; }
}

node_is_ready() {
	local cp
	cp=$(cat "$1/cp")
	# A controller manager would remove this taint.
	process_alive "$cp" kube-controller-manager ||
		cp_kubectl "$cp" taint nodes "$(cat "$1/node")" node.kubernetes.io/not-ready- >/dev/null 2>&1 || :
	[ "$(cp_kubectl "$cp" get node "$(cat "$1/node")" --ignore-not-found -o \
		'jsonpath={.status.conditions[?(@.type=="Ready")].status}{.spec.taints}' 2>/dev/null)" = True ]
}

node_wait_ready() {
	wait_ready "$1" qemu 1200 node_is_ready "$1" && return
	guest_run "$1" journalctl -u kubelet --no-pager -n 20 >&2
	return 1
}

node_stop() { guest_stop "$1"; }

# Everything that the agent may change, one line each: cpusets and properties of units, files of systemd, affinities of
# processes, masks of interrupts and workqueues.
node_host_state() { # DIR
	guest_run "$1" "$(cat <<-'EOF'
	cd /sys/fs/cgroup
	for unit in init.scope system.slice user.slice; do
		# The kernel does not empty the list of a cgroup with processes: all CPUs are as good.
		echo "$unit cpuset.cpus: $(sed "s/^$(cat /sys/devices/system/cpu/possible)$//" $unit/cpuset.cpus 2>/dev/null)"
		echo "$unit cpuset.cpus.effective: $(cat $unit/cpuset.cpus.effective)"
		echo "$unit: $(systemctl show -p AllowedCPUs $unit) $(systemctl show -p NeedDaemonReload $unit)"
	done
	find /run/systemd/system.control /etc/systemd/system.control -type f 2>/dev/null | sort
	echo "default: $(cat /proc/irq/default_smp_affinity)"
	echo "workqueue: $(cat /sys/devices/virtual/workqueue/cpumask)"
	grep . /proc/irq/*/smp_affinity_list
	for pid in 1 $(systemctl show -p MainPID --value systemd-journald kubelet ssh containerd crio); do
		[ "$pid" = 0 ] || sed -n "s/^Cpus_allowed_list:/$(cat /proc/$pid/comm):/p" /proc/$pid/status
	done | sort
	EOF
	)"
}
