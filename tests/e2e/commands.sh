#!/usr/bin/env bash
# The commands for a whole cluster, on a real control plane with the shipped manifests: enable, status --cluster,
# verify --cluster, uninstall. The two nodes are objects; pods "run" there because this script reports so in place of
# a kubelet.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/webhook.sh
. tests/e2e/lib/webhook.sh

dir=$(mktemp -d /tmp/pinfold-commands-XXXXXX)
cp=$dir/cp
wh=$dir/webhook
trap 'touch "$dir/end"; wh_stop "$wh"; process_stop "$dir" kubelet; cp_stop "$cp"; [ -n "${KEEP:-}" ] || rm -rf "$dir"' EXIT
export KUBECONFIG=$cp/admin.kubeconfig

# run STATUS COMMAND...: prints all output; fails unless COMMAND ends with this status.
run() {
    local want=$1 status=0
    shift
    "$@" 2>&1 </dev/null || status=$?
    [ $status = "$want" ] || { echo "exit status $status, want $want"; return 1; }
}
# answer TEXT STATUS COMMAND: the same on a terminal, with an answer.
answer() {
    local status=0
    script -qefc "$3" /dev/null <<<"$1" || status=$?
    [ $status = "$2" ] || { echo "exit status $status, want $2"; return 1; }
}
is_ready() { "$pinfold" enable --dry-run >"$dir/preflight" 2>&1; }
flag() { kubectl get infrastructure cluster -o 'jsonpath={.status.cpuPartitioning}' 2>/dev/null; }
findings() { { "$pinfold" verify --cluster -o json || :; } | jq -r '.findings[] | .node + " " + .reason'; }

