#!/usr/bin/env bash
# Profiles and the cluster flag at a real API server, with the webhook as deploy/ configures it and with no more rights
# than deploy/ gives it: refusals with all problems, conflicts, warnings as kubectl prints them, and a webhook that is away.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/webhook.sh
. tests/e2e/lib/webhook.sh

dir=$(mktemp -d /tmp/pinfold-profile-admission-XXXXXX)
cp=$dir/cp
wh=$dir/webhook
trap 'wh_stop "$wh"; cp_stop "$cp"; [ -n "${KEEP:-}" ] || rm -rf "$dir"' EXIT

profile() { # NAME ROLE CPU [REST]: CPU has the members of spec.cpu, REST those of spec
    printf '{apiVersion: performance.openshift.io/v2, kind: PerformanceProfile, metadata: {name: %s},\n' "$1"
    printf ' spec: {cpu: {%s}, nodeSelector: {node-role.kubernetes.io/%s: ""}%s}}\n' "$3" "$2" "${4:+, $4}"
}
store() { profile "$@" | kubectl apply -f -; }
try() { profile "$@" | kubectl create --dry-run=server -f -; }
flag() { kubectl patch infrastructure cluster --subresource status --type merge -p "{\"status\":{\"cpuPartitioning\":\"$1\"}}"; }
stored() { kubectl get performanceprofiles -o name | sort | tr '\n' ' '; }
refuses_overlap() { ! try probe probe 'reserved: 0-1, isolated: 1-3' >"$dir/out" 2>&1 && grep -q 'overlap: CPUs 1' "$dir/out"; }
conflicts_with() { ! try probe "$1" 'reserved: 0-1, isolated: 2-3' >"$dir/out" 2>&1 && grep -q "profile \"$2\" already selects" "$dir/out"; }
rejections() { curl -sf --cacert "$cp/pki/ca.crt" "$(wh_url "$wh")/metrics" |
    awk '/^pinfold_.*validate_performanceprofiles.*refused/ && !/bucket/ { n += $2 } END { print n + 0 }'; }

set_up() {
    cp_start "$cp"
    wh_account "$cp"
    kubectl apply -f deploy/base/crd-infrastructures.yaml -f deploy/base/crd-performanceprofiles.yaml >/dev/null
    kubectl wait --for condition=Established crd --all --timeout 60s >/dev/null
    wh_start "$wh" "$cp" --kubeconfig "$cp/pinfold.kubeconfig" --shutdown-delay 0
    wh_configure "$wh" "$cp"
    wait_for 60 refuses_overlap # the API server reads new configurations after a moment
}

bad_profiles() {
    local bad=('reserved: 0-1, isolated: 1-7, shared: 6-9, offlined: 6-7'
        'realTimeKernel: {enabled: "yes"}, numa: {topologyPolicy: sometimes}, additionalKernelArgs: quiet')
    local want
    for want in 'spec.cpu.isolated: reserved and isolated overlap: CPUs 1' 'isolated and shared overlap: CPUs 6-7' \
        'offlined and shared overlap: CPUs 6-7' 'spec.realTimeKernel.enabled: must be true or false' \
        'spec.numa.topologyPolicy: unsupported value "sometimes"' 'spec.additionalKernelArgs: must be a list'; do
        refused "one refusal has every problem: $want" "$want" store bad worker "${bad[@]}"
    done
    refused "the refusal names the webhook" 'admission webhook "performanceprofiles.validate.pinfold.io" denied the request' store bad worker "${bad[@]}"
    equals "nothing was stored" "" stored
}

good_profiles() {
    says "a good profile is stored" 'performanceprofile.performance.openshift.io/worker created' store worker worker 'reserved: 0-1, isolated: 2-7'
    says "one with topology expressions, whose machine is not known yet" created store ran ran 'reserved: first 1 core of each numa, shared: 10%, isolated: rest'
    says "kubectl shows warnings" 'Warning: spec.cpu.shared: the cluster is not partitioned' store pools pools 'reserved: 0-1, shared: 2-3, isolated: 4-7'
    refused "a change to a bad one is refused" 'overlap: CPUs 1' store worker worker 'reserved: 0-1, isolated: 1-7'
    equals "and the stored one stays" 2-7 kubectl get performanceprofiles worker -o 'jsonpath={.spec.cpu.isolated}'
    says "a change to another good one is stored" configured store worker worker 'reserved: 0-2, isolated: 3-7'
}

