#!/usr/bin/env bash
# The documents' flows on a real API server: what `kubectl` does, what is stored, what is said. The
# webhook watches the cluster, with no more rights than deploy/ gives it; with WEBHOOK_E2E_MODE=state
# it serves from manifests. WEBHOOK_E2E_VERSIONS names the Kubernetes versions; SMOKE=1 takes one. The
# time-out is that of deploy/: a second.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/webhook.sh
. tests/e2e/lib/webhook.sh
# shellcheck source=tests/e2e/components/versions
. tests/e2e/components/versions

dir=$(mktemp -d)
cp=$dir/cp
wh=$dir/webhook
trap 'process_stop "$dir/sidecar" sidecar; wh_stop "$wh"; cp_stop "$cp"; rm -rf "$dir"' EXIT

kubectl() { cp_kubectl "$cp" "$@"; }

state() {
    cat <<'END'
apiVersion: config.openshift.io/v1
kind: Infrastructure
metadata: {name: cluster}
status: {controlPlaneTopology: HighlyAvailable, infrastructureTopology: HighlyAvailable, cpuPartitioning: AllNodes}
---
apiVersion: v1
kind: Namespace
metadata: {name: allowed, annotations: {workload.openshift.io/allowed: management}}
---
apiVersion: v1
kind: Namespace
metadata: {name: other, annotations: {workload.openshift.io/allowed: something-else}}
---
apiVersion: v1
kind: Namespace
metadata: {name: plain}
---
apiVersion: v1
kind: Node
metadata: {name: worker-0}
status:
  capacity: {cpu: "8", management.workload.openshift.io/cores: "8000"}
  allocatable: {cpu: "8", management.workload.openshift.io/cores: "8000"}
END
}

pod() { # NAMESPACE NAME REQUESTS LIMITS [more metadata]
    cat <<END
apiVersion: v1
kind: Pod
metadata:
  name: $2
  namespace: $1
  ${5:-}
  annotations: {target.workload.openshift.io/management: '{"effect":"PreferredDuringScheduling"}'}
spec:
  containers:
    - name: main
      image: localhost/none:1
      resources: {requests: {$3}, limits: {$4}}
END
}

apply() { pod "$@" | kubectl apply -f -; }
field() { kubectl -n "$1" get pod "$2" -o "jsonpath=$3"; }
resources='{.spec.containers[0].resources}'
annotation='{.metadata.annotations.resources\.workload\.openshift\.io/main}'
target='{.metadata.annotations.target\.workload\.openshift\.io/management}'

flows() {
    says "an annotated pod in an allowed namespace is created" created apply allowed burstable 'cpu: 400m, memory: 1Gi' ''
    says "its CPU request became cores" '"management.workload.openshift.io/cores":"400"' field allowed burstable "$resources"
    says "the request for CPU is gone" '{"management.workload.openshift.io/cores":"400","memory":"1Gi"}' \
        field allowed burstable '{.spec.containers[0].resources.requests}'
    says "and cpushares tell the runtime" '{"cpushares":409}' field allowed burstable "$annotation"
    ok "a limit is kept" apply allowed limited 'cpu: 100m, memory: 1Gi' 'cpu: 500m'
    says "as cpulimit" '{"cpushares":102,"cpulimit":500}' field allowed limited "$annotation"
    ok "a best-effort pod is converted" apply allowed best-effort '' ''
    says "with the least weight" '"cpushares": 2' field allowed best-effort "$annotation"
    says "a guaranteed pod stays as it is, and kubectl says why" Warning: apply allowed guaranteed 'cpu: 1, memory: 1Gi' 'cpu: 1, memory: 1Gi'
    says "with its CPUs" '"cpu":"1"' field allowed guaranteed "$resources"
    says "a pod that would change its QoS class stays as it is, with a warning" Warning: apply allowed cpu-only 'cpu: 100m' ''
    says "with its CPU request" '"cpu":"100m"' field allowed cpu-only "$resources"
    says "where the namespace did not opt in the pod is stripped, with a warning" Warning: apply plain stripped 'cpu: 100m, memory: 1Gi' ''
    says "and keeps its CPU request" '"cpu":"100m"' field plain stripped "$resources"
    says "without the annotation" '[]' eval "echo [\$(field plain stripped '$target')]"
    refused "where the namespace allows another type it is refused" 'does not allow the workload type management' \
        apply other wrong 'cpu: 100m, memory: 1Gi' ''
}

