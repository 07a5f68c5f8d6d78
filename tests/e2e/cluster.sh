#!/usr/bin/env bash
# The webhook's informers on a real API server, with no more rights than deploy/ gives it: many namespaces, a
# broken connection, a compacted resource version, a replaced token, the API server restarted under load.
# CLUSTER_NAMESPACES (2000) and CLUSTER_PODS (1000) set the numbers.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/webhook.sh
. tests/e2e/lib/webhook.sh

namespaces=${CLUSTER_NAMESPACES:-2000}
pods=${CLUSTER_PODS:-1000}
[ -z "${SMOKE:-}" ] || namespaces=300 pods=100
dir=$(mktemp -d)
cp=$dir/cp
wh=$dir/webhook
trap 'wh_stop "$wh"; process_stop "$dir" proxy; cp_stop "$cp"; [ -n "${KEEP:-}" ] || rm -rf "$dir"' EXIT

# The metric NAME with label kind=KIND: the webhook's cache.
metric() { curl -sf --cacert "$cp/pki/ca.crt" "$(wh_url "$wh")/metrics" | sed -n "s/^$1{kind=\"$2\"} //p"; }
metric_is() { [ "$(metric "$1" "$2")" = "$3" ]; }
metric_above() { [ "$(metric "$1" "$2")" -gt "$3" ]; }
count() { kubectl get "$1" --no-headers --chunk-size 500 2>/dev/null | wc -l; }
cache_is_complete() { metric_is pinfold_state_objects Namespace "$(count namespaces)" && metric_is pinfold_state_objects Node "$(count nodes)"; }

# A token of the ServiceAccount, in the tokenFile of the webhook's kubeconfig.
new_token() { kubectl -n pinfold create token pinfold-webhook >"$dir/token.new" && mv "$dir/token.new" "$dir/token"; }

write_kubeconfig() { # PORT
    cat >"$dir/webhook.kubeconfig" <<END
apiVersion: v1
kind: Config
current-context: it
contexts: [{name: it, context: {cluster: it, user: webhook}}]
clusters: [{name: it, cluster: {server: "https://127.0.0.1:$1", certificate-authority: cp/pki/ca.crt}}]
users: [{name: webhook, user: {tokenFile: token}}]
END
}

many_namespaces() { # PREFIX COUNT
    for i in $(seq "$2"); do
        printf -- '---\n{apiVersion: v1, kind: Namespace, metadata: {name: %s-%d}}\n' "$1" "$i"
    done
}

try_pod() { # NAMESPACE: prints the admitted requests; nothing is stored
    kubectl create --dry-run=server -o 'jsonpath={.spec.containers[0].resources.requests}' -f - 2>/dev/null <<END
apiVersion: v1
kind: Pod
metadata: {name: try, namespace: $1, annotations: {target.workload.openshift.io/management: '{"effect":"PreferredDuringScheduling"}'}}
spec: {containers: [{name: main, image: "localhost/none:1", resources: {requests: {cpu: 100m, memory: 1Mi}}}]}
END
}
is_converted() { [[ $(try_pod "$1") == *'management.workload.openshift.io/cores'* ]]; }
is_not_converted() { [[ $(try_pod "$1") == *'"cpu":"100m"'* ]]; }
allow() { kubectl annotate namespace "$1" workload.openshift.io/allowed=management --overwrite >/dev/null; }
disallow() { kubectl annotate namespace "$1" workload.openshift.io/allowed- >/dev/null; }

etcd_post() { curl -sf "http://127.0.0.1:$(cat "$cp/etcd-port")/v3/kv/$1" -d "$2"; }
compact() {
    local revision
    revision=$(etcd_post range '{"key":"AA=="}' | sed 's/.*"revision":"\([0-9]*\)".*/\1/')
    etcd_post compaction "{\"revision\":$revision,\"physical\":true}" >/dev/null
}

start_proxy() { process_start "$dir" proxy python3 tests/e2e/webhook/balancer.py "$(cat "$dir/proxy-port")" "$(cat "$cp/port")"; }

set_up() {
    cp_start "$cp"
    kubectl create namespace pinfold >/dev/null
    kubectl apply -f deploy/base/rbac.yaml -f deploy/base/crd-infrastructures.yaml >/dev/null
    kubectl wait --for condition=Established crd --all --timeout 60s >/dev/null
    many_namespaces team "$namespaces" | kubectl create -f - >/dev/null
    for ns in team-1 team-2; do kubectl -n $ns create serviceaccount default >/dev/null; done
    new_token
    free_port >"$dir/proxy-port"
    start_proxy
    write_kubeconfig "$(cat "$dir/proxy-port")"
}

