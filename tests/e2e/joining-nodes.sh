#!/usr/bin/env bash
# Nodes that join a partitioned cluster before they advertise the cores resource, with a webhook that taints them: while its
# configuration lacks the webhook for nodes, with it, and while the webhook is away. What pods get meanwhile.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/webhook.sh
. tests/e2e/lib/webhook.sh

dir=$(mktemp -d)
cp=$dir/cp
wh=$dir/webhook
trap 'wh_stop "$wh"; cp_stop "$cp"; [ -n "${KEEP:-}" ] || rm -rf "$dir"' EXIT
export WH_TIMEOUT_SECONDS=10
cores=management.workload.openshift.io/cores

# The webhook with a certificate of its own, as in its Deployment.
start() {
    process_start "$wh" webhook "$pinfold" webhook --listen "127.0.0.1:$(cat "$wh/port")" --url "$(wh_url "$wh")" \
        --kubeconfig "$cp/pinfold.kubeconfig" --shutdown-delay 0 --admission-mode taint
}
configure() { "$pinfold" webhook --print-config --url "$(wh_url "$wh")" "$@" | wh_timeout | kubectl apply -f - >/dev/null; }
get() { curl -sk "$(wh_url "$wh")$1"; }
is_ready() { [ "$(get /readyz)" = ok ]; }
metric_is() { [ "$(get /metrics | awk -v name="$1" '$1 == name { print $2 }')" = "$2" ]; }
join() { kubectl create -f - <<<"{apiVersion: v1, kind: Node, metadata: {name: $1}}"; }
taints() { kubectl get node "$1" -o 'jsonpath={.spec.taints[*].key}'; }
is_tainted() { [[ $(taints "$1") == *pinfold.io/unpartitioned* ]]; }
is_not_tainted() { ! is_tainted "$1"; }
try_pod() { # NAMESPACE: prints warnings and the admitted requests; nothing is stored
    kubectl create --dry-run=server -o 'jsonpath={.spec.containers[0].resources.requests}' -f - 2>&1 <<END
apiVersion: v1
kind: Pod
metadata: {name: try, namespace: $1, annotations: {target.workload.openshift.io/management: '{"effect":"PreferredDuringScheduling"}'}}
spec: {containers: [{name: main, image: "localhost/none:1", resources: {requests: {cpu: 100m, memory: 1Mi}}}]}
END
}
admits() { [[ $(try_pod "$1") == *"$2"* ]]; } # NAMESPACE TEXT

# A node is ready when its kubelet says so.
is_up() { kubectl taint node "$1" node.kubernetes.io/not-ready- >/dev/null 2>&1 || :; }
publish() { kubectl patch node "$1" --subresource status --type merge -p "{\"status\":{\"capacity\":{\"$cores\":\"8k\"},\"allocatable\":{\"$cores\":\"8k\"}}}" >/dev/null; }

cp_start "$cp"
mkdir -p "$wh"
free_port >"$wh/port"
for ns in allowed pinfold-agent; do cp_namespace "$cp" $ns >/dev/null; done
kubectl annotate namespace allowed pinfold-agent workload.openshift.io/allowed=management >/dev/null
wh_account "$cp"
kubectl apply -f deploy/base/policy.yaml >/dev/null
wh_partition_cluster "$cp"
kubectl delete node partitioned >/dev/null
join old >/dev/null
is_up old
sleep 1.1 # creationTimestamp has seconds

configure # for --admission-mode refuse: no webhook for nodes
start
not_registered() { [[ $(get /readyz) == *'has no webhook for nodes'* ]]; }
ok "a webhook that taints nodes and is not called for them is not ready and says why" wait_for 120 not_registered
ok "the metric says so" metric_is pinfold_node_webhook_registered 0
ok "so does the log" grep -q 'has no webhook for nodes' "$wh/logs/webhook.log"
sleep 1.1 # as above: a node of the same second counts as one that was there before
ok "a node can join nevertheless" join early
is_up early

configure --admission-mode taint
ok "with the webhook for nodes it is ready" wait_for 120 is_ready
ok "the metric is 1" wait_for 60 metric_is pinfold_node_webhook_registered 1
ok "a node that joined in between is tainted afterwards" wait_for 60 is_tainted early
ok "a node that was there before the webhook is not" is_not_tainted old
called() { kubectl delete node joined --ignore-not-found >/dev/null && join joined >/dev/null && is_tainted joined; }
ok "a node that joins gets the taint at once" wait_for 60 called

ok "while no node has cores, a pod is left as it is" wait_for 60 admits allowed '"cpu":"100m"'
says "and its creator is told" 'Warning: skip pod CPUs requests modifications because no node that is ready advertises' try_pod allowed
publish early
kubectl taint node early pinfold.io/unpartitioned- >/dev/null
ok "as soon as a node has cores, pods are converted" wait_for 60 admits allowed "\"$cores\":\"100\""
says "while others lack them, its creator is told" 'Warning: 1 of 2 nodes that are ready advertise' try_pod allowed
publish old
lacks_warning() { ! admits allowed Warning; }
ok "when all of them have cores, there is no warning" wait_for 60 lacks_warning

# The selector of the configuration exempts the namespace, too; the decision does not depend on it.
for kind in mutating validating; do
    kubectl patch ${kind}webhookconfiguration pinfold --type json -p '[{"op":"remove","path":"/webhooks/0/namespaceSelector"}]' >/dev/null
done
is_sent() { get /metrics | grep -q 'reviews_total{hook="mutate_pods".*rule="exempt"'; }
try_agent() { try_pod pinfold-agent >"$dir/agent-pod" 2>&1; is_sent; }
ok "pods of the agent's namespace can be sent to the webhook" wait_for 60 try_agent
says "and are left as they are" '"cpu":"100m"' cat "$dir/agent-pod"

wh_stop "$wh"
ok "a node joins while the webhook is away" join slipped
ok "it has no taint" is_not_tainted slipped
start
ok "the webhook taints it when it is back" wait_for 120 is_tainted slipped
ok "and counts it" wait_for 60 metric_is pinfold_nodes_tainted_late_total 1
ok "nodes with cores have no taint" is_not_tainted early

ok "it is ready again" wait_for 60 is_ready
configure # a GitOps controller applies a wrong configuration again
ok "a ready webhook reports a webhook for nodes that was removed" wait_for 60 metric_is pinfold_node_webhook_registered 0
ok "and stays ready for pods" wait_for 60 is_ready # it first adds its CA again
tap_end
