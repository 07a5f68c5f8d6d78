#!/usr/bin/env bash
# Scale: NODES nodes of kwok and three times PODS pods on a real API server, with webhook, operator and one real agent among them. Prints the rate
# of pod creation without and with the webhook, CPU time and memory of ours, their API requests by the audit log, and the time until a
# changed profile is reported by all nodes. What takes time is measured and printed, not judged: other work on the machine counts. Checked is that
# nothing is lost: no creation fails, every pod is converted, every node is counted, and no daemon logs an error or grows without bound.
#
#	NODES=5000 PODS=50000 tests/e2e/scale.sh    # needs memory for the API server: 5 GB with 150,000 pods
#	AGENT=                                      # without the real agent, where this machine cannot run containerd
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/native-runtime.sh
. tests/e2e/lib/native-runtime.sh
# shellcheck source=tests/e2e/lib/webhook.sh
. tests/e2e/lib/webhook.sh
# shellcheck source=tests/e2e/lib/operator.sh
. tests/e2e/lib/operator.sh
# shellcheck source=tests/e2e/lib/kwok.sh
. tests/e2e/lib/kwok.sh
# shellcheck source=tests/e2e/lib/native-agent.sh
. tests/e2e/lib/native-agent.sh

nodes=${NODES:-500} pods=${PODS:-2000} agent=${AGENT-containerd-1.7}
dir=$(mktemp -d /tmp/pinfold-scale-XXXXXX)
cp=$dir
wh=$dir/webhook
name=real-0
trap 'process_stop "$dir" agent; process_stop "$dir" operator; wh_stop "$wh"; kwok_stop "$dir"; [ -z "$agent" ] || native_stop "$dir"; cp_stop "$cp"
    [ -n "${KEEP:-}" ] || rm -rf "$dir"' EXIT
export WH_TIMEOUT_SECONDS=30

# Only what ours request: the log must not slow down what is measured.
cat >"$dir/audit.yaml" <<'END'
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - {level: Metadata, userGroups: ["system:serviceaccounts:pinfold", "system:serviceaccounts:pinfold-agent"]}
  - {level: Metadata, users: ["system:serviceaccount:pinfold:pinfold-webhook"]}
  - {level: None}
END
CP_APISERVER_FLAGS=("${kwok_apiserver_flags[@]}" --audit-policy-file "$dir/audit.yaml" --audit-log-path "$dir/audit.log"
    --max-mutating-requests-inflight 800 --max-requests-inflight 1600)

