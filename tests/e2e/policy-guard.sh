#!/usr/bin/env bash
# The guard alone, on the oldest Kubernetes of components/versions and on the newest: no policy that mutates, and a webhook only in the namespaces
# that show what it would store. Every vector and GUARD_PODS (500) random pods go through a real API server by dry-run. What is
# stored has its permissions, what the webhook stores elsewhere is stored as it is, and both versions decide the same.
# GUARD_SEED repeats a round; GUARD_VERSIONS has other versions.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/webhook.sh
. tests/e2e/lib/webhook.sh
# shellcheck source=tests/e2e/components/versions
. tests/e2e/components/versions

export WH_TIMEOUT_SECONDS=30 # on a busy machine; a call that times out is a failure here
dir=$(mktemp -d)
seed=${GUARD_SEED:-$RANDOM}
read -ra versions <<<"${GUARD_VERSIONS:-${KUBERNETES_MATRIX_VERSIONS%% *} $KUBERNETES_VERSION}"
cp='' wh=''
stop() {
    [ -z "$wh" ] || wh_stop "$wh"
    [ -z "$cp" ] || cp_stop "$cp"
    cp='' wh=''
}
trap 'stop; [ -n "${KEEP:-}" ] || rm -rf "$dir"' EXIT

guarded() { ! kubectl -n default create --dry-run=server -f - <<<'{apiVersion: v1, kind: Pod, metadata: {name: probe, annotations:
    {target.workload.openshift.io/management: "{}"}}, spec: {containers: [{name: c, image: i}]}}' >/dev/null 2>&1; }
step() { # SENTENCE COMMAND...: prints its output, unlike ok
    local status=0
    "${@:2}" || status=$?
    tap_result "$status" "$1"
}
ordinary() { kubectl -n default create --dry-run=server -f - <<<'{apiVersion: v1, kind: Pod, metadata: {name: ordinary}, spec: {containers: [{name: c, image: i}]}}'; }

echo "# GUARD_SEED=$seed"
for version in "${versions[@]}"; do
    echo "# Kubernetes $version"
    cp=$dir/cp-$version wh=$dir/webhook-$version
    CP_VERSION=$version cp_start "$cp"
    kubectl -n default create serviceaccount default >/dev/null 2>&1 || :
    wh_account "$cp"
    wh_partition_cluster "$cp"
    wh_start "$wh" "$cp" --kubeconfig "$cp/pinfold.kubeconfig" --shutdown-delay 0
    "$pinfold" webhook --print-config --url "$(wh_url "$wh")" --ca "$cp/pki/ca.crt" --failure-policy Fail | wh_timeout |
        kubectl create --dry-run=client -o json -f - | jq -s '{apiVersion: "v1", kind: "List", items: .}' |
        python3 tests/e2e/policy/adapt.py webhook | kubectl apply -f - >/dev/null
    ok "the guard is accepted ($version)" kubectl apply -f <("$pinfold" policy --kubernetes "${version%.*}")
    ok "the guard is in force ($version)" wait_for 60 guarded
    ok "an ordinary pod is created ($version)" ordinary
    # The type check needs a controller manager, which is built only for the newest version.
    [ "$version" != "$KUBERNETES_VERSION" ] ||
        equals "the types in the guard's expressions fit ($version)" '' cp_policy_warnings "$cp"
    step "pods are stored only with permission, and as the webhook made them ($version)" \
        python3 tests/e2e/policy/differential.py "$(cat "$cp/port")" "$cp/pki" guard "${GUARD_PODS:-500}" "$seed" "$dir/decisions-$version"
    cp_restart_apiserver "$cp"
    ok "after a restart of the API server the guard is in force at once ($version)" guarded
    ok "after a restart an ordinary pod is created at once ($version)" ordinary
    stop
done
for version in "${versions[@]:1}"; do
    ok "the guard decides the same on ${versions[0]} and on $version" diff "$dir/decisions-${versions[0]}" "$dir/decisions-$version"
done
tap_end
