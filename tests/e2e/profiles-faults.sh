#!/bin/bash
#
# The agent that follows profiles, behind a proxy (operator/proxy.py) that injects 403, 409, 410, 429, 500, 503, lost requests, lost
# responses, cut watches and closed connections: each change of a profile arrives, and the number of requests stays bounded. Then
# it is killed at each of its requests in turn, executed or not, when it starts and when a profile changes: the end is always the
# same, and every change has moved each container once. Then the API server is away, and last the requests of an idle
# node are counted. A real etcd, API server and containerd; needs root and two CPUs.
#
#	TESTS="faults killed"    these only
#	STEPS=40 AWAY=90         kills at most, and seconds without an API server

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/e2e/lib/native-runtime.sh
. "$here/lib/native-runtime.sh"
# shellcheck source=tests/e2e/lib/control-plane.sh
. "$here/lib/control-plane.sh"
# shellcheck source=tests/e2e/lib/native-agent.sh
. "$here/lib/native-agent.sh"
"$here/components/host-packages" python3-h2

deploy=$here/../../deploy
worker=node-role.kubernetes.io/worker
name="worker-0"
changes=0 # of the profile, so far
LIMIT=180

# --- state ---

want() { [ $((changes % 2)) = 0 ] && echo "0 1" || echo "1 0"; } # management, shared
# shellcheck disable=SC2317  # called by name, as most of the following
kernel() { echo "$(cpus_of "$management") $(cpus_of "$shared")"; }
# What the kernel has, what the NodePartition says, and whether the generation is the profile's.
# shellcheck disable=SC2317
state() {
	echo "$(kernel) $(kubectl get np "$name" -o 'jsonpath={.status.cpus.management} {.status.cpus.guaranteed} {.status.conditions[?(@.type=="Ready")].status} {.status.profile.generation}')"
}
final() { echo "$(want) $(want) True $((changes + 1))"; }
change() {
	changes=$((changes + 1))
	profile worker "$worker" "$(want | sed 's/\(.*\) \(.*\)/reserved: "\1", isolated: "\2"/')"
}
cpuset_dir() { if [ -d "/sys/fs/cgroup/cpuset$1" ]; then echo "/sys/fs/cgroup/cpuset$1"; else echo "/sys/fs/cgroup$1"; fi; }
requests() { wc -l <"$dir/requests.log"; }
# Every CPU list that one of the containers has had, one line each.
moves() { [ ! -e "$dir/moves" ] || wc -l <"$dir/moves"; }

# --- set-up ---

proxy_start() {
	# Debian's interpreter: the module is its package.
	process_start "$dir" proxy /usr/bin/python3 "$here/operator/proxy.py" "$(cat "$dir/proxy-port")" "$(cat "$dir/port")" "$dir/pki" "$dir"
}
agent_begin() { agent_start --node-name "$name" --pools-file "$dir/pools" --marker-file "$dir/marker" --kubeconfig "$dir/agent.kubeconfig"; }
agent_pid() { cut -d' ' -f1 "$dir/agent.pid"; }
agent_anonymous() { awk '/RssAnon/ { print $2 }' "/proc/$(agent_pid)/status"; }