ordinary_pods_do_not_travel() {
    local before
    before=$(wh_metric "$wh" "$cp" pinfold_admission_reviews_total)
    ok "an ordinary pod is created" kubectl -n plain run ordinary --image localhost/none:1
    ok "and labelled" kubectl -n plain label pod ordinary a=b
    ok "without a question to the webhook" [ "$before" = "$(wh_metric "$wh" "$cp" pinfold_admission_reviews_total)" ]
}

nodes() {
    refused "a node without the resource may not join" 'node does not contain resource information' \
        kubectl create -f - <<<'{apiVersion: v1, kind: Node, metadata: {name: bare}}'
    says "a node with it may" created kubectl create -f - <<<'{apiVersion: v1, kind: Node, metadata: {name: good},
        status: {capacity: {cpu: "8", management.workload.openshift.io/cores: "8000"},
                 allocatable: {cpu: "8", management.workload.openshift.io/cores: "8000"}}}'
    wh_stop "$wh"
    ok "while the webhook is away nothing is blocked (failurePolicy Ignore)" \
        kubectl create -f - <<<'{apiVersion: v1, kind: Node, metadata: {name: bare}}'
    wh_start "$wh" "$cp" "${flags[@]}"
    says "an existing node without it is only warned about" Warning: kubectl label node bare a=b
}

set_flag() { kubectl patch infrastructure cluster --subresource status --type merge -p "{\"status\":{\"cpuPartitioning\":\"$1\"}}"; }

cluster_flag() {
    ok "partitioning can be turned on" set_flag AllNodes
    refused "and not off: the CRD says so" 'can not be turned off' set_flag None
    refused "nor to nonsense" 'Unsupported value' set_flag Some
    kubectl patch crd infrastructures.config.openshift.io --type json \
        -p '[{"op":"remove","path":"/spec/versions/0/schema/openAPIV3Schema/x-kubernetes-validations"}]' >/dev/null
    turned_off_by_webhook() { [[ $(set_flag None 2>&1) == *'admission webhook "infrastructures.validate.pinfold.io" denied'* ]]; }
    ok "where the CRD is OpenShift's, the webhook says so" wait_for 30 turned_off_by_webhook
    refused "also when somebody deletes the flag's object" 'can not be turned off' kubectl delete infrastructure cluster
}

reinvocation() {
    local port
    port=$(free_port)
    process_start "$dir/sidecar" sidecar python3 tests/e2e/webhook/sidecar.py "$port" "$cp/pki/webhook.crt" "$cp/pki/webhook.key"
    kubectl apply -f - >/dev/null <<END
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: zz-sidecar}
webhooks:
  - name: sidecar.example.com
    clientConfig: {url: "https://127.0.0.1:$port/", caBundle: $(base64 -w0 "$cp/pki/ca.crt")}
    rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
    objectSelector: {matchLabels: {inject: "yes"}}
    sideEffects: None
    failurePolicy: Fail
    admissionReviewVersions: [v1]
END
    injected() {
        if apply allowed injected 'cpu: 400m, memory: 1Gi' '' 'labels: {inject: "yes"}' &&
            [ -n "$(field allowed injected '{.spec.containers[1].name}')" ]; then
            return 0
        fi
        kubectl -n allowed delete pod injected --now
        return 1
    }
    ok "a webhook after ours adds a container" wait_for 30 injected
    says "we are asked again: it is converted as well" '"management.workload.openshift.io/cores":"100"' \
        field allowed injected '{.spec.containers[1].resources}'
    says "with its own annotation" '{"cpushares":102}' field allowed injected '{.metadata.annotations.resources\.workload\.openshift\.io/sidecar}'
    says "and nothing of the first pass is lost" '{"cpushares":409}' field allowed injected "$annotation"
    says "the first container stays converted" '"management.workload.openshift.io/cores":"400"' field allowed injected "$resources"
    kubectl delete mutatingwebhookconfiguration zz-sidecar >/dev/null
    process_stop "$dir/sidecar" sidecar
}

