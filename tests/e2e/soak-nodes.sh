#!/bin/bash
#
# soak-nodes: soak.sh on virtual nodes with a stock kubelet and runtime, in a whole cluster (lib/virtual-cluster.sh) with a profile. Pods of
# all pools are created, deleted and resized in place, cpusets are overwritten, agents, kubelets and runtimes are restarted and
# killed, and rarely a node is rebooted. All the time one observer for each node (soak/observe.py) reads what kernel_truth prints in the
# node, and checks that no CPU has two owners and that no container stays on foreign CPUs. What a container is to have comes from
# its pod in the API server (soak/expect.py). From time to time all pods have to be Ready, are deleted, and nothing may be left: no
# assignments in the ledgers, no cgroups, no more descriptors or memory of the agents than before.
#
#	DURATION=1200               seconds (`make soak NODES=2 SECONDS=...`); or HOURS
#	SEED=N                      of the sequence of actions; it is printed. What they meet depends on the nodes' speed, too
#	NODES=2                     and the other variables of tests/e2e/cluster
#	SOAK_LIMIT=10               seconds for which a deviation may last while the agent is up. Emulated nodes need more than the 2 of soak.sh
#	SOAK_START_LIMIT=120        the same for containers that start: they are on all CPUs until runc sets their cpuset, and their pause
#	                            processes until the runtime reports them. When all pods are Ready, no deviation may be left
#	AGENT=PROGRAM               another program for the agents, for example one with a seeded bug (README.md)
#	KEEP=DIR                    the cluster in DIR is used if it runs, and left running
#	RESULTS=FILE                a line is added to it (scripts/compatibility reads them)
#
# It ends with status 1 at the first violation, and prints seed, number of the action, and log files.

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export NODES=${NODES:-2} CPUS=${CPUS:-8 4} NUMA=${NUMA:-2 1} SMT=${SMT:-on} RUNTIME=${RUNTIME:-containerd}
export SOAK_LIMIT=${SOAK_LIMIT:-10} SOAK_START_LIMIT=${SOAK_START_LIMIT:-120}
DURATION=${DURATION:-${HOURS:+$((HOURS * 3600))}}
DURATION=${DURATION:-1200}
top=${KEEP:-$(mktemp -d /tmp/pinfold-soak-XXXXXX)}
# shellcheck source=tests/e2e/lib/virtual-cluster.sh
. "$here/lib/virtual-cluster.sh"
# shellcheck source=tests/e2e/lib/node-kernel.sh
. "$here/lib/node-kernel.sh"
# shellcheck source=tests/e2e/soak/common.sh
. "$here/soak/common.sh"
# shellcheck source=tests/e2e/lib/record.sh
. "$here/lib/record.sh"

dir=$top/soak
every_ms=1000
pods_max=5     # of a node
moving_max=3   # pods that start or end; more would only wait for each other
quiet_after=25 # actions; then everything is deleted and counted
limit=1800     # seconds for every state: the nodes are slow
target='target.workload.openshift.io/management'
case $RUNTIME in crio) unit=crio ;; *) unit=containerd ;; esac

log() { echo "$(date +%T) $actions $*" >>"$dir/logs/actions.log"; }

# --- pods ---

