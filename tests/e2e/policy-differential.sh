#!/usr/bin/env bash
# The admission policies beside the webhook: every vector and DIFFERENTIAL_PODS (1000) random pods go through a real API server by dry-run with
# the webhook only, with policies only, and with both. Operator and webhook run as deploy/ runs them. The same pod is stored, or
# tests/e2e/policy/differences.json has the difference. Then with other names of the policies (a quarter of the pods), with a restarted API
# server, and without parameters.
#
#	DIFFERENTIAL_SEED=23                                       repeats a round; a pod depends on it and its number only
#	DIFFERENTIAL_STATES="1 2"                                  random pods in these states of the cluster, of 0 to 4 (differential.py)
#	DIFFERENTIAL_PARTS="vectors random order availability nodes"  only these
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/webhook.sh
. tests/e2e/lib/webhook.sh
# shellcheck source=tests/e2e/lib/operator.sh
. tests/e2e/lib/operator.sh

export WH_TIMEOUT_SECONDS=30 # on a busy machine; a call that times out is a failure here
dir=$(mktemp -d)
cp=$dir/cp
wh=$dir/webhook
seed=${DIFFERENTIAL_SEED:-$RANDOM}
trap 'process_stop "$dir" operator; wh_stop "$wh"; cp_stop "$cp"; [ -n "${KEEP:-}" ] || rm -rf "$dir"' EXIT

print_config() { # FLAG...: as a JSON List
    "$pinfold" webhook --print-config --url "$(wh_url "$wh")" --ca "$cp/pki/ca.crt" "$@" | wh_timeout | kubectl create --dry-run=client -o json -f - |
        jq -s '{apiVersion: "v1", kind: "List", items: .}'
}
differential() { python3 tests/e2e/policy/differential.py "$(cat "$cp/port")" "$cp/pki" "$@"; }
step() { # SENTENCE COMMAND...: prints its output, unlike ok
    local status=0
    "${@:2}" | sed -u 's/^\(not ok\|ok\) - /# /' || status=${PIPESTATUS[0]}
    tap_result "$status" "$1"
}
apply_policies() { # PREFIX
    "$pinfold" policy --mode policy -o json | python3 tests/e2e/policy/adapt.py policies "$1" | kubectl apply -f - >/dev/null
}
delete_policies() { # PREFIX
    "$pinfold" policy --mode policy -o json | python3 tests/e2e/policy/adapt.py policies "$1" | kubectl delete --ignore-not-found -f - >/dev/null
}
pod() { # NAMESPACE ANNOTATIONS
    cat <<END
{apiVersion: v1, kind: Pod, metadata: {namespace: $1, name: probe, annotations: {$2}}, spec: {containers: [{name: main, image: i,
 resources: {requests: {cpu: 100m, memory: 1Mi}}}]}}
END
}
target="target.workload.openshift.io/management: '{\"effect\":\"PreferredDuringScheduling\"}'"
dry_run() { pod "$@" | kubectl create --dry-run=server -o json -f -; }
converts() { [ "$(dry_run "$1" "$target" 2>/dev/null | jq -r '.spec.containers[0].resources.requests["management.workload.openshift.io/cores"]')" = 100 ]; }
refuses() { ! dry_run "$1" "$target" >/dev/null 2>&1; }

# --- set-up ---

cp_start "$cp"
op_install "$cp"
# The vectors have values that the CRD refuses.
kubectl apply -f - >/dev/null <<'END'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: infrastructures.config.openshift.io}
spec:
  group: config.openshift.io
  scope: Cluster
  names: {kind: Infrastructure, plural: infrastructures, singular: infrastructure, listKind: InfrastructureList}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
END
op_account "$cp"
op_start "$dir" operator "$cp" --feature-gates GuaranteedCPUPool=true
wh_account "$cp"
wh_start "$wh" "$cp" --kubeconfig "$cp/pinfold.kubeconfig" --feature-gates GuaranteedCPUPool=true --shutdown-delay 0
# In mode both the webhook gets what deploy/overlays/both leaves to it.
wh_overlay both >"$dir/both.json"
print_config --feature-gates GuaranteedCPUPool=true --failure-policy Fail | python3 tests/e2e/policy/adapt.py webhook "$dir/both.json" | kubectl apply -f - >/dev/null
apply_policies ''
for mode in webhook policy both; do
    cp_namespace "$cp" "allowed-$mode" >/dev/null
    kubectl label namespace "allowed-$mode" mode=$mode >/dev/null
    kubectl annotate namespace "allowed-$mode" workload.openshift.io/allowed=management >/dev/null
done
kubectl create -f - >/dev/null <<<'{apiVersion: config.openshift.io/v1, kind: Infrastructure, metadata: {name: cluster}}'
kubectl patch infrastructure cluster --subresource status --type merge -p '{"status":{"cpuPartitioning":"AllNodes"}}' >/dev/null
kubectl create -f - >/dev/null <<<'{apiVersion: v1, kind: Node, metadata: {name: n0}, status: {allocatable: {management.workload.openshift.io/cores: "8000"}}}'
for mode in webhook policy both; do
    ok "a pod is converted in mode $mode" wait_for 60 converts "allowed-$mode"
