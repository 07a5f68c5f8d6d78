#!/usr/bin/env bash
# `pinfold operator` against a real API server: profile status, rollout with drains and PodDisruptionBudgets, pause and
# reboots, replicas that are killed at random moments, and 1,000 nodes with 20 profiles. Nodes and NodePartitions are
# objects; tests/e2e/operator/cluster.py applies what is granted, in place of agents.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/operator.sh
. tests/e2e/lib/operator.sh

dir=$(mktemp -d)
cp=$dir/cp
kills=${OPERATOR_KILLS:-6} many=${OPERATOR_NODES:-1000}
trap 'process_stop "$dir" one; process_stop "$dir" two; process_stop "$dir" agents; cp_stop "$cp"; [ -n "${KEEP:-}" ] || rm -rf "$dir"' EXIT

cluster() { python3 tests/e2e/operator/cluster.py "$(cat "$cp/port")" "$cp/pki" "$@"; }
agents_start() { process_start "$dir" agents python3 tests/e2e/operator/cluster.py "$(cat "$cp/port")" "$cp/pki" agents "$dir/agents.log"; }

profile() { # NAME [ANNOTATION: VALUE...]
    kubectl apply -f - >/dev/null <<END
apiVersion: performance.openshift.io/v2
kind: PerformanceProfile
metadata: {name: $1, annotations: {$(IFS=,; echo "${*:2}")}}
spec: {cpu: {reserved: 0-1, isolated: 4-7}, nodeSelector: {profile: $1}}
END
}
condition() { kubectl get performanceprofile "$1" -o "jsonpath={.status.conditions[?(@.type=='$2')].status} {.status.conditions[?(@.type=='$2')].reason}"; }
condition_is() { [ "$(condition "$1" "$2")" = "$3" ]; }
message() { kubectl get performanceprofile "$1" -o "jsonpath={.status.conditions[?(@.type=='$2')].message}"; }
nodes_are() { [ "$(kubectl get performanceprofile "$1" -o 'jsonpath={.status.nodes}')" = "$2" ]; }
granted() { kubectl get nodepartition "$1" -o 'jsonpath={.spec.granted}'; }
granted_is() { [ "$(granted "$1")" = "$2" ]; }
cordoned() { kubectl get node "$1" -o 'jsonpath={.spec.unschedulable}{.metadata.annotations.pinfold\.io/rollout}'; }
cordoned_is() { [ "$(cordoned "$1")" = "$2" ]; }
nothing_waits() { [ -z "$(kubectl get nodepartitions -o 'jsonpath={.items[*].status.pending}{.items[*].spec.granted}')$(kubectl get nodes -o \
    'jsonpath={.items[*].spec.unschedulable}{.items[*].metadata.annotations.pinfold\.io/rollout}')" ]; }

pod() { # NAME NODE [CONTROLLER]: a pod that runs and is ready
    local owner="[{apiVersion: apps/v1, kind: ${3:-}, name: web, uid: 0f0f, controller: true}]"
    kubectl create -f - >/dev/null <<END
apiVersion: v1
kind: Pod
metadata: {name: $1, namespace: team, labels: {app: web}, ownerReferences: ${3:+$owner}}
spec: {nodeName: $2, terminationGracePeriodSeconds: 0, containers: [{name: main, image: "localhost/none:1"}]}
END
    kubectl -n team patch pod "$1" --subresource status --type merge -p \
        '{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}' >/dev/null
}
pods_of() { kubectl -n team get pods --field-selector "spec.nodeName=$1" -o 'jsonpath={.items[*].metadata.name}'; }
pods_are() { [ "$(pods_of "$1")" = "$2" ]; }

set_up() {
    cp_start "$cp"
    # Only what sets the status of PodDisruptionBudgets: no node here has a kubelet, and no controller owns the pods.
    cp_start_controller_manager "$cp" --controllers=disruption-controller
    op_install "$cp"
    op_account "$cp"
    cp_namespace "$cp" team >/dev/null
}

