#!/usr/bin/env bash
# The operator's digest of permissions and its cluster checks, with the rights that deploy/operator gives it: a real API
# server, the real webhook, and agents without a runtime. NAMESPACES is the size of the cluster (1000).
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/webhook.sh
. tests/e2e/lib/webhook.sh

dir=$(mktemp -d)
cp=$dir/cp
namespaces=${NAMESPACES:-1000}
stop_all() {
    local name
    for name in agent operator; do process_stop "$dir" $name; done
    wh_stop "$dir/webhook"
    cp_stop "$cp"
    [ -n "${KEEP:-}" ] || rm -rf "$dir"
}
trap stop_all EXIT
explain() { tail -n 20 "$dir"/logs/*.log; }

# --- set-up ---

cat >"$dir/audit.yaml" <<'EOF'
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
EOF
CP_APISERVER_FLAGS=(--audit-policy-file "$dir/audit.yaml" --audit-log-path "$dir/audit.log" --audit-log-mode blocking)
cp_start "$cp"
kubectl apply -f deploy/base/crd-infrastructures.yaml -f deploy/base/crd-performanceprofiles.yaml \
    -f deploy/base/crd-nodepartitions.yaml >/dev/null
kubectl wait --for condition=Established crd --all --timeout 60s >/dev/null
kubectl create namespace pinfold >/dev/null
kubectl create namespace pinfold-agent >/dev/null
kubectl apply -f deploy/agent/rbac.yaml >/dev/null
kubectl apply -k deploy/operator >/dev/null
kubectl create -f - >/dev/null <<<'{apiVersion: config.openshift.io/v1, kind: Infrastructure, metadata: {name: cluster}}'
flag() { kubectl patch infrastructure cluster --subresource status --type merge -p "{\"status\":{\"cpuPartitioning\":\"$1\"}}" >/dev/null; }
flag AllNodes
node() { # NAME LABELS CORES
    kubectl create -f - >/dev/null <<<"{apiVersion: v1, kind: Node, metadata: {name: $1, labels: {$2}}}"
    kubectl patch node "$1" --subresource status --type merge -p "{\"status\":{\"capacity\":{\"cpu\":\"8\"$3},\"allocatable\":{\"cpu\":\"8\"$3},
        \"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"KubeletReady\",\"message\":\"test\"}]}}" >/dev/null
}
cores='"management.workload.openshift.io/cores":"8k"'
node ready 'pool: a' ",$cores"
node missing 'pool: a' ""

# One in twenty namespaces allows the type management.
for i in $(seq "$namespaces"); do
    allowed=
    [ $((i % 20)) != 0 ] || allowed=', annotations: {workload.openshift.io/allowed: management}'
    echo "{apiVersion: v1, kind: Namespace, metadata: {name: tenant-$i$allowed}}"
    echo ---
done | kubectl create -f - >/dev/null
cp_namespace "$cp" platform >/dev/null
kubectl annotate namespace platform workload.openshift.io/allowed=management >/dev/null
want=$((namespaces / 20 + 1))

token_kubeconfig() { # FILE TOKEN
    sed "/^users:/,\$d" "$cp/admin.kubeconfig" >"$1"
    printf 'users: [{name: it, user: {token: %s}}]\ncontexts: [{name: test, context: {cluster: test, user: it}}]\n' "$2" >>"$1"
}
token_kubeconfig "$dir/operator.kubeconfig" "$(kubectl -n pinfold create token pinfold-operator)"
token_kubeconfig "$dir/agent.kubeconfig" "$(kubectl -n pinfold-agent create token pinfold-agent --bound-object-kind Node --bound-object-name ready)"

# --- the agent and the digest ---

agent_status() { curl -sf --unix-socket "$dir/run/agent.sock" http://agent/status | jq -r ".cluster.$1"; }
agent_has() { [ "$(agent_status permissionsFrom) $(agent_status allowedNamespaces)" = "$1" ]; }
agent_start() {
    process_start "$dir" agent "$pinfold" agent --run-dir "$dir/run" --kubelet-state /nonexistent --management 0 \
        --nri-socket "$dir/no-runtime" --node-name ready --kubeconfig "$dir/agent.kubeconfig"
}
agent_pid() { cut -d' ' -f1 "$dir/agent.pid"; }
# What the start of the agent cost: requests to namespaces and digest (by the audit log), bytes it received, and its memory.
agent_cost() {
    local requests bytes
    requests=$(jq -r 'select(.userAgent | startswith("pinfold-agent")) | select(.objectRef.resource == "namespaces" or
        .objectRef.resource == "configmaps") | "\(.verb) \(.objectRef.resource)"' "$dir/audit.log" | sort | uniq -c | awk '{ printf "%s%s %s %s", sep, $1, $2, $3; sep = ", " }')
    bytes=$(ss -tinHp state established | grep -A1 "pid=$(agent_pid)," | sed -n 's/.*bytes_received:\([0-9]*\).*/\1/p' | awk '{ n += $1 } END { print n }')
    echo "# agent with $namespaces namespaces, $1: $requests; $bytes bytes received; $(awk '/VmRSS/ { print $2 }' "/proc/$(agent_pid)/status") kB"
}
agent_restart() {
    process_stop "$dir" agent
    rm -rf "$dir/run"
    : >"$dir/audit.log"
    agent_start
}

