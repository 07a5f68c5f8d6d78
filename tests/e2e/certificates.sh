#!/usr/bin/env bash
# Two replicas manage their serving certificate themselves, without cert-manager and without files: the first
# certificate, a new CA under load, the Secret deleted under load, configurations overwritten, a replica killed.
# failurePolicy is Fail, so that a pod fails when the API server cannot verify the webhook. CERT_PODS (600) pods
# are created in each part.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/webhook.sh
. tests/e2e/lib/webhook.sh

pods=${CERT_PODS:-600}
export WH_TIMEOUT_SECONDS=10
[ -z "${SMOKE:-}" ] || pods=100
root=$(mktemp -d)
cp=$root/cp
trap 'process_stop "$root" balancer; wh_stop "$root/a"; wh_stop "$root/b"; cp_stop "$cp"; [ -n "${KEEP:-}" ] || rm -rf "$root"' EXIT

start_replica() { # a or b
    local at=$root/$1
    mkdir -p "$at"
    [ -e "$at/port" ] || free_port >"$at/port"
    process_start "$at" webhook "$pinfold" webhook --listen "127.0.0.1:$(cat "$at/port")" --url "$service" \
        --kubeconfig "$cp/pinfold.kubeconfig" --shutdown-delay 1
}

print_config() { # without the CA: the webhook adds it
    "$pinfold" webhook --print-config --failure-policy Fail --url "$service" | wh_timeout
}

secret() { kubectl -n pinfold get secret pinfold-webhook-tls -o "jsonpath={.data.$1}" | base64 -d; }
cas() { secret 'ca\.crt' | grep -c BEGIN; }
cas_are() { [ "$(cas)" = "$1" ]; }
leaf() { secret 'tls\.crt' | openssl x509 -noout -fingerprint; }
published() { # NUMBER of CAs in every webhook
    local bundle
    for bundle in $(kubectl get mutatingwebhookconfiguration,validatingwebhookconfiguration -o 'jsonpath={.items[*].webhooks[*].clientConfig.caBundle}'); do
        [ "$(base64 -d <<<"$bundle" | grep -c BEGIN)" = "$1" ] || return 1
    done
    [ -n "${bundle:-}" ]
}
served() { openssl s_client -connect "127.0.0.1:$(cat "$root/$1/port")" </dev/null 2>/dev/null | openssl x509 -noout -fingerprint; }
serves_present() { [ "$(served "$1")" = "$(leaf)" ]; }
is_ready() { curl -skf "https://127.0.0.1:$(cat "$root/$1/port")/readyz" >/dev/null; }
did() { cat "$root"/[ab]/logs/webhook.log | grep -c "action=\"$1\""; } # ACTION: how often
did_times() { [ "$(did "$1")" = "$2" ]; }

create() { # BATCH [UNTIL]: COUNT pods, and more until that file exists
    python3 tests/e2e/webhook/create_pods.py "$(cat "$cp/port")" "$cp/pki" platform "$1" "$pods" "${2:-$root}" >"$root/created" 2>&1
}
converted() { # BATCH
    kubectl -n platform get pods -l "batch=$1" --chunk-size 500 -o \
        'jsonpath={range .items[*]}{.spec.containers[0].resources.requests.management\.workload\.openshift\.io/cores}{"\n"}{end}' | sort | uniq -c
}
# Runs COMMAND while pods are created, then waits until all replicas serve another certificate.
under_load() { # BATCH SENTENCE COMMAND...
    local batch=$1 sentence=$2 before creator status=0
    shift 2
    before=$(leaf)
    create "$batch" "$root/$batch.end" &
    creator=$!
    "$@" >/dev/null
    is_new() { [ "$(leaf)" != "$before" ] && serves_present a && serves_present b; }
    ok "$sentence" wait_for 120 is_new
    sleep 1 # more pods, with the new certificate
    touch "$root/$batch.end"
    wait "$creator" || status=1
    tap_result $status "no pod failed in the meantime" "$(cat "$root/created")"
    says "$(head -n 1 "$root/created") pods were created, and all of them were converted" " $(head -n 1 "$root/created") 100" \
        eval "echo \" \$(converted $batch)\""
}

