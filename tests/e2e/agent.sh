#!/bin/bash
#
# The node agent with a real containerd (1.7 and 2.x) and runc on this machine: containers really on
# their CPUs, and staying there whatever happens to kubelet, runtime and agent. Needs root and two
# CPUs. SMOKE=1 makes the storm small. RUNTIMES="containerd" runs one of them only.

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/e2e/lib/native-runtime.sh
. "$here/lib/native-runtime.sh"
# shellcheck source=tests/e2e/lib/native-agent.sh
. "$here/lib/native-agent.sh"

storm=${STORM:-$([ -n "${SMOKE:-}" ] && echo 12 || echo 300)}

poke_cpus() { echo "$2" >"/sys/fs/cgroup/cpuset$1/cpuset.cpus" 2>/dev/null || echo "$2" >"/sys/fs/cgroup$1/cpuset.cpus"; }

agent_up() {
	agent_start --reserved 0 --nri-socket "$dir/nri.sock" --reassert 600
	wait_for 30 agent_ready || die "the agent is not ready"
}
verify_ok() { "$pinfold" verify --run-dir "$dir/run" >"$dir/verify.out" 2>&1; }

# Where containers go, read from inside and from the kernel.
test_places() {
	local id path
	native_pod "$dir" mgmt burstable/ "$target,\"resources.workload.openshift.io/c\":\"{\\\"cpushares\\\":400,\\\"cpulimit\\\":500}\"" >/dev/null
	id=$(native_container "$dir" mgmt '"cpu_shares":2,"cpu_period":100000')
	path=$(native_cgroup "$dir" "$id")
	is "management, from inside" "$(native_crictl "$dir" logs "$id")" $'Cpus_allowed_list:\t0'
	is "management, cpuset" "$(cpus_of "$path")" 0
	is "management, shares" "$(control cpu cpu.shares "$path")" 400
	is "management, quota" "$(control cpu cpu.cfs_quota_us "$path")" 50000
	is "management pod, shares" "$(control cpu cpu.shares "$(dirname "$path")")" 400
	is "pause" "$(cpus_of "$(native_cgroup "$dir" "$(cat "$dir/pod-mgmt.id")")")" 0
	mgmt=$id mgmt_path=$path

	native_pod "$dir" share burstable/ >/dev/null
	share=$(native_container "$dir" share '"cpu_shares":102,"cpu_period":100000')
	share_path=$(native_cgroup "$dir" "$share")
	is "shared, cpuset" "$(cpus_of "$share_path")" 1
	is "shared, shares" "$(control cpu cpu.shares "$share_path")" 102

	native_pod "$dir" alone "" >/dev/null
	echo 100000 2>/dev/null >"/sys/fs/cgroup/cpu/$(basename "$dir")-pods/pod-alone/cpu.cfs_quota_us"
	alone=$(native_container "$dir" alone '"cpu_shares":1024,"cpu_period":100000,"cpu_quota":100000')
	alone_path=$(native_cgroup "$dir" "$alone")
	is "exclusive, cpuset" "$(cpus_of "$alone_path")" 1
	is "exclusive, quota" "$(control cpu cpu.cfs_quota_us "$alone_path")" -1
	is "exclusive pod, quota" "$(control cpu cpu.cfs_quota_us "$(dirname "$alone_path")")" -1
	is "those who share have made room" "$(cpus_of "$share_path")" 0
	verify_ok || die "verify: $(cat "$dir/verify.out")"
}

# What a kubelet with a static CPU manager does every ten seconds, and what it does on a resize.
test_kubelet() {
	native_crictl "$dir" update --cpuset-cpus 0-1 "$mgmt" >/dev/null
	is "after a reconcile" "$(cpus_of "$mgmt_path")" 0
	native_crictl "$dir" update --cpu-share 2 "$mgmt" >/dev/null
	is "after a resize" "$(control cpu cpu.shares "$mgmt_path")" 400
	is "answered" "$(counter reasserted)" 2
}

