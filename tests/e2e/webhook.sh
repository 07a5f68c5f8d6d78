#!/usr/bin/env bash
# The flows of docs/admission.md on a real API server: what is stored and what kubectl prints. The webhook
# watches the cluster, with no more rights than deploy/ gives it; with WEBHOOK_E2E_MODE=state it reads
# manifests. WEBHOOK_E2E_VERSIONS lists the Kubernetes versions; SMOKE=1 uses one. The webhook's time-out is
# that of deploy/, 1 s.
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
    says "its CPU request is converted to cores" '"management.workload.openshift.io/cores":"400"' field allowed burstable "$resources"
    says "its CPU request is removed" '{"management.workload.openshift.io/cores":"400","memory":"1Gi"}' \
        field allowed burstable '{.spec.containers[0].resources.requests}'
    says "an annotation has its cpushares for the runtime" '{"cpushares":409}' field allowed burstable "$annotation"
    ok "a pod with a CPU limit is created" apply allowed limited 'cpu: 100m, memory: 1Gi' 'cpu: 500m'
    says "its limit is converted to cpulimit" '{"cpushares":102,"cpulimit":500}' field allowed limited "$annotation"
    ok "a best-effort pod is created" apply allowed best-effort '' ''
    says "it has the minimum cpushares" '"cpushares": 2' field allowed best-effort "$annotation"
    says "a Guaranteed pod is not converted, and kubectl prints a warning" Warning: apply allowed guaranteed 'cpu: 1, memory: 1Gi' 'cpu: 1, memory: 1Gi'
    says "the Guaranteed pod keeps its CPU request" '"cpu":"1"' field allowed guaranteed "$resources"
    says "a pod whose QoS class would change is not converted, with a warning" Warning: apply allowed cpu-only 'cpu: 100m' ''
    says "that pod keeps its CPU request" '"cpu":"100m"' field allowed cpu-only "$resources"
    says "a pod in a namespace that does not opt in is stripped, with a warning" Warning: apply plain stripped 'cpu: 100m, memory: 1Gi' ''
    says "the stripped pod keeps its CPU request" '"cpu":"100m"' field plain stripped "$resources"
    equals "the stripped pod has no target annotation" '' field plain stripped "$target"
    refused "a pod in a namespace that allows another workload type is refused" 'does not allow the workload type management' \
        apply other wrong 'cpu: 100m, memory: 1Gi' ''
}

ordinary_pods_are_not_sent() {
    local before
    before=$(wh_metric "$wh" "$cp" pinfold_admission_reviews_total)
    ok "an ordinary pod is created" kubectl -n plain run ordinary --image localhost/none:1
    ok "an ordinary pod is labelled" kubectl -n plain label pod ordinary a=b
    equals "neither was sent to the webhook" "$before" wh_metric "$wh" "$cp" pinfold_admission_reviews_total
}

nodes() {
    refused "a node without the resource cannot register" 'node does not contain resource information' \
        kubectl create -f - <<<'{apiVersion: v1, kind: Node, metadata: {name: bare}}'
    says "a node with the resource can register" created kubectl create -f - <<<'{apiVersion: v1, kind: Node, metadata: {name: good},
        status: {capacity: {cpu: "8", management.workload.openshift.io/cores: "8000"},
                 allocatable: {cpu: "8", management.workload.openshift.io/cores: "8000"}}}'
    wh_stop "$wh"
    ok "without the webhook nodes can register (failurePolicy Ignore)" \
        kubectl create -f - <<<'{apiVersion: v1, kind: Node, metadata: {name: bare}}'
    wh_start "$wh" "$cp" "${flags[@]}"
    says "a change of an existing node without the resource gives a warning" Warning: kubectl label node bare a=b
}

set_flag() { kubectl patch infrastructure cluster --subresource status --type merge -p "{\"status\":{\"cpuPartitioning\":\"$1\"}}"; }

