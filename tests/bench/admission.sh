#!/usr/bin/env bash
# What admission adds to the creation of a pod, as the API server measures it (server dry-run), alternating in one run:
#
#	none      nothing of Pinfold
#	guard     the guard alone, which every installation has
#	webhook   the mutating webhook alone
#	go        a mutating Go webhook that uses controller-runtime, alone
#	shipped   mutating and validating webhook, and guard: mode webhook of the chart
#	policy    policies and guard: mode policy
#	both      policies, webhook and guard: mode both
#
# The modes are namespaces, so that nothing is changed in between. Also printed: the time of the webhook's call alone, and CPU time of the
# processes, which other work on the machine disturbs less. ROUNDS (40) rounds of REQUESTS (10) pods each; PEER=none leaves the Go webhook out.
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
modes="none guard webhook ${peer:+go} shipped policy both"
for mode in $modes; do
    cp_namespace "$cp" "$mode" >/dev/null
    kubectl label namespace "$mode" "mode=$mode" >/dev/null
    kubectl annotate namespace "$mode" workload.openshift.io/allowed=management >/dev/null
done
print_config() { "$pinfold" webhook --print-config --url "$1" --ca "$cp/pki/ca.crt"; }
as_list() { kubectl create --dry-run=client -o json -f - | jq -s '{apiVersion: "v1", kind: "List", items: .}'; }
# in_modes FILTER MODE...: sets the namespaces of the webhooks or bindings that FILTER selects.
in_modes() {
    jq --arg modes "${*:2}" "($1) = {matchExpressions: [{key: \"mode\", operator: \"In\", values: (\$modes | split(\" \"))}]}"
}
only_pods() { jq '.items |= map(.webhooks |= map(select(.name | startswith("pods.")))) | .items |= map(select(.webhooks != []))'; }
print_config "$(wh_url "$wh")" | as_list | only_pods >"$dir/webhooks.json"
in_modes '.items[].webhooks[].namespaceSelector' webhook shipped <"$dir/webhooks.json" |
    in_modes '.items[] | select(.kind == "ValidatingWebhookConfiguration").webhooks[].namespaceSelector' shipped both | kubectl apply -f - >/dev/null
# In mode both the mutating webhook gets only what deploy/overlays/both leaves to it.
condition=$(wh_overlay both | jq '.webhooks[0].matchConditions[] | select(.name == "not-converted-by-policies")')
in_modes '.items[].webhooks[].namespaceSelector' both <"$dir/webhooks.json" | jq --argjson condition "$condition" '
    .items |= map(select(.kind == "MutatingWebhookConfiguration") | .metadata.name = "both" | .webhooks[].matchConditions += [$condition])' | kubectl apply -f - >/dev/null
named() { echo ".items[] | select((.kind | endswith(\"Binding\")) and (.metadata.name | $1)) | .spec.matchResources.namespaceSelector"; } # CONDITION
"$pinfold" policy --mode policy -o json | jq '.items |= map(select(.metadata.name | test("nodes|cluster-flag") | not))' |
    in_modes "$(named 'test("workloads|warnings")')" policy both | in_modes "$(named 'test("converted")')" shipped policy both |
    in_modes "$(named 'test("guard|pods")')" guard shipped policy both | kubectl apply -f - >/dev/null
if [ -n "$peer" ]; then
    free_port >"$dir/go-port"
    mkdir -p "$dir/go"
    cp "$cp/pki/webhook.crt" "$dir/go/tls.crt" && cp "$cp/pki/webhook.key" "$dir/go/tls.key"
    kubectl get namespaces -o json >"$dir/go/state.json"
    process_start "$dir" go-webhook "$peer" --port "$(cat "$dir/go-port")" --cert-dir "$dir/go" --state "$dir/go/state.json"
    print_config "https://127.0.0.1:$(cat "$dir/go-port")" | as_list | only_pods | in_modes '.items[].webhooks[].namespaceSelector' go |
        jq '.items |= map(select(.kind == "MutatingWebhookConfiguration") | .metadata.name = "go")' | kubectl apply -f - >/dev/null
fi
pid_of() { cut -d' ' -f1 "$1"; }
python3 tests/bench/webhook/latency.py "$(cat "$cp/port")" "$cp/pki" "${ROUNDS:-40}" "${REQUESTS:-10}" "$modes" \
    "apiserver=$(pid_of "$cp/kube-apiserver.pid")" "webhook=$(wh_pid "$wh")" ${peer:+"go=$(pid_of "$dir/go-webhook.pid")"}