deployment() {
    cp_start_controller_manager "$cp"
    kubectl apply -f - >/dev/null <<'END'
apiVersion: apps/v1
kind: Deployment
metadata: {name: platform, namespace: allowed}
spec:
  replicas: 3
  selector: {matchLabels: {app: platform}}
  template:
    metadata:
      labels: {app: platform}
      annotations: {target.workload.openshift.io/management: '{"effect":"PreferredDuringScheduling"}'}
    spec:
      containers: [{name: main, image: "localhost/none:1", resources: {requests: {cpu: 50m, memory: 10Mi}}}]
END
    all_converted() {
        [ "$(kubectl -n allowed get pods -l app=platform -o \
            'jsonpath={.items[*].spec.containers[0].resources.requests.management\.workload\.openshift\.io/cores}')" = '50 50 50' ]
    }
    ok "a Deployment's pods are converted" wait_for 120 all_converted
}

manifests() {
    ok "deploy/ is what the API server takes" kubectl apply --dry-run=server -f "$dir/deploy.yaml"
    for overlay in fail pools taint; do
        kubectl kustomize "deploy/overlays/$overlay" >"$dir/$overlay.yaml"
        ok "and with overlay $overlay" kubectl apply --dry-run=server -f "$dir/$overlay.yaml"
    done
    refused "the profile's CRD checks CPU lists" 'spec.cpu.reserved' kubectl create -f - <<<'
        {apiVersion: performance.openshift.io/v2, kind: PerformanceProfile, metadata: {name: p},
         spec: {cpu: {reserved: "0-x", isolated: "2-3"}, nodeSelector: {a: ""}}}'
    ok "and takes a good one" kubectl create -f - <<<'
        {apiVersion: performance.openshift.io/v2, kind: PerformanceProfile, metadata: {name: p},
         spec: {cpu: {reserved: "0-1", isolated: "4-7", shared: "2-3", workloads: [Infrastructure]}, nodeSelector: {a: ""}}}'
}

run_on() {
    echo "# Kubernetes $1"
    rm -rf "$cp" "$wh"
    CP_VERSION=$1 cp_start "$cp"
    for ns in allowed other plain pinfold; do cp_namespace "$cp" $ns >/dev/null; done
    kubectl annotate namespace allowed workload.openshift.io/allowed=management >/dev/null
    kubectl annotate namespace other workload.openshift.io/allowed=something-else >/dev/null
    kubectl kustomize deploy >"$dir/deploy.yaml"
    kubectl apply -f deploy/base/crd-infrastructures.yaml -f deploy/base/crd-performanceprofiles.yaml >/dev/null
    kubectl wait --for condition=Established crd --all --timeout 60s >/dev/null
    kubectl create -f - >/dev/null <<<'{apiVersion: config.openshift.io/v1, kind: Infrastructure, metadata: {name: cluster}}'
    kubectl patch infrastructure cluster --subresource status --type merge \
        -p '{"status":{"controlPlaneTopology":"HighlyAvailable","infrastructureTopology":"HighlyAvailable","cpuPartitioning":"AllNodes"}}' >/dev/null
    flags=(--shutdown-delay 0)
    if [ "${WEBHOOK_E2E_MODE:-cluster}" = state ]; then
        state >"$dir/state.yaml"
        flags+=(--state "$dir/state.yaml")
    else
        kubectl apply -f deploy/base/rbac.yaml >/dev/null
        # The user name that the ServiceAccount's token would give.
        cp_kubeconfig "$cp" pinfold /CN=system:serviceaccount:pinfold:pinfold-webhook
        flags+=(--kubeconfig "$cp/pinfold.kubeconfig")
    fi
    wh_start "$wh" "$cp" "${flags[@]}"
    manifests
    wh_configure "$wh" "$cp"
    wait_for 30 flow_begins
    flows
    ordinary_pods_do_not_travel
    nodes
    cluster_flag
    reinvocation
    [ -n "${SMOKE:-}" ] || deployment
    wh_stop "$wh"
    cp_stop "$cp"
}

# The API server takes a moment to learn of a configuration.
flow_begins() {
    apply other begin 'cpu: 100m, memory: 1Gi' '' >/dev/null 2>&1 || return 0
    kubectl -n other delete pod begin --now >/dev/null
    return 1
}

versions=${WEBHOOK_E2E_VERSIONS:-$KUBERNETES_VERSION ${KUBERNETES_OLD_VERSION:-}}
[ -z "${SMOKE:-}" ] || versions=${versions%% *}
for version in $versions; do
    run_on "$version"
done
echo "1..$passed"
