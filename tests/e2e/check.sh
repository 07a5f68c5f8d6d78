#!/usr/bin/env bash
# `pinfold check` on a real API server, with a webhook: what is missing or broken is found, with its remedy, and a cluster in
# which everything works passes.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/webhook.sh
. tests/e2e/lib/webhook.sh

dir=$(mktemp -d)
cp=$dir/cp
wh=$dir/webhook
trap 'wh_stop "$wh"; cp_stop "$cp"; process_stop "$dir" containerd; rmdir -p --ignore-fail-on-non-empty /run/k3s/containerd 2>/dev/null || :; [ -n "${KEEP:-}" ] || rm -rf "$dir"' EXIT

check() { "$pinfold" check --scope cluster --kubeconfig "$cp/admin.kubeconfig" "$@"; }

# finding CHECK: "LEVEL MESSAGE | REMEDY" of every finding of a check.
finding() { check -o json | jq -r --arg check "$1" '.findings[] | select(.check == $check) | "\(.level) \(.message) | \(.remedy)"'; }
finds() { # SENTENCE CHECK TEXT REMEDY
    local out status=0
    out=$(finding "$2" || true)
    [[ $out == *"$3"*'|'*"$4"* ]] || status=1
    tap_result $status "$1" "want: $3 | $4
got:  $out"
}
level_is() { [[ $(finding "$1") == "$2 "* ]]; }