set_up() {
	cp_start "$dir"
	native_start "$dir" "${RUNTIME:-containerd}"
	agent_flags=(--nri-socket "$dir/nri.sock")
	kubectl apply -f "$deploy/base/crd-performanceprofiles.yaml" -f "$deploy/base/crd-nodepartitions.yaml" \
		-f "$deploy/base/policy-nodepartitions.yaml" -f "$deploy/agent/namespace.yaml" -f "$deploy/agent/rbac.yaml" \
		-f "$deploy/agent/policy.yaml" -f "$deploy/agent/node-rbac.yaml" >/dev/null
	kubectl wait --for condition=Established crd --all --timeout 60s >/dev/null
	kubectl create -f - >/dev/null <<<"{apiVersion: v1, kind: Node, metadata: {name: $name, labels: {$worker: \"\"}}}"
	kubectl patch node "$name" --subresource status --type merge -p '{"status":{"capacity":{"cpu":"2"},"allocatable":{"cpu":"2"}}}' >/dev/null
	kubectl annotate namespace default workload.openshift.io/allowed=management >/dev/null
	free_port >"$dir/proxy-port"
	: >"$dir/requests.log"
	echo 0 >"$dir/faults"
	proxy_start
	agent_kubeconfig "$dir/agent.kubeconfig" "$name"
	sed -i "s/127.0.0.1:[0-9]*/127.0.0.1:$(cat "$dir/proxy-port")/" "$dir/agent.kubeconfig"
	profile worker "$worker" 'reserved: "0", isolated: "1"'
	agent_begin
	wait_ready "$dir" agent 60 agent_ready || die "the agent is not ready"
	soon "the permission is known" 1 agent_status .cluster.allowedNamespaces
	native_pod "$dir" m burstable/ "$target,\"resources.workload.openshift.io/c\":\"{\\\"cpushares\\\":51}\"" >/dev/null
	management=$(native_cgroup "$dir" "$(native_container "$dir" m '"cpu_shares":2,"cpu_period":100000')")
	native_pod "$dir" s burstable/ >/dev/null
	shared=$(native_cgroup "$dir" "$(native_container "$dir" s '"cpu_shares":102,"cpu_period":100000')")
	soon "the first profile" "$(final)" state
	process_start "$dir" watcher python3 "$here/operator/watch-cpus.py" "$dir/moves" "$(cpuset_dir "$management")" "$(cpuset_dir "$shared")"
	wait_for 180 test -e "$dir/moves" || die "the containers are not watched"
}

# --- tests ---

test_faults() {
	local i before fault n
	echo 0.3 >"$dir/faults"
	for i in 1 2 3 4 5 6; do
		change
		soon "change $i while 3 of 10 requests fail" "$(final)" state
	done
	echo "  requests: $(requests), of these failed: $(grep -vc -e '-$' "$dir/requests.log")" >&2
	# What is still missing of the faults happens to agents that start: there are few requests otherwise.
	for ((i = 0; i < 20; i++)); do
		all_happened && break
		agent_down
		agent_begin
		change
		soon "a change for a new agent while 3 of 10 requests fail" "$(final)" state
	done
	all_happened || die "not every fault has happened: $(awk '{ print $NF }' "$dir/requests.log" | sort | uniq -c)"
	checks=$((checks + 1))
	for fault in 403 409 410 429 503 lost cut closed; do
		echo "1 $fault" >"$dir/faults"
		before=$(requests)
		change
		sleep 15
		n=$(($(requests) - before))
		echo "  $n requests in 15 s with $fault only" >&2
		[ "$n" -lt 120 ] || die "a hot loop: $n requests with $fault only"
		echo 0 >"$dir/faults"
		soon "the change afterwards" "$(final)" state
	done
	moved_once
}
all_happened() {
	local fault
	for fault in 403 409 410 429 500 503 lost unanswered cut closed; do
		grep -q " $fault\$" "$dir/requests.log" || return 1
	done
}
moved_once() {
	sleep 0.1 # the watcher's interval
	is "how often containers were moved in $changes changes" "$(moves)" $((2 * changes))
}

# The agent was killed, or has applied the change.
killed_or_final() { process_gone "$dir" agent || [ "$(state)" = "$(final)" ]; }

# One change of the profile, by an agent that is killed at its Nth request and one that is not.
round() { # N start|running
	local is_killed=1
	if [ "$2" = start ]; then
		agent_down
		change
		agent_begin
		echo "$1 $(agent_pid)" >"$dir/kill"
	else
		echo "$1 $(agent_pid)" >"$dir/kill"
		change
	fi
	wait_for "$LIMIT" killed_or_final || die "request $1, $2: got '$(state)', want '$(final)'"
	echo "0 0" >"$dir/kill"
	sleep 0.5 # a request that is under way still counts
	process_gone "$dir" agent || is_killed=
	if [ -n "$is_killed" ]; then
		wait "$(agent_pid)" 2>/dev/null || :
		rm -f "$dir/agent.pid"
		agent_begin
	fi
	wait_for "$LIMIT" eval '[ "$(state)" = "$(final)" ]' || die "after a kill at request $1, $2: got '$(state)', want '$(final)'"
	wait_ready "$dir" agent 60 agent_ready || die "the agent is not ready"
	checks=$((checks + 1))
	[ -n "$is_killed" ]
}
test_killed() {
	local n when
	for when in start running; do
		for ((n = 1; n <= ${STEPS:-40}; n++)); do
			round "$n" $when || break
		done
		echo "  killed at each of $((n - 1)) requests ($when)" >&2
		[ "$n" -gt 1 ] || die "the agent was never killed"
	done
	moved_once
}

