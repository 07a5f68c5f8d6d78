#!/usr/bin/env bash
# The chart in deploy/chart: it renders the objects of the kustomizations, a real API server accepts them, and install, upgrade,
# rollback and uninstall do what docs/operations.md says. The upgrade is one from the manifests and the program of 0.1.0, with two
# replicas of the webhook behind its Service and failurePolicy Fail, while pods are created: no pod fails, and all are converted.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/webhook.sh
. tests/e2e/lib/webhook.sh
# shellcheck source=tests/packages/lib/old-program.sh
. tests/packages/lib/old-program.sh

pods=${CHART_PODS:-600}
[ -z "${SMOKE:-}" ] || pods=100
chart=deploy/chart
root=$(mktemp -d /tmp/pinfold-chart-XXXXXX)
cp=$root/cp
trap 'process_stop "$root" egress; process_stop "$root" balancer; wh_stop "$root/a"; wh_stop "$root/b"; cp_stop "$cp"; rm -rf "$root"' EXIT
tests/e2e/components/host-packages python3-yaml socat
helm=$("$e2e_build" helm)/bin/helm
export HELM_CACHE_HOME=$root/helm/cache HELM_CONFIG_HOME=$root/helm/config HELM_DATA_HOME=$root/helm/data

helm() { KUBECONFIG=$cp/admin.kubeconfig "$helm" --namespace pinfold "$@"; }
all_on=(--set 'monitoring.enabled=true,topology.enabled=true,webhook.pools=true,webhook.failurePolicy=Fail'
    --set 'networkPolicy.nodeCIDRs={192.0.2.0/24},agent.apiServer=https://api.example:6443,image.pullSecrets[0].name=registry'
    --set 'webhook.podLabels.team=edge,webhook.podAnnotations.a=b,agent.podAnnotations.a=b,webhook.tolerations[0].operator=Exists'
    --set 'webhook.extraArgs={--log-level=debug},agent.extraArgs={--log-level=debug},agent.nodeSelector.a=b')

# --- without a cluster ---

template() { "$helm" template pinfold $chart "$@"; }
same_twice() { diff <(template "${all_on[@]}") <(template "${all_on[@]}"); }
no_text() { ! grep -rnE "$1" $chart/templates; }

ok "the templates are those of deploy/" scripts/chart --check
says "helm lint finds nothing" "0 chart(s) failed" "$helm" lint --strict $chart
says "helm lint finds nothing with every option" "0 chart(s) failed" "$helm" lint --strict $chart "${all_on[@]}"
# shellcheck source=tests/e2e/components/versions
. tests/e2e/components/versions
kubectl_program=$("$e2e_build" "kubernetes-${CP_VERSION:-$KUBERNETES_VERSION}:kubectl")/bin/kubectl
ok "the chart renders the objects of every kustomization" python3 tests/e2e/chart/compare.py "$helm" "$kubectl_program"
refused "the comparison fails with another value" spec.replicas python3 tests/e2e/chart/compare.py "$helm" "$kubectl_program" --set webhook.replicas=3
ok "rendering twice gives the same text" same_twice
ok "no template reads from the cluster, uses random values, or is a hook" no_text 'lookup|rand[A-Z]|genCA|uuidv4|helm\.sh/hook'
refused "a tag that is a number is refused" image/tag template --set image.tag=2
refused "an unknown distribution is refused" distribution template --set distribution=minikube
refused "an unknown value is refused" replica template --set webhook.replica=1
refused "an argument without dashes is refused" extraArgs template --set 'webhook.extraArgs={log-level}'

# --- an API server ---

