#!/bin/bash
#
# The node agent with a real containerd (1.7 and 2.x) and runc on this machine: containers really on
# their CPUs, and staying there whatever happens to kubelet, runtime and agent. Needs root and two
# CPUs. SMOKE=1 makes the storm small. RUNTIMES="containerd" runs one of them only.

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/e2e/lib/native-runtime.sh
. "$here/lib/native-runtime.sh"

pinfold=${PINFOLD:-$here/../../build/pinfold}
storm=${STORM:-$([ -n "${SMOKE:-}" ] && echo 12 || echo 300)}
target='"target.workload.openshift.io/management":"{\"effect\":\"PreferredDuringScheduling\"}"'
checks=0

die() {
	echo "FAIL: $*" >&2
	tail -n 15 "$dir/logs/agent.log" >&2 || :
	if ! process_alive "$dir" agent && [ -e "$dir/agent.pid" ]; then
		wait "$(cut -d' ' -f1 "$dir/agent.pid")" || echo "the agent ended with status $?" >&2
	fi
	exit 1
}

# is WHAT GOT WANT
is() {
	[ "$2" = "$3" ] || die "$1: got '$2', want '$3'"
	checks=$((checks + 1))
}

# A control file of a cgroup, on either version of them.
control() { # CONTROLLER FILE PATH
	if [ -e "/sys/fs/cgroup/$1$3/$2" ]; then cat "/sys/fs/cgroup/$1$3/$2"; else cat "/sys/fs/cgroup$3/$2"; fi
}
cpus_of() { control cpuset cpuset.cpus "$1"; }
poke_cpus() { echo "$2" >"/sys/fs/cgroup/cpuset$1/cpuset.cpus" 2>/dev/null || echo "$2" >"/sys/fs/cgroup$1/cpuset.cpus"; }

agent_up() {
	process_start "$dir" agent "$pinfold" agent --reserved 0 --run-dir "$dir/run" --nri-socket "$dir/nri.sock" \
		--reassert 2 --kubelet-state /nonexistent
	wait_for 30 agent_ready || die "the agent is not ready"
}
agent_ready() { curl -sf --unix-socket "$dir/run/agent.sock" http://agent/readyz >/dev/null; }
agent_kill() {
	local pid
	read -r pid _ <"$dir/agent.pid"
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null || :
	rm -f "$dir/agent.pid"
}
verify_ok() { "$pinfold" verify --run-dir "$dir/run" >"$dir/verify.out" 2>&1; }
counter() {
	curl -sf --unix-socket "$dir/run/agent.sock" http://agent/metrics | awk -v name="pinfold_$1_total" '$1 == name { print $2 }'
}

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

storm_pod() {
	native_pod "$dir" "storm-$1" burstable/ "$target,\"resources.workload.openshift.io/c\":\"{\\\"cpushares\\\":$((10 + $1))}\"" &&
		native_container "$dir" "storm-$1" '"cpu_shares":2,"cpu_period":100000'
} >"$dir/storm-$1.out" 2>&1

# Two starters at once, the agent killed without warning in the middle, back a moment later.
test_storm() {
	local i n=0 middle=$((storm / 2 & ~1))
	for ((i = 0; i < storm; i += 2)); do
		storm_pod "$i" &
		storm_pod "$((i + 1))"
		wait $!
		[ "$i" -ne "$middle" ] || agent_kill
		[ "$i" -ne $((middle + 4)) ] || agent_up
	done
	wait_for 2 verify_ok || die "after the storm: $(cat "$dir/verify.out")"
	for ((i = 0; i < storm; i++)); do
		is "storm-$i" "$(cpus_of "/$(basename "$dir")-pods/burstable/pod-storm-$i/$(tail -n 1 "$dir/storm-$i.out")")" 0
		n=$((n + 1))
	done
	is "all started" "$n" "$storm"
	echo "  $storm containers; missed and repaired $(counter missed); agent $(awk '/VmRSS/ { print $2 }' "/proc/$(cut -d' ' -f1 "$dir/agent.pid")/status") kB" >&2
}

test_uninstall() {
	process_stop "$dir" agent
	"$pinfold" agent --uninstall --run-dir "$dir/run" || die "uninstall"
	is "widened" "$(cpus_of "$mgmt_path")" 0-1
}

[ "$(nproc)" -ge 2 ] || { echo "agent.sh: needs two CPUs" >&2; exit 77; }
for runtime in ${RUNTIMES:-containerd-1.7 containerd}; do
	dir=$(mktemp -d "/tmp/pinfold-agent-XXXXXX")
	trap 'process_stop "$dir" agent; native_stop "$dir"' EXIT
	native_start "$dir" "$runtime"
	agent_up
	for t in places kubelet refusal drift absence runtime_restart storm uninstall; do
		echo "$runtime: $t" >&2
		"test_$t"
	done
	native_stop "$dir"
	trap - EXIT
	rm -rf "$dir"
done
echo "agent.sh: $checks checks passed"
