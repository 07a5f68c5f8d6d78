#!/usr/bin/env bash
# Alerts and dashboard of deploy/monitoring: promtool accepts them, each alert fires when it should and only
# then, and every metric and label they name is exported by a running webhook, operator or API server.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/webhook.sh
. tests/e2e/lib/webhook.sh
# shellcheck source=tests/e2e/lib/operator.sh
. tests/e2e/lib/operator.sh

dir=$(mktemp -d)
cp=$dir/cp
wh=$dir/webhook
trap 'process_stop "$dir" operator; wh_stop "$wh"; cp_stop "$cp"; rm -rf "$dir"' EXIT
promtool=$("$e2e_build" promtool)/bin/promtool
names=tests/e2e/monitoring/names.py

ok "alerts and dashboard can be parsed" python3 $names rules deploy/monitoring/alerts.yaml deploy/monitoring/dashboard.json "$dir/rules.yaml"
says "promtool accepts every query" SUCCESS "$promtool" check rules --lint=all --lint-fatal "$dir/rules.yaml"
cp tests/e2e/monitoring/alerts.yaml "$dir/"
says "each alert fires when it should, and only then" SUCCESS "$promtool" test rules "$dir/alerts.yaml"
sed 's/> 600/> 60000/' "$dir/rules.yaml" >"$dir/late.yaml"
sed 's/rules.yaml/late.yaml/' "$dir/alerts.yaml" >"$dir/late-alerts.yaml"
refused "the alert test fails with a wrong threshold" PinfoldCacheStale "$promtool" test rules "$dir/late-alerts.yaml"

# The API server exports these series only after the first such request: a response, no response with either policy.
try_pod() { # NAME: may be refused
    kubectl -n team create -f - >/dev/null 2>&1 <<END || :
apiVersion: v1
kind: Pod
metadata: {name: $1, annotations: {target.workload.openshift.io/management: '{"effect":"PreferredDuringScheduling"}'}}
spec: {containers: [{name: main, image: "localhost/none:1", resources: {requests: {cpu: 100m, memory: 1Mi}}}]}
END
}
scrape() {
    kubectl get --raw /metrics >"$dir/apiserver.prom"
    [ -z "${1:-}" ] || curl -sf --cacert "$cp/pki/ca.crt" "$(wh_url "$wh")/metrics" >"$dir/webhook.prom"
}
has_series() { # REGEX: creates a pod, then searches the API server's metrics
    try_pod "try-$RANDOM"
    scrape
    grep -q "$1" "$dir/apiserver.prom"
}

cp_start "$cp"
cp_namespace "$cp" team >/dev/null
kubectl apply -f deploy/base/crd-infrastructures.yaml >/dev/null
kubectl wait --for condition=Established crd --all --timeout 60s >/dev/null
wh_account "$cp"
wh_start "$wh" "$cp" --kubeconfig "$cp/pinfold.kubeconfig" --shutdown-delay 0
wh_configure "$wh" "$cp"
ok "the API server counts the webhook's responses" wait_for 60 has_series 'admission_webhook_admission_duration_seconds_bucket{.*pinfold'
scrape webhook
op_install "$cp"
op_account "$cp"
kubectl apply -f - >/dev/null <<<'{apiVersion: performance.openshift.io/v2, kind: PerformanceProfile, metadata: {name: worker},
    spec: {cpu: {reserved: 0-1, isolated: 2-3}, nodeSelector: {node-role.kubernetes.io/worker: ""}}}'
op_start "$dir" operator "$cp"
has_written() { [ "$(op_metric "$dir" operator 'pinfold_operator_writes_total{what="profile status",result="ok"}')" = 1 ]; }
ok "the operator counts what it writes" wait_for 30 has_written
curl -sf "http://127.0.0.1:$(cat "$dir/operator.port")/metrics" >"$dir/operator.prom"
wh_stop "$wh"
ok "the API server counts requests admitted without the webhook" wait_for 60 has_series 'webhook_fail_open_count{.*pinfold'
wh_configure "$wh" "$cp" --failure-policy Fail
ok "the API server counts requests refused because the webhook is unavailable" wait_for 60 has_series 'webhook_rejection_count{.*calling_webhook_error.*pinfold'
ok "promtool accepts what the operator exports" "$promtool" check metrics <"$dir/operator.prom"
ok "promtool accepts what the webhook exports" "$promtool" check metrics <"$dir/webhook.prom"
says "every metric and label in use is exported" ' names' python3 $names check "$dir/rules.yaml" "$dir/webhook.prom" "$dir/operator.prom" "$dir/apiserver.prom"
sed 's/pinfold_cache_age_seconds/pinfold_cache_age/' "$dir/rules.yaml" >"$dir/wrong.yaml"
refused "a metric that is not exported fails the check" 'pinfold_cache_age is not exported' \
    python3 $names check "$dir/wrong.yaml" "$dir/webhook.prom" "$dir/operator.prom" "$dir/apiserver.prom"
tap_end
