#!/usr/bin/env bash
# `pinfold operator` behind a proxy that injects 403, 409, 410, 429, 500, 503, lost requests, lost responses, cut watches and
# closed connections: it converges, and the number of its requests stays bounded. Then every request takes seconds, so that the Lease is renewed
# late: nothing is read again. Then it is killed at each of its requests in
# turn, executed or not: the end is always the same, and no more nodes are taken than allowed. Then its C library calls fail, one
# at a time (tests/fault): it goes on, or ends with a message, and an operator without faults finishes the rollout. Last, leaks: the
# memory of a confined operator over many rollouts, and what LeakSanitizer finds in one that is not confined (make asan).
#
#	OPERATOR_PARTS="faults slow killed calls leaks"    only these
#	OPERATOR_STEPS=60, OPERATOR_FAULTS=4          kills, and failing calls of each kind
#	OPERATOR_ROLLOUTS=20                          rollouts of six nodes in which memory must not grow
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/operator.sh
. tests/e2e/lib/operator.sh
tests/e2e/components/host-packages python3-h2

dir=$(mktemp -d)
cp=$dir/cp
steps=${OPERATOR_STEPS:-60}
n_faults=${OPERATOR_FAULTS:-4}
rounds=0
trap 'process_stop "$dir" one; process_stop "$dir" agents; process_stop "$dir" proxy; cp_stop "$cp"; [ -n "${KEEP:-}" ] || rm -rf "$dir"' EXIT

cluster() { python3 tests/e2e/operator/cluster.py "$(cat "$cp/port")" "$cp/pki" "$@"; }
requests() { wc -l <"$dir/requests.log"; }
# Requests for the Lease and for watches are made all the time.
decided_requests() { grep -vc -e /leases -e '?limit=' -e 'watch=1' "$dir/requests.log"; }
times_late() { grep -c 'could not renew the Lease in time' "$dir/logs/one.log" || :; }
later_than() { [ "$(times_late)" -gt "$1" ]; }
lists_of_nodes() { grep -c ' /api/v1/nodes?limit=' "$dir/requests.log"; }
nothing_waits() { [ -z "$(kubectl get nodepartitions -o 'jsonpath={.items[*].status.pending}{.items[*].spec.granted}')$(kubectl get nodes -o \
    'jsonpath={.items[*].spec.unschedulable}{.items[*].metadata.annotations.pinfold\.io/rollout}')" ]; }
status_is_final() { [ "$(kubectl get performanceprofile worker -o 'jsonpath={.status.nodes} {.status.conditions[*].status}')" = \
    '{"conflicting":0,"pending":0,"ready":6,"selected":6} True False False True' ]; }
is_final() { nothing_waits && status_is_final; }

set_up() {
    cp_start "$cp"
    op_install "$cp"
    free_port >"$dir/proxy-port"
    op_account "$cp" "$(cat "$dir/proxy-port")"
    cp_namespace "$cp" team >/dev/null
    : >"$dir/requests.log"
    # Debian's interpreter: the module is its package.
    process_start "$dir" proxy /usr/bin/python3 tests/e2e/operator/proxy.py "$(cat "$dir/proxy-port")" "$(cat "$cp/port")" "$cp/pki" "$dir"
    process_start "$dir" agents python3 tests/e2e/operator/cluster.py "$(cat "$cp/port")" "$cp/pki" agents "$dir/agents.log"
    kubectl apply -f - >/dev/null <<<'{apiVersion: performance.openshift.io/v2, kind: PerformanceProfile, metadata: {name: worker,
        annotations: {pinfold.io/max-unavailable: "2"}}, spec: {cpu: {reserved: 0-1}, nodeSelector: {profile: worker}}}'
    cluster create w 6 worker
}

faults() {
    local before seconds=20
    echo "0.3" >"$dir/faults"
    op_launch "$dir" one "$cp"
    cluster pending KubeletRestart f1 w{0..5}
    ok "a rollout ends while 3 of 10 requests fail" wait_for 240 nothing_waits
    echo "0" >"$dir/faults"
    ok "the status is right when they succeed again" wait_for 60 status_is_final
    says "never were more than 2 nodes taken, and each change was applied once" 'changes applied: 6, more than once: []' \
        python3 tests/e2e/operator/cluster.py check "$dir/agents.log" 2 6
    echo "# requests: $(requests), of these failed: $(grep -vc -e '-$' "$dir/requests.log"), without Lease and watches: $(decided_requests)"
    # A watch that the server ends is resumed, and one that is too old is listed again.
    ok "every injected fault has happened" eval 'for f in 403 409 410 429 500 503 lost unanswered cut closed; do grep -q " $f\$" "$dir/requests.log" || exit 1; done'
    cluster pending RuntimeRestart f2 w{0..5}
    for fault in 403 409 429 503 lost cut; do
        echo "1 $fault leases" >"$dir/faults" # it stays the leader
        before=$(requests)
        sleep "$seconds"
        echo "# with $fault only: $(($(requests) - before)) requests in $seconds s"
        ok "there is no hot loop when every request fails with $fault" [ $(($(requests) - before)) -lt 250 ]
    done
    echo "0" >"$dir/faults"
    ok "the operator goes on when the API server is back" wait_for 180 is_final
}

