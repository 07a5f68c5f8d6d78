#!/usr/bin/env bash
# The webhook follows a real API server, with no more rights than deploy/ gives it: many namespaces, a
# connection that breaks, a version that was compacted away, a token that changes, the API server
# restarted under load. CLUSTER_NAMESPACES (2000) and CLUSTER_PODS (1000) say how many.
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
kubectl() { cp_kubectl "$cp" "$@"; }

# By the metric NAME of kind KIND: our view of the cluster.
metric() { curl -sf --cacert "$cp/pki/ca.crt" "$(wh_url "$wh")/metrics" | sed -n "s/^$1{kind=\"$2\"} //p"; }
metric_is() { [ "$(metric "$1" "$2")" = "$3" ]; }
metric_above() { [ "$(metric "$1" "$2")" -gt "$3" ]; }
count() { kubectl get "$1" --no-headers --chunk-size 500 2>/dev/null | wc -l; }
knows_all() { metric_is pinfold_state_objects Namespace "$(count namespaces)" && metric_is pinfold_state_objects Node "$(count nodes)"; }

# A token of the ServiceAccount, in a file that our kubeconfig names.
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

try_pod() { # NAMESPACE: what the webhook makes of it; nothing is stored
    kubectl create --dry-run=server -o 'jsonpath={.spec.containers[0].resources.requests}' -f - 2>/dev/null <<END
apiVersion: v1
kind: Pod
metadata: {name: try, namespace: $1, annotations: {target.workload.openshift.io/management: '{"effect":"PreferredDuringScheduling"}'}}
spec: {containers: [{name: main, image: "localhost/none:1", resources: {requests: {cpu: 100m, memory: 1Mi}}}]}
END
}
is_converted() { [[ $(try_pod "$1") == *'management.workload.openshift.io/cores'* ]]; }
is_left_alone() { [[ $(try_pod "$1") == *'"cpu":"100m"'* ]]; }
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
    ok "ready means that all $namespaces namespaces are known" knows_all
    wh_configure "$wh" "$cp" --failure-policy Fail
    kubectl create -f - >/dev/null <<<'{apiVersion: config.openshift.io/v1, kind: Infrastructure, metadata: {name: cluster}}'
    kubectl patch infrastructure cluster --subresource status --type merge -p \
        '{"status":{"controlPlaneTopology":"HighlyAvailable","infrastructureTopology":"HighlyAvailable","cpuPartitioning":"AllNodes"}}' >/dev/null
    kubectl create -f - >/dev/null <<<'{apiVersion: v1, kind: Node, metadata: {name: worker},
        status: {allocatable: {management.workload.openshift.io/cores: "8000"}, capacity: {management.workload.openshift.io/cores: "8000"}}}'
    allow team-1
    ok "what is created and changed later is seen" wait_for 60 is_converted team-1
    ok "a namespace without permission is not" is_left_alone team-2
    kubectl delete namespace "team-$namespaces" --wait=false >/dev/null
    kubectl replace --raw "/api/v1/namespaces/team-$namespaces/finalize" -f - >/dev/null \
        <<<"{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"team-$namespaces\"},\"spec\":{\"finalizers\":[]}}"
    ok "what is deleted is forgotten" wait_for 60 knows_all
    disallow team-1
    ok "and a permission can be taken back" wait_for 60 is_left_alone team-1
    ok "all of that with one list of each" metric_is pinfold_cache_lists_total Namespace 1
    echo "# resident: $(awk '/VmRSS/ { print $2 " kB" }' "/proc/$(wh_pid "$wh")/status") with $(count namespaces) namespaces"
}

broken_connection() {
    local before
    before=$(metric pinfold_watch_failures_total Namespace)
    process_stop "$dir" proxy
    ok "a lost connection is noticed" wait_for 60 metric_above pinfold_watch_failures_total Namespace "$before"
    allow team-1
    start_proxy
    ok "it is resumed, nothing is missed" wait_for 60 is_converted team-1
    ok "and nothing listed again" metric_is pinfold_cache_lists_total Namespace 1
    ok "the caches are current" wait_for 60 metric_is pinfold_cache_age_seconds Namespace 0
}

too_old() {
    local before
    before=$(metric pinfold_cache_lists_total Namespace)
    process_stop "$dir" proxy
    disallow team-1
    many_namespaces later 5 | kubectl create -f - >/dev/null
    compact
    cp_restart_apiserver "$cp" # forgets what it remembered of the past
    start_proxy
    ok "after compaction the version is too old, and the list is read again" \
        wait_for 90 metric_above pinfold_cache_lists_total Namespace "$before"
    ok "that was the reason" metric_above pinfold_watch_too_old_total Namespace 0
    ok "nothing is missed" wait_for 60 knows_all
    ok "and decisions follow" wait_for 60 is_left_alone team-1
}

token() {
    kubectl -n pinfold delete serviceaccount pinfold-webhook >/dev/null
    kubectl apply -f deploy/base/rbac.yaml >/dev/null
    process_stop "$dir" proxy # the old token is worthless now, and a new connection is needed
    start_proxy
    is_refused() { grep -q 'answered 401' "$wh/logs/webhook.log"; }
    ok "a token that is no longer valid is refused" wait_for 60 is_refused
    new_token
    allow team-1
    ok "the new one is read from its file" wait_for 60 is_converted team-1
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
    tell $status "while the API server restarted $pods pods could be created" "$(cat "$dir/failures")"
    says "and none slipped through" "$pods 100" eval "kubectl -n team-1 get pods -l batch=restart --chunk-size 500 -o \
        'jsonpath={range .items[*]}{.spec.containers[0].resources.requests.management\\.workload\\.openshift\\.io/cores}{\"\\n\"}{end}' | uniq -c"
    disallow team-1
    ok "the caches recover by themselves" wait_for 60 is_left_alone team-1
    ok "and are current" wait_for 60 metric_is pinfold_cache_age_seconds Namespace 0
    ok "the webhook was ready all the time" eval "! grep level=error '$wh/logs/webhook.log'"
}

calls() {
    ninja -C build --quiet tests/e2e/api_calls
    says "get, create, every kind of patch, status, delete, Event" 'event: 201' build/tests/e2e/api_calls "$cp/admin.kubeconfig"
    says "the Event is there" 'every kind of call was made' kubectl -n default get events
}

set_up
calls
list_and_watch
broken_connection
too_old
token
restart_under_load
wh_stop "$wh"
echo "1..$passed"