# However long it is away: the agent tries again at an interval that does not grow without an end, and nothing depends on the time.
# It is restarted in the middle. With AWAY=3600 its token has expired when the API server is back, and is renewed after that, as
# a kubelet does.
test_offline() {
	local seconds=${AWAY:-90} since
	process_stop "$dir" proxy
	change # not seen before the end
	process_stop "$dir" kube-apiserver
	changes=$((changes - 1))
	away $((seconds / 2))
	agent_down
	agent_begin
	wait_ready "$dir" agent 60 agent_ready || die "the agent is not ready without an API server"
	is "CPUs after a restart without an API server" "$(kernel)" "$(want)"
	away $((seconds - seconds / 2))
	changes=$((changes + 1))
	cp_start_apiserver "$dir"
	proxy_start
	since=$SECONDS
	sleep 15
	kubectl create token pinfold-agent -n pinfold-agent --bound-object-kind Node --bound-object-name "$name" >"$dir/agent.kubeconfig.token"
	soon "the change when the API server is back" "$(final)" state
	echo "  converged $((SECONDS - since)) s after the API server was back, 15 s of these without a new token" >&2
	soon "the connection" true agent_status .cluster.connected
	moved_once
}
# Some time without an API server: what the node does, what the agent says, and how often it tries and logs.
away() { # SECONDS
	local requests lines anonymous
	soon "the connection without an API server" false agent_status .cluster.connected
	requests=$(counter cluster_failures) lines=$(wc -l <"$dir/logs/agent.log") anonymous=$(agent_anonymous)
	sleep "$1"
	requests=$(($(counter cluster_failures) - requests)) lines=$(($(wc -l <"$dir/logs/agent.log") - lines))
	echo "  $requests failed requests and $lines lines of log in $1 s without an API server, agent $(agent_rss) kB, anonymous $anonymous and then $(agent_anonymous) kB" >&2
	[ "$(agent_anonymous)" -le $((anonymous + 1024)) ] || die "the agent's memory grows without an API server"
	[ "$requests" -ge 1 ] || die "the agent does not try again"
	# Five watches and two writers, each at most every 5 s after the first tries.
	[ "$requests" -le $((30 + 2 * $1)) ] || die "more than two attempts a second"
	[ "$lines" -le $((10 + $1 / 30)) ] || die "more than one line of log in 30 s: $(tail -n 20 "$dir/logs/agent.log")"
	is "CPUs without an API server" "$(kernel)" "$(want)"
	prints "status without an API server" "Node $name: the API server is unreachable, pinning continues" eval '"$pinfold" status --run-dir "$dir/run" | grep "^Node"'
	prints "the profile in force" "pools from profile worker, generation $((changes + 1))" eval '"$pinfold" status --run-dir "$dir/run" | grep "^pools from"'
}

test_idle() {
	local before seconds=120
	agent_down
	agent_begin
	soon "an agent that was started anew" "$(final)" state
	sleep 30 # what follows a start
	before=$(requests)
	sleep $seconds
	echo "  requests of an idle node in $seconds s: $(($(requests) - before)):$(tail -n +$((before + 1)) "$dir/requests.log" | awk '{ sub(/\?.*/, "", $3); print " " $2 " " $3 }' | sort | uniq -c | tr '\n' ';')" >&2
	[ $(($(requests) - before)) -le 6 ] || die "an idle node makes $(($(requests) - before)) requests in $seconds s"
	echo "  agent $(agent_rss) kB" >&2
	[ "$(agent_rss)" -le 6144 ] || die "the agent has $(agent_rss) kB"
	checks=$((checks + 2))
}

[ "$(nproc)" -ge 2 ] || { echo "profiles-faults.sh: needs two CPUs" >&2; exit 77; }
dir=$(mktemp -d "/tmp/pinfold-profiles-faults-XXXXXX")
# shellcheck disable=SC2034  # read by the libraries
cp=$dir
trap 'process_stop "$dir" watcher; process_stop "$dir" agent; process_stop "$dir" proxy; native_stop "$dir"; cp_stop "$dir"; [ -n "${KEEP:-}" ] || rm -rf "$dir"' EXIT
set_up
for t in ${TESTS:-faults killed offline idle}; do
	echo "$t ($SECONDS s)" >&2
	"test_$t"
done
echo "profiles-faults.sh: $checks checks passed in $SECONDS s"