# pods: "NAME NODE CPUS STATE" of all pods; the state is starting, ready or ending.
pods() {
	kubectl -n soak get pods -o json | jq -r '.items[] | [.metadata.name, .spec.nodeSelector["kubernetes.io/hostname"], .metadata.labels.cpus,
		(if .metadata.deletionTimestamp then "ending" elif any(.status.conditions[]?; .type == "Ready" and .status == "True") then "ready" else "starting" end)] | join(" ")'
}
moving() { pods | awk '$4 != "ready" { n++ } END { print n + 0 }'; }
moves_little() { [ "$(moving)" -le $moving_max ]; }
all_ready() { [ "$(moving)" = 0 ]; }
# draw_pod PATTERN: sets pod and node to a pod that is ready and whose name matches; fails when there is none.
draw_pod() {
	local list
	mapfile -t list < <(pods | awk -v pattern="$1" '$4 == "ready" && $1 ~ pattern { print $1, $2 }')
	[ ${#list[@]} -gt 0 ] || return 1
	draw ${#list[@]}
	read -r pod node <<<"${list[$drawn]}"
}
draw_node() {
	local nodes
	mapfile -t nodes < <(vc_nodes)
	draw ${#nodes[@]}
	node=${nodes[$drawn]}
}

manifest() { # NAME NODE ANNOTATIONS CPUS RESOURCES
	cat <<-EOF2
	{apiVersion: v1, kind: Pod, metadata: {name: $1, namespace: soak, labels: {cpus: "$4"}, annotations: {$3}}, spec: {
	  automountServiceAccountToken: false, terminationGracePeriodSeconds: 1, nodeSelector: {kubernetes.io/hostname: $2},
	  containers: [{name: c, image: "localhost/busybox:1", imagePullPolicy: Never, args: [-c, "exec sleep 1000000"], resources: {$5}}]}}
	EOF2
}
# make_pod MANIFEST-ARGUMENT...: a management pod that was not converted is one whose call the API server gave up; it is deleted.
make_pod() {
	local missed
	missed=$(calls_missed)
	log "makes $1 on $2"
	created=$((created + 1))
	if ! manifest "$@" | kubectl create -f - -o json >"$dir/created" 2>"$dir/error"; then
		# Without the webhook's node nothing admits pods.
		[ -n "$(disturbed)" ] || die "pod $1 was not created: $(cat "$dir/error")"
		refused=$((refused + 1))
	elif [ -n "$3" ] && ! jq -e ".spec.containers[0].resources.requests.\"management.workload.openshift.io/cores\"" "$dir/created" >/dev/null; then
		kubectl -n soak delete pod "$1" --now --wait=false >/dev/null
		[ "$(calls_missed)" != "$missed" ] || violation "management pod $1 was not converted"
		refused=$((refused + 1))
	fi
}

# --- actions ---

do_create() {
	local count own room name
	draw_node
	read -r count own < <(pods | awk -v node="$node" '$2 == node { n++; own += $3 } END { print n + 0, own + 0 }')
	[ "$count" -lt $pods_max ] || { do_delete; return; }
	# One CPU stays for the shared pool.
	room=$(($(wc -w <"$dir/$node/isolated") - 1 - own))
	draw 8
	name=$created
	case $drawn in
	0 | 1 | 2) make_pod "m$name" "$node" "$target: '{\"effect\":\"PreferredDuringScheduling\"}'" 0 "requests: {cpu: $((50 + drawn * 50))m, memory: 16Mi}" ;;
	3 | 4) make_pod "s$name" "$node" '' 0 'requests: {cpu: 100m, memory: 16Mi}, limits: {cpu: 200m, memory: 64Mi}' ;;
	*)
		[ "$room" -gt 0 ] || { make_pod "s$name" "$node" '' 0 'requests: {cpu: 50m, memory: 16Mi}, limits: {cpu: 100m, memory: 64Mi}'; return; }
		own=1
		[ "$drawn" -lt 7 ] || [ "$room" -lt 2 ] || own=2
		make_pod "x$name" "$node" '' $own "limits: {cpu: $own, memory: 256Mi}"
		;;
	esac
}
do_delete() {
	draw_pod . || return 0
	log "deletes $pod"
	kubectl -n soak delete pod "$pod" --wait=false >/dev/null
}
# The CPU of a management pod is in its annotations, which cannot change; a shared pod gets what it asks for (settle checks it).
do_resize() {
	local cpu missed
	draw_pod '^[ms]' || return 0
	draw 4
	cpu=$((drawn * 100 + 100))
	log "resizes $pod to ${cpu}m"
	missed=$(calls_missed)
	if kubectl -n soak patch pod "$pod" --subresource resize \
		-p "{\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"${cpu}m\"}$([[ $pod == m* ]] || echo ",\"limits\":{\"cpu\":\"${cpu}m\"}")}}]}}" >/dev/null 2>"$dir/error"; then
		[[ $pod != m* ]] || [ "$(calls_missed)" != "$missed" ] || violation "management pod $pod was resized"
	else
		refused=$((refused + 1))
		[ -n "$(disturbed)" ] || { [[ $pod == m* ]] && grep -q 'cannot be resized in place' "$dir/error"; } || die "resize of $pod: $(cat "$dir/error")"
	fi
}
# As another process that writes cpusets. The container may have ended.
do_drift() {
	local id
	draw_pod . || return 0
	read -r id _ 2>/dev/null <"$dir/$node/expect/soak.$pod.c" || return 0
	log "overwrites the cpuset of $pod on $node"
	on "$node" "find /sys/fs/cgroup/kubepods.slice -name '*$id*' ! -name '*conmon*' -exec sh -c 'echo $(cat "$dir/$node/all") >\$0/cpuset.cpus' {} ';'" 2>>"$dir/logs/actions.log" || :
}
do_disturb() { # KIND
	draw_node
	[ -z "$(disturbed)" ] || return 0 # one at a time: an overlap says less, and takes longer
	log "$1 on $node"
	touch "$dir/$node/disturbed"
	{
		"disturb_$1" "$node" || echo "$(date +%T) $node did not recover from: $1" >>"$dir/$node/violations"
		rm "$dir/$node/disturbed" "$dir/disturbance"
	} >>"$dir/logs/disturbances.log" 2>&1 &
	echo $! >"$dir/disturbance"
}
disturbed() { (cd "$dir" && ls -d -- */disturbed 2>/dev/null) || :; }