list_and_watch() {
    refused "a kubeconfig with an exec plugin is refused" 'exec is not supported' \
        "$pinfold" webhook --tls-cert x --tls-key y --kubeconfig <(sed 's/tokenFile: token/exec: {command: x}/' "$dir/webhook.kubeconfig")
    wh_start "$wh" "$cp" --kubeconfig "$dir/webhook.kubeconfig" --shutdown-delay 0
    ok "a ready webhook has all $namespaces namespaces in its cache" cache_is_complete
    wh_configure "$wh" "$cp" --failure-policy Fail
    wh_partition_cluster "$cp"
    kubectl create -f - >/dev/null <<<'{apiVersion: v1, kind: Node, metadata: {name: worker},
        status: {allocatable: {management.workload.openshift.io/cores: "8000"}, capacity: {management.workload.openshift.io/cores: "8000"}}}'
    allow team-1
    ok "objects created and changed later reach the cache" wait_for 60 is_converted team-1
    ok "a pod in a namespace that does not opt in is not converted" is_not_converted team-2
    kubectl delete namespace "team-$namespaces" --wait=false >/dev/null
    kubectl replace --raw "/api/v1/namespaces/team-$namespaces/finalize" -f - >/dev/null \
        <<<"{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"team-$namespaces\"},\"spec\":{\"finalizers\":[]}}"
    ok "deleted objects leave the cache" wait_for 60 cache_is_complete
    disallow team-1
    ok "a namespace can opt out again" wait_for 60 is_not_converted team-1
    ok "namespaces were listed once" metric_is pinfold_cache_lists_total Namespace 1
    echo "# resident: $(awk '/VmRSS/ { print $2 " kB" }' "/proc/$(wh_pid "$wh")/status") with $(count namespaces) namespaces"
}

broken_connection() {
    local before
    before=$(metric pinfold_watch_failures_total Namespace)
    process_stop "$dir" proxy
    ok "a lost connection is counted as a watch failure" wait_for 60 metric_above pinfold_watch_failures_total Namespace "$before"
    allow team-1
    start_proxy
    ok "the watch resumes without missing an event" wait_for 60 is_converted team-1
    ok "the watch resumes without a new list" metric_is pinfold_cache_lists_total Namespace 1
    ok "the caches are current" wait_for 60 metric_is pinfold_cache_age_seconds Namespace 0
}

too_old() {
    local before
    before=$(metric pinfold_cache_lists_total Namespace)
    process_stop "$dir" proxy
    disallow team-1
    many_namespaces later 5 | kubectl create -f - >/dev/null
    compact
    cp_restart_apiserver "$cp" # drops its watch cache
    start_proxy
    ok "after compaction the namespaces are listed again" \
        wait_for 90 metric_above pinfold_cache_lists_total Namespace "$before"
    ok "the expired resource version is counted" metric_above pinfold_watch_too_old_total Namespace 0
    ok "the cache is complete after the new list" wait_for 60 cache_is_complete
    ok "decisions use the new list" wait_for 60 is_not_converted team-1
}

token() {
    kubectl -n pinfold delete serviceaccount pinfold-webhook >/dev/null
    kubectl apply -f deploy/base/rbac.yaml >/dev/null
    process_stop "$dir" proxy # forces a new connection, with the token that is no longer valid
    start_proxy
    is_refused() { grep -q 'responded 401' "$wh/logs/webhook.log"; }
    ok "a token that is no longer valid is rejected by the API server" wait_for 60 is_refused
    new_token
    allow team-1
    ok "the new token is read from its file" wait_for 60 is_converted team-1
    ok "the caches are current again" wait_for 60 metric_is pinfold_cache_age_seconds Node 0
}

restart_under_load() {
    local creator status=0
    WH_TIMEOUT_SECONDS=10 wh_configure "$wh" "$cp" --failure-policy Fail
    python3 tests/e2e/webhook/create_pods.py "$(cat "$cp/port")" "$cp/pki" team-1 restart "$pods" "$dir" retry >"$dir/failures" 2>&1 &
    creator=$!
    sleep 1
    cp_restart_apiserver "$cp"
    wait "$creator" || status=1
    tap_result $status "$pods pods are created while the API server restarts" "$(cat "$dir/failures")"
    says "all of them were converted" "$pods 100" eval "kubectl -n team-1 get pods -l batch=restart --chunk-size 500 -o \
        'jsonpath={range .items[*]}{.spec.containers[0].resources.requests.management\\.workload\\.openshift\\.io/cores}{\"\\n\"}{end}' | uniq -c"
    disallow team-1
    ok "the caches recover" wait_for 60 is_not_converted team-1
    ok "the caches are current after the restart" wait_for 60 metric_is pinfold_cache_age_seconds Namespace 0
    ok "the webhook logged no error" wh_no_errors "$wh"
}

calls() {
    ninja -C build --quiet tests/e2e/api_calls
    says "the client can get, create, patch in every form, write status, delete and send an Event" 'event: 201' build/tests/e2e/api_calls "$cp/admin.kubeconfig"
    says "the Event is stored" 'every kind of call was made' kubectl -n default get events
}

set_up
calls
list_and_watch
broken_connection
too_old
token
restart_under_load
wh_stop "$wh"
tap_end