agent_start
wait_for 60 agent_has "Namespaces $want" || die "the agent does not know the namespaces"
sleep 2
agent_cost "without an operator"

operator_start() {
    process_start "$dir" operator "$pinfold" operator --kubeconfig "$dir/operator.kubeconfig" --listen "127.0.0.1:$port" "$@"
}
operator_metric() { curl -sf "http://127.0.0.1:$port/metrics" | awk -v name="$1" '$1 == name { print $2 }'; }
port=$(free_port)
operator_start
digest() { kubectl -n kube-system get configmap pinfold-permissions -o json; }
digest_names() { digest | jq -r '.data.management' | grep -c .; }
digest_has() { [ "$(digest_names 2>/dev/null)" = "$1" ]; }
wait_for 60 digest_has $want || die "no digest"
digest_list() { digest | jq -r .data.management | grep .; }
equals "the digest has the namespaces that allow a type" "$(kubectl get namespaces -o json | jq -r '.items[] |
    select(.metadata.annotations["workload.openshift.io/allowed"]) | .metadata.name' | LC_ALL=C sort)" digest_list
ok "an agent that watches namespaces changes to the digest" wait_for 30 agent_has "Digest $want"

agent_restart
ok "an agent starts from the digest" wait_for 60 agent_has "Digest $want"
sleep 2
agent_cost "with the digest"
equals "it requests no namespaces" 0 jq -s '[.[] | select(.userAgent | startswith("pinfold-agent")) | select(.objectRef.resource == "namespaces")] | length' "$dir/audit.log"

kubectl annotate namespace tenant-1 workload.openshift.io/allowed=management >/dev/null
ok "a permission that is granted reaches the agent" wait_for 20 agent_has "Digest $((want + 1))"
kubectl annotate namespace tenant-1 workload.openshift.io/allowed- >/dev/null
ok "a permission that is withdrawn reaches the agent" wait_for 20 agent_has "Digest $want"
kubectl -n kube-system patch configmap pinfold-permissions --type merge -p '{"data":{"management":"tenant-3\n","ran":"tenant-4\n"}}' >/dev/null
ok "the operator restores a digest that was changed" wait_for 20 agent_has "Digest $want"
equals "and removes what was added to it" null eval 'digest | jq .data.ran'

# A user with rights in a namespace of their own.
kubectl create namespace mallory >/dev/null
kubectl create clusterrole config-writer --verb get,create,update,patch --resource configmaps >/dev/null
kubectl create rolebinding mallory -n mallory --clusterrole config-writer --user mallory >/dev/null
kubectl create rolebinding editor -n kube-system --clusterrole config-writer --user editor >/dev/null
forged='{apiVersion: v1, kind: ConfigMap, metadata: {name: pinfold-permissions, annotations: {pinfold.io/renewed: "2099-01-01T00:00:00Z"}}, data: {management: "mallory\n"}}'
# attack: digest-forged: a user without rights in kube-system writes the digest of permissions
refused "a tenant cannot write the digest" forbidden kubectl --as mallory -n kube-system apply -f - <<<"$forged"
# attack: digest-agent: a compromised agent writes the digest of permissions
refused "an agent cannot write the digest" forbidden "$(cp_bin "$cp" kubectl)" --kubeconfig "$dir/agent.kubeconfig" -n kube-system apply -f - <<<"$forged"
# attack: digest-editor: a user who may write ConfigMaps in kube-system writes the digest of permissions
refused "a user who may write ConfigMaps cannot write the digest" 'only the operator of Pinfold' \
    kubectl --as editor -n kube-system patch configmap pinfold-permissions --type merge -p '{"data":{"management":"mallory\n"}}'