# An API server under load. To list all nodes again whenever the Lease was late would add to it.
slow() {
    local lists late
    process_alive "$dir" one || op_launch "$dir" one "$cp"
    ok "the operator is ready" wait_for 120 op_is_ready "$dir" one
    lists=$(lists_of_nodes)
    cluster pending KubeletRestart 51 w{0..5}
    echo 3 >"$dir/slow"
    sleep 45
    equals "with requests of 3 s nothing is read again" "$lists" lists_of_nodes
    echo 12 >"$dir/slow" # longer than the leader may act without a renewal
    late=$(times_late)
    ok "with requests of 12 s the operator is late" wait_for 120 later_than "$late"
    rm "$dir/slow"
    ok "it goes on when the API server is fast again" wait_for 180 is_final
    equals "nothing was read again" "$lists" lists_of_nodes
    echo "# lists of nodes: $(lists_of_nodes), requests for the Lease: $(grep -c /leases "$dir/requests.log")"
}

# Each round is one rollout of two nodes, by an operator that is killed at its Nth request and one that is not, until N is more
# than a rollout needs.
killed() {
    local n pid is_killed
    process_stop "$dir" one
    : >"$dir/agents.log"
    kubectl annotate performanceprofile worker pinfold.io/max-unavailable=1 --overwrite >/dev/null
    for n in $(seq 1 "$steps"); do
        kubectl -n pinfold delete lease pinfold-operator --ignore-not-found >/dev/null # of a process that is gone
        cluster pending "$([ $((n % 3)) = 0 ] && echo RuntimeRestart || echo KubeletRestart)" "$(printf '%x' $((0xa000 + n)))" w0 w1
        op_launch "$dir" one "$cp"
        read -r pid _ <"$dir/one.pid"
        echo "$n $pid" >"$dir/kill"
        wait_for 60 eval 'process_gone "$dir" one || is_final' || :
        is_killed=1
        process_gone "$dir" one || is_killed=
        echo "0 0" >"$dir/kill"
        [ -n "$is_killed" ] || op_kill "$dir" one
        kubectl -n pinfold delete lease pinfold-operator --ignore-not-found >/dev/null
        op_launch "$dir" one "$cp"
        wait_for 120 is_final || tap_result 1 "after a kill at request $n the end is the same" "$(kubectl get nodes,nodepartitions -o yaml | tail -80)"
        op_kill "$dir" one
        rounds=$n
        [ -n "$is_killed" ] || break
    done
    ok "an operator killed at each of its first $rounds requests leaves nothing undone" [ "$rounds" -gt 10 ]
    says "never was more than one node taken, and each change was applied once" "changes applied: $((2 * rounds)), more than once: []" \
        python3 tests/e2e/operator/cluster.py check "$dir/agents.log" 1 $((2 * rounds))
}

# call_fails SENTENCE FAULT: one rollout of two nodes by an operator with a failing call, and another without.
call_fails() {
    local pid status=0 lines problem=
    rounds=$((rounds + 1))
    lines=$([ ! -e "$dir/logs/one.log" ] || wc -l <"$dir/logs/one.log")
    rm -f "$dir/count"
    kubectl -n pinfold delete lease pinfold-operator --ignore-not-found >/dev/null
    cluster pending RuntimeRestart "$(printf '%x' $((0xb000 + rounds)))" w0 w1
    # shellcheck disable=SC2034  # read by operator.sh
    op_environment=("LD_PRELOAD=$library" "PINFOLD_FAULT=$2" "PINFOLD_FAULT_COUNT=$dir/count")
    op_launch "$dir" one "$cp"
    # shellcheck disable=SC2034
    op_environment=()
    read -r pid _ <"$dir/one.pid"
    wait_for 120 eval 'process_gone "$dir" one || is_final' || :
    kill -TERM "$pid" 2>/dev/null || :
    wait "$pid" || status=$?
    kubectl -n pinfold delete lease pinfold-operator --ignore-not-found >/dev/null
    tail -n "+$((lines + 1))" "$dir/logs/one.log" >"$dir/fault.log"
    case $status:$2 in
    0:* | 134:malloc\ *) ;; # 134: SIGABRT, which only a failing malloc() may cause (D21)
    1:* | 2:*) grep -vq -e level=info -e level=warning "$dir/fault.log" || problem="it ended without a message" ;;
    *) problem="exit status $status" ;;
    esac
    op_launch "$dir" one "$cp"
    wait_for 180 is_final || problem+="; the next operator does not finish the rollout"
    op_kill "$dir" one
    tap_result "$([ -z "$problem" ] && echo 0 || echo 1)" "$1" "$problem