test_refusal() {
	local words
	native_pod "$dir" second "" >/dev/null
	words=$(native_container "$dir" second '"cpu_shares":1024,"cpu_period":100000,"cpu_quota":100000' 2>&1) &&
		die "a CPU was given twice"
	case $words in
	*"pinfold: default/second, container c: not enough cpus available"*) checks=$((checks + 1)) ;;
	*) die "refusal without a reason: $words" ;;
	esac
	native_crictl "$dir" rmp -f "$(cat "$dir/pod-second.id")" >/dev/null
	"$pinfold" agent --reserved 0 --run-dir "$dir/run" --nri-socket "$dir/nri.sock" >"$dir/second.out" 2>&1 &&
		die "two agents at once"
	checks=$((checks + 1))
}

test_drift() {
	poke_cpus "$mgmt_path" 0-1
	if verify_ok; then die "verify did not see the drift"; fi
	grep -q 'mgmt .*c .*cpus .*0 .*0-1' "$dir/verify.out" || die "verify: $(cat "$dir/verify.out")"
	wait_for 10 verify_ok || die "the drift stays"
	is "repaired" "$(cpus_of "$mgmt_path")" 0
}

# What starts while nobody watches is unpinned (the control), and pinned a second after we are back.
test_absence() {
	local id path began
	agent_kill
	native_pod "$dir" lost burstable/ "$target,\"resources.workload.openshift.io/c\":\"{\\\"cpushares\\\":51}\"" >/dev/null
	id=$(native_container "$dir" lost '"cpu_shares":2,"cpu_period":100000')
	path=$(native_cgroup "$dir" "$id")
	is "control: without the agent" "$(cpus_of "$path")" 0-1
	is "who was pinned stays so" "$(cpus_of "$alone_path")" 1
	began=$(date +%s%N)
	agent_up
	wait_for 1 test "$(cpus_of "$path")" = 0 || die "still unpinned a second later"
	echo "  repaired $((($(date +%s%N) - began) / 1000000)) ms after the start" >&2
	is "repaired" "$(cpus_of "$path")" 0
	is "with its shares" "$(control cpu cpu.shares "$path")" 51
	is "exclusive CPUs are remembered" "$(cpus_of "$alone_path")" 1
	verify_ok || die "verify: $(cat "$dir/verify.out")"
}

test_runtime_restart() {
	local id
	process_stop "$dir" containerd
	wait_for 10 not_ready || die "the agent did not notice"
	native_daemon "$dir"
	wait_for 20 agent_ready || die "the agent did not come back"
	native_pod "$dir" later burstable/ "$target" >/dev/null
	id=$(native_container "$dir" later '"cpu_shares":2,"cpu_period":100000')
	is "after a restart of the runtime" "$(cpus_of "$(native_cgroup "$dir" "$id")")" 0
	verify_ok || die "verify: $(cat "$dir/verify.out")"
}
not_ready() { ! agent_ready; }

# One of the storm: mostly management, some shared, some that want a CPU of their own, which "alone" has. What
# the runtime loses by its restart is tried again, as a kubelet does.
storm_pod() {
	local class=burstable/ annotations="" resources='"cpu_shares":102,"cpu_period":100000' tries words
	case $(($1 % 10)) in
	0) class='' resources='"cpu_shares":1024,"cpu_period":100000,"cpu_quota":100000' ;;
	1 | 2 | 3) ;;
	*)
		annotations="$target,\"resources.workload.openshift.io/c\":\"{\\\"cpushares\\\":$((10 + $1))}\""
		resources='"cpu_shares":2,"cpu_period":100000' ;;
	esac
	for ((tries = 0; tries < 20; tries++)); do
		if words=$(native_pod "$dir" "storm-$1" "$class" "$annotations" >/dev/null &&
			native_container "$dir" "storm-$1" "$resources" 2>&1); then
			echo "$words" started
			return
		fi
		echo "$words"
		case $words in *'not enough cpus'*) break ;; esac
		wait_for 120 native_is_up "$dir"
		native_crictl "$dir" rmp -f "$(native_crictl "$dir" pods -q --name "^storm-$1\$")" || :
	done
	echo refused
} >"$dir/storm-$1.out" 2>&1

storm_half() {
	local i
	for ((i = $1; i < storm; i += 2)); do
		storm_pod "$i"
		: >"$dir/storm-$i.done"
	done
}
storm_reached() { [ "$(find "$dir" -maxdepth 1 -name 'storm-*.done' | wc -l)" -ge "$1" ]; }