dry_run() {
    profile worker
    cluster create w 3 worker
    says "a dry run says what it would write" 'profile status worker' "$pinfold" operator --kubeconfig "$cp/operator.kubeconfig" --dry-run
    ok "a dry run writes nothing" condition_is worker Available ' '
    sed 's/127.0.0.1:[0-9]*/127.0.0.1:1/' "$cp/operator.kubeconfig" >"$cp/closed.kubeconfig"
    refused "a dry run without an API server is an error" 'refused' "$pinfold" operator --kubeconfig "$cp/closed.kubeconfig" --dry-run
}

status() {
    op_start "$dir" one "$cp"
    ok "a profile whose nodes are partitioned is available" wait_for 30 condition_is worker Available 'True AsExpected'
    ok "its nodes are counted" nodes_are worker '{"conflicting":0,"pending":0,"ready":3,"selected":3}'
    equals "the status has the profile's generation" 1 kubectl get performanceprofile worker -o 'jsonpath={.status.observedGeneration}'
    says "kubectl shows the nodes" '3       3       True' kubectl get performanceprofiles
    cluster report w1 False 1
    sleep 3
    cluster report w1 True 1
    sleep 3
    ok "a short failure does not degrade the profile" condition_is worker Degraded 'False AsExpected'
    cluster report w1 False 1
    ok "a failure that lasts does" wait_for 60 condition_is worker Degraded 'True NodesFailing'
    says "the message names the node and the reason" 'w1: ResizeRefused: CPU 4 is in use' message worker Degraded
    says "an Event tells it" 'w1: ResizeRefused' kubectl -n default get events --field-selector involvedObject.name=worker
    cluster report w1 True 1
    ok "the profile recovers at once" wait_for 10 condition_is worker Degraded 'False AsExpected'
    kubectl patch performanceprofile worker --type merge -p '{"spec":{"cpu":{"reserved":"0-2"}}}' >/dev/null
    ok "nodes with an older generation are being updated" wait_for 10 condition_is worker Progressing 'True NodesUpdating'
    for n in w0 w1 w2; do cluster report $n True 2; done
    ok "until they report the new one" wait_for 10 condition_is worker Progressing 'False AsExpected'
    kubectl apply -f - >/dev/null <<<'{apiVersion: performance.openshift.io/v2, kind: PerformanceProfile, metadata: {name: rival},
        spec: {cpu: {reserved: 0-1}, nodeSelector: {kubernetes.io/hostname: w2}}}'
    ok "two profiles that select a node conflict" wait_for 60 condition_is worker Degraded 'True ProfilesConflict'
    ok "and both say so" wait_for 30 condition_is rival Degraded 'True ProfilesConflict'
    kubectl delete performanceprofile rival >/dev/null
    ok "without the second one the conflict is gone" wait_for 10 condition_is worker Degraded 'False AsExpected'
    kubectl patch node w0 --type merge -p '{"metadata":{"labels":{"profile":"other"}}}' >/dev/null
    ok "a node that is relabelled is not counted" wait_for 10 nodes_are worker '{"conflicting":0,"pending":0,"ready":2,"selected":2}'
    kubectl patch node w0 --type merge -p '{"metadata":{"labels":{"profile":"worker"}}}' >/dev/null
}