# Reports what a kubelet would: pods run, an agent with --uninstall succeeds, deleted pods are gone.
kubelet() {
    local pod
    while [ ! -e "$dir/end" ]; do
        kubectl get pods -A -o json 2>/dev/null | jq -c '.items[] | select(.spec.nodeName)' >"$dir/pods" || :
        while read -r pod; do
            kubelet_pod "$pod" >/dev/null 2>&1 || :
        done <"$dir/pods"
        sleep 0.5
    done
}
kubelet_pod() {
    local ns name state='{"running":{}}'
    ns=$(jq -r .metadata.namespace <<<"$1") name=$(jq -r .metadata.name <<<"$1")
    if jq -e .metadata.deletionTimestamp <<<"$1" >/dev/null; then
        kubectl -n "$ns" delete pod "$name" --force --grace-period 0 --wait=false
        return
    fi
    if jq -e '.spec.containers[0].args // [] | index("--uninstall")' <<<"$1" >/dev/null; then
        state='{"terminated":{"exitCode":0}}'
        jq -r .spec.nodeName <<<"$1" >>"$dir/released"
        kubectl get clusterrolebinding pinfold-agent -o name >>"$dir/released-with"
    elif [ "$(jq -r .status.phase <<<"$1")" = Running ]; then
        return
    fi
    kubectl -n "$ns" patch pod "$name" --subresource status --type merge -p \
        "{\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"True\"},
        {\"type\":\"Ready\",\"status\":\"True\"}],\"containerStatuses\":[{\"name\":\"$(jq -r '.spec.containers[0].name' <<<"$1")\",
        \"image\":\"x\",\"imageID\":\"x\",\"ready\":true,\"restartCount\":0,\"state\":$state}]}}"
}

node() { # NAME: a ready Node, as its kubelet and its agent report it
    local now
    now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
    kubectl create -f - >/dev/null <<END
apiVersion: v1
kind: Node
metadata: {name: $1, labels: {node-role.kubernetes.io/worker: ""}}
END
    kubectl patch node "$1" --subresource status --type strategic -p "{\"status\":{
        \"nodeInfo\":{\"kubeletVersion\":\"v1.37.0\",\"architecture\":\"\",\"bootID\":\"\",
        \"containerRuntimeVersion\":\"containerd://2.1.0\",\"kernelVersion\":\"\",\"kubeProxyVersion\":\"\",\"machineID\":\"\",
        \"operatingSystem\":\"linux\",\"osImage\":\"\",\"systemUUID\":\"\"},
        \"capacity\":{\"cpu\":\"8\",\"memory\":\"8Gi\",\"pods\":\"50\",\"management.workload.openshift.io/cores\":\"8k\"},
        \"allocatable\":{\"cpu\":\"8\",\"memory\":\"8Gi\",\"pods\":\"50\",\"management.workload.openshift.io/cores\":\"8k\"},
        \"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"KubeletReady\"},
        {\"type\":\"PartitioningReady\",\"status\":\"True\",\"reason\":\"Pinning\",\"lastHeartbeatTime\":\"$now\"}]}}" >/dev/null
    # The node controller adds it to new Nodes; a kubelet would remove it.
    kubectl taint node "$1" node.kubernetes.io/not-ready- >/dev/null 2>&1 || :
}
partition() { # NODE [PENDING [VERSION]]
    kubectl create -f - >/dev/null <<<"{apiVersion: pinfold.io/v1alpha1, kind: NodePartition, metadata: {name: $1}}"
    kubectl patch nodepartition "$1" --subresource status --type merge -p "{\"status\":{\"agentVersion\":\"${3:-0.1.0}\",
        \"source\":\"Profile\",\"profile\":{\"name\":\"worker\",\"generation\":1},
        \"cpus\":{\"management\":\"0-1\",\"shared\":\"2-3\",\"guaranteed\":\"4-7\",\"online\":\"0-7\"},
        \"pools\":[{\"name\":\"guaranteed\",\"containers\":1,\"exclusiveCPUs\":\"4-5\",\"freeCPUs\":2}],\"pending\":[${2:-}],
        \"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"AsConfigured\",\"lastTransitionTime\":\"2026-11-17T05:00:00Z\"}]}}" >/dev/null
}
pods() { # NAMESPACE NAME SPEC: a Deployment of management pods
    kubectl create -f - >/dev/null <<END
apiVersion: apps/v1
kind: Deployment
metadata: {name: $2, namespace: $1}
spec:
  selector: {matchLabels: {app: $2}}
  template:
    metadata:
      labels: {app: $2}
      annotations: {target.workload.openshift.io/management: '{"effect":"PreferredDuringScheduling"}'}
    spec: {$3 containers: [{name: main, image: "localhost/none:1", resources: {requests: {cpu: 100m, memory: 1Mi}}}]}
END
}
requests() { kubectl -n platform get pods -l "app=$1" -o 'jsonpath={.items[*].spec.containers[0].resources.requests}'; }
is_converted() { [[ $(requests "$1") == *'management.workload.openshift.io/cores'* ]]; }
runs() { [ "$(kubectl -n platform get pods -l "app=$1" -o 'jsonpath={.items[*].status.phase}')" = Running ]; }
uid() { kubectl -n platform get pods -l "app=$1" -o 'jsonpath={.items[*].metadata.uid}'; }
agents_run() { [ "$(kubectl -n pinfold-agent get pods -o 'jsonpath={.items[*].status.phase}')" = 'Running Running' ]; }
# Everything in the cluster whose name or namespace is Pinfold's, and what Nodes still have.
left() {
    local kinds
    kinds=$(kubectl api-resources --cached=false --verbs list -o name | grep -v '^events\|^componentstatuses' | paste -sd,)
    kubectl get "$kinds" -A -o json 2>/dev/null | jq -r '.items[] |
        select([.metadata.name, .metadata.namespace // ""] | any(test("pinfold"))) | .kind + "/" + .metadata.name' | sort
    kubectl get nodes -o json | grep -e workload.openshift.io -e PartitioningReady -e pinfold.io || :
}

set_up() {
    cp_start "$cp"
    cp_start_scheduler "$cp"
    # Nothing renews leases of these nodes.
    cp_start_controller_manager "$cp" --controllers '*,-node-lifecycle-controller'
    kubectl apply -k deploy/ >/dev/null
    # What else an installation may have.
    kubectl apply -f deploy/agent/node-rbac.yaml -f deploy/topology/rbac.yaml >/dev/null
    [ ! -e deploy/operator/permissions.yaml ] || kubectl apply -f deploy/operator/permissions.yaml >/dev/null
    kubectl wait --for condition=Established crd --all --timeout 60s >/dev/null
    kubelet >>"$dir/kubelet.log" 2>&1 &
    echo "$! $(process_starttime $!)" >"$dir/kubelet.pid"
}

not_ready() {
    says "a cluster without a running webhook is not ready" 'webhook-trust' run 1 "$pinfold" enable --yes
    says "and nothing is changed" 'nothing was changed' run 1 "$pinfold" enable --yes
    ok "there is no flag" [ -z "$(flag)" ]
}

enable() {
    wh_account "$cp"
    wh_start "$wh" "$cp" --kubeconfig "$cp/pinfold.kubeconfig" --admission-mode taint --shutdown-delay 0
    wh_configure "$wh" "$cp" --admission-mode taint
    says "nor is one without nodes" '0 of 0 ready nodes advertise' run 1 "$pinfold" enable --yes
    node worker-0
    node worker-1
    ok "with webhook and nodes it is ready" wait_for 240 is_ready
    says "without a terminal the question cannot be asked" 'give --yes' run 2 "$pinfold" enable
    says "the question says that it cannot be undone" 'cannot be turned off again' answer no 1 "$pinfold enable"
    ok "after another answer than yes nothing is changed" [ -z "$(flag)" ]
    says "after yes partitioning is on" 'workload partitioning is on' answer yes 0 "$pinfold enable"
    equals "the flag is AllNodes" AllNodes flag
    says "a second time there is nothing to do" 'already on' run 0 "$pinfold" enable --yes
}

overview() {
    ok "the agents of the DaemonSet run" wait_for 60 agents_run
    says "nodes without a NodePartition are a finding" 'NoPartition' run 1 "$pinfold" verify --cluster
    partition worker-0
    says "one line for each node" 'worker-0  worker   0-1         2-3     4-7         2     True   -        0.1.0' run 1 "$pinfold" status --cluster
    says "with those that do not report" 'worker-1  -        -           -       -           -     -      -        -' run 1 "$pinfold" status --cluster
    partition worker-1 '{"what":"KubeletRestart","reason":"KubeletConfigDiffers","message":"x","hash":"ab"}'
    says "what waits is a finding" 'worker-1  Pending  a change waits for a KubeletRestart: KubeletConfigDiffers: x' run 1 "$pinfold" verify --cluster
    kubectl patch nodepartition worker-1 --subresource status --type merge -p '{"status":{"pending":[]}}' >/dev/null
    says "a cluster as configured has none" '2 nodes, 0 findings' run 0 "$pinfold" verify --cluster
    equals "status has everything for programs" 4-5 jq -r '.nodes[0].status.pools[0].exclusiveCPUs' <("$pinfold" status --cluster -o json)
    kubectl patch nodepartition worker-0 --subresource status --type merge -p '{"status":{"agentVersion":"0.0.9"}}' >/dev/null
    says "versions that differ are a finding" VersionDiffers findings
    refused "a user without permission is told so" forbidden "$pinfold" status --cluster --kubeconfig "$cp/nothing.kubeconfig"
}

pods_stop_it() {
    cp_namespace "$cp" platform >/dev/null
    kubectl annotate namespace platform workload.openshift.io/allowed=management >/dev/null
    kubectl apply -f - >/dev/null <<<'{apiVersion: performance.openshift.io/v2, kind: PerformanceProfile, metadata: {name: worker},
        spec: {cpu: {reserved: 0-1, isolated: 2-7}, nodeSelector: {node-role.kubernetes.io/worker: ""}}}'
    sleep 2 # the webhook's cache
    pods platform runs ""
    pods platform waits "nodeSelector: {zone: none},"
    ok "a management pod is converted and runs" wait_for 60 runs runs
    ok "it is converted" is_converted runs
    ok "another one waits for a node" wait_for 60 is_converted waits
    kubectl run bare -n platform --image localhost/none:1 --overrides '{"metadata":{"annotations":{"target.workload.openshift.io/management":"{\"effect\":\"PreferredDuringScheduling\"}"}},
        "spec":{"nodeSelector":{"zone":"none"},"containers":[{"name":"bare","image":"localhost/none:1","resources":{"requests":{"cpu":"100m","memory":"1Mi"}}}]}}' >/dev/null
    kubectl annotate node worker-1 pinfold.io/rollout=cordoned >/dev/null
    kubectl cordon worker-1 >/dev/null
    left >"$dir/before"
    says "--dry-run prints what would be deleted" 'delete mutatingwebhookconfigurations/pinfold' run 0 "$pinfold" uninstall --dry-run --crds
    equals "and deletes nothing" "$(cat "$dir/before")" left
    says "without a terminal it needs --yes" 'give --yes' run 2 "$pinfold" uninstall
    says "after another answer than yes nothing is changed" 'nothing was changed' answer no 1 "$pinfold uninstall"
    equals "really" "$(cat "$dir/before")" left
    says "a converted pod without a controller that waits stops it" 'pod platform/bare was converted and waits for a node' run 1 "$pinfold" uninstall --yes --timeout 20
    ok "before the nodes lose their resources" [ "$(kubectl get node worker-0 -o json | jq -r '.status.capacity["management.workload.openshift.io/cores"]')" = 8k ]
    ok "pods of controllers that waited have their CPU requests back" wait_for 30 has_cpu waits
}
has_cpu() { [[ $(requests "$1") == *'"cpu":"100m"'* ]] && ! is_converted "$1"; }

uninstalled() {
    local before
    before=$(uid runs)
    kubectl -n platform delete pod bare --wait=false >/dev/null
    says "then it goes on" 'Pinfold is removed' run 0 "$pinfold" uninstall --yes --timeout 90
    equals "nothing of Pinfold is left" "" left
    equals "every agent undid its work" "worker-0 worker-1" sh -c "sort -u '$dir/released' | tr '\\n' ' ' | sed 's/ \$//'"
    ok "and still had its permissions" [ -s "$dir/released-with" ]
    equals "the running pod was not touched" "$before" uid runs
    equals "a node that the operator cordoned is schedulable" "" kubectl get node worker-1 -o 'jsonpath={.spec.unschedulable}'
    equals "profiles stay" worker kubectl get performanceprofiles -o 'jsonpath={.items[*].metadata.name}'
    equals "the flag, too" AllNodes flag
    pods platform later ""
    ok "new pods keep their CPU requests" wait_for 30 has_cpu later
    says "a second time there is nothing to do" 'nothing of Pinfold is left' run 0 "$pinfold" uninstall --yes
    says "--crds deletes profiles and the flag" 'deleted customresourcedefinitions/performanceprofiles' run 0 "$pinfold" uninstall --crds --yes
    refused "they are gone" NotFound kubectl get crd performanceprofiles.performance.openshift.io
    wh_stop "$wh"
}

set_up
cp_kubeconfig "$cp" nothing /CN=unknown
not_ready
enable
overview
pods_stop_it
uninstalled
tap_end
