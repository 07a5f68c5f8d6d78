#!/bin/bash
#
# The agent's NodeResourceTopology object at a real API server with the definition that we ship: made,
# followed when a CPU is taken and given back, brought back when somebody removes it, and gone with its
# Node. The CPU is taken by an OCI hook for a process of our own. Needs root and two CPUs.

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/e2e/lib/control-plane.sh
. "$here/lib/control-plane.sh"
# shellcheck source=tests/e2e/lib/native-agent.sh
. "$here/lib/native-agent.sh"

object() { cp_kubectl "$dir/cp" get noderesourcetopologies worker-0 -o json; }
zone() { # RESOURCE
	object | jq -r --arg name "$1" '[.zones[].resources[] | select(.name == $name)] | map(.capacity + " " + .allocatable + " " + .available) | join("; ")'
}
is_there() { object >/dev/null 2>&1; }
zone_is() { [ "$(zone cpu)" = "$1" ]; }
hook() { "$pinfold" oci-hook "$1" --run-dir "$dir/run" --management 0 <<<"{\"ociVersion\":\"1.0.2\",\"id\":\"du\",\"pid\":$tenant,\"bundle\":\"$dir\"}"; }

# A process in a cgroup of its own, as a runtime would hand it to a hook.
tenant_up() {
	local group trees=(/sys/fs/cgroup/cpuset /sys/fs/cgroup/cpu) at
	group=/$(basename "$dir")
	[ ! -e /sys/fs/cgroup/cgroup.controllers ] || trees=(/sys/fs/cgroup)
	process_start "$dir" tenant sleep 100000
	read -r tenant _ <"$dir/tenant.pid"
	for at in "${trees[@]}"; do
		mkdir -p "$at$group"
		if [ "$at" = /sys/fs/cgroup/cpuset ]; then
			cat "$at/cpuset.mems" >"$at$group/cpuset.mems"
			cat "$at/cpuset.cpus" >"$at$group/cpuset.cpus"
		fi
		echo "$tenant" >"$at$group/cgroup.procs"
	done
	echo '{"linux":{"resources":{"cpu":{"quota":100000,"period":100000},"memory":{"limit":1048576}}}}' >"$dir/config.json"
}

clean() {
	process_stop "$dir" agent
	process_stop "$dir" tenant
	cp_stop "$dir/cp"
	find /sys/fs/cgroup -maxdepth 2 -depth -type d -name "$(basename "$dir")" -exec rmdir {} + 2>/dev/null || :
}

[ "$(nproc)" -ge 2 ] || { echo "topology-object.sh: needs two CPUs" >&2; exit 77; }
dir=$(mktemp -d "/tmp/pinfold-topology-XXXXXX")
trap clean EXIT
cp_start "$dir/cp"
cp_kubectl "$dir/cp" create namespace pinfold-agent >/dev/null
cp_kubectl "$dir/cp" apply -k "$here/../../deploy/topology" >/dev/null
cp_kubectl "$dir/cp" wait --for=condition=Established crd/noderesourcetopologies.topology.node.k8s.io --timeout=60s >/dev/null
may_write() { cp_kubectl "$dir/cp" auth can-i -q patch noderesourcetopologies.topology.node.k8s.io --as=system:serviceaccount:pinfold-agent:pinfold-agent 2>/dev/null; }
wait_for 60 may_write || die "the DaemonSet's account may not write it" # the server takes a moment to learn of a role
checks=$((checks + 1))

agent_start --management 0 --nri-socket "$dir/no-nri.sock" \
	--kubeconfig "$dir/cp/admin.kubeconfig" --node-name worker-0 --register --publish-topology --topology-policy single-numa-node
wait_for 60 is_there || die "no object"
is "guaranteed CPUs per zone" "$(zone cpu)" "2 1 1"
is "the same in millicores" "$(zone openshift.io/guaranteed-cpus)" "2000 1000 1000"
[ "$(zone memory | cut -d' ' -f1)" -gt 1000000000 ] || die "memory: $(zone memory)"
is "policy and scope" "$(object | jq -r '[.attributes[] | select(.name | startswith("topologyManager")) | .value] | join(" ")')" "single-numa-node container"
is "owned by the Node" "$(object | jq -r '.metadata.ownerReferences[0].uid')" "$(cp_kubectl "$dir/cp" get node worker-0 -o jsonpath='{.metadata.uid}')"
is "fingerprint" "$(object | jq -r '.metadata.annotations["topology.node.k8s.io/fingerprint"]')" \
	"$(object | jq -r '.attributes[] | select(.name == "nodeTopologyPodsFingerprint") | .value')"
is "in the status, too" "$(curl -sf --unix-socket "$dir/run/agent.sock" http://agent/status | jq -r .node)" worker-0

before=$(object | jq -r '.metadata.annotations["topology.node.k8s.io/fingerprint"]')
tenant_up
hook create || die "the hook refused"
is "on its CPU" "$(awk '/^Cpus_allowed_list/ { print $2 }' "/proc/$tenant/status")" 1
wait_for 20 zone_is "2 0 0" || die "the object does not follow: $(zone cpu)"
is "nobody in the cluster knows it" "$(object | jq -r '.metadata.annotations["topology.node.k8s.io/fingerprint"]')" "$before"
hook remove
wait_for 20 zone_is "2 1 1" || die "the CPU is not given back: $(zone cpu)"
checks=$((checks + 2))

cp_kubectl "$dir/cp" delete noderesourcetopologies worker-0 >/dev/null
wait_for 120 is_there || die "it was removed and does not come back"
checks=$((checks + 1))
version=$(object | jq -r .metadata.resourceVersion)
cp_restart_apiserver "$dir/cp"
hook create || die "the hook refused"
wait_for 60 zone_is "2 0 0" || die "after a restart of the API server: $(zone cpu)"
[ "$(object | jq -r .metadata.resourceVersion)" != "$version" ] || die "nothing was written"
checks=$((checks + 2))
hook remove
clean
trap - EXIT
rm -rf "$dir"
echo "topology-object.sh: $checks checks passed"