drain() {
    pod web-1 w0 ReplicaSet
    pod daemon w0 DaemonSet
    kubectl -n team create -f - >/dev/null <<<'{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web},
        spec: {minAvailable: 2, selector: {matchLabels: {app: web}}}}'
    # Not before the controller has counted the two pods.
    budget_is() { [ "$(kubectl -n team get pdb web -o 'jsonpath={.status.currentHealthy} {.status.disruptionsAllowed}')" = "$1" ]; }
    ok "the budget allows no disruption" wait_for 60 budget_is '2 0'
    cluster pending KubeletRestart a1 w0
    ok "the node is cordoned" wait_for 20 cordoned_is w0 truecordoned
    eviction_is_refused() { [ "$(op_metric "$dir" one 'pinfold_operator_writes_total{what="eviction",result="busy"}')" -ge 1 ]; }
    ok "the eviction API refuses" wait_for 20 eviction_is_refused
    sleep 3
    ok "the pod stays" pods_are w0 'daemon web-1'
    ok "the change is not granted" granted_is w0 ''
    says "the profile says what is in the way" 'node w0 is drained: 1 pod has to leave' message worker Progressing
    pod web-2 w1 ReplicaSet
    ok "the pod leaves when the budget allows it" wait_for 30 pods_are w0 daemon
    ok "then the change is granted" wait_for 20 granted_is w0 a1
    agents_start
    ok "when it is applied, the node is released" wait_for 20 nothing_waits
    kubectl -n team delete pdb web >/dev/null
    pod bare w1
    cluster pending KubeletRestart a2 w1
    ok "a pod without a controller stops the drain" wait_for 30 eval 'message worker Progressing | grep -q "no controller and must be deleted by hand: team/bare"'
    ok "the other pods of the node have left" wait_for 20 pods_are w1 bare
    kubectl -n team delete pod bare --force >/dev/null 2>&1
    ok "when it was deleted, the rollout goes on" wait_for 30 nothing_waits
}

pause_and_reboot() {
    profile worker 'pinfold.io/paused: "true"'
    kubectl cordon w2 >/dev/null
    cluster pending KubeletRestart b1 w1 w2
    ok "a paused rollout begins nothing" wait_for 20 condition_is worker Progressing 'False RolloutPaused'
    sleep 2
    ok "no node is cordoned" cordoned_is w1 ''
    profile worker 'pinfold.io/paused: "false"'
    no_change_waits() { [ -z "$(kubectl get nodepartitions -o 'jsonpath={.items[*].status.pending}{.items[*].spec.granted}')" ]; }
    applied() { grep -q "applied.$1.$2" "$dir/agents.log"; }
    ok "the node that is unavailable anyway is changed first" wait_for 40 applied w2 b1
    ok "it stays cordoned" wait_for 20 cordoned_is w2 true
    sleep 2
    ok "as long as it is, it takes the only place" cordoned_is w1 ''
    kubectl uncordon w2 >/dev/null
    ok "then the other one follows" wait_for 40 no_change_waits
    for n in w0 w1 w2; do cluster report $n True "$(kubectl get performanceprofile worker -o 'jsonpath={.metadata.generation}')"; done
    cluster pending Reboot c1 w1
    ok "a reboot waits for others by default" wait_for 20 condition_is worker Progressing 'True RebootRequired'
    says "the nodes that wait are named" 'w1' message worker Progressing
    equals "the Node has the sentinel" c1 kubectl get node w1 -o 'jsonpath={.metadata.annotations.pinfold\.io/reboot-required}'
    ok "nothing is granted" granted_is w1 ''
    profile worker 'pinfold.io/reboot: operator'
    ok "with pinfold.io/reboot: operator it is granted like a restart" wait_for 40 nothing_waits
    ok "the sentinel is removed" wait_for 10 eval '[ -z "$(kubectl get node w1 -o "jsonpath={.metadata.annotations.pinfold\.io/reboot-required}")" ]'
}

restricted() {
    as() { kubectl --as system:serviceaccount:pinfold:pinfold-operator "$@"; }
    refused "the operator may not label a node" 'may only change its own annotations' as label node w1 x=y
    refused "nor taint it" 'may only cordon and uncordon' as taint node w1 x=y:NoSchedule
    refused "nor read Secrets" forbidden as get secrets -A
    refused "nor delete pods" forbidden as -n team delete pod web-2
    refused "nor write the status of a NodePartition" forbidden as patch nodepartition w1 --subresource status --type merge -p '{"status":{"source":"File"}}'
}