done
# An expression whose types do not fit is accepted, and fails for every pod. This policy has no binding.
kubectl create -f - >/dev/null <<'END'
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: mistyped}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: object.spec.hostNetwork == 'x'}]
END
cp_policy_warnings "$cp" | cut -c1-200 >"$dir/warnings"
kubectl delete validatingadmissionpolicy mistyped >/dev/null
says "the types of a wrong expression do not fit" 'mistyped: spec.validations[0].expression' cat "$dir/warnings"
# The policy of the operator's identity has expressions for objects of several kinds, which decide by the resource first.
equals "the types of all other expressions fit" '' sed '/^mistyped: /d; /^pinfold-operator: /d' "$dir/warnings"

# --- the same pods in every mode ---

part_vectors() { step "every admission and static pod vector" differential vectors; }

part_random() { step "random pods" differential random "${DIFFERENTIAL_PODS:-1000}" "$seed"; }

# Policies are evaluated in the order of their names.
part_order() {
    apply_policies zz-
    delete_policies ''
    step "random pods with policies that come after all others" differential random "$((${DIFFERENTIAL_PODS:-1000} / 4))" "$seed"
    apply_policies ''
    delete_policies zz-
}

# --- availability ---

ordinary() { kubectl create --dry-run=server -f - <<<"{apiVersion: v1, kind: Pod, metadata: {namespace: allowed-policy, name: ordinary}, spec: {containers: [{name: c, image: i}]}}"; }
part_availability() {
    differential cluster
    ok "a pod is converted again" wait_for 60 converts allowed-policy
    cp_restart_apiserver "$cp"
    ok "after a restart of the API server an ordinary pod is created at once" ordinary
    ok "and a pod is converted" wait_for 60 converts allowed-policy
    process_stop "$dir" operator
    kubectl -n kube-system delete configmap pinfold-admission >/dev/null
    ok "without parameters a pod that opted in is refused" wait_for 60 refuses allowed-policy
    ok "without parameters an ordinary pod is created" ordinary
    ok "without parameters the webhook converts" wait_for 60 converts allowed-both
    cp_restart_apiserver "$cp"
    ok "after a restart without parameters an ordinary pod is created at once" ordinary
    ok "after a restart without parameters a pod that opted in is refused" refuses allowed-policy
    op_start "$dir" operator "$cp" --feature-gates GuaranteedCPUPool=true
    ok "the operator writes the parameters again" wait_for 60 converts allowed-policy

    # Who may write the parameters.
    kubectl create clusterrole editor --verb '*' --resource configmaps >/dev/null
    kubectl create clusterrolebinding editor --clusterrole editor --user editor >/dev/null
    refused "a user who may write ConfigMaps cannot change the parameters" 'only the operator' kubectl --as editor -n kube-system patch configmap \
        pinfold-admission --type merge -p '{"data":{"workloads":"off"}}'
    refused "nor delete them" 'only the operator' kubectl --as editor -n kube-system delete configmap pinfold-admission
}

# --- nodes ---

# The last part: it replaces the configurations of the webhook.
stays_on() { ! kubectl patch infrastructure cluster --dry-run=server --subresource status --type merge -p '{"status":{"cpuPartitioning":"None"}}' 2>&1; }
part_nodes() {
    local nodes
    for nodes in taint refuse; do
        kubectl delete mutatingwebhookconfiguration,validatingwebhookconfiguration pinfold --ignore-not-found >/dev/null
        "$pinfold" policy --mode policy --nodes $nodes | kubectl apply -f - >/dev/null
        kubectl delete validatingadmissionpolicybinding pinfold-cluster-flag >/dev/null # the test turns the flag off
        sleep 3 # until the API server has read them
        step "every node vector by policies ($nodes)" differential nodes "$dir/policy-$nodes"
        kubectl delete validatingadmissionpolicybinding,mutatingadmissionpolicybinding pinfold-nodes pinfold-tainted-nodes --ignore-not-found >/dev/null
        wh_stop "$wh"
        wh_start "$wh" "$cp" --kubeconfig "$cp/pinfold.kubeconfig" --admission-mode $nodes --shutdown-delay 0
        # Not the one for the cluster flag, which the test turns off.
        print_config --admission-mode $nodes | python3 tests/e2e/policy/adapt.py nodes | kubectl apply -f - >/dev/null
        sleep 3
        step "every node vector by the webhook ($nodes)" differential nodes "$dir/webhook-$nodes"
        ok "policies and webhook decide the same about nodes ($nodes)" diff "$dir/policy-$nodes" "$dir/webhook-$nodes"
    done

    # The cluster flag.
    "$pinfold" policy --mode policy | kubectl apply -f - >/dev/null
    kubectl delete mutatingwebhookconfiguration,validatingwebhookconfiguration pinfold >/dev/null
    kubectl patch infrastructure cluster --subresource status --type merge -p '{"status":{"cpuPartitioning":"AllNodes"}}' >/dev/null
    says "policies refuse to turn partitioning off" 'can not be turned off' wait_for 30 stays_on
    refused "and to delete the Infrastructure" 'can not be turned off' kubectl delete infrastructure cluster
}

echo "# DIFFERENTIAL_SEED=$seed"
for part in ${DIFFERENTIAL_PARTS:-vectors random order availability nodes}; do
    "part_$part"
done
tap_end