cluster_flag() {
    ok "partitioning can be turned on" set_flag AllNodes
    refused "partitioning cannot be turned off: the CRD refuses it" 'can not be turned off' set_flag None
    refused "an unknown value of the cluster flag is refused" 'Unsupported value' set_flag Some
    kubectl patch crd infrastructures.config.openshift.io --type json \
        -p '[{"op":"remove","path":"/spec/versions/0/schema/openAPIV3Schema/x-kubernetes-validations"}]' >/dev/null
    turned_off_by_webhook() { [[ $(set_flag None 2>&1) == *'admission webhook "infrastructures.validate.pinfold.io" denied'* ]]; }
    ok "with OpenShift's CRD the webhook refuses to turn partitioning off" wait_for 30 turned_off_by_webhook
    refused "the webhook refuses to delete the cluster flag's object" 'can not be turned off' kubectl delete infrastructure cluster
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
    ok "another webhook adds a container after the conversion" wait_for 30 injected
    says "the webhook is called again and converts the added container" '"management.workload.openshift.io/cores":"100"' \
        field allowed injected '{.spec.containers[1].resources}'
    says "the added container has its own annotation" '{"cpushares":102}' field allowed injected '{.metadata.annotations.resources\.workload\.openshift\.io/sidecar}'
    says "the annotation of the first container is kept" '{"cpushares":409}' field allowed injected "$annotation"
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
    ok "the pods of a Deployment are converted" wait_for 120 all_converted
}

manifests() {
    ok "the API server accepts deploy/" kubectl apply --dry-run=server -f "$dir/deploy.yaml"
    for overlay in fail network-policy pools refuse k3s rke2 microk8s talos; do
        kubectl kustomize "deploy/overlays/$overlay" >"$dir/$overlay.yaml"
        ok "the API server accepts overlay $overlay" kubectl apply --dry-run=server -f "$dir/$overlay.yaml"
    done
    refused "the PerformanceProfile CRD refuses an invalid CPU list" 'spec.cpu.reserved' kubectl create -f - <<<'
        {apiVersion: performance.openshift.io/v2, kind: PerformanceProfile, metadata: {name: p},
         spec: {cpu: {reserved: "0-x", isolated: "2-3"}, nodeSelector: {a: ""}}}'
    ok "the PerformanceProfile CRD accepts a valid profile" kubectl create -f - <<<'
        {apiVersion: performance.openshift.io/v2, kind: PerformanceProfile, metadata: {name: p},
         spec: {cpu: {reserved: "0-1", isolated: "4-7", shared: "2-3", workloads: [Infrastructure]}, nodeSelector: {a: ""}}}'
}

run_on() {
    echo "# Kubernetes $1"
    rm -rf "$cp" "$wh"
    CP_VERSION=$1 cp_start "$cp"
    for ns in allowed other plain pinfold pinfold-agent; do cp_namespace "$cp" $ns >/dev/null; done
    kubectl annotate namespace allowed workload.openshift.io/allowed=management >/dev/null
    kubectl annotate namespace other workload.openshift.io/allowed=something-else >/dev/null
    kubectl kustomize deploy >"$dir/deploy.yaml"
    kubectl apply -f deploy/base/crd-performanceprofiles.yaml >/dev/null
    wh_partition_cluster "$cp"
    flags=(--shutdown-delay 0)
    if [ "${WEBHOOK_E2E_MODE:-cluster}" = state ]; then
        state >"$dir/state.yaml"
        flags+=(--state "$dir/state.yaml")
    else
        wh_account "$cp"
        flags+=(--kubeconfig "$cp/pinfold.kubeconfig")
    fi
    wh_start "$wh" "$cp" "${flags[@]}"
    manifests
    wh_configure "$wh" "$cp"
    wait_for 30 calls_webhook
    flows
    ordinary_pods_are_not_sent
    nodes
    cluster_flag
    reinvocation
    [ -n "${SMOKE:-}" ] || deployment
    wh_stop "$wh"
    cp_stop "$cp"
}

# The API server starts to call a webhook some time after its configuration was created.
calls_webhook() {
    apply other begin 'cpu: 100m, memory: 1Gi' '' >/dev/null 2>&1 || return 0
    kubectl -n other delete pod begin --now >/dev/null
    return 1
}

versions=${WEBHOOK_E2E_VERSIONS:-$KUBERNETES_VERSION ${KUBERNETES_OLD_VERSION:-}}
[ -z "${SMOKE:-}" ] || versions=${versions%% *}
for version in $versions; do
    run_on "$version"
done
tap_end