killed() {
    local nodes=() round victim
    process_stop "$dir" one
    process_stop "$dir" agents
    : >"$dir/agents.log"
    profile worker 'pinfold.io/max-unavailable: "2"'
    cluster create k 9 worker
    for n in w0 w1 w2 k{0..8}; do cluster report "$n" True "$(kubectl get performanceprofile worker -o 'jsonpath={.metadata.generation}')"; nodes+=("$n"); done
    op_start "$dir" one "$cp"
    op_start "$dir" two "$cp"
    agents_start
    cluster pending KubeletRestart d1 "${nodes[@]}"
    for round in $(seq "$kills"); do
        sleep "$((RANDOM % 3)).$((RANDOM % 10))"
        victim=$(op_leader "$dir" one two)
        [ -n "$victim" ] || continue
        op_kill "$dir" "$victim"
        [ $((round % 2)) = 0 ] || kubectl -n pinfold delete lease pinfold-operator >/dev/null # the next one need not wait
        op_start "$dir" "$victim" "$cp"
    done
    ok "a rollout ends although its leader is killed $kills times" wait_for 180 nothing_waits
    says "never were more than 2 nodes taken, and each change was applied once" 'changes applied: 12, more than once: []' \
        python3 tests/e2e/operator/cluster.py check "$dir/agents.log" 2 12
    victim=$(op_leader "$dir" one two)
    process_stop "$dir" "$victim"
    takes_over() { [ -n "$(op_leader "$dir" one two)" ]; }
    ok "after SIGTERM the other replica takes over within 5 s" wait_for 5 takes_over
    process_stop "$dir" one
    process_stop "$dir" two
    process_stop "$dir" agents
}

large() {
    local profiles=() begin seconds rss before after
    kubectl delete performanceprofile worker --ignore-not-found >/dev/null
    for i in $(seq 20); do profile "p$i"; profiles+=("p$i"); done
    cluster create m "$many" "${profiles[@]}"
    begin=$(date +%s%N)
    op_launch "$dir" one "$cp"
    all_are_counted() { [ "$(kubectl get performanceprofiles -o "jsonpath={range .items[*]}{.status.nodes.ready} {end}" | tr ' ' '\n' | grep -cx $((many / 20)))" = 20 ]; }
    ok "$many nodes and 20 profiles: every status is written" wait_for 60 all_are_counted
    seconds=$((($(date +%s%N) - begin) / 1000000))
    echo "# converged in $seconds ms from the start of the operator"
    sleep 12
    before=$(op_metric "$dir" one pinfold_operator_writes_total | paste -sd+ | bc)
    sleep 20
    after=$(op_metric "$dir" one pinfold_operator_writes_total | paste -sd+ | bc)
    rss=$(op_rss_kib "$dir" one)
    echo "# resident: $rss KiB, peak $(op_peak_kib "$dir" one) KiB; writes in 20 s of a steady state: $((after - before)); lists: $(op_metric "$dir" one pinfold_cache_lists_total | paste -sd' ')"
    echo "# reconciles: $(op_metric "$dir" one 'pinfold_operator_reconciles_total'), seconds spent: $(op_metric "$dir" one pinfold_operator_reconcile_seconds_total)"
    ok "resident memory is below 32 MiB" [ "$rss" -le 32768 ]
    ok "nothing is written in a steady state" [ $((after - before)) -le 1 ]
    process_stop "$dir" one
}

set_up
runs() { [ -z "${OPERATOR_PARTS:-}" ] || [[ " $OPERATOR_PARTS " == *" $1 "* ]]; } # for a part of the test
! runs dry_run || dry_run
! runs status || status
! runs drain || drain
! runs pause_and_reboot || pause_and_reboot
! runs restricted || restricted
! runs killed || killed
! runs large || large
tap_end
