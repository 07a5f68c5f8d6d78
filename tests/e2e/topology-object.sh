#!/bin/bash
#
# The agent's NodeResourceTopology object on a real API server with the CRD of deploy/topology: it is created,
# updated when a CPU is assigned and released, and created again when it is deleted. An OCI hook assigns the CPU to
# a process of this script. Needs root and two CPUs.

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/e2e/lib/control-plane.sh
. "$here/lib/control-plane.sh"
# shellcheck source=tests/e2e/lib/native-agent.sh
. "$here/lib/native-agent.sh"

object() { kubectl get noderesourcetopologies worker-0 -o json; }
zone() { # RESOURCE
	object | jq -r --arg name "$1" '[.zones[].resources[] | select(.name == $name)] | map(.capacity + " " + .allocatable + " " + .available) | join("; ")'
}
is_there() { object >/dev/null 2>&1; }
zone_is() { [ "$(zone cpu)" = "$1" ]; }
hook() { "$pinfold" oci-hook "$1" --run-dir "$dir/run" --management 0 <<<"{\"ociVersion\":\"1.0.2\",\"id\":\"du\",\"pid\":$process,\"bundle\":\"$dir\"}"; }

# A process in its own cgroup, as a runtime would pass it to a hook.
process_in_cgroup() {
	local group trees=(/sys/fs/cgroup/cpuset /sys/fs/cgroup/cpu) at
	group=/$(basename "$dir")
	[ ! -e /sys/fs/cgroup/cgroup.controllers ] || trees=(/sys/fs/cgroup)
	process_start "$dir" process sleep 100000
	read -r process _ <"$dir/process.pid"
	for at in "${trees[@]}"; do
		mkdir -p "$at$group"
		if [ "$at" = /sys/fs/cgroup/cpuset ]; then
			cat "$at/cpuset.mems" >"$at$group/cpuset.mems"
			cat "$at/cpuset.cpus" >"$at$group/cpuset.cpus"
		fi
		echo "$process" >"$at$group/cgroup.procs"
	done
	echo '{"linux":{"resources":{"cpu":{"quota":100000,"period":100000},"memory":{"limit":1048576}}}}' >"$dir/config.json"
}

clean() {
	process_stop "$dir" agent
	process_stop "$dir" process
	cp_stop "$dir/cp"
	find /sys/fs/cgroup -maxdepth 2 -depth -type d -name "$(basename "$dir")" -exec rmdir {} + 2>/dev/null || :
}

[ "$(nproc)" -ge 2 ] || { echo "topology-object.sh: needs two CPUs" >&2; exit 77; }
dir=$(mktemp -d "/tmp/pinfold-topology-XXXXXX")
cp=$dir/cp
trap clean EXIT
cp_start "$dir/cp"
kubectl create namespace pinfold-agent >/dev/null
kubectl apply -k "$here/../../deploy/topology" >/dev/null
kubectl wait --for=condition=Established crd/noderesourcetopologies.topology.node.k8s.io --timeout=60s >/dev/null
may_write() { kubectl auth can-i -q patch noderesourcetopologies.topology.node.k8s.io --as=system:serviceaccount:pinfold-agent:pinfold-agent 2>/dev/null; }
wait_for 60 may_write || die "the DaemonSet's account may not write it" # roles take effect with a delay
checks=$((checks + 1))

agent_start --management 0 --nri-socket "$dir/no-nri.sock" \
	--kubeconfig "$dir/cp/admin.kubeconfig" --node-name worker-0 --register --publish-topology --topology-policy single-numa-node
wait_for 60 is_there || die "no object"
is "guaranteed CPUs per zone" "$(zone cpu)" "2 1 1"
is "the same in millicores" "$(zone openshift.io/guaranteed-cpus)" "2000 1000 1000"
[ "$(zone memory | cut -d' ' -f1)" -gt 1000000000 ] || die "memory: $(zone memory)"
is "policy and scope" "$(object | jq -r '[.attributes[] | select(.name | startswith("topologyManager")) | .value] | join(" ")')" "single-numa-node container"
is "owned by the Node" "$(object | jq -r '.metadata.ownerReferences[0].uid')" "$(kubectl get node worker-0 -o jsonpath='{.metadata.uid}')"
is "fingerprint" "$(object | jq -r '.metadata.annotations["topology.node.k8s.io/fingerprint"]')" \
	"$(object | jq -r '.attributes[] | select(.name == "nodeTopologyPodsFingerprint") | .value')"
is "node in the status" "$(agent_status .node)" worker-0

before=$(object | jq -r '.metadata.annotations["topology.node.k8s.io/fingerprint"]')
process_in_cgroup
hook create || die "the hook refused"
is "CPUs of the process" "$(awk '/^Cpus_allowed_list/ { print $2 }' "/proc/$process/status")" 1
wait_for 20 zone_is "2 0 0" || die "the object is not updated: $(zone cpu)"
is "fingerprint: the process belongs to no pod" "$(object | jq -r '.metadata.annotations["topology.node.k8s.io/fingerprint"]')" "$before"
hook remove
wait_for 20 zone_is "2 1 1" || die "the released CPU is not available: $(zone cpu)"
checks=$((checks + 2))

kubectl delete noderesourcetopologies worker-0 >/dev/null
wait_for 120 is_there || die "a deleted object is not created again"
checks=$((checks + 1))
version=$(object | jq -r .metadata.resourceVersion)
cp_restart_apiserver "$dir/cp"
hook create || die "the hook refused"
wait_for 60 zone_is "2 0 0" || die "after a restart of the API server: $(zone cpu)"
[ "$(object | jq -r .metadata.resourceVersion)" != "$version" ] || die "the object was not written"
checks=$((checks + 2))
hook remove
clean
trap - EXIT
rm -rf "$dir"
echo "topology-object.sh: $checks checks passed"