cp_start "$cp"
cp_namespace "$cp" platform >/dev/null
kubectl annotate namespace platform workload.openshift.io/allowed=management >/dev/null
wh_partition_cluster "$cp"
wh_account "$cp"
service=https://127.0.0.1:$(free_port)

start_replica a
start_replica b
not_registered() { [[ $(curl -sk "https://127.0.0.1:$(cat "$root/a/port")/readyz") == *'no webhook configuration'* ]]; }
ok "without a webhook configuration /readyz fails and gives the reason" wait_for 60 not_registered
print_config | kubectl apply -f - >/dev/null
for replica in a b; do
    ok "replica $replica becomes ready" wait_ready "$root/$replica" webhook 60 is_ready $replica
    ok "replica $replica serves the certificate of the Secret" serves_present $replica
done
ok "one replica created the CA" did_times 'created a new CA' 1
ok "one replica issued the certificate" did_times 'issued a certificate' 1
ok "every webhook configuration has the CA" published 1
lease_holder() { kubectl -n pinfold get lease pinfold-webhook-certificate -o 'jsonpath={.spec.holderIdentity}'; }
lease_is_free() { [ -z "$(lease_holder)" ]; }
ok "without work the lease is released" wait_for 60 lease_is_free

process_start "$root" balancer python3 tests/e2e/webhook/balancer.py "${service##*:}" "$(cat "$root/a/port")" "$(cat "$root/b/port")"
calls_webhook() {
    local batch=begin-$SECONDS
    create "$batch" && [[ $(converted "$batch") == *"$pods 100" ]]
}
wait_for 60 calls_webhook || tap_result 1 "the API server calls the webhook and verifies its certificate" "$(cat "$root/created")"
ok "the API server calls the webhook and verifies its certificate" true

under_load rotate "the annotation pinfold.io/rotate replaces the CA" \
    kubectl -n pinfold annotate secret pinfold-webhook-tls pinfold.io/rotate=now
ok "the old CA is trusted for a grace period" published 2
ok "one replica created the new CA" did_times 'created a new CA' 2

# The certificate of the new CA is issued 30 s after it was published; until then the rotation goes on.
kubectl -n pinfold annotate secret pinfold-webhook-tls pinfold.io/rotate=first >/dev/null
ok "a new CA is created" wait_for 60 did_times 'created a new CA' 3
kubectl -n pinfold annotate secret pinfold-webhook-tls pinfold.io/rotate=second >/dev/null
ok "a rotation that is requested during another one follows it" wait_for 180 did_times 'created a new CA' 4
rotation_is_over() { [ -z "$(kubectl -n pinfold get secret pinfold-webhook-tls -o 'jsonpath={.metadata.annotations}')" ]; }
ok "the request is removed with the CA that it asked for" rotation_is_over

print_config | kubectl replace -f - >/dev/null
ok "a configuration replaced by one without the CA is repaired" wait_for 60 published "$(cas)"

process_alive "$root/a" webhook && kill -KILL "$(wh_pid "$root/a")"
kubectl -n pinfold patch lease pinfold-webhook-certificate --type merge -p '{"spec":{"holderIdentity":"the-dead"}}' >/dev/null
cp_before=$(did 'created a new CA')
kubectl -n pinfold annotate secret pinfold-webhook-tls pinfold.io/rotate=now >/dev/null
taken_over() { [ "$(did 'created a new CA')" -gt "$cp_before" ]; }
ok "the expired lease of a killed replica is taken over" wait_for 90 taken_over
start_replica a
ok "the killed replica is ready again" wait_ready "$root/a" webhook 60 is_ready a
by_newest() { openssl verify -CAfile <(secret 'ca\.crt' | sed '/END CERT/q') <(secret 'tls\.crt') >/dev/null 2>&1 && serves_present a && serves_present b; }
ok "the rotation completes" wait_for 120 by_newest

[ -n "${SMOKE:-}" ] || under_load deleted "a deleted Secret is created again without an interruption" \
    kubectl -n pinfold delete secret pinfold-webhook-tls
ok "no replica logged an error" wh_no_errors "$root/a" "$root/b"
tap_end
