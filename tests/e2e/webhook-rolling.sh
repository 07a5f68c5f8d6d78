#!/usr/bin/env bash
# Two replicas behind a balancer, failurePolicy Fail: both are restarted one after the other and the
# certificate changes while pods are created. None may fail, none may slip through. Then the API server
# itself is restarted under load. At least ROLLING_PODS (2000) pods in each part.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/webhook.sh
. tests/e2e/lib/webhook.sh

pods=${ROLLING_PODS:-2000}
[ -z "${SMOKE:-}" ] || pods=200
export WH_TIMEOUT_SECONDS=10
dir=$(mktemp -d)
cp=$dir/cp
trap 'process_stop "$dir" balancer; wh_stop "$dir/a"; wh_stop "$dir/b"; cp_stop "$cp"; rm -rf "$dir"' EXIT
kubectl() { cp_kubectl "$cp" "$@"; }

cp_start "$cp"
cp_namespace "$cp" platform >/dev/null
kubectl annotate namespace platform workload.openshift.io/allowed=management >/dev/null
kubectl apply -f deploy/base/crd-infrastructures.yaml >/dev/null
kubectl wait --for condition=Established crd --all --timeout 60s >/dev/null
kubectl create -f - >/dev/null <<<'{apiVersion: config.openshift.io/v1, kind: Infrastructure, metadata: {name: cluster}}'
kubectl patch infrastructure cluster --subresource status --type merge \
    -p '{"status":{"controlPlaneTopology":"HighlyAvailable","infrastructureTopology":"HighlyAvailable","cpuPartitioning":"AllNodes"}}' >/dev/null
kubectl create namespace pinfold >/dev/null
kubectl apply -f deploy/base/rbac.yaml >/dev/null
cp_kubeconfig "$cp" pinfold /CN=system:serviceaccount:pinfold:pinfold-webhook
flags=(--kubeconfig "$cp/pinfold.kubeconfig" --shutdown-delay 3)
wh_start "$dir/a" "$cp" "${flags[@]}"
wh_start "$dir/b" "$cp" "${flags[@]}"
mkdir -p "$dir/service"
free_port >"$dir/service/port"
process_start "$dir" balancer python3 tests/e2e/webhook/balancer.py "$(cat "$dir/service/port")" "$(cat "$dir/a/port")" "$(cat "$dir/b/port")"
wait_ready "$dir" balancer 60 wh_is_ready "$dir/service" "$cp"
wh_configure "$dir/service" "$cp" --failure-policy Fail
asked() { [[ $(kubectl -n nowhere run x --image i --annotations target.workload.openshift.io/x=y 2>&1) == *'admission webhook'* ]]; }
kubectl create namespace nowhere >/dev/null
kubectl annotate namespace nowhere workload.openshift.io/allowed=none >/dev/null
kubectl -n nowhere create serviceaccount default >/dev/null
wait_for 60 asked

create() { python3 tests/e2e/webhook/create_pods.py "$(cat "$cp/port")" "$cp/pki" platform "$1" "$pods" "$dir/enough" "${@:2}" >"$dir/created" 2>&1; }

# Not in a subshell: only the parent can wait.
all_created() {
    local status=0
    touch "$dir/enough"
    wait $creator || status=$?
    rm "$dir/enough"
    tell $status "$1" "$(cat "$dir/created")"
    total=$(head -n 1 "$dir/created")
    echo "# $total pods"
}

# Of all pods of a batch: how many, and how many of them were converted.
count() { kubectl -n platform get pods -l "batch=$1" --chunk-size 500 -o \
    'jsonpath={range .items[*]}{.spec.containers[0].resources.requests.management\.workload\.openshift\.io/cores}{"\n"}{end}' | sort | uniq -c | tr -s ' '; }

rotate() {
    cp_cert "$cp" next /CN=pinfold-webhook IP:127.0.0.1
    mv "$cp/pki/next.key" "$cp/pki/webhook.key"
    mv "$cp/pki/next.crt" "$cp/pki/webhook.crt"
}

create rolling &
creator=$!
for round in 1 2; do
    for replica in a b; do
        sleep 1
        wh_stop "$dir/$replica"
        wh_start "$dir/$replica" "$cp" "${flags[@]}"
    done
    rotate
done
all_created "while pods were created, both replicas restarted twice and $round certificates came, none failed"
says "and none slipped through" " $total 100" count rolling
ok "replicas ended in order" eval "! grep -h 'level=error' '$dir'/[ab]/logs/webhook.log"

create restart retry &
creator=$!
sleep 1
cp_restart_apiserver "$cp"
all_created "while the API server restarted, pods could be created again by themselves"
says "and none slipped through then" " $total 100" count restart
says "the caches follow the API server again: a namespace that opts in now" annotated kubectl annotate namespace nowhere --overwrite workload.openshift.io/allowed=management
seen() { kubectl -n nowhere run "seen-$RANDOM" --image i --annotations 'target.workload.openshift.io/management={"effect":"PreferredDuringScheduling"}' >/dev/null 2>&1; }
ok "is allowed to within seconds" wait_for 30 seen
echo "1..$passed"
