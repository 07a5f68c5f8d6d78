#!/usr/bin/env bash
# What one agent costs the API server, at its start and per hour, and the sum of NODES (5000) agents: requests (by the audit log) and bytes (by
# the kernel, on its connections), in a cluster of NAMESPACES (10000) of which one in twenty allows a workload type. Without the
# operator the agent watches the metadata of namespaces; with it, the digest of permissions. For comparison: the list of
# whole namespaces, as a client that keeps all of them gets it. A namespace changes every CHANGE_SECONDS (2) during WINDOW_SECONDS (600).
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/webhook.sh
. tests/e2e/lib/webhook.sh
# shellcheck source=tests/e2e/lib/operator.sh
. tests/e2e/lib/operator.sh

namespaces=${NAMESPACES:-10000} nodes=${NODES:-5000} window=${WINDOW_SECONDS:-600} change=${CHANGE_SECONDS:-2}
want=$((namespaces / 20))
dir=$(mktemp -d)
cp=$dir/cp
trap 'process_stop "$dir" agent; process_stop "$dir" operator; cp_stop "$cp"; rm -rf "$dir"' EXIT

command -v go >/dev/null || [ -d "${XDG_CACHE_HOME:-$HOME/.cache}/pinfold/components/kubernetes-1.37.0" ] || {
    echo "bench agents: skipped, no Go to build an API server"
    exit 0
}
cat >"$dir/audit.yaml" <<'END'
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [ResponseStarted]
rules: [{level: None, userGroups: ["system:masters"]}, {level: Metadata}]
END
# shellcheck disable=SC2034 # for cp_start
CP_APISERVER_FLAGS=(--audit-policy-file "$dir/audit.yaml" --audit-log-path "$dir/audit.log" --audit-log-mode blocking)
cp_start "$cp"
op_install "$cp"
kubectl create namespace pinfold-agent >/dev/null
kubectl apply -f deploy/agent/rbac.yaml -f deploy/agent/flow-control.yaml >/dev/null
kubectl create -f - >/dev/null <<<'{apiVersion: v1, kind: Node, metadata: {name: node}, status: {capacity: {cpu: "8"}, allocatable: {cpu: "8"}}}'
python3 tests/bench/webhook/namespaces.py "$(cat "$cp/port")" "$cp/pki" "$namespaces"
op_account "$cp"
sed "/^users:/,\$d" "$cp/admin.kubeconfig" >"$dir/agent.kubeconfig"
printf 'users: [{name: it, user: {token: %s}}]\ncontexts: [{name: test, context: {cluster: test, user: it}}]\n' \
    "$(kubectl -n pinfold-agent create token pinfold-agent --duration 3h --bound-object-kind Node --bound-object-name node)" >>"$dir/agent.kubeconfig"

agent_pid() { cut -d' ' -f1 "$dir/agent.pid"; }
agent_knows() { [ "$(curl -sf --unix-socket "$dir/run/agent.sock" http://agent/status | jq -r '.cluster.permissionsFrom + " " + (.cluster.allowedNamespaces | tostring)')" = "$1" ]; }
requests() { jq -s '[.[] | select(.userAgent | startswith("pinfold-agent")) | select(.stage == "RequestReceived")] | length' "$dir/audit.log"; }
bytes() { # received and sent
    ss -tinHp state established | grep -A1 "pid=$(agent_pid)," | grep -oE 'bytes_(received|sent):[0-9]+' | awk -F: '{ n += $2 } END { print n + 0 }'
}
churn() { # a change of a namespace every few seconds, by an administrator
    local end=$((SECONDS + window)) n=0
    while [ $SECONDS -lt $end ]; do
        kubectl label --overwrite namespace "tenant-$((n % 50 + 1))" "n=$n" >/dev/null
        n=$((n + 1))
        sleep "$change"
    done
}
measure() { # NAME KNOWS: a line "name requests bytes requests bytes", at start and in the window
    local start_requests start_bytes
    process_stop "$dir" agent
    rm -rf "$dir/run"
    : >"$dir/audit.log"
    process_start "$dir" agent "$pinfold" agent --run-dir "$dir/run" --kubelet-state /nonexistent --management 0 --nri-socket "$dir/no-runtime" \
        --node-name node --kubeconfig "$dir/agent.kubeconfig"
    wait_for 120 agent_knows "$2" || die "the agent does not know the namespaces ($1)"
    sleep 10 # the Node and the NodePartition are written
    start_requests=$(requests) start_bytes=$(bytes)
    churn
    echo "$1 $start_requests $start_bytes $(($(requests) - start_requests)) $(($(bytes) - start_bytes))" >>"$dir/results"
}
measure "namespaces" "Namespaces $want"
op_start "$dir" operator "$cp"
has_digest() { [ "$(kubectl -n kube-system get configmap pinfold-permissions -o json 2>/dev/null | jq -r .data.management | grep -c .)" = "$want" ]; }
wait_for 60 has_digest || die "no digest"
measure "digest" "Digest $want"
whole=$(curl -s --cacert "$cp/pki/ca.crt" --cert "$cp/pki/admin.crt" --key "$cp/pki/admin.key" "https://127.0.0.1:$(cat "$cp/port")/api/v1/namespaces" | wc -c)

awk -v n="$nodes" -v namespaces="$namespaces" -v window="$window" -v whole="$whole" '
    function mb(b) { return sprintf("%.2f MB", b / 1e6) }
    BEGIN {
        printf "agents: %d namespaces, one change of a namespace every '"$change"' s, %d s scaled to an hour\n", namespaces, window
        printf "%-34s%12s%12s%16s%16s\n", "one agent", "requests", "bytes", "requests/hour", "bytes/hour"
        printf "%-34s%12s%12s\n", "a list of whole namespaces alone", 1, mb(whole)
    }
    {
        name = $1 == "digest" ? "with the digest" : "metadata of namespaces"
        printf "%-34s%12d%12s%16.0f%16s\n", name, $2, mb($3), $4 * 3600 / window, mb($5 * 3600 / window)
        sum[name] = sprintf("%-34s%12d%12s%16.0f%16s", name, $2 * n, sprintf("%.2f GB", $3 * n / 1e9), $4 * n * 3600 / window, sprintf("%.2f GB", $5 * n * 3600 / window / 1e9))
        order[++k] = name
    }
    END {
        printf "%d agents\n%-34s%12d%12s\n", n, "a list of whole namespaces alone", n, sprintf("%.2f GB", whole * n / 1e9)
        for (i = 1; i <= k; i++) print sum[order[i]]
    }' "$dir/results"
