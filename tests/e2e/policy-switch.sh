#!/usr/bin/env bash
# The modes of admission are changed while pods are created: webhook, both, policy, both, webhook. No pod fails, and every pod is converted.
# Then the webhook is stopped in mode policy, and the API server restarts. At least SWITCH_PODS (600) pods.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/webhook.sh
. tests/e2e/lib/webhook.sh
# shellcheck source=tests/e2e/lib/operator.sh
. tests/e2e/lib/operator.sh

export WH_TIMEOUT_SECONDS=30 # the API server, under load, shares the CPUs with the webhook
dir=$(mktemp -d)
cp=$dir/cp
wh=$dir/webhook
trap 'process_stop "$dir" operator; wh_stop "$wh"; cp_stop "$cp"; rm -rf "$dir"' EXIT

policy() { "$pinfold" policy "$@"; }
mode_webhook() { # also the guard
    policy --mode policy --without-guard | kubectl delete --ignore-not-found -f - >/dev/null
    policy | kubectl apply -f - >/dev/null
}
mode_both() {
    start_webhook
    policy --mode both | kubectl apply -f - >/dev/null
}
mode_policy() {
    policy --mode policy | kubectl apply -f - >/dev/null
    kubectl delete --ignore-not-found mutatingwebhookconfiguration,validatingwebhookconfiguration pinfold >/dev/null
    sleep 2 # as long as a Deployment takes to end its pods, at least; calls to it fail with Ignore
    wh_stop "$wh"
}
start_webhook() {
    process_alive "$wh" webhook || wh_start "$wh" "$cp" --kubeconfig "$cp/pinfold.kubeconfig" --shutdown-delay 0
    wh_configure "$wh" "$cp"
}
# A dry run of a pod, and who converted it: the webhook counts its reviews.
converts() { [ "$(kubectl -n platform create --dry-run=server -o json -f "$dir/pod.json" | jq -r '.spec.containers[0].resources.requests["management.workload.openshift.io/cores"]')" = 100 ]; }
has_policies() { [ "$(kubectl get mutatingadmissionpolicies -o name | wc -l)" -gt 0 ]; }

# --- set-up ---

cp_start "$cp"
op_install "$cp"
op_account "$cp"
op_start "$dir" operator "$cp"
wh_account "$cp"
wh_partition_cluster "$cp"
cp_namespace "$cp" platform >/dev/null
kubectl annotate namespace platform workload.openshift.io/allowed=management >/dev/null
cat >"$dir/pod.json" <<'END'
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", "annotations": {"target.workload.openshift.io/management":
 "{\"effect\":\"PreferredDuringScheduling\"}"}}, "spec": {"containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": "100m", "memory": "1Mi"}}}]}}
END
start_webhook
mode_webhook
ok "the webhook converts" wait_for 60 converts
has_parameters() { [ "$(kubectl -n kube-system get configmap pinfold-admission -o 'jsonpath={.data.workloads}')" = on ]; }
ok "the operator has published the cluster before there is a policy" wait_for 60 has_parameters

# --- changes under load ---

python3 tests/e2e/webhook/create_pods.py "$(cat "$cp/port")" "$cp/pki" platform load "${SWITCH_PODS:-600}" "$dir/enough" >"$dir/created" 2>&1 &
load=$!
sleep 3
for mode in both policy both webhook policy-direct; do
    case $mode in
    policy-direct) mode_both && sleep 3 && mode_policy ;; # as documented, through both
    *) "mode_$mode" ;;
    esac
    ok "a pod is converted after the change to $mode" wait_for 60 converts
    sleep 3
done
reviews=$(has_policies && echo policies)
equals "policies are in force at the end" policies echo "$reviews"
touch "$dir/enough"
wait $load || :
sed 's/^/# /' "$dir/created" | head -5
equals "no pod failed" 1 awk 'END { print NR }' "$dir/created"
unconverted() {
    kubectl -n platform get pods -l batch=load -o json | jq '[.items[] | select((.spec.containers[0].resources.requests["management.workload.openshift.io/cores"] != "100") or
        (.spec.containers[0].resources.requests.cpu != null) or (.metadata.annotations["resources.workload.openshift.io/main"] != "{\"cpushares\":102}"))] | length'
}
equals "every pod was converted" 0 unconverted
stored() { kubectl -n platform get pods -l batch=load -o name | wc -l; }
equals "every pod was stored" "$(grep -o '^[0-9]*' "$dir/created" | head -1)" stored
cp_restart_apiserver "$cp"
ok "after a restart of the API server, without a webhook, a pod is converted" wait_for 60 converts
tap_end