load() { python3 tests/e2e/kwok/load.py "$(cat "$cp/port")" "$cp/pki" "$@"; }
pid_of() { cut -d' ' -f1 "$1"; }
# User and system time in hundredths of a second.
cpu_of() { awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$(pid_of "$1")/stat"; }
peak_of() { awk '/VmHWM/ { printf "%.1f", $2 / 1024 }' "/proc/$(pid_of "$1")/status"; }
seconds() { awk -v n="$1" 'BEGIN { printf "%.2f", n / 100 }'; }

# --- the cluster ---

cp_start "$cp"
op_install "$cp"
kubectl apply -f deploy/agent/namespace.yaml -f deploy/agent/rbac.yaml -f deploy/agent/node-rbac.yaml \
    -f deploy/base/flow-control.yaml -f deploy/agent/flow-control.yaml >/dev/null
wh_partition_cluster "$cp"
kubectl delete node partitioned >/dev/null
wh_account "$cp"
op_account "$cp"
kubectl create namespace load >/dev/null
kubectl annotate namespace load workload.openshift.io/allowed=management >/dev/null
profile scale node-role.kubernetes.io/scale 'reserved: "0", isolated: "1"'

echo "# $nodes nodes with their NodePartitions: $(load nodes 0 "$nodes" scale)"
began=$SECONDS
kwok_start "$dir" "$cp"
not_ready() { kubectl get nodes --no-headers | awk '$2 != "Ready"' | wc -l; }
all_ready() { [ "$(not_ready)" = 0 ]; }
ok "kwok makes all nodes ready" wait_for 900 all_ready
echo "# all nodes are ready $((SECONDS - began)) s later"

# Bound pods that kwok has not started yet would compete with the next round.
all_run() { [ "$(kubectl get --raw '/api/v1/namespaces/load/pods?fieldSelector=status.phase%3DPending&limit=1' | jq '.items | length')" = 0 ]; }

# round NAME: creates pods, sets rate and converted.
round() {
    local result apiserver
    apiserver=$(cpu_of "$cp/kube-apiserver.pid")
    result=$(load pods "$1" "$pods" "$nodes") || die "round $1: a creation failed"
    rate=$(jq .rate <<<"$result")
    converted=$(jq .converted <<<"$result")
    echo "# $1: $pods pods, $rate pods/s, $converted converted, API server $(seconds $(($(cpu_of "$cp/kube-apiserver.pid") - apiserver))) s CPU"
    began=$SECONDS
    wait_for 1800 all_run || die "round $1: pods stay pending"
    echo "# $1: all run $((SECONDS - began)) s later"
}

round without
without=$rate
ok "without the webhook no pod is converted" [ "$converted" = 0 ]

# --- with ours ---

op_start "$dir" operator "$cp" --log-level info
wh_start "$wh" "$cp" --kubeconfig "$cp/pinfold.kubeconfig" --shutdown-delay 0
wh_configure "$wh" "$cp" --failure-policy Fail
if [ -n "$agent" ]; then
    kubectl create -f - >/dev/null <<END
{apiVersion: v1, kind: Node, metadata: {name: $name, labels: {node-role.kubernetes.io/scale: ""}},
 status: {capacity: {cpu: "2", management.workload.openshift.io/cores: "2000"}, allocatable: {cpu: "2", management.workload.openshift.io/cores: "2000"}}}
END
    native_start "$dir" "$agent" || die "containerd does not start; AGENT= runs the test without the agent"
    agent_flags=(--nri-socket "$dir/nri.sock" --reconcile-interval 5)
    agent_kubeconfig "$dir/agent.kubeconfig" "$name"
    agent_up --node-name "$name" --pools-file "$dir/pools" --marker-file "$dir/marker" --kubeconfig "$dir/agent.kubeconfig"
else
    echo "# no real agent: AGENT is empty"
fi
total=$((nodes + (${#agent} > 0)))
status_field() { kubectl get performanceprofile scale -o "jsonpath={.status.nodes.$1}"; }
reported() { [ "$(status_field ready)" = "$total" ]; }
ok "the operator counts all $total nodes" wait_for 300 reported
calls_webhook() { kubectl -n load create --dry-run=server -o json -f - <<<'{apiVersion: v1, kind: Pod, metadata: {name: try, annotations:
    {target.workload.openshift.io/management: "{\"effect\":\"PreferredDuringScheduling\"}"}}, spec: {containers:
    [{name: main, image: "registry.example.com/load:1", resources: {requests: {cpu: 50m, memory: 64Mi}}}]}}' | grep -q workload.openshift.io/cores; }
ok "the webhook is called" wait_for 60 calls_webhook
webhook_cpu=$(cpu_of "$wh/webhook.pid") operator_cpu=$(cpu_of "$dir/operator.pid") requests=$(wc -l <"$dir/audit.log")
round with
with=$rate
ok "with the webhook every pod is converted" [ "$converted" = "$pods" ]
webhook_cpu=$(($(cpu_of "$wh/webhook.pid") - webhook_cpu)) operator_cpu=$(($(cpu_of "$dir/operator.pid") - operator_cpu))
requests=$(($(wc -l <"$dir/audit.log") - requests))
echo "# of ours, during these creations: webhook $(seconds $webhook_cpu) s CPU, operator $(seconds $operator_cpu) s CPU, $requests API requests"

# Once more without, because the API server slows down as the number of objects grows.
kubectl delete mutatingwebhookconfigurations,validatingwebhookconfigurations --all >/dev/null
never_called() { ! calls_webhook; }
ok "without its configuration the webhook is not called" wait_for 60 never_called
round again
ok "then no pod is converted" [ "$converted" = 0 ]
echo "# rate: $without and $rate pods/s without, $with pods/s with the webhook"

# --- a changed profile ---

began=$(date +%s%N)
profile scale node-role.kubernetes.io/scale 'reserved: "1", isolated: "0"'
generation=$(kubectl get performanceprofile scale -o 'jsonpath={.metadata.generation}')
if [ -n "$agent" ]; then
    applied() { [ "$(kubectl get np "$name" -o 'jsonpath={.status.profile.generation} {.status.cpus.management}')" = "$generation 1" ]; }
    ok "the real agent applies the changed profile" wait_for 120 applied
    echo "# the real agent reports it after $((($(date +%s%N) - began) / 1000000)) ms"
fi
echo "# in place of the other agents: $(load report 0 "$nodes" scale "$generation")"
reports_done=$(date +%s%N)
observed() { reported && [ "$(kubectl get performanceprofile scale -o 'jsonpath={.status.observedGeneration}')" = "$generation" ]; }
ok "the operator reports all nodes with the changed profile" wait_for 300 observed
echo "# the operator has counted all nodes $((($(date +%s%N) - reports_done) / 1000000)) ms after the last report, $((($(date +%s%N) - began) / 1000000)) ms after the change"

# --- what ours needed ---

echo "# peak of memory: webhook $(peak_of "$wh/webhook.pid") MiB, operator $(peak_of "$dir/operator.pid") MiB$([ -z "$agent" ] ||
    echo ", agent $(peak_of "$dir/agent.pid") MiB"); API server $(peak_of "$cp/kube-apiserver.pid") MiB"
count_log() { grep -c -- "$1" "$dir/logs/operator.log" || :; }
echo "# operator: elected $(count_log 'elected as leader') times, $(count_log 'could not renew the Lease') times late with its Lease, $(count_log 'lost the Lease') \
times replaced; lists: $(curl -sf "http://127.0.0.1:$(cat "$dir/operator.port")/metrics" | sed -n 's/^pinfold_cache_lists_total{kind="\(.*\)"} \(.*\)/\1 \2/p' | paste -sd, | sed 's/,/, /g')"
echo "# API requests of ours since the start, from the audit log:"
jq -r '"\(.user.username | sub("system:serviceaccount:pinfold(-agent)?:"; "")) \(.verb) \(.objectRef.resource // "-")\(if .objectRef.subresource then "/" + .objectRef.subresource else "" end)"' \
    "$dir/audit.log" | sort | uniq -c | sed 's/^/# /'
# The other end of scale: the command for many clusters, on this one.
fleet() { "$pinfold" fleet --kubeconfig "$cp/admin.kubeconfig" --plan "$dir/plan.yaml" -o json >"$dir/fleet.json" || [ $? = 1 ]; }
kubectl get performanceprofile scale -o yaml >"$dir/plan.yaml"
ok "pinfold fleet reads the cluster" fleet
equals "it counts all nodes" "$total" jq .nodes "$dir/fleet.json"
equals "an unchanged profile reboots none" 0 jq .planned.reboot "$dir/fleet.json"
ok "the webhook logs no error" wh_no_errors "$wh"
ok "the operator logs no error" test "$(grep -c level=error "$dir/logs/operator.log" || :)" = 0
tap_end