# The webhook configurations name a Service. The API server reaches it through this proxy, which leads to the replicas.
start_control_plane() {
    cp_egress "$root/egress.yaml" "$root/egress.sock"
    # shellcheck disable=SC2034  # read by control-plane.sh
    CP_APISERVER_FLAGS=(--egress-selector-config-file "$root/egress.yaml")
    cp_start "$cp"
    cp_namespace "$cp" platform >/dev/null
    kubectl annotate namespace platform workload.openshift.io/allowed=management >/dev/null
}
start_replica() { # a or b [PROGRAM...]
    local at=$root/$1 program=("${@:2}")
    [ $# -gt 1 ] || program=("$pinfold")
    mkdir -p "$at"
    [ -e "$at/port" ] || free_port >"$at/port"
    process_start "$at" webhook "${program[@]}" webhook --listen "127.0.0.1:$(cat "$at/port")" --service pinfold/pinfold-webhook \
        --kubeconfig "$cp/pinfold.kubeconfig" --admission-mode taint --shutdown-delay 2
    wait_ready "$at" webhook 120 is_ready "$1"
}
is_ready() { curl -skf "https://127.0.0.1:$(cat "$root/$1/port")/readyz" >/dev/null; }
start_service() { # PROGRAM...
    local port
    port=$(free_port)
    cp_kubeconfig "$cp" pinfold /CN=system:serviceaccount:pinfold:pinfold-webhook
    start_replica a "$@"
    start_replica b "$@"
    process_start "$root" balancer python3 tests/e2e/webhook/balancer.py "$port" "$(cat "$root/a/port")" "$(cat "$root/b/port")"
    # shellcheck disable=SC2016  # $0 is the port, $1 the address that the API server asked for
    process_start "$root" egress python3 tests/e2e/deploy/egress.py "$root/egress.sock" sh -c 'exec socat - "TCP:127.0.0.1:$0"' "$port"
}
try_pod() { kubectl -n platform run "try-$RANDOM" --image i --dry-run=server -o yaml --annotations 'target.workload.openshift.io/management={"effect":"PreferredDuringScheduling"}' \
    --overrides '{"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"100m","memory":"1Mi"}}}]}}' 2>&1; }
answers() { [[ $(try_pod) == *'infrastructure.config.openshift.io "cluster" not found'* ]]; } # the flag is not set yet
converts() { [[ $(try_pod) == *'management.workload.openshift.io/cores: "100"'* ]]; }

create() { python3 tests/e2e/webhook/create_pods.py "$(cat "$cp/port")" "$cp/pki" platform "$1" "$pods" "$root/stop-creating" >"$root/created" 2>&1; }
count() { kubectl -n platform get pods -l "batch=$1" --chunk-size 500 -o \
    'jsonpath={range .items[*]}{.spec.containers[0].resources.requests.management\.workload\.openshift\.io/cores}{"\n"}{end}' | sort | uniq -c | tr -s ' '; }

# under_load BATCH SENTENCE COMMAND...: the command, and what a Deployment's controller does after it, while pods are created.
under_load() {
    local batch=$1 sentence=$2 replica creator status=0
    shift 2
    create "$batch" &
    creator=$!
    ok "$sentence" "$@"
    for replica in a b; do
        wh_stop "$root/$replica"
        start_replica "$replica"
    done
    touch "$root/stop-creating"
    wait $creator || status=$?
    rm "$root/stop-creating"
    tap_result $status "no pod fails meanwhile" "$(cat "$root/created")"
    equals "all $(head -n 1 "$root/created") pods are converted" " $(head -n 1 "$root/created") 100" count "$batch"
}

# What differs between the cluster and the chart, by the API server's own merge; without kubectl's annotation of 0.1.0's manifests.
cat >"$root/diff" <<'EOF'
#!/bin/sh
exec diff -U1 -I '^ *{"apiVersion":' -I '^ *generation:' "$@"
EOF
chmod +x "$root/diff"
drift() { helm get manifest pinfold | KUBECTL_EXTERNAL_DIFF=$root/diff kubectl diff --server-side --force-conflicts -f - | cut -c1-300; }
bundles() { kubectl get mutatingwebhookconfiguration,validatingwebhookconfiguration pinfold -o 'jsonpath={range .items[*].webhooks[*]}{.clientConfig.caBundle}{"\n"}{end}' | sort -u | grep -c .; }
field() { kubectl -n pinfold get deployment pinfold-webhook -o "jsonpath=$1"; }
annotation() { kubectl get "$1" -o 'jsonpath={.metadata.annotations.meta\.helm\.sh/release-name}'; }
left() { kubectl get "$1" -A --ignore-not-found -o name 2>/dev/null | grep -i pinfold || :; }

start_control_plane
kubectl create namespace pinfold >/dev/null
kubectl create namespace pinfold-agent >/dev/null
dry_run() { template "${all_on[@]}" --set monitoring.enabled=false | kubectl apply --server-side --dry-run=server --warnings-as-errors --force-conflicts -f -; }
ok "the API server accepts every object, without a warning" dry_run
kubectl delete namespace pinfold pinfold-agent --wait=false >/dev/null
for namespace in pinfold pinfold-agent; do # no controller manager runs
    kubectl get namespace $namespace -o json | jq '.spec.finalizers = []' | kubectl replace --raw "/api/v1/namespaces/$namespace/finalize" -f - >/dev/null
done

# The manifests of 0.1.0 as `kubectl kustomize deploy/` printed them, with the only change that a pod fails when a call does.
sed 's/failurePolicy: Ignore/failurePolicy: Fail/' tests/e2e/chart/manifests-0.1.0.yaml >"$root/old.yaml"
kubectl apply -f "$root/old.yaml" >/dev/null
kubectl wait --for condition=Established crd --all --timeout 60s >/dev/null
if old_dir=$(old_program); then
    old=(env LD_LIBRARY_PATH="$old_dir" "$old_dir/pinfold")
    start_service "${old[@]}"
    equals "the replicas are those of 0.1.0" "pinfold 0.1.0" "${old[@]}" --version
else
    echo "# no history of git: the replicas of before are those of this version"
    start_service
fi
wait_for 60 answers
wh_partition_cluster "$cp"
ok "the webhook of 0.1.0's manifests converts pods" wait_for 120 converts

fail=(--set 'webhook.failurePolicy=Fail,webhook.timeoutSeconds=10')
refused "an installation that helm does not own is not overwritten" "cannot be imported" helm upgrade --install pinfold $chart "${fail[@]}"
under_load upgrade "helm takes over the objects of 0.1.0" helm upgrade --install pinfold $chart --take-ownership "${fail[@]}"
equals "the cluster has what the chart renders" "" drift
equals "the CA that the webhook published is kept, once" 1 bundles
equals "the CRDs are updated with the release" pinfold annotation crd/performanceprofiles.performance.openshift.io

under_load values "helm upgrades to other values" helm upgrade pinfold $chart "${fail[@]}" --set 'webhook.replicas=3,agent.extraArgs={--log-level=debug}'
equals "the value is in the cluster" 3 field '{.spec.replicas}'
under_load rollback "helm rolls back" helm rollback pinfold 1
equals "the old value is back" 2 field '{.spec.replicas}'
equals "the CA is still there" 1 bundles

# Argo CD and Flux apply with their own field manager. They must find nothing to change afterwards.
gitops() { template --namespace pinfold "${fail[@]}" | kubectl apply --server-side --field-manager gitops --force-conflicts -f - >/dev/null; }
gitops_drift() { template --namespace pinfold "${fail[@]}" | kubectl diff --server-side --field-manager gitops -f -; }
ok "server-side apply with another field manager succeeds" gitops
equals "and finds nothing to change afterwards, also not the CA" "" gitops_drift
equals "which is still there" 1 bundles

kubectl apply -f - >/dev/null <<<'{apiVersion: performance.openshift.io/v2, kind: PerformanceProfile, metadata: {name: kept}, spec: {cpu: {reserved: "0-1", shared: "2-3", isolated: "4-7"}, nodeSelector: {node-role.kubernetes.io/kept: ""}}}'
cp_start_controller_manager "$cp" # deletes what a deleted namespace has
ok "helm uninstalls" helm uninstall pinfold --wait --timeout 10m
for kind in deployments daemonsets services mutatingwebhookconfigurations validatingwebhookconfigurations validatingadmissionpolicies \
    validatingadmissionpolicybindings clusterroles clusterrolebindings roles rolebindings serviceaccounts poddisruptionbudgets networkpolicies pods; do
    equals "no $kind are left" "" left $kind
done
says "profiles are kept" kept kubectl get performanceprofile kept -o name
says "and the cluster flag" AllNodes kubectl get infrastructure cluster -o 'jsonpath={.status.cpuPartitioning}'
ok "a new installation takes over the CRDs" helm install pinfold $chart "${fail[@]}"
ok "and converts pods" wait_for 120 converts
tap_end