# Cgroups of the storm with a process and more CPUs than the one that is nobody's alone.
unpinned() {
	local procs path
	find /sys/fs/cgroup/cpuset /sys/fs/cgroup -maxdepth 5 -path "*/$(basename "$dir")-pods/*pod-storm-*/*/cgroup.procs" 2>/dev/null |
		while read -r procs; do
			path=$(dirname "$procs")
			[ -z "$(cat "$procs" 2>/dev/null)" ] || [ "$(cat "$path/cpuset.cpus" 2>/dev/null || echo 0)" = 0 ] || echo "$path"
		done | sort -u
}
# A container that starts just now may be seen before its runtime has set it up; one that is seen twice is not.
nothing_unpinned() {
	local first
	sleep 1
	first=$(unpinned)
	[ -z "$first" ] || sleep 1
	[ -z "$first" ] || [ -z "$(comm -12 <(echo "$first") <(unpinned))" ] || die "$1: unpinned for a second: $first"
	checks=$((checks + 1))
}

# Two starters at once. The agent is killed without warning in the middle and comes back while they go on, and
# later the runtime is restarted under them.
test_storm() {
	local halves=() began i id state started=0 refused=0
	storm_half 0 &
	halves+=($!)
	storm_half 1 &
	halves+=($!)
	wait_for 3000 storm_reached $((storm / 2)) || die "the storm stands still"
	agent_kill
	wait_for 600 storm_reached $((storm / 2 + 4)) || die "the storm stands still"
	[ -n "$(unpinned)" ] || die "control: the agent was away, and nothing is unpinned"
	began=$(date +%s%N)
	agent_up
	echo "  ready again $((($(date +%s%N) - began) / 1000000)) ms after its start, repaired $(counter missed)" >&2
	nothing_unpinned "after the agent's death"
	wait_for 3000 storm_reached $((storm * 3 / 4)) || die "the storm stands still"
	process_stop "$dir" containerd
	native_daemon "$dir"
	wait_for 120 agent_ready || die "the agent did not come back"
	nothing_unpinned "after the runtime's restart"
	wait "${halves[@]}"

	wait_for 10 verify_ok || die "after the storm: $(cat "$dir/verify.out")"
	for ((i = 0; i < storm; i++)); do
		read -r id state < <(tail -n 1 "$dir/storm-$i.out")
		case $id$state in
		*started)
			started=$((started + 1))
			is "storm-$i" "$(cpus_of "$(native_cgroup "$dir" "$id")")" 0 ;;
		refused)
			is "only who wants a CPU is refused ($i)" $((i % 10)) 0
			refused=$((refused + 1)) ;;
		*) die "lost: storm-$i" ;;
		esac
	done
	is "nothing is lost" $((started + refused)) "$storm"
	is "whose CPU it is" "$(cpus_of "$alone_path")" 1
	echo "  $storm: $started started, $refused refused; agent $(awk '/VmRSS/ { print $2 }' "/proc/$(cut -d' ' -f1 "$dir/agent.pid")/status") kB" >&2
}

test_uninstall() {
	process_stop "$dir" agent
	"$pinfold" agent --uninstall --run-dir "$dir/run" || die "uninstall"
	is "widened" "$(cpus_of "$mgmt_path")" 0-1
}

[ "$(nproc)" -ge 2 ] || { echo "agent.sh: needs two CPUs" >&2; exit 77; }
for runtime in ${RUNTIMES:-containerd-1.7 containerd}; do
	dir=$(mktemp -d "/tmp/pinfold-agent-XXXXXX")
	# Expanded now: at the end of a failed function "dir" may be another.
	# shellcheck disable=SC2064
	trap "process_stop '$dir' agent; native_stop '$dir'" EXIT
	native_start "$dir" "$runtime"
	agent_up
	for t in ${TESTS:-places kubelet refusal drift absence runtime_restart storm uninstall}; do
		echo "$runtime: $t" >&2
		"test_$t"
	done
	native_stop "$dir"
	trap - EXIT
	rm -rf "$dir"
done
echo "agent.sh: $checks checks passed"
