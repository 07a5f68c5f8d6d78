#!/bin/bash
#
# soak: pods of all pools are created, resized, deleted and disturbed at random, and agent and runtime are killed, beside a real
# containerd of this machine (soak-nodes.sh: on virtual nodes). All the time observe.py checks from outside, by kernel_truth, that no CPU
# has two owners and that no container stays on foreign CPUs; from time to time all pods are deleted, and nothing may be left: no
# assignments in the ledger, no cgroups, no more descriptors or memory of the agent than before. Needs root and two CPUs.
#
#	DURATION=120                seconds (`make soak SECONDS=...`); or HOURS
#	SEED=N                      of the sequence of actions; it is printed
#	RUNTIME=containerd-1.7      or containerd
#	SOAK_LIMIT=2                seconds for which a deviation may last: one for the agent to look, one to act; more on an overloaded machine
#	PINFOLD=build/pinfold       the program, for example one with a seeded bug (soak/seeded.c)
#	RESULTS=FILE                a line is added to it (scripts/compatibility reads them)
#
# It ends with status 1 at the first violation, and prints seed, number of the action, and log files.

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/e2e/lib/native-runtime.sh
. "$here/lib/native-runtime.sh"
# shellcheck source=tests/e2e/lib/native-agent.sh
. "$here/lib/native-agent.sh"
# shellcheck source=tests/e2e/soak/common.sh
. "$here/soak/common.sh"
# shellcheck source=tests/e2e/lib/record.sh
. "$here/lib/record.sh"

every_ms=100
pods_max=10
quiet_after=25 # actions; then everything is deleted and counted
RUNTIME=${RUNTIME:-containerd-1.7}

[ "$(nproc)" -ge 2 ] || { echo "soak.sh: needs two CPUs" >&2; exit 77; }
dir=$(mktemp -d /tmp/pinfold-soak-XXXXXX)
last=$(($(nproc) - 1))