# attack: digest-namespace: a user creates a digest in a namespace of their own
ok "a tenant creates a digest of their own" kubectl --as mallory -n mallory create -f - <<<"$forged"
equals "which no agent reads" "Digest $want" echo "$(agent_status permissionsFrom) $(agent_status allowedNamespaces)"
# attack: operator-configmap: a compromised operator writes another ConfigMap of kube-system
refused "the operator cannot write another ConfigMap" forbidden "$(cp_bin "$cp" kubectl)" --kubeconfig "$dir/operator.kubeconfig" \
    -n kube-system create configmap other

process_stop "$dir" operator
kubectl -n kube-system delete configmap pinfold-permissions >/dev/null
ok "an agent returns to the namespaces when the digest is deleted" wait_for 30 agent_has "Namespaces $want"
process_stop "$dir" agent

# --- the checks ---

# Before the webhook, which would refuse them.
for name in one two unused; do
    kubectl create -f - >/dev/null <<<"{apiVersion: performance.openshift.io/v2, kind: PerformanceProfile, metadata: {name: $name},
        spec: {cpu: {reserved: 0-1, isolated: 2-7}, nodeSelector: {pool: $([ $name = unused ] && echo b || echo a)}}}"
done
wh_account "$cp"
wh_start "$dir/webhook" "$cp" --kubeconfig "$cp/pinfold.kubeconfig"
wh_configure "$dir/webhook" "$cp"
optin='target.workload.openshift.io/management: "{\"effect\": \"PreferredDuringScheduling\"}"'
pod() { # NAME OWNER
    echo "{apiVersion: v1, kind: Pod, metadata: {name: $1, annotations: {$optin}, labels: {pod-template-hash: 5d4}$2},
        spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 100m, memory: 1Mi}}}]}}"
}
owner=', ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-5d4, uid: 00000000-0000-0000-0000-000000000001, controller: true}]'
converted() { kubectl -n platform get pod "$1" -o json | jq -e '.spec.containers[0].resources.requests["management.workload.openshift.io/cores"]' >/dev/null; }
pod converted "$owner" | kubectl -n platform create -f - >/dev/null
ok "the webhook converts a pod" converted converted
wh_stop "$dir/webhook"
pod slipped "" | kubectl -n platform create -f - >/dev/null # failurePolicy Ignore
wh_start "$dir/webhook" "$cp" --kubeconfig "$cp/pinfold.kubeconfig"

kubectl create -f - >/dev/null <<'EOF'
{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web, namespace: platform}, spec: {maxReplicas: 3,
 scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web},
 metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]}}
---
{apiVersion: v1, kind: LimitRange, metadata: {name: range, namespace: platform}, spec: {limits: [{type: Container, max: {cpu: "2"}}]}}
EOF
create_pod() { pod "$1" "" | kubectl -n "$2" create -f - 2>&1; }
refused "a LimitRange with max.cpu refuses a converted pod" 'No limit is specified' create_pod limited platform
kubectl -n platform delete limitrange range >/dev/null
kubectl -n platform create -f - >/dev/null <<<'{apiVersion: v1, kind: LimitRange, metadata: {name: range}, spec: {limits: [{type: Container, min: {cpu: 10m}}]}}'
refused "so does one with min.cpu" 'No request is specified' create_pod limited platform
kubectl -n tenant-20 create serviceaccount default >/dev/null 2>&1 || :
kubectl -n tenant-20 create quota quota --hard requests.cpu=4 >/dev/null
# The quota counts only once a controller has published its use; the status stands for one.
kubectl -n tenant-20 patch resourcequota quota --subresource status --type merge -p '{"status":{"hard":{"requests.cpu":"4"},"used":{"requests.cpu":"0"}}}' >/dev/null
refused "a ResourceQuota of cpu refuses a converted pod" 'must specify requests.cpu' create_pod limited tenant-20