# --- disturbances; in the background. While "up" does not exist, deviations are not counted ---

agent_is_back() { # NODE PID-BEFORE
	local pid
	pid=$(agent_pid "$1") && [ "$pid" != "$2" ] && agent_ready_on "$1"
}
disturb_kill_agent() {
	local pid
	pid=$(agent_pid "$1") && rm "$dir/$1/up" && on "$1" kill -KILL "$pid" && wait_for $limit agent_is_back "$1" "$pid" && touch "$dir/$1/up"
}
disturb_restart_agent() {
	local pid
	pid=$(agent_pid "$1") && rm "$dir/$1/up" &&
		kubectl -n pinfold-agent delete pod --field-selector "spec.nodeName=$1" --wait=false && wait_for $limit agent_is_back "$1" "$pid" && touch "$dir/$1/up"
}
# What containers have does not depend on the kubelet: "up" stays.
disturb_restart_kubelet() {
	local beat
	on "$1" systemctl restart kubelet && beat=$(vc_heartbeat "$1") && wait_for $limit vc_beats "$1" "$beat"
}
disturb_kill_kubelet() {
	local beat
	on "$1" systemctl kill -s KILL kubelet && beat=$(vc_heartbeat "$1") && wait_for $limit vc_beats "$1" "$beat"
}
runtime_is_back() { on "$1" systemctl -q is-active "$unit" && agent_ready_on "$1"; }
disturb_restart_runtime() { rm "$dir/$1/up" && on "$1" systemctl restart "$unit" && wait_for $limit runtime_is_back "$1" && touch "$dir/$1/up"; }
# --kill-whom=main: the unit's cgroup also has the processes that hold containers.
disturb_kill_runtime() {
	rm "$dir/$1/up" && on "$1" systemctl kill -s KILL --kill-whom=main "$unit" && wait_for $limit runtime_is_back "$1" && touch "$dir/$1/up"
}
disturb_reboot() {
	local beat
	rm "$dir/$1/up" && guest_reboot "$top/$1" && on "$1" /payload/up "$RUNTIME" && beat=$(vc_heartbeat "$1") &&
		wait_for $limit vc_beats "$1" "$beat" && wait_for $limit agent_ready_on "$1" && wait_for $limit all_there "$1" && touch "$dir/$1/up"
}
# all_there NODE: every container that the API server knows has processes.
all_there() {
	local truth name id
	truth=$(node_truth "$1") || return
	for name in "$dir/$1"/expect/*; do
		read -r id _ 2>/dev/null <"$name" || continue # it ended now
		grep -q "$id" <<<"$truth" || return
	done
}

act() {
	wait_for $limit moves_little || die "pods neither start nor end"
	draw 200
	if [ "$drawn" -lt 84 ]; then action=create
	elif [ "$drawn" -lt 122 ]; then action=delete
	elif [ "$drawn" -lt 146 ]; then action=resize
	elif [ "$drawn" -lt 170 ]; then action=drift
	elif [ "$drawn" -lt 176 ]; then action=kill_agent
	elif [ "$drawn" -lt 182 ]; then action=restart_agent
	elif [ "$drawn" -lt 187 ]; then action=restart_kubelet
	elif [ "$drawn" -lt 191 ]; then action=kill_kubelet
	elif [ "$drawn" -lt 195 ]; then action=restart_runtime
	elif [ "$drawn" -lt 198 ]; then action=kill_runtime
	else action=reboot; fi
	log "$action"
	case $action in
	create | delete | resize | drift) "do_$action" ;;
	*) do_disturb $action ;;
	esac
	count $action
}

# --- invariants of quiet nodes ---

is_quiet() { [ -z "$(disturbed)" ]; }
# quotas_hold NODE: the quota of each shared pod in the kernel is the limit in its spec.
quotas_hold() {
	local truth id limit_m name
	truth=$(node_truth "$1") || return
	while read -r name id limit_m; do
		[ "$(awk -F '\t' -v id="$id" 'index($1, id) && !index($1, "conmon") { print $5 }' <<<"$truth")" = $((limit_m * 100)) ] || { unsettled=$name; return 1; }
	done < <(kubectl -n soak get pods -o json | jq -r --arg node "$1" '.items[] | select(.spec.nodeName == $node and (.metadata.name | startswith("s"))) |
		[.metadata.name, (.status.containerStatuses[0].containerID | sub(".*/"; "")), (.spec.containers[0].resources.limits.cpu | sub("m$"; ""))] | join(" ")')
}
# nothing_deviates NODE: in the last round of its observer.
nothing_deviates() { grep -q ', 0 deviations$' "$dir/$1/round"; }
# inspect NODE: "PID DESCRIPTORS MEMORY-IN-KB CGROUPS-OF-PODS", and in files the agent's ledger, status and descriptors, and the runtime's containers.
inspect() {
	on "$1" 'cat /run/pinfold/ledger.json' >"$dir/$1/ledger" && agent_status_on "$1" >"$dir/$1/status" &&
		on "$1" '/payload/bin/crictl -t 600s -c /payload/crictl.yaml ps -a -o json' >"$dir/$1/runtime" &&
		on "$1" "pid=\$(pgrep -of '^/usr/local/bin/pinfold agent') && ls -l /proc/\$pid/fd >&2 && echo \$pid \$(ls /proc/\$pid/fd | wc -l) \
			\$(awk '/VmRSS/ { print \$2 }' /proc/\$pid/status) \$(find /sys/fs/cgroup/kubepods.slice -type d -name '*-pod*.slice' | wc -l)" >"$dir/$1/inspected" 2>"$dir/$1/descriptors"
}
pods_on() { kubectl get pods -A --field-selector "spec.nodeName=$1" -o name | wc -l; }
# containers_differ NODE: containers of the agent that the runtime does not have, and running ones that the agent does not have. The agent keeps
# one that has ended until the runtime removes it.
containers_differ() {
	jq -nr --slurpfile agent "$dir/$1/status" --slurpfile runtime "$dir/$1/runtime" '[$agent[0].containers[].id] as $known |
		($known - [$runtime[0].containers[].id])[], ([$runtime[0].containers[] | select(.state == "CONTAINER_RUNNING").id] - $known)[]'
}
nothing_left() {
	local differ
	inspect "$1" && [ "$(ledger_entries <"$dir/$1/ledger")" = 0 ] && [ "$(cut -d' ' -f4 "$dir/$1/inspected")" = "$(pods_on "$1")" ] &&
		differ=$(containers_differ "$1") && [ -z "$differ" ]
}
# same_agent NODE: the one whose first count is the base.
same_agent() { [ "${base_pid[$1]:-}" = "$(cut -d' ' -f1 "$dir/$1/inspected")" ]; }
# not_leaking NODE: looks again; sets more. A new agent has nothing to compare with.
not_leaking() {
	local fds rss
	inspect "$1" || return
	same_agent "$1" || return 0
	read -r _ fds rss _ <"$dir/$1/inspected"
	more=$(leaked "$fds" "$rss" "${base_fds[$1]}" "${base_rss[$1]}" $((created - born[$1])))
	[ -z "$more" ]
}
# count_empty NODE: the first count of an agent is its base. A probe that is answered just then has a descriptor more for that time.
count_empty() {
	local pid fds rss more
	wait_for 600 nothing_left "$1" ||
		violation "left on $1 without pods: $(ledger_entries <"$dir/$1/ledger") assignments in the ledger, $(cut -d' ' -f4 "$dir/$1/inspected") cgroups of pods for $(pods_on "$1") pods, and containers known to only one of agent and runtime: $(containers_differ "$1" | paste -sd ' ')"
	wait_for 60 not_leaking "$1" || violation "the agent of $1 leaks: $more"
	read -r pid fds rss _ <"$dir/$1/inspected"
	log "empty: the agent of $1 ($pid) has $fds descriptors, $rss kB"
	if same_agent "$1"; then
		[ "$fds" -ge "${base_fds[$1]}" ] || base_fds[$1]=$fds
		compared=$((compared + 1))
	else
		base_pid[$1]=$pid base_fds[$1]=$fds base_rss[$1]=$rss born[$1]=$created
	fi
}
quiet() {
	local each
	log "waits for quiet nodes"
	wait_for 3600 is_quiet || die "not recovered: $(disturbed)"
	wait_for $limit all_ready || die "not ready: $(pods | grep -v ready)"
	for each in $(vc_nodes); do
		wait_for 600 quotas_hold "$each" || violation "the quota of $unsettled is not its limit"
		wait_for 120 nothing_deviates "$each" || violation "$each has deviations with all pods Ready: $(cat "$dir/$each/round")"
	done
	check_observers
	kubectl -n soak delete pods --all --wait=false >/dev/null
	wait_for $limit no_pods || die "not gone: $(pods)"
	for each in $(vc_nodes); do count_empty "$each"; done
}
no_pods() { [ -z "$(pods)" ]; }