# draw_pod: sets pod to one of those that exist; fails when there is none.
draw_pod() {
	local pods
	mapfile -t pods < <(find "$dir/expect" -type f -printf '%f\n' | sort)
	[ ${#pods[@]} -gt 0 ] || return 1
	draw ${#pods[@]}
	pod=${pods[$drawn]}
}

# --- the agent ---

raise() {
	agent_up
	touch "$dir/up"
	agent_starts=$((agent_starts + 1)) born=$created base_fds=
}
back_again() {
	wait_for 300 agent_ready || die "the agent does not connect to the runtime again"
	touch "$dir/up"
}

# --- actions ---

expect() { # NAME ID CLASS CPUS; the observer never sees half a file
	echo "$2 $3 $4" >"$dir/expecting"
	mv "$dir/expecting" "$dir/expect/$1"
}

# make_pod NAME QOS-CLASS ANNOTATIONS RESOURCES CLASS CPUS
make_pod() {
	local id
	echo "$(date +%T) $actions makes $1" >>"$dir/logs/actions.log"
	created=$((created + 1))
	echo "$1" >"$dir/creating"
	if ! native_pod "$dir" "$1" "$2" "$3" >/dev/null 2>"$dir/error" || ! id=$(native_container "$dir" "$1" "$4" 2>"$dir/error"); then
		remove_pod "$1"
		: >"$dir/creating"
		case $(cat "$dir/error") in
		*'not enough cpus'*) refused=$((refused + 1)) ;;
		*) die "pod $1 was not started: $(cat "$dir/error")" ;;
		esac
		return
	fi
	made_with[$1]=$runtime_starts
	expect "$1" "$id" "$5" "$6"
	: >"$dir/creating"
}
# The pod's cgroup is removed, as a kubelet does it: by that the agent notices the end of a pod that is older than the runtime's last
# start, for which containerd sends no event. Its CPUs stay its own until then, one reconcile interval at most.
remove_pod() {
	echo "$(date +%T) $actions removes $1" >>"$dir/logs/actions.log"
	native_crictl "$dir" rmp -f "$(cat "$dir/pod-$1.id")" >/dev/null 2>>"$dir/logs/actions.log" || :
	find /sys/fs/cgroup -maxdepth 4 -depth -type d -path "*/$(basename "$dir")-pods/*pod-$1" -exec rmdir {} + 2>/dev/null || :
	[ "${made_with[$1]:-$runtime_starts}" = $runtime_starts ] || wait_for 120 is_released "$1" ||
		violation "the CPUs of $1, which was removed, are still assigned"
	unset "made_with[$1]"
	rm -f "$dir/expect/$1" "$dir/pod-$1".* "$dir/container-$1.json"
}
is_released() { ! grep -q "\"uid-$1\"" "$dir/run/ledger.json"; }
do_create() {
	[ "$(find "$dir/expect" -type f | wc -l)" -lt $pods_max ] || { do_delete; return; }
	draw 5
	case $drawn in
	0 | 1) make_pod "m$created" burstable/ "$target,\"resources.workload.openshift.io/c\":\"{\\\"cpushares\\\":$((drawn * 100 + 51))}\"" '"cpu_shares":2,"cpu_period":100000' management 0 ;;
	2 | 3) make_pod "s$created" burstable/ '' '"cpu_shares":102,"cpu_period":100000' shared 0 ;;
	4) make_pod "x$created" '' '' '"cpu_shares":1024,"cpu_period":100000,"cpu_quota":100000' exclusive 1 ;;
	esac
}
do_delete() {
	draw_pod || return 0
	remove_pod "$pod"
}
# As a kubelet that reconciles CPUs, and one that resizes a pod. A container that owns CPUs is not resized.
do_update() {
	local id class
	draw_pod || return 0
	read -r id class _ <"$dir/expect/$pod"
	draw 2
	if [ "$drawn" = 0 ]; then
		native_crictl "$dir" update --cpuset-cpus "0-$last" "$id" >/dev/null 2>"$dir/error" || die "update of $pod: $(cat "$dir/error")"
	elif native_crictl "$dir" update --cpu-share 300 "$id" >/dev/null 2>"$dir/error"; then
		[ "$class" != exclusive ] || violation "$pod owns its CPUs and was resized"
	else
		[ "$class" = exclusive ] || die "update of $pod: $(cat "$dir/error")"
		grep -q 'recreate the pod' "$dir/error" || die "update of $pod: $(cat "$dir/error")"
		refused=$((refused + 1))
	fi
}
# As another process that writes cpusets.
do_drift() {
	draw_pod || return 0
	set_cpus "$(native_cgroup "$dir" "$(cut -d' ' -f1 "$dir/expect/$pod")")" "0-$last"
}
# Containers that start now are pinned when the agent is up again.
do_kill_agent() {
	rm "$dir/up"
	agent_kill
	draw 3
	while [ "$drawn" -gt 0 ]; do
		do_create_small
		drawn=$((drawn - 1))
	done
	raise
}
do_create_small() { make_pod "s$created" burstable/ '' '"cpu_shares":102,"cpu_period":100000' shared 0; }
do_kill_runtime() {
	rm "$dir/up"
	draw 2
	if [ "$drawn" = 0 ]; then
		process_stop "$dir" containerd
	else
		kill -KILL "$(cut -d' ' -f1 "$dir/containerd.pid")"
		wait_for 30 process_gone "$dir" containerd
	fi
	native_daemon "$dir"
	runtime_starts=$((runtime_starts + 1))
	back_again
}

act() {
	draw 100
	if [ "$drawn" -lt 40 ]; then action=create
	elif [ "$drawn" -lt 65 ]; then action=delete
	elif [ "$drawn" -lt 80 ]; then action=update
	elif [ "$drawn" -lt 92 ]; then action=drift
	elif [ "$drawn" -lt 98 ]; then action=kill_agent
	else action=kill_runtime; fi
	echo "$(date +%T) $actions $action" >>"$dir/logs/actions.log"
	"do_$action"
	count $action
}

# --- invariants of an empty node ---

# Those of containers; a kubelet would remove those of pods.
cgroups_left() { find /sys/fs/cgroup -type d -regextype posix-extended -regex ".*/$(basename "$dir")-pods/.*/[0-9a-f]{64}" 2>/dev/null | wc -l; }
nothing_left() { [ "$(ledger_entries <"$dir/run/ledger.json")" = 0 ] && [ "$(cgroups_left)" = 0 ] && [ "$(agent_status '.containers | length')" = 0 ]; }
agent_fds() { find "/proc/$(cut -d' ' -f1 "$dir/agent.pid")/fd" -mindepth 1 | wc -l; }

