#!/usr/bin/env bash
# A node with the layout of k3s, in a guest: one unit that runs containerd and the kubelet, with k3s's sockets, drop-in
# directories and kubeconfig. The bundle of `render --target host --distro k3s --agent-program` is installed with its
# install.sh; then the agent pins pods of all pools, and `pinfold check` passes. k3s itself does not run here: its paths do.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
RUNTIME=containerd
# shellcheck source=tests/e2e/lib/node.sh
. "$here/lib/node.sh"
# shellcheck source=tests/e2e/lib/agent-pods.sh
. "$here/lib/agent-pods.sh"

pinfold=$here/../../build/pinfold
top=$(mktemp -d /tmp/pinfold-k3s-XXXXXX)
cp=$top/cp
trap 'node_stop "$top/node"; cp_stop "$cp"; [ -n "${KEEP:-}" ] || rm -rf "$top"' EXIT

k3s_config() {
	cat <<-'EOF'
	version = 3
	imports = ["/var/lib/rancher/k3s/agent/etc/containerd/config-v3.toml.d/*.toml"]
	[grpc]
	  address = "/run/k3s/containerd/containerd.sock"
	[plugins."io.containerd.cri.v1.images".pinned_images]
	  sandbox = "localhost/pause:1"
	[plugins."io.containerd.cri.v1.runtime".cni]
	  bin_dirs = ["/usr/lib/cni"]
	  conf_dir = "/var/lib/rancher/k3s/agent/etc/cni/net.d"
	[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
	  runtime_type = "io.containerd.runc.v2"
	[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
	  SystemdCgroup = true
	EOF
}

# What `k3s agent` does: it starts containerd, waits for it and runs the kubelet in its own unit.
k3s_program() {
	cat <<-'EOF'
	#!/bin/bash
	agent=/var/lib/rancher/k3s/agent
	mkdir -p /run/k3s/containerd
	/payload/bin/containerd -c $agent/etc/containerd/config.toml &
	until [ -S /run/k3s/containerd/containerd.sock ]; do sleep 1; done
	exec /payload/bin/kubelet --config /payload/extra/kubelet-k3s.yaml --config-dir $agent/etc/kubelet.conf.d \
		--kubeconfig $agent/kubelet.kubeconfig --hostname-override worker-0 --node-ip 10.0.2.15
	EOF
}

# The timeouts of the rendered drop-in are containerd's defaults; they are too short on an emulated machine.
slow_machine='s/"5s"/"120s"/; s/"2s"/"120s"/'

make_payload() {
	cat >"$top/profile.yaml" <<-EOF
	apiVersion: performance.openshift.io/v2
	kind: PerformanceProfile
	metadata: {name: edge}
	spec:
	  cpu: {reserved: "0-1", shared: "2-3", isolated: "4-7"}
	  nodeSelector: {node-role.kubernetes.io/worker: ""}
	EOF
	"$pinfold" render --target host --distro k3s --agent-program "$pinfold" -f "$top/profile.yaml" --asset-output-dir "$top/rendered"
	sed -i "$slow_machine" "$top"/rendered/worker/rootfs/var/lib/rancher/k3s/agent/etc/containerd/config-v3.toml.d/50-pinfold.toml
	k3s_config >"$top/config.toml"
	k3s_program >"$top/k3s"
	chmod +x "$top/k3s"
	node_kubelet_config /run/k3s/containerd/containerd.sock |
		sed 's,/etc/kubernetes/manifests,/var/lib/rancher/k3s/agent/pod-manifests,' >"$top/kubelet-k3s.yaml"
	node_unit /payload/extra/k3s >"$top/k3s.service"
	# shellcheck disable=SC2034  # read by node.sh
	NODE_PAYLOAD=("$top/rendered" "$top/config.toml" "$top/k3s" "$top/kubelet-k3s.yaml" "$top/k3s.service") NODE_TOOLS=
}

# Nothing of kubeadm's layout is left, so that what works works with k3s's.
become_k3s() {
	in_guest 'systemctl stop kubelet containerd
		agent=/var/lib/rancher/k3s/agent
		mkdir -p $agent/etc/containerd $agent/etc/cni $agent/pod-manifests
		cp /payload/extra/config.toml $agent/etc/containerd/
		mv /etc/cni/net.d $agent/etc/cni/
		mv /etc/kubernetes/kubelet.conf $agent/kubelet.kubeconfig
		rm -rf /etc/kubernetes /etc/systemd/system/kubelet.service /etc/systemd/system/containerd.service /run/containerd/containerd.sock
		cp /payload/extra/k3s.service /etc/systemd/system/
		mkdir -p /etc/default/grub.d && ln -sf /bin/true /usr/sbin/update-grub # the guest has no boot loader
		systemctl daemon-reload'
}

check_passes() { in_guest pinfold check >"$top/check.out" 2>&1; }

cp_start "$cp"
make_payload
node_start "$top/node" "$cp" worker-0 containerd
become_k3s
in_guest /payload/extra/rendered/worker/install.sh >"$top/install.out" 2>&1 || die "install.sh: $(cat "$top/install.out")"
is "the checks at the end of install.sh" "$(grep -c '^  ok       distribution           k3s' "$top/install.out")" 1
in_guest systemctl start k3s pinfold-agent
wait_for 600 agent_ready || die "the agent is not ready"
node_wait_ready "$top/node"
cp_namespace "$cp" shop >/dev/null
kubectl annotate namespace shop workload.openshift.io/allowed=management >/dev/null
kubectl apply -f "$here/../../deploy/agent/node-rbac.yaml" >/dev/null
kubectl config set-context --current --namespace shop >/dev/null
is "CPUs that the kubelet's drop-in leaves allocatable" "$(kubectl get node worker-0 -o 'jsonpath={.status.allocatable.cpu}')" 6
make_three k3s
wait_hold 300 k3s 4-5
verify_soon
wait_for 60 check_passes || die "check: $(cat "$top/check.out")"
grep -q 'the CRI socket /run/k3s/containerd/containerd.sock accepts connections' "$top/check.out" || die "$(cat "$top/check.out")"
grep -q 'ok       runtime-version        containerd' "$top/check.out" || die "$(cat "$top/check.out")"
sed 's/^/# /' "$top/check.out"
echo "k3s-node: $checks checks passed"
