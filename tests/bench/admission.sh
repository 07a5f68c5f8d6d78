#!/usr/bin/env bash
# What admission adds to the creation of a pod, as the API server measures it (apiserver_request_duration_seconds, server dry-run): nothing,
# policies, the webhook, both, and a Go webhook that uses controller-runtime, alternating in one run. The modes are namespaces, so that nothing is
# changed in between. policy, webhook and both include the guard. ROUNDS (10) rounds of REQUESTS (60) pods each;
# PEER=none leaves the Go webhook out.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/webhook.sh
. tests/e2e/lib/webhook.sh
# shellcheck source=tests/e2e/lib/operator.sh
. tests/e2e/lib/operator.sh

command -v go >/dev/null || [ -d "${XDG_CACHE_HOME:-$HOME/.cache}/pinfold/components/kubernetes-1.37.0" ] || {
    echo "bench admission: skipped, no Go to build an API server"
    exit 0
}
peer=
[ "${PEER:-}" = none ] || peer=$(tests/bench/peers/build webhook 2>/dev/null) || peer=
dir=$(mktemp -d)
cp=$dir/cp
wh=$dir/webhook
trap 'process_stop "$dir" go-webhook; process_stop "$dir" operator; wh_stop "$wh"; cp_stop "$cp"; rm -rf "$dir"' EXIT

cp_start "$cp"
op_install "$cp"
op_account "$cp"
op_start "$dir" operator "$cp"
wh_account "$cp"
wh_partition_cluster "$cp"
wh_start "$wh" "$cp" --kubeconfig "$cp/pinfold.kubeconfig" --shutdown-delay 0
modes="none policy webhook both ${peer:+go}"
for mode in $modes; do
    cp_namespace "$cp" "$mode" >/dev/null
    kubectl label namespace "$mode" "mode=$mode" >/dev/null
    kubectl annotate namespace "$mode" workload.openshift.io/allowed=management >/dev/null
done
print_config() { "$pinfold" webhook --print-config --url "$1" --ca "$cp/pki/ca.crt"; }
as_list() { kubectl create --dry-run=client -o json -f - | jq -s '{apiVersion: "v1", kind: "List", items: .}'; }
print_config "$(wh_url "$wh")" | as_list | python3 tests/e2e/policy/adapt.py webhook | kubectl apply -f - >/dev/null
# The guard of this bench leaves out "none", and "go", which spells annotations in a way that the guard refuses.
"$pinfold" policy --mode policy -o json | python3 tests/e2e/policy/adapt.py policies |
    jq '(.items[] | select(.kind == "ValidatingAdmissionPolicyBinding" and .spec.matchResources == null)).spec.matchResources =
        {namespaceSelector: {matchExpressions: [{key: "mode", operator: "In", values: ["policy", "webhook", "both"]}]}}' | kubectl apply -f - >/dev/null
if [ -n "$peer" ]; then
    free_port >"$dir/go-port"
    mkdir -p "$dir/go"
    cp "$cp/pki/webhook.crt" "$dir/go/tls.crt" && cp "$cp/pki/webhook.key" "$dir/go/tls.key"
    kubectl get namespaces -o json >"$dir/go/state.json"
    process_start "$dir" go-webhook "$peer" --port "$(cat "$dir/go-port")" --cert-dir "$dir/go" --state "$dir/go/state.json"
    print_config "https://127.0.0.1:$(cat "$dir/go-port")" | as_list | python3 tests/e2e/policy/adapt.py webhook |
        jq '.items |= map(select(.kind == "MutatingWebhookConfiguration") | .metadata.name = "go" |
            .webhooks[].namespaceSelector.matchExpressions[-1].values = ["go"])' | kubectl apply -f - >/dev/null
fi
python3 tests/bench/webhook/latency.py "$(cat "$cp/port")" "$cp/pki" "${ROUNDS:-10}" "${REQUESTS:-60}" "$modes"