# The status of an object as its agent or kubelet would write it.
set_status() { # KIND NAME STATUS
    kubectl patch "$1" "$2" --subresource status --type merge -p "{\"status\":$3}" >/dev/null
}
node_conditions() { # READY PARTITIONED
    set_status node partitioned "{\"conditions\":[{\"type\":\"Ready\",\"status\":\"$1\",\"reason\":\"Test\"},
        {\"type\":\"PartitioningReady\",\"status\":\"$2\",\"reason\":\"Test\"}],
        \"nodeInfo\":{\"kubeletVersion\":\"v1.34.0\",\"containerRuntimeVersion\":\"containerd://2.1.4\",\"architecture\":\"\",\"bootID\":\"\",
        \"kernelVersion\":\"\",\"kubeProxyVersion\":\"\",\"machineID\":\"\",\"operatingSystem\":\"\",\"osImage\":\"\",\"systemUUID\":\"\"}}"
}

start_webhook() { wh_start "$wh" "$cp" --kubeconfig "$cp/pinfold.kubeconfig" --shutdown-delay 0; }
apply_crds() {
    kubectl apply -f deploy/base/crd-infrastructures.yaml -f deploy/base/crd-performanceprofiles.yaml \
        -f deploy/base/crd-nodepartitions.yaml >/dev/null
    kubectl wait --for condition=Established crd --all --timeout 60s >/dev/null
}
agent_version() {
    kubectl apply -f - >/dev/null <<<'{apiVersion: pinfold.io/v1alpha1, kind: NodePartition, metadata: {name: partitioned}}'
    set_status nodepartition partitioned "{\"agentVersion\":\"$1\"}"
}

not_installed() {
    refused "a cluster without Pinfold fails" 'failures' check
    finds "missing CRDs are named" crds 'failure the CRD nodepartitions.pinfold.io does not exist' 'kubectl apply -k deploy/base'
    finds "a missing webhook configuration is found" webhook-configuration 'no pod is converted' 'kubectl apply'
    finds "a cluster that is not partitioned is a warning" cluster-flag 'warning' 'AllNodes'
    refused "an API server that does not answer is a failure" 'cannot connect' \
        "$pinfold" check --scope cluster --kubeconfig <(sed 's/127.0.0.1:[0-9]*$/127.0.0.1:1/' "$cp/admin.kubeconfig")
}

installed() {
    kubectl -n default create serviceaccount default >/dev/null 2>&1 || true
    apply_crds
    kubectl create namespace pinfold-agent >/dev/null
    kubectl apply -f deploy/base/policy.yaml -f deploy/base/policy-pods.yaml -f deploy/base/policy-nodepartitions.yaml \
        -f deploy/agent/policy.yaml >/dev/null
    wh_account "$cp"
    start_webhook
    wh_configure "$wh" "$cp"
    wh_partition_cluster "$cp"
    node_conditions True True
    agent_version "$("$pinfold" --version | awk '{print $NF}')"
    # A new webhook configuration reaches the API server's cache after a moment.
    ok "a complete installation passes with --wait and --strict" check --strict --wait 60s
}

webhook() {
    local good
    good=$(kubectl get mutatingwebhookconfiguration pinfold -o 'jsonpath={.webhooks[0].clientConfig.caBundle}')
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=other -keyout /dev/null \
        -out "$dir/other.crt" 2>/dev/null
    ca_bundle "$(base64 -w0 "$dir/other.crt")"
    ok "a pod that only the mutating webhook did not see is found" wait_for 30 level_is webhook-answers failure
    ca_bundle "$(base64 -w0 "$dir/other.crt")" mutatingwebhookconfiguration validatingwebhookconfiguration
    ok "a caBundle of another CA is a failure" wait_for 30 passes_silently
    finds "the certificate that is not trusted is named" webhook-trust 'failure' 'set caBundle to the CA'
    finds "pods that pass without the webhook are found although failurePolicy is Ignore" webhook-answers \
        'passes without the webhook' 'failed calling webhook'
    ca_bundle "$good" mutatingwebhookconfiguration validatingwebhookconfiguration
    ok "the restored caBundle passes" check --wait 60s
    wh_stop "$wh"
    finds "a stopped webhook is found" webhook-trust 'connection refused' 'start the webhook'
    kubectl get mutatingwebhookconfiguration pinfold -o json | jq '.webhooks[].failurePolicy = "Fail"' | kubectl replace -f - >/dev/null
    ok "with failurePolicy Fail the API server's reason is shown" wait_for 30 shows_reason
    check --wait 120s >"$dir/waited" 2>&1 &
    local waiting=$! status=0
    sleep 3
    start_webhook
    wait $waiting || status=$?
    tap_result $status "--wait ends when the webhook is back" "$(cat "$dir/waited")"
}
ca_bundle() { # CA [KIND...]
    local ca=$1 kind
    shift
    for kind in "${@:-mutatingwebhookconfiguration}"; do
        kubectl get "$kind" pinfold -o json | jq --arg ca "$ca" '.webhooks[].clientConfig.caBundle = $ca' | kubectl replace -f - >/dev/null
    done
}
passes_silently() { [[ $(finding webhook-answers) == *'passes without the webhook'*'is refused later'* ]]; }
shows_reason() { [[ $(finding webhook-answers) == *'failed calling webhook'* ]]; }

objects() {
    node_conditions Unknown True
    finds "a node that is not ready is named" nodes-ready 'not ready: partitioned' 'kubectl describe node'
    node_conditions True False
    finds "a node that is not partitioned is named" nodes-partitioned 'PartitioningReady is not true: partitioned' 'pinfold check'
    node_conditions True True
    agent_version 0.0.9
    finds "an agent of another version is named" agent-versions 'partitioned' 'rollout status'
    kubectl label node partitioned kubevirt.io/schedulable=true cpumanager=false >/dev/null
    finds "KubeVirt's label against policy none is found" kubevirt-cpumanager 'Pending: partitioned' '--cpu-manager static'
    kubectl delete validatingadmissionpolicybinding pinfold-pods >/dev/null
    finds "a policy without binding is found" policies 'pinfold-pods has no binding' 'kubectl apply'
    kubectl delete crd nodepartitions.pinfold.io >/dev/null
    finds "a deleted CRD is found" crds 'nodepartitions.pinfold.io does not exist' 'kubectl apply'
    ok "warnings alone do not fail" apply_and_pass
    refused "--strict fails for them" 'warnings' check --strict
}
apply_and_pass() { apply_crds && check --wait 30s; }

permissions() {
    cp_kubeconfig "$cp" viewer /CN=viewer
    says "what the credentials may not read is a note" '0 failures' "$pinfold" check --scope cluster --kubeconfig "$cp/viewer.kubeconfig"
}

# The runtime of this machine, at the socket that k3s's containerd has. NRI has a socket of its own, because other tests on
# this machine use the usual one: it may or may not exist.
runtime() {
    local containerd
    containerd=$("$e2e_build" containerd)
    [ ! -e /run/k3s ] || { echo "# /run/k3s exists: not touched"; return; }
    mkdir -p /run/k3s/containerd
    cat >"$dir/containerd.toml" <<END
version = 3
root = "$dir/containerd/root"
state = "$dir/containerd/state"
[grpc]
  address = "/run/k3s/containerd/containerd.sock"
[plugins."io.containerd.nri.v1.nri"]
  socket_path = "$dir/nri.sock"
END
    PATH=$containerd/bin:$PATH process_start "$dir" containerd "$containerd/bin/containerd" -c "$dir/containerd.toml"
    ok "the version of a runtime is read from its socket" wait_for 60 reads_version
    process_stop "$dir" containerd
    [[ $("$pinfold" check --distro k3s || true) != *'runtime-version'* ]]
    tap_result $? "the version of a runtime that does not run is not reported"
}
reads_version() { [[ $("$pinfold" check --distro k3s || true) =~ ok\ +runtime-version\ +containerd\ v?2\. ]]; }

cp_start "$cp"
not_installed
installed
webhook
objects
permissions
runtime
tap_end