violation() {
	local each
	{
		echo "VIOLATION: $*"
		echo "seed $seed, action $actions ($action)"
		tail -n 5 "$dir/logs/actions.log"
	} >&2
	for each in $(vc_nodes); do
		inspect "$each" || :
		node_truth "$each" >"$dir/$each/truth-at-violation" || :
		on "$each" "cat /var/log/pods/pinfold*/*/*.log" >"$dir/logs/agent-$each.log" 2>/dev/null || :
	done
	kubectl get pods -A -o wide >"$dir/logs/pods-at-violation" || :
	exit 1
}
# stale FILE: it was not written for five minutes.
stale() { [ -z "$(find "$1" -newermt '-300 seconds' 2>/dev/null)" ]; }
check_observers() {
	local each
	process_alive "$dir" expect || die "expect.py ended: $(tail -n 3 "$dir/logs/expect.log")"
	! stale "$dir/polls" || die "expect.py does not read pods"
	for each in $(vc_nodes); do
		process_alive "$dir/$each" observer || die "the observer of $each ended: $(tail -n 3 "$dir/$each/logs/observer.log")"
		[ ! -s "$dir/$each/violations" ] || violation "$each: $(cat "$dir/$each/violations")"
		[ -e "$dir/$each/disturbed" ] || ! stale "$dir/$each/round" || die "kernel_truth does not print anything on $each"
	done
}