dry_run() { "$pinfold" operator --kubeconfig "$dir/operator.kubeconfig" --dry-run; }
sleep "$(kubectl get node missing -o json | jq '(.metadata.creationTimestamp | fromdate) + 122 - now | if . < 0 then 0 else ceil end')"
dry_run >"$dir/findings" || die "the dry run failed"
for line in "Node missing: the cluster partitions all nodes, and this one does not publish management.workload.openshift.io/cores" \
    "PerformanceProfile one: node missing is also selected by profile two; nodes with several profiles: 2" \
    "PerformanceProfile unused: no node has the labels of spec.nodeSelector" \
    "Pod platform/slipped: the pod opted in to a workload type and was not converted" \
    "HorizontalPodAutoscaler platform/web: it scales on cpu utilization, and the pods of Deployment web have no cpu request" \
    "LimitRange platform/range: min.cpu of type Container refuses converted pods" \
    "ResourceQuota tenant-20/quota: requests.cpu refuses converted pods"; do
    says "the dry run prints: $line" "$line" grep -F "  $line" "$dir/findings"
done
equals "and nothing else" 8 grep -c '^  [A-Z][A-Za-z]* [^ ]*: ' "$dir/findings"
equals "the dry run writes nothing" "" kubectl -n kube-system get configmap pinfold-permissions --ignore-not-found

operator_start
# Conditions of the profiles have Events, too, after some time.
of_findings='.items[] | select(.source.component == "pinfold-operator" and (.reason | test("^(Not)?(Available|Progressing|Degraded|Upgradeable)$") | not))'
events() { kubectl get events -A -o json | jq -r "$of_findings"' | "\(.involvedObject.kind) \(.reason)"' | LC_ALL=C sort | uniq; }
want_events='HorizontalPodAutoscaler AutoscalerWithoutRequest
LimitRange LimitRangeRefusesPods
Node NodeWithoutResource
PerformanceProfile ProfileSelectsNoNode
PerformanceProfile ProfilesOverlap
Pod PodNotConverted
ResourceQuota QuotaRefusesPods'
has_events() { [ "$(events)" = "$want_events" ]; }
wait_for 60 has_events || :
equals "every finding is an Event" "$want_events" events
for metric in NodeWithoutResource=1 ProfileSelectsNoNode=1 ProfilesOverlap=2 PodNotConverted=1 AutoscalerWithoutRequest=1 LimitRangeRefusesPods=1 QuotaRefusesPods=1; do
    equals "the metric of ${metric%=*}" "${metric#*=}" operator_metric "pinfold_operator_findings{check=\"${metric%=*}\"}"
done
count_events() { kubectl get events -A -o json | jq "[$of_findings] | length"; }
before=$(count_events)
sleep 12 # one more reconcile
equals "an Event is not repeated with every reconcile" "$before" count_events
kubectl patch node missing --subresource status --type merge -p "{\"status\":{\"capacity\":{$cores},\"allocatable\":{$cores}}}" >/dev/null
no_finding() { [ "$(operator_metric 'pinfold_operator_findings{check="NodeWithoutResource"}')" = 0 ]; }
ok "a finding that is corrected disappears" wait_for 20 no_finding

# --- memory ---

sep=

# Nodes of the size that a kubelet makes them: images, addresses, conditions.
nodes=${NODES:-1000}
images=$(for i in $(seq 50); do printf '%s{"names":["registry.example/image-%d@sha256:0123456789abcdef0123456789abcdef","registry.example/image-%d:v1"],"sizeBytes":12345678}' "$sep" "$i" "$i"; sep=,; done)
for i in $(seq "$nodes"); do
    echo "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"big-$i\",\"labels\":{\"pool\":\"big\"}},\"status\":{\"capacity\":{$cores},\"allocatable\":{$cores},\"images\":[$images]}}"
done | kubectl create -f - >/dev/null
has_nodes() { [ "$(operator_metric 'pinfold_state_objects{kind="Node"}')" = $((nodes + 2)) ]; }
wait_for 60 has_nodes || die "the operator does not see $nodes nodes"
process_stop "$dir" operator
operator_start # lists all of them
wait_for 60 has_nodes || die "the operator does not see $nodes nodes"
sleep 12
operator_rss() { awk '/VmRSS/ { print $2 }' "/proc/$(cut -d' ' -f1 "$dir/operator.pid")/status"; }
operator_peak() { awk '/VmHWM/ { print $2 }' "/proc/$(cut -d' ' -f1 "$dir/operator.pid")/status"; }
echo "# operator with $nodes nodes and $namespaces namespaces: $(operator_rss) kB, at most $(operator_peak) kB"
ok "the operator needs at most 32 MiB" test "$(operator_peak)" -le 32768
tap_end
