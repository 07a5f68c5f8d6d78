#!/usr/bin/env bash
# Two replicas behind a load balancer, failurePolicy Fail: both are restarted one after the other and the
# certificate is replaced while pods are created. All pods are created and converted. Then the API server is
# restarted under load. At least ROLLING_PODS (2000) pods in each part.
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

cp_start "$cp"
cp_namespace "$cp" platform >/dev/null
kubectl annotate namespace platform workload.openshift.io/allowed=management >/dev/null
wh_partition_cluster "$cp"
wh_account "$cp"
flags=(--kubeconfig "$cp/pinfold.kubeconfig" --shutdown-delay 3)
wh_start "$dir/a" "$cp" "${flags[@]}"
wh_start "$dir/b" "$cp" "${flags[@]}"
mkdir -p "$dir/service"
free_port >"$dir/service/port"
process_start "$dir" balancer python3 tests/e2e/webhook/balancer.py "$(cat "$dir/service/port")" "$(cat "$dir/a/port")" "$(cat "$dir/b/port")"
wait_ready "$dir" balancer 60 wh_is_ready "$dir/service" "$cp"
wh_configure "$dir/service" "$cp" --failure-policy Fail
calls_webhook() { [[ $(kubectl -n nowhere run x --image i --annotations target.workload.openshift.io/x=y 2>&1) == *'admission webhook'* ]]; }
kubectl create namespace nowhere >/dev/null
kubectl annotate namespace nowhere workload.openshift.io/allowed=none >/dev/null
kubectl -n nowhere create serviceaccount default >/dev/null
wait_for 60 calls_webhook

create() { python3 tests/e2e/webhook/create_pods.py "$(cat "$cp/port")" "$cp/pki" platform "$1" "$pods" "$dir/stop-creating" "${@:2}" >"$dir/created" 2>&1; }

# Not in a subshell: only the parent of a process can wait for it.
all_created() {
    local status=0
    touch "$dir/stop-creating"
    wait $creator || status=$?
    rm "$dir/stop-creating"
    tap_result $status "$1" "$(cat "$dir/created")"
    total=$(head -n 1 "$dir/created")
    echo "# $total pods"
}

# Lines "NUMBER CORES" of the pods of a batch: one line when all are converted alike.
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
all_created "no pod fails while both replicas restart twice and the certificate is replaced $round times"
says "all of them were converted" " $total 100" count rolling
ok "no replica logged an error" wh_no_errors "$dir/a" "$dir/b"

create restart retry &
creator=$!
sleep 1
cp_restart_apiserver "$cp"
all_created "pod creation recovers after a restart of the API server"
says "all pods of that batch were converted" " $total 100" count restart
says "a namespace opts in after the restart" annotated kubectl annotate namespace nowhere --overwrite workload.openshift.io/allowed=management
can_opt_in() { kubectl -n nowhere run "opt-in-$RANDOM" --image i --annotations 'target.workload.openshift.io/management={"effect":"PreferredDuringScheduling"}' >/dev/null 2>&1; }
ok "pods can opt in there within seconds" wait_for 30 can_opt_in
tap_end