# --- ---

# stream NODE DIR: what kernel_truth prints there, also after a reboot.
stream() {
	while [ -e "$2/observing" ]; do
		on "$1" "/root/kernel_truth /sys/fs/cgroup/kubepods.slice $every_ms" || :
		printf '\nlost\n'
		sleep 1
	done >"$2/truth.fifo"
}
observe() { # NODE
	mkfifo "$dir/$1/truth.fifo"
	touch "$dir/$1/observing" "$dir/$1/round"
	process_start "$dir/$1" truth stream "$1" "$dir/$1"
	process_start "$dir/$1" observer sh -c "exec python3 '$here/soak/observe.py' '$dir/$1' $every_ms <'$dir/$1/truth.fifo'"
}
# The observer ends with its input, and prints its statistics.
unobserve() { # NODE
	rm "$dir/$1/observing"
	on "$1" pkill -x kernel_truth || :
	wait_for 120 process_gone "$dir/$1" observer || die "the observer of $1 does not end"
	grep '^the longest' "$dir/$1/logs/observer.log" >&2 || :
}
# All nodes in one line. Each class of containers has to have been there: otherwise nothing was checked.
statistics() {
	local each kind
	for each in $(vc_nodes); do
		for kind in management shared exclusive; do
			! grep -q "$kind 0" "$dir/$each/round" || die "no $kind container was seen on $each"
		done
		tail -n 1 "$dir/$each/logs/observer.log"
	done | awk '{ rounds += $1; looked += $3; if ($9 > longest) longest = $9; if ($11 > start) start = $11; violations += $15; long += $21; starts += $22 }
		END { printf "%d rounds, %d cgroups looked at, longest deviation %.1f s, %.1f s of starts, %d violations, longer than 1 s: %d, %d starts\n", rounds, looked, longest, start, violations, long, starts }'
}