conflicts() {
    ok "a second profile for the same nodes is refused" wait_for 30 conflicts_with worker worker
    says "a profile may keep its own nodes" configured store worker worker 'reserved: 0-1, isolated: 2-7'
    kubectl delete performanceprofiles ran >/dev/null
    says "the nodes of a deleted profile are free again" created wait_for 30 store ran-2 ran 'reserved: 0-1, isolated: 2-7'
}

# Profiles that came past the webhook, and changes that do not concern it.
past_the_webhook() {
    wh_stop "$wh"
    says "without the webhook a profile is stored unchecked" created store late late 'reserved: 0-1, isolated: 1-7'
    says "and other objects are not affected" created kubectl create configmap unrelated
    wh_start "$wh" "$cp" --kubeconfig "$cp/pinfold.kubeconfig" --shutdown-delay 0
    says "a label of a stored bad profile can change, with a warning" 'Warning: spec.cpu.isolated: reserved and isolated overlap: CPUs 1' \
        kubectl label performanceprofiles late team=ran
    ok "its status can change" kubectl patch performanceprofiles late --subresource status --type merge -p '{"status":{"x":"y"}}'
    refused "its CPUs must become sound" 'overlap: CPUs 1' kubectl patch performanceprofiles late --type merge -p '{"spec":{"cpu":{"isolated":"1-6"}}}'
    says "then it is stored" patched kubectl patch performanceprofiles late --type merge -p '{"spec":{"cpu":{"isolated":"2-7"}}}'
    kubectl patch performanceprofiles late --type merge -p '{"metadata":{"finalizers":["example.com/hold"]}}' >/dev/null
    kubectl delete performanceprofiles late --wait=false >/dev/null
    ok "a finalizer can be removed" kubectl patch performanceprofiles late --type merge -p '{"metadata":{"finalizers":null}}'
    ok "refusals are counted" [ "$(rejections)" -gt 0 ]
}

# After an upgrade of the program alone, the ClusterRole of the previous version is still there.
without_permission() {
    kubectl get clusterrole pinfold-webhook -o json >"$dir/role.json"
    jq '.rules |= map(select(.apiGroups != ["performance.openshift.io"]))' "$dir/role.json" | kubectl apply -f - >/dev/null 2>&1
    wh_stop "$wh"
    ok "without permission to read profiles the webhook is ready" wh_start "$wh" "$cp" --kubeconfig "$cp/pinfold.kubeconfig" --shutdown-delay 0
    says "and warns that conflicts are not checked" 'Warning: the other profiles of the cluster are not known' store free free 'reserved: 0-1, isolated: 2-7'
    jq 'del(.metadata.resourceVersion, .metadata.uid)' "$dir/role.json" | kubectl replace -f - >/dev/null
    ok "with the permission it reads them" wait_for 60 conflicts_with worker worker
}

cluster_flag() {
    kubectl create -f - >/dev/null <<<'{apiVersion: config.openshift.io/v1, kind: Infrastructure, metadata: {name: cluster}}'
    says "turning AllNodes on without a ready node warns" 'Warning: no ready node advertises management.workload.openshift.io/cores' flag AllNodes
    refused "turning it off is refused" 'can not be turned off' flag None
    kubectl get crd infrastructures.config.openshift.io -o json |
        jq 'del(.spec.versions[0].schema.openAPIV3Schema["x-kubernetes-validations"])' | kubectl apply -f - >/dev/null 2>&1
    refused "by the webhook, too, where the CRD has no rule, as on OpenShift" 'admission webhook "infrastructures.validate.pinfold.io" denied' flag None
}

set_up
bad_profiles
good_profiles
conflicts
past_the_webhook
without_permission
cluster_flag
ok "the webhook logged no error" wh_no_errors "$wh"
tap_end
