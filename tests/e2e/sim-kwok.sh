#!/usr/bin/env bash
# `pinfold sim` against the real thing: the same 84 nodes and 2,000 pods in a simulation, and in a cluster of kwok's nodes with a stock
# scheduler and the webhook. Pods that select a pool must agree pool by pool and kind by kind, with those that fit nowhere and the
# scheduler's message. Pods that may run anywhere are printed: the scheduler draws among equals, so their pools differ.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/webhook.sh
. tests/e2e/lib/webhook.sh
# shellcheck source=tests/e2e/lib/kwok.sh
. tests/e2e/lib/kwok.sh

dir=$(mktemp -d)
cp=$dir/cp
wh=$dir/webhook
trap 'kwok_stop "$dir"; wh_stop "$wh"; cp_stop "$cp"; [ -n "${KEEP:-}" ] || rm -rf "$dir"' EXIT
export WH_TIMEOUT_SECONDS=30
# No controller manager creates service accounts; nothing else is turned off.
CP_APISERVER_FLAGS=("${kwok_apiserver_flags[@]}")
gate=GuaranteedCPUPool=true
pods=${PODS:-2000}
compare="python3 tests/e2e/kwok/compare.py"

profile_manifest() { # NAME RESERVED SHARED ISOLATED
    cat <<END
---
apiVersion: performance.openshift.io/v2
kind: PerformanceProfile
metadata: {name: $1}
spec:
  cpu: {reserved: "$2", shared: "$3", isolated: "$4"}
  nodeSelector: {node-role.kubernetes.io/$1: ""}
END
}
{
    profile_manifest ran 0-3,32-35 4-11,36-43 12-31,44-63
    profile_manifest core 0-3,32-35 4-11,36-43 12-31,44-63
    profile_manifest edge 0-1 2-7 8-15
} >"$dir/profiles.yaml"

large='pack:1 core:32 pu:2'
"$pinfold" sim --nodes "ran=40 x $large" --nodes "core=40 x $large" --nodes 'edge=4 x core:16 pu:1' -f "$dir/profiles.yaml" --workload mixed \
    --pods "$pods" --feature-gates $gate --print-manifests -o json >"$dir/all.json" 2>/dev/null || [ $? = 1 ]
$compare split "$dir/all.json" "$dir"
status=0
"$pinfold" sim -f "$dir/profiles.yaml" -f "$dir/namespaces.json" -f "$dir/nodes.json" -f "$dir/pods.json" --topology "$large" \
    --topology 'core:16 pu:1' --feature-gates $gate -o json >"$dir/sim.json" || status=$?
ok "the simulation runs and leaves pods over" test $status = 1

cp_start "$cp"
wh_partition_cluster "$cp"
kubectl delete node partitioned >/dev/null
kubectl apply -f deploy/base/crd-performanceprofiles.yaml >/dev/null
kubectl wait --for condition=Established crd --all --timeout 60s >/dev/null
wh_account "$cp"
kubectl create -f "$dir/namespaces.json" >/dev/null
kubectl create -f "$dir/nodes.json" >/dev/null
wh_start "$wh" "$cp" --kubeconfig "$cp/pinfold.kubeconfig" --shutdown-delay 0 --feature-gates $gate
wh_configure "$wh" "$cp" --failure-policy Fail --feature-gates $gate
kwok_start "$dir" "$cp"
ready_nodes() { kubectl get nodes -o json | jq '[.items[] | select(.status.conditions[]? | .type == "Ready" and .status == "True")] | length'; }
all_ready() { [ "$(ready_nodes)" = 84 ]; }
ok "kwok makes 84 nodes ready" wait_for 120 all_ready
counts() { kubectl create --dry-run=server -o json -f - <<<"$(jq '.items[0]' "$dir/pods.json")" | grep -q 'pinfold.io/cpus\|workload.openshift.io/cores'; }
ok "the webhook changes pods" wait_for 60 counts
cp_start_scheduler "$cp"
began=$SECONDS
kubectl create -f "$dir/pods.json" >/dev/null
echo "# $pods pods were created in $((SECONDS - began)) s"
# Every pod is bound, or the scheduler has said why not.
decided() { kubectl get pods -A -o json >"$dir/pods-now.json" && $compare decided "$dir/pods-now.json" "$pods"; }
ok "the scheduler decides about all pods" wait_for 600 decided
kubectl get nodes -o json >"$dir/nodes-now.json"
status=0
output=$($compare compare "$dir/sim.json" "$dir/pods-now.json" "$dir/nodes-now.json" "$dir/pods.json") || status=$?
echo "${output//$'\n'/$'\n# '}" | sed '1s/^/# /'
tap_result $status "simulation and scheduler agree about every pool" "$output"
tap_end
