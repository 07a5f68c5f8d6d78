# shellcheck shell=bash
# cluster DIR KUBELET AGENT DRIFT: a cluster with one node, as kubectl prints it.
cluster() {
    mkdir -p "$1"
    cat >"$1/objects.yaml" <<END
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata: {name: $(basename "$1")-0, labels: {node-role.kubernetes.io/master: ""}}
  status:
    capacity: {cpu: "16", memory: 64Gi, pods: "110", management.workload.openshift.io/cores: "16000"}
    allocatable: {cpu: "14", memory: 60Gi, pods: "110", management.workload.openshift.io/cores: "16000"}
    conditions:
    - {type: Ready, status: "True"}
    - {type: PartitioningReady, status: "True", reason: Pinning, lastHeartbeatTime: "2026-11-17T10:00:00Z"}
    nodeInfo: {kubeletVersion: $2, kernelVersion: 6.12.0, osImage: Debian GNU/Linux 13, containerRuntimeVersion: "cri-o://1.36.3"}
- apiVersion: pinfold.io/v1alpha1
  kind: NodePartition
  metadata: {name: $(basename "$1")-0}
  status:
    agentVersion: $3
    source: Profile
    profile: {name: du, generation: 1}
    cpus: {management: 0-1, shared: 2-3, guaranteed: 4-15, online: 0-15}
    numaNodes: [{id: 0, cpus: 0-15}]
    counters: {driftCorrected: 0, driftFailed: $4, refused: 0}
    conditions:
    - {type: Ready, status: "True", reason: Partitioned, message: as the profile says, lastTransitionTime: "2026-11-01T00:00:00Z"}
    - {type: HostConfigured, status: "True", reason: AsConfigured, message: "", lastTransitionTime: "2026-11-01T00:00:00Z"}
END
    profile restricted >"$1/profile.yaml"
    echo '{"apiVersion": "config.openshift.io/v1", "kind": "Infrastructure", "metadata": {"name": "cluster"}, "status": {"cpuPartitioning": "AllNodes"}}' >"$1/flag.json"
}

profile() { # POLICY [RESERVED SHARED ISOLATED]
    cat <<END
apiVersion: performance.openshift.io/v2
kind: PerformanceProfile
metadata: {name: du}
spec:
  cpu: {reserved: ${2:-0-1}, shared: ${3:-2-3}, isolated: ${4:-4-15}}
  nodeSelector: {node-role.kubernetes.io/master: ""}
  numa: {topologyPolicy: $1}
END
}