# not_leaking: looks again; sets fds, rss and more. A new agent has nothing to compare with.
not_leaking() {
	fds=$(agent_fds) rss=$(agent_rss)
	[ -n "$base_fds" ] || return 0
	more=$(leaked "$fds" "$rss" "$base_fds" "$base_rss" $((created - born)))
	[ -z "$more" ]
}
# The first count of an agent is its base. A connection that is open just then is a descriptor more for that time.
count_empty() {
	local name fds rss more
	for name in "$dir"/expect/*; do
		[ ! -e "$name" ] || remove_pod "$(basename "$name")"
	done
	wait_for 60 nothing_left ||
		violation "left without pods: $(ledger_entries <"$dir/run/ledger.json") assignments in the ledger, $(cgroups_left) cgroups, $(agent_status '.containers | length') containers in the agent"
	wait_for 20 not_leaking || violation "the agent leaks: $more"
	echo "$(date +%T) $actions empty: $fds descriptors, $rss kB" >>"$dir/logs/actions.log"
	if [ -z "$base_fds" ]; then
		base_fds=$fds base_rss=$rss born=$created
	elif [ "$fds" -lt "$base_fds" ]; then
		base_fds=$fds
	fi
}

violation() {
	{
		echo "VIOLATION: $*"
		echo "seed $seed, action $actions ($action)"
		tail -n 5 "$dir/logs/actions.log"
	} >&2
	"$dir/kernel_truth" "$truth_root" >"$dir/logs/truth-at-violation" || :
	agent_status . >"$dir/logs/status-at-violation" || :
	cp "$dir/run/ledger.json" "$dir/logs/ledger-at-violation" || :
	exit 1
}
check_observer() {
	process_alive "$dir" observer || die "the observer ended: $(tail -n 3 "$dir/logs/observer.log")"
	[ ! -s "$dir/violations" ] || violation "$(cat "$dir/violations")"
}

# --- ---

end() {
	local status=$?
	trap - EXIT
	rm -f "$dir/up"
	agent_down
	process_stop "$dir" truth
	process_stop "$dir" observer
	native_stop "$dir" >/dev/null 2>&1 || :
	if [ "$status" = 0 ]; then
		rm -rf "$dir"
	else
		echo "soak.sh: logs are in $dir/logs" >&2
	fi
	exit "$status"
}

observe() {
	gcc -O2 -static -D_GNU_SOURCE -o "$dir/kernel_truth" "$here/kernel-truth/kernel_truth.c"
	truth_root=/sys/fs/cgroup
	[ ! -d $truth_root/cpuset ] || truth_root=$truth_root/cpuset
	truth_root=$truth_root/$(basename "$dir")-pods
	mkfifo "$dir/truth.fifo"
	process_start "$dir" truth sh -c "exec '$dir/kernel_truth' '$truth_root' $every_ms >'$dir/truth.fifo'"
	process_start "$dir" observer sh -c "exec python3 '$here/soak/observe.py' '$dir' $every_ms <'$dir/truth.fifo'"
}

declare -A made_with=()
runtime_starts=1 created=0 refused=0 agent_starts=0 born=0 base_fds='' base_rss=0 action=none
mkdir -p "$dir/expect"
echo 0 >"$dir/management"
echo "0-$last" >"$dir/all"
echo "soak.sh: seed $seed, $duration s, $RUNTIME, $pinfold; actions are in $dir/logs/actions.log" >&2
trap end EXIT
trap 'exit 130' INT TERM
# The defaults, 5 s and 2 s, are too short on a busy machine: the runtime drops a late plugin.
# shellcheck disable=SC2034  # read by native-runtime.sh, which ends with the table of NRI
NATIVE_CONFIG='  plugin_registration_timeout = "120s"
  plugin_request_timeout = "120s"'
native_start "$dir" "$RUNTIME"
agent_flags=(--management 0 --allow-namespace default --nri-socket "$dir/nri.sock" --no-cluster --reconcile-interval 10)
raise
observe
began=$SECONDS
while [ $((SECONDS - began)) -lt "$duration" ]; do
	act
	check_observer
	[ $((actions % quiet_after)) != 0 ] || count_empty
done
count_empty
check_observer
process_stop "$dir" truth # the observer ends with its input, and prints its statistics
wait_for 30 process_gone "$dir" observer || die "the observer does not end"
[ "$actions" -gt 0 ] || die "nothing was done"
echo "$(counts)$refused refused, the agent started $agent_starts times" >&2
record - "$RUNTIME" - soak "seed $seed: $actions actions, $(tail -n 1 "$dir/logs/observer.log")," $((SECONDS - began))
echo "soak.sh: seed $seed, $actions actions in $((SECONDS - began)) s: $(tail -n 1 "$dir/logs/observer.log")"