$(tail -n 20 "$dir/fault.log")"
}

calls() {
    local call error at count
    process_stop "$dir" one
    : >"$dir/agents.log"
    rounds=0
    ninja -C build --quiet tests/fault/libfault.so >/dev/null
    library=$PWD/build/tests/fault/libfault.so
    kubectl annotate performanceprofile worker pinfold.io/max-unavailable=1 --overwrite >/dev/null
    while read -r call error; do
        call_fails "calls of $call are counted" "$call 1000000000 $error"
        count=$(od -An -tu8 -N8 "$dir/count" | tr -d ' ')
        ok "the operator has $count calls of $call" [ "$count" -gt 0 ]
        for at in $(shuf -i "1-$count" -n "$n_faults" --random-source=<(yes "$call") | sort -n); do
            call_fails "$call $at of $count fails with $error" "$call $at $error"
        done
    done <<<"read EIO
write EIO
open EMFILE
connect ECONNREFUSED
socket EMFILE
malloc ENOMEM"
    for call in read write connect; do
        call_fails "every third $call is interrupted" "$call %3 EINTR"
    done
    says "never was more than one node taken, and each change was applied once" "changes applied: $((2 * rounds)), more than once: []" \
        python3 tests/e2e/operator/cluster.py check "$dir/agents.log" 1 $((2 * rounds))
}

# rollouts COUNT: changes of all nodes and of the profile, one after the other.
rollouts() {
    local i
    for ((i = 0; i < $1; i++)); do
        rounds=$((rounds + 1))
        kubectl annotate performanceprofile worker pinfold.io/max-unavailable=$((3 + rounds % 3)) --overwrite >/dev/null
        cluster pending RuntimeRestart "$(printf '%x' $((0xc000 + rounds)))" w{0..5}
        wait_for 240 is_final || tap_result 1 "rollout $rounds ends" "$(tail -n 20 "$dir/logs/one.log")"
    done
}
resident_kb() { awk '/^VmRSS/ { print $2 }' "/proc/$(cut -d' ' -f1 "$dir/one.pid")/status"; }
reconciles() { op_metric "$dir" one 'pinfold_operator_reconciles_total '; }
# The exit status of an operator that is asked to end.
ended() {
    local pid status=0
    read -r pid _ <"$dir/one.pid"
    kill -TERM "$pid"
    wait "$pid" || status=$?
    rm -f "$dir/one.pid"
    echo "$status" >"$dir/status"
    kubectl -n pinfold delete lease pinfold-operator --ignore-not-found >/dev/null
}

# LeakSanitizer stops the process with ptrace() at its end, which the system call filter refuses.
leaks() {
    local before at release=$pinfold
    process_stop "$dir" one
    rounds=0
    op_launch "$dir" one "$cp"
    rollouts 5
    before=$(resident_kb) at=$(reconciles)
    rollouts "${OPERATOR_ROLLOUTS:-20}"
    echo "# confined: $before kB, after $(($(reconciles) - at)) further reconciles $(resident_kb) kB"
    ok "there were enough of them" [ $(($(reconciles) - at)) -ge $((10 * ${OPERATOR_ROLLOUTS:-20})) ]
    ok "the memory of a confined operator does not grow" [ "$(resident_kb)" -le $((before + 512)) ]
    ended
    make -s asan >&2
    pinfold=$PWD/build-asan/pinfold
    # The control: the check is made, and is what confinement prevents.
    op_launch "$dir" one "$cp"
    rollouts 1
    ended
    ok "a confined operator with sanitizers cannot be checked for leaks" grep -q "LeakSanitizer has encountered a fatal error" "$dir/logs/one.log"
    : >"$dir/logs/one.log"
    op_launch "$dir" one "$cp" --no-confinement
    rollouts 3
    echo 0.3 >"$dir/faults"
    rollouts 2
    echo 0 >"$dir/faults"
    ended
    equals "an operator without confinement ends without leaks" 0 cat "$dir/status"
    ok "no sanitizer has reported anything" eval '! grep -n -e Sanitizer -e "runtime error" "$dir/logs/one.log"'
    pinfold=$release
}

set_up
for part in ${OPERATOR_PARTS:-faults slow killed calls leaks}; do
    "$part"
done
tap_end
