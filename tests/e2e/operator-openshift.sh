#!/usr/bin/env bash
# `pinfold operator --openshift` with the rights of deploy/operator: a real API server, with the kinds of the Machine Config and
# Node Tuning Operators. The objects are those of `pinfold render`; defaults and objects are restored; deleting a profile leaves
# the whole CPU set; a single node that is partitioned by hand gets the cluster flag and no other change.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/webhook.sh
. tests/e2e/lib/webhook.sh

dir=$(mktemp -d)
cp=$dir/cp
trap 'process_stop "$dir" operator; cp_stop "$cp"; [ -n "${KEEP:-}" ] || rm -rf "$dir"' EXIT

# --- set-up ---

cat >"$dir/audit.yaml" <<'EOF'
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
EOF
CP_APISERVER_FLAGS=(--audit-policy-file "$dir/audit.yaml" --audit-log-path "$dir/audit.log" --audit-log-mode blocking)
cp_start "$cp"
kubectl apply -f deploy/base/crd-infrastructures.yaml -f deploy/base/crd-performanceprofiles.yaml \
    -f deploy/base/crd-nodepartitions.yaml -f tests/e2e/operator/openshift-crds.yaml >/dev/null
kubectl wait --for condition=Established crd --all --timeout 60s >/dev/null
kubectl create namespace pinfold >/dev/null
kubectl create namespace openshift-cluster-node-tuning-operator >/dev/null
kubectl apply -k deploy/operator >/dev/null
kubectl apply -f deploy/operator/openshift-rbac.yaml >/dev/null
infrastructure() { # FLAG TOPOLOGY
    kubectl delete infrastructure cluster --ignore-not-found >/dev/null
    kubectl create -f - >/dev/null <<<'{apiVersion: config.openshift.io/v1, kind: Infrastructure, metadata: {name: cluster}}'
    kubectl patch infrastructure cluster --subresource status --type merge -p \
        "{\"status\":{\"cpuPartitioning\":\"$1\",\"controlPlaneTopology\":\"$2\",\"infrastructureTopology\":\"$2\"}}" >/dev/null
}
infrastructure AllNodes HighlyAvailable
kubectl apply -f tests/render/input/radio-pool.yaml >/dev/null
sed "/^users:/,\$d" "$cp/admin.kubeconfig" >"$dir/kubeconfig"
printf 'users: [{name: it, user: {token: %s}}]\ncontexts: [{name: test, context: {cluster: test, user: it}}]\n' \
    "$(kubectl -n pinfold create token pinfold-operator)" >>"$dir/kubeconfig"

port=$(free_port)
operator_start() {
    process_start "$dir" operator "$pinfold" operator --openshift --kubeconfig "$dir/kubeconfig" --listen "127.0.0.1:$port"
}
metric() { curl -sf "http://127.0.0.1:$port/metrics" | awk -v name="$1" '$1 == name { print $2 }'; }
has_metric() { [ "$(metric "$1")" = "$2" ]; }
objects() { # the names of everything that the operator applied
    kubectl get machineconfigs,kubeletconfigs,runtimeclasses,tuneds -A -l app.kubernetes.io/managed-by=pinfold -o name | sed 's,\.[^/]*,,' | LC_ALL=C sort
}
has_objects() { [ "$(objects)" = "$1" ]; }
spec() { kubectl get "$@" -o json | jq -S '{spec, handler, scheduling}'; }

# --- defaults ---