# Nothing else: the cluster goes on.
stop_observing() {
	local each
	rm -f "$dir"/*/observing
	for each in "$dir/expect.pid" "$dir"/*/{truth,observer}.pid "$dir/disturbance"; do
		[ ! -e "$each" ] || stop_descendants "$(cut -d' ' -f1 "$each")"
	done
}
end() {
	local status=$?
	trap - EXIT
	if [ -n "${KEEP:-}" ]; then
		stop_observing
	else
		vc_down >/dev/null 2>&1 || :
	fi
	if [ "$status" = 0 ] && [ -z "${KEEP:-}" ]; then
		rm -rf "$top"
	elif [ "$status" != 0 ]; then
		echo "soak-nodes.sh: logs are in $dir/logs, $dir/*/logs and $cp/logs" >&2
	fi
	exit "$status"
}

explain() {
	kubectl get pods -A -o wide
	kubectl get events -A --sort-by .lastTimestamp | tail -n 20
}

load_agent() { vc_load "$1" "$dir/agent.tar" >&2; } # NODE
use_agent() { # PROGRAM
	image_program "$dir/agent.tar" localhost/pinfold-other:1 "$1" && vc_each load_agent &&
		kubectl -n pinfold-agent set image daemonset/pinfold-agent agent=localhost/pinfold-other:1 >/dev/null && vc_rollout pinfold-agent daemonset/pinfold-agent >&2
}

prepare() { # NODE
	mkdir -p "$dir/$1/expect"
	on "$1" cat /sys/devices/system/cpu/online >"$dir/$1/all"
	siblings "$1" 0 >"$dir/$1/management" # "first 1 core"
	on "$1" 'for cpu in /sys/devices/system/cpu/cpu[0-9]*; do cat $cpu/topology/thread_siblings_list; done' |
		grep -vxF "$(cat "$dir/$1/management")" >"$dir/$1/isolated" # one word for each CPU
}

declare -A base_pid=() base_fds=() base_rss=() born=()
created=0 refused=0 compared=0 action=none unsettled=none
vc_settings
trap end EXIT
trap 'exit 130' INT TERM
if [ -z "${KEEP:-}" ] || ! vc_running; then
	# shellcheck disable=SC2034  # read by process.sh
	[ -z "${KEEP:-}" ] || process_prefix=(setsid)
	vc_up >&2 || exit 1
	# shellcheck disable=SC2034
	process_prefix=()
fi
rm -rf "$dir"
mkdir -p "$dir/logs"
echo "soak-nodes.sh: seed $seed, $duration s, Kubernetes $KUBERNETES, $RUNTIME, $NODES nodes; actions are in $dir/logs/actions.log" >&2
kernel_truth_build
[ -z "${AGENT:-}" ] || use_agent "$AGENT" || die "the agents do not start with $AGENT"
vc_each prepare
kubectl apply -f - >/dev/null <<<'{apiVersion: v1, kind: Namespace, metadata: {name: soak, annotations: {workload.openshift.io/allowed: management}}}'
kubectl label nodes --all node-role.kubernetes.io/worker= --overwrite >/dev/null
profile soak node-role.kubernetes.io/worker 'reserved: first 1 core, isolated: rest'
LIMIT=$limit soon "the profile is applied" "True $NODES" profile_status soak
touch "$dir/polls"
process_start "$dir" expect python3 "$here/soak/expect.py" "$cp" "$dir"
for node in $(vc_nodes); do
	touch "$dir/$node/up"
	observe "$node"
done
began=$SECONDS
while [ $((SECONDS - began)) -lt "$duration" ]; do
	act
	check_observers
	[ $((actions % quiet_after)) != 0 ] || quiet
done
quiet
check_observers
took=$((SECONDS - began))
for node in $(vc_nodes); do unobserve "$node"; done
found=$(statistics)
echo "$(counts)$refused refused, agents compared with before $compared times" >&2
record "$KUBERNETES" "$RUNTIME" "$CPUS/$NUMA/$SMT" soak "seed $seed: $actions actions, $found," $took
echo "soak-nodes.sh: seed $seed, $actions actions in $took s: $found"