operator_start
defaults='machineconfig/01-master-cpu-partitioning
machineconfig/01-radio-cpu-partitioning
machineconfig/01-worker-cpu-partitioning'
wait_for 300 has_objects "$defaults" || :
equals "every pool gets the default MachineConfig" "$defaults" objects
drop_in() { # MACHINECONFIG FILE: its content
    kubectl get machineconfig "$1" -o json | jq -r --arg path "/etc/crio/crio.conf.d/$2" \
        '.spec.config.storage.files[] | select(.path == $path) | .contents.source | sub("^[^,]*,"; "") | @base64d'
}
cpuset_of() { drop_in "$@" | sed -n 's/.*"cpuset" = \("[^"]*"\).*/\1/p'; } # with its quotes
equals "which uses the whole CPU set" '""' cpuset_of 01-radio-cpu-partitioning 01-workload-pinning-default.conf
kubectl delete machineconfig 01-worker-cpu-partitioning >/dev/null
ok "a default that is deleted is restored" wait_for 300 has_objects "$defaults"

# --- a profile ---

kubectl create -f tests/render/input/radio-profile.yaml >/dev/null
all='kubeletconfig/performance-cell-site
machineconfig/01-master-cpu-partitioning
machineconfig/01-radio-cpu-partitioning
machineconfig/01-worker-cpu-partitioning
machineconfig/50-performance-cell-site
runtimeclass/performance-cell-site
tuned/openshift-node-performance-cell-site'
wait_for 300 has_objects "$all" || :
equals "a profile gets its four objects" "$all" objects
mkdir "$dir/input"
for kind in infrastructures machineconfigpools performanceprofiles; do kubectl get $kind -o yaml >"$dir/input/$kind.yaml"; done
"$pinfold" render --asset-input-dir "$dir/input" --asset-output-dir "$dir/rendered" --owner-ref k8s >/dev/null 2>&1
as_applied() { # FILE: the object without null members, which the API server does not store
    python3 -c 'import json, sys, yaml
def clean(v):
    return {k: clean(w) for k, w in v.items() if w is not None} if isinstance(v, dict) else v
print(json.dumps(clean(yaml.safe_load(open(sys.argv[1])))))' "$1" | jq -S '{spec, handler, scheduling}'
}
for file in "$dir"/rendered/*; do
    kind=$(sed -n 's/^kind: //p' "$file") name=$(python3 -c 'import sys, yaml; print(yaml.safe_load(open(sys.argv[1]))["metadata"]["name"])' "$file")
    equals "$kind $name is what render writes" "$(as_applied "$file")" spec -n openshift-cluster-node-tuning-operator "$kind" "$name"
done
equals "they are owned by the profile" "$(kubectl get performanceprofile cell-site -o jsonpath='{.metadata.uid}')" \
    kubectl get machineconfig 50-performance-cell-site -o 'jsonpath={.metadata.ownerReferences[0].uid}'
equals "the field manager is pinfold" pinfold kubectl get machineconfig 50-performance-cell-site --show-managed-fields -o 'jsonpath={.metadata.managedFields[0].manager}'

sleep 5
: >"$dir/audit.log"
sleep 25 # two reconciles at least
writes() { jq -r 'select(.userAgent | startswith("pinfold-operator")) | select(.verb == "patch" or .verb == "delete" or .verb == "create") |
    select(.objectRef.resource | test("machineconfigs|kubeletconfigs|tuneds|runtimeclasses")) | "\(.verb) \(.objectRef.name)"' "$dir/audit.log"; }
equals "nothing is written while nothing changes" "" writes

kubectl patch machineconfig 50-performance-cell-site --type merge -p '{"spec":{"config":{"storage":{"files":[]}}}}' >/dev/null
kubectl delete kubeletconfig performance-cell-site >/dev/null
is_restored() { has_objects "$all" && kubectl get machineconfig 50-performance-cell-site -o json | jq -e '.spec.config.storage.files != []' >/dev/null; }
ok "objects that are changed or deleted are restored" wait_for 300 is_restored

kubectl patch performanceprofile cell-site --type merge -p '{"spec":{"cpu":{"reserved":"0-3,16-19,32-35,48-51","isolated":"4-15,20-31,36-47,52-63"}}}' >/dev/null
has_cpuset() { [ "$(cpuset_of 50-performance-cell-site 99-workload-pinning.conf)" = "\"$1\"" ]; }
ok "a change of the profile changes them" wait_for 300 has_cpuset 0-3,16-19,32-35,48-51
before=$(kubectl get machineconfig 50-performance-cell-site -o jsonpath='{.metadata.generation}')
kubectl patch performanceprofile cell-site --type merge -p '{"spec":{"cpu":{"reserved":"0-20"}}}' >/dev/null
ok "a profile that cannot be rendered is reported" wait_for 300 has_metric 'pinfold_operator_findings{check="ProfileCannotBeRendered"}' 1
equals "and its objects stay" "$before" kubectl get machineconfig 50-performance-cell-site -o jsonpath='{.metadata.generation}'

# Another controller's object is not fought over.
kubectl apply --server-side --field-manager nto -f - >/dev/null <<'EOF'
{apiVersion: machineconfiguration.openshift.io/v1, kind: MachineConfig, metadata: {name: 50-performance-other}, spec: {config: {ignition: {version: theirs}}}}
EOF
kubectl create -f - >/dev/null <<'EOF'
{apiVersion: performance.openshift.io/v2, kind: PerformanceProfile, metadata: {name: other}, spec: {cpu: {reserved: 0-1, isolated: 2-7},
 nodeSelector: {node-role.kubernetes.io/worker: ""}}}
EOF
is_logged() { grep -q 'another controller manages an object of a profile.*50-performance-other' "$dir/logs/operator.log"; }
ok "an object that another controller owns is reported" wait_for 300 is_logged
equals "and left to it" theirs kubectl get machineconfig 50-performance-other -o 'jsonpath={.spec.config.ignition.version}'

kubectl delete performanceprofile cell-site other >/dev/null
wait_for 300 has_objects "$defaults" || :
equals "after the deletion of the profiles the defaults remain" "$defaults" objects
equals "which use the whole CPU set" '""' cpuset_of 01-radio-cpu-partitioning 01-workload-pinning-default.conf
echo "# operator: $(awk '/VmRSS/ { print $2 }' "/proc/$(cut -d' ' -f1 "$dir/operator.pid")/status") kB"

# --- a single node that was partitioned by hand ---

process_stop "$dir" operator
kubectl delete machineconfigs,machineconfigpools --all >/dev/null
infrastructure None SingleReplica
kubectl create -f - >/dev/null <<'EOF'
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata: {name: 02-master-workload-partitioning, labels: {machineconfiguration.openshift.io/role: master}}
spec:
  config:
    ignition: {version: 3.2.0}
    storage:
      files:
        - {path: /etc/crio/crio.conf.d/01-workload-partitioning, mode: 420, contents: {source: "data:,x"}}
        - {path: /etc/kubernetes/openshift-workload-pinning, mode: 420, contents: {source: "data:,y"}}
---
apiVersion: v1
kind: Node
metadata: {name: sno, labels: {node-role.kubernetes.io/master: "", node-role.kubernetes.io/worker: ""}}
EOF
flag() { kubectl get infrastructure cluster -o 'jsonpath={.status.cpuPartitioning}'; }
has_flag() { [ "$(flag)" = "$1" ]; }
operator_start
sleep 8
equals "a single node without the resource does not get the flag" None flag
kubectl patch node sno --subresource status --type merge -p \
    '{"status":{"capacity":{"management.workload.openshift.io/cores":"8k"},"allocatable":{"management.workload.openshift.io/cores":"8k"}}}' >/dev/null
ok "a single node that publishes it gets the flag" wait_for 300 has_flag AllNodes
sleep 12
of_master() { kubectl get machineconfigs -l machineconfiguration.openshift.io/role=master -o name; }
equals "and no MachineConfig that would restart it" machineconfig.machineconfiguration.openshift.io/02-master-workload-partitioning of_master
equals "the user's stays as it is" 1 kubectl get machineconfig 02-master-workload-partitioning -o 'jsonpath={.metadata.generation}'
tap_end
