#!/bin/bash
#
# The node agent with a real containerd (1.7 and 2.x) and runc on this machine: containers run on their CPUs,
# and still do after updates by a kubelet and restarts of runtime and agent. Needs root and two CPUs.
# SMOKE=1 makes the storm small. RUNTIMES="containerd" runs one of them only.

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/e2e/lib/native-runtime.sh
. "$here/lib/native-runtime.sh"
# shellcheck source=tests/e2e/lib/native-agent.sh
. "$here/lib/native-agent.sh"

storm=${STORM:-$([ -n "${SMOKE:-}" ] && echo 12 || echo 300)}

verify_ok() { "$pinfold" verify --run-dir "$dir/run" >"$dir/verify.out" 2>&1; }

# A pod of a namespace without permission that claims the management pool and any weight: the least request with the
# largest weight, or an annotation that repeats the pod's own shares and quota.
test_attack() {
	local name class resources own path flags=("${agent_flags[@]}")
	agent_down
	agent_flags=(--management 0 --nri-socket "$dir/nri.sock") # nothing is known about namespaces
	agent_up
	while read -r name class resources own <&3; do
		NATIVE_NAMESPACE=tenant native_pod "$dir" "$name" "$class/" "$target,\"resources.workload.openshift.io/c\":\"$own\"" >/dev/null
		path=$(native_cgroup "$dir" "$(native_container "$dir" "$name" "$resources")")
		is "CPUs of $name" "$(cpus_of "$path")" 1
		[[ $resources =~ \"cpu_shares\":([0-9]+) ]]
		is "shares of $name" "$(control cpu cpu.shares "$path")" "${BASH_REMATCH[1]}"
		[ "$(control cpu cpu.shares "$(dirname "$path")")" -le 1024 ] || die "$name has set the weight of its pod"
		native_crictl "$dir" rmp -f "$(cat "$dir/pod-$name.id")" >/dev/null
	done 3<<-'EOF'
	besteffort-forged besteffort "cpu_shares":2,"cpu_period":100000 {\"cpushares\":262144}
	burstable-forged burstable "cpu_shares":512,"cpu_period":100000,"cpu_quota":50000 {\"cpushares\":512,\"cpulimit\":500}
	EOF
	is "annotations rejected" "$(counter annotations_rejected)" 2
	agent_down
	agent_flags=("${flags[@]}")
	agent_up
}

# The CPU settings of containers of all pools, from inside and in the kernel.
test_placement() {
	local id path
	native_pod "$dir" mgmt burstable/ "$target,\"resources.workload.openshift.io/c\":\"{\\\"cpushares\\\":400,\\\"cpulimit\\\":500}\"" >/dev/null
	id=$(native_container "$dir" mgmt '"cpu_shares":2,"cpu_period":100000')
	path=$(native_cgroup "$dir" "$id")
	is "CPUs that a management container sees" "$(native_crictl "$dir" logs "$id")" $'Cpus_allowed_list:\t0'
	is "cpuset of a management container" "$(cpus_of "$path")" 0
	is "shares of a management container" "$(control cpu cpu.shares "$path")" 400
	is "quota of a management container" "$(control cpu cpu.cfs_quota_us "$path")" 50000
	is "shares of a management pod" "$(control cpu cpu.shares "$(dirname "$path")")" 400
	is "cpuset of a pause process" "$(cpus_of "$(native_cgroup "$dir" "$(cat "$dir/pod-mgmt.id")")")" 0
	mgmt=$id mgmt_path=$path

	native_pod "$dir" share burstable/ >/dev/null
	share=$(native_container "$dir" share '"cpu_shares":102,"cpu_period":100000')
	share_path=$(native_cgroup "$dir" "$share")
	is "cpuset of a shared container" "$(cpus_of "$share_path")" 1
	is "shares of a shared container" "$(control cpu cpu.shares "$share_path")" 102

	native_pod "$dir" alone "" >/dev/null
	echo 100000 2>/dev/null >"/sys/fs/cgroup/cpu/$(basename "$dir")-pods/pod-alone/cpu.cfs_quota_us"
	alone=$(native_container "$dir" alone '"cpu_shares":1024,"cpu_period":100000,"cpu_quota":100000')
	alone_path=$(native_cgroup "$dir" "$alone")
	is "cpuset of a container with an exclusive CPU" "$(cpus_of "$alone_path")" 1
	is "quota of a container with an exclusive CPU" "$(control cpu cpu.cfs_quota_us "$alone_path")" -1
	is "quota of its pod" "$(control cpu cpu.cfs_quota_us "$(dirname "$alone_path")")" -1
	is "shared containers are moved off the exclusive CPU" "$(cpus_of "$share_path")" 0
	verify_ok || die "verify: $(cat "$dir/verify.out")"
}

# A second workload type, with its own permission.
test_types() {
	local path ran='"target.workload.openshift.io/ran":"{}","resources.workload.openshift.io/c":"{\"cpushares\":77}"' flags=("${agent_flags[@]}")
	agent_down
	agent_flags=(--management 0 --workload-type ran=0 --allow-namespace default=ran --allow-namespace other --nri-socket "$dir/nri.sock")
	agent_up
	native_pod "$dir" ran burstable/ "$ran" >/dev/null
	path=$(native_cgroup "$dir" "$(native_container "$dir" ran '"cpu_shares":2,"cpu_period":100000')")
	is "CPUs of a container of another workload type" "$(cpus_of "$path")" 0
	is "its shares" "$(control cpu cpu.shares "$path")" 77
	is "its type in the status" "$(agent_status '.containers[] | select(.pod == "ran").type')" ran
	is "its type in the metrics" "$(curl -sf --unix-socket "$dir/run/agent.sock" http://agent/metrics | grep '^pinfold_workload_type_containers{type="ran"}')" \
		'pinfold_workload_type_containers{type="ran"} 1'
	NATIVE_NAMESPACE=other native_pod "$dir" not-ran burstable/ "$ran" >/dev/null
	path=$(native_cgroup "$dir" "$(native_container "$dir" not-ran '"cpu_shares":2,"cpu_period":100000')")
	is "CPUs in a namespace that allows management only" "$(cpus_of "$path")" 1
	verify_ok || die "verify: $(cat "$dir/verify.out")"
	native_crictl "$dir" rmp -f "$(cat "$dir/pod-ran.id")" "$(cat "$dir/pod-not-ran.id")" >/dev/null
	agent_down
	agent_flags=("${flags[@]}")
	agent_up
}

# attack: agent-confinement: code in the running agent has capabilities, may call every system call or start programs.
test_confined() {
	local pid
	read -r pid _ <"$dir/agent.pid"
	is "what all threads of the agent may" \
		"$(cat "/proc/$pid/task/"*/status | grep -E '^(CapPrm|CapEff|CapInh|NoNewPrivs|Seccomp):' | sort -u | tr -s '\t\n' ' ')" \
		"CapEff: 0000000000800000 CapInh: 0000000000000000 CapPrm: 0000000000800000 NoNewPrivs: 1 Seccomp: 2 "
	is "operations that were refused" "$(grep -c 'not permitted' "$dir/logs/agent.log" || :)" 0
}

# The update that a kubelet with the static CPU manager policy sends every ten seconds, and a resize.
test_kubelet() {
	native_crictl "$dir" update --cpuset-cpus 0-1 "$mgmt" >/dev/null
	is "CPUs after the kubelet's reconcile" "$(cpus_of "$mgmt_path")" 0
	native_crictl "$dir" update --cpu-share 2 "$mgmt" >/dev/null
	is "shares after a resize" "$(control cpu cpu.shares "$mgmt_path")" 400
	is "updates corrected" "$(counter updates_overridden)" 2
}

test_refusal() {
	local out
	native_pod "$dir" second "" >/dev/null
	out=$(native_container "$dir" second '"cpu_shares":1024,"cpu_period":100000,"cpu_quota":100000' 2>&1) &&
		die "one CPU was assigned twice"
	case $out in
	*"pinfold: default/second, container c: not enough cpus available"*) checks=$((checks + 1)) ;;
	*) die "refused without the reason: $out" ;;
	esac
	native_crictl "$dir" rmp -f "$(cat "$dir/pod-second.id")" >/dev/null
	"$pinfold" agent --management 0 --run-dir "$dir/run" --nri-socket "$dir/nri.sock" >"$dir/second.out" 2>&1 &&
		die "two agents run at once"
	checks=$((checks + 1))
}

test_drift() {
	local i
	# The agent corrects it within a second, on a busy machine before verify looks.
	for ((i = 0; i < 20; i++)); do
		set_cpus "$mgmt_path" 0-1
		verify_ok || break
	done
	[ "$i" -lt 20 ] || die "verify reports no drift"
	grep -q 'mgmt .*c .*cpus .*0 .*0-1' "$dir/verify.out" || die "verify: $(cat "$dir/verify.out")"
	wait_for 10 verify_ok || die "the drift was not corrected"
	is "CPUs after the drift" "$(cpus_of "$mgmt_path")" 0
}

# Containers that start without the agent are unpinned (the control), and pinned soon after its start.
test_absence() {
	local id path began
	agent_kill
	native_pod "$dir" lost burstable/ "$target,\"resources.workload.openshift.io/c\":\"{\\\"cpushares\\\":51}\"" >/dev/null
	id=$(native_container "$dir" lost '"cpu_shares":2,"cpu_period":100000')
	path=$(native_cgroup "$dir" "$id")
	is "control: CPUs of a container that started without the agent" "$(cpus_of "$path")" 0-1
	is "a pinned container keeps its CPU without the agent" "$(cpus_of "$alone_path")" 1
	began=$(date +%s%N)
	agent_up
	wait_for 10 has_cpus "$path" 0 || die "a container that started without the agent is not pinned: $(cpus_of "$path")"
	echo "  pinned $((($(date +%s%N) - began) / 1000000)) ms after the start" >&2
	is "shares of a container that started without the agent" "$(control cpu cpu.shares "$path")" 51
	is "exclusive CPUs are the same after a restart of the agent" "$(cpus_of "$alone_path")" 1
	verify_ok || die "verify: $(cat "$dir/verify.out")"
}

test_runtime_restart() {
	local id
	process_stop "$dir" containerd
	wait_for 10 not_ready || die "the agent is ready without a runtime"
	native_daemon "$dir"
	wait_for 20 agent_ready || die "the agent did not reconnect"
	native_pod "$dir" later burstable/ "$target" >/dev/null
	id=$(native_container "$dir" later '"cpu_shares":2,"cpu_period":100000')
	is "CPUs of a new container after a restart of the runtime" "$(cpus_of "$(native_cgroup "$dir" "$id")")" 0
	verify_ok || die "verify: $(cat "$dir/verify.out")"
}
not_ready() { ! agent_ready; }

# A pod ends while the agent is away, and its sandbox is removed later, as a kubelet does. The runtime is younger than the sandbox and does not
# report that. This ends the pod "alone".
test_ended() {
	local pod path
	pod=$(cat "$dir/pod-alone.id")
	process_stop "$dir" containerd
	native_daemon "$dir"
	agent_down
	native_crictl "$dir" stopp "$pod" >/dev/null
	native_crictl "$dir" rm -f "$alone" >/dev/null
	find /sys/fs/cgroup -depth -type d -path "*/$(basename "$dir")-pods/pod-alone" -exec rmdir {} +
	agent_up
	is "sandboxes of the pod that the runtime lists" "$(native_crictl "$dir" pods -q --no-trunc --id "$pod")" "$pod"
	native_crictl "$dir" rmp "$pod" >/dev/null
	native_pod "$dir" next "" >/dev/null
	path=$(native_cgroup "$dir" "$(native_container "$dir" next '"cpu_shares":1024,"cpu_period":100000,"cpu_quota":100000')")
	is "the exclusive CPU after its pod has ended" "$(cpus_of "$path")" 1
}

# One pod of the storm: mostly management, some shared, some that request an exclusive CPU, which "alone" owns. What
# fails because the runtime restarts is repeated, as a kubelet does.
storm_pod() {
	local class=burstable/ annotations="" resources='"cpu_shares":102,"cpu_period":100000' tries out
	case $(($1 % 10)) in
	0) class='' resources='"cpu_shares":1024,"cpu_period":100000,"cpu_quota":100000' ;;
	1 | 2 | 3) ;;
	*)
		annotations="$target,\"resources.workload.openshift.io/c\":\"{\\\"cpushares\\\":$((10 + $1))}\""
		resources='"cpu_shares":2,"cpu_period":100000' ;;
	esac
	for ((tries = 0; tries < 20; tries++)); do
		if out=$(native_pod "$dir" "storm-$1" "$class" "$annotations" >/dev/null &&
			native_container "$dir" "storm-$1" "$resources" 2>&1); then
			echo "$out" started
			return
		fi
		echo "$out"
		case $out in *'not enough cpus'*) break ;; esac
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

# Cgroups of the storm with a process and other CPUs than CPU 0, the only one that is not assigned exclusively.
unpinned() {
	local procs path
	find /sys/fs/cgroup/cpuset /sys/fs/cgroup -maxdepth 5 -path "*/$(basename "$dir")-pods/*pod-storm-*/*/cgroup.procs" 2>/dev/null |
		while read -r procs; do
			path=$(dirname "$procs")
			[ -z "$(cat "$procs" 2>/dev/null)" ] || [ "$(cat "$path/cpuset.cpus" 2>/dev/null || echo 0)" = 0 ] || echo "$path"
		done | sort -u
}
# A container that just starts may be found before the runtime has set it up; after a second that is no excuse.
nothing_unpinned() {
	local first
	sleep 1
	first=$(unpinned)
	[ -z "$first" ] || sleep 1
	[ -z "$first" ] || [ -z "$(comm -12 <(echo "$first") <(unpinned))" ] || die "$1: unpinned for a second: $first"
	checks=$((checks + 1))
}

# Two loops start pods at once. Halfway the agent is killed and started again, and later the runtime is restarted.
test_storm() {
	local halves=() began i id state started=0 refused=0
	storm_half 0 &
	halves+=($!)
	storm_half 1 &
	halves+=($!)
	wait_for 3000 storm_reached $((storm / 2)) || die "the storm makes no progress"
	agent_kill
	wait_for 600 storm_reached $((storm / 2 + 4)) || die "the storm makes no progress"
	[ -n "$(unpinned)" ] || die "control: nothing is unpinned without the agent"
	began=$(date +%s%N)
	agent_up
	echo "  ready again $((($(date +%s%N) - began) / 1000000)) ms after its start, $(counter containers_adopted_late) containers had started without it" >&2
	nothing_unpinned "after the agent was killed"
	wait_for 3000 storm_reached $((storm * 3 / 4)) || die "the storm makes no progress"
	process_stop "$dir" containerd
	native_daemon "$dir"
	wait_for 120 agent_ready || die "the agent did not reconnect"
	nothing_unpinned "after the runtime's restart"
	wait "${halves[@]}"

	wait_for 10 verify_ok || die "after the storm: $(cat "$dir/verify.out")"
	for ((i = 0; i < storm; i++)); do
		read -r id state < <(tail -n 1 "$dir/storm-$i.out")
		case $id$state in
		*started)
			started=$((started + 1))
			is "CPUs of storm-$i" "$(cpus_of "$(native_cgroup "$dir" "$id")")" 0 ;;
		refused)
			is "only requests for an exclusive CPU are refused ($i)" $((i % 10)) 0
			refused=$((refused + 1)) ;;
		*) die "storm-$i has no result" ;;
		esac
	done
	is "pods with a result" $((started + refused)) "$storm"
	is "the exclusive CPU after the storm" "$(cpus_of "$alone_path")" 1
	echo "  $storm: $started started, $refused refused; agent $(agent_rss) kB" >&2
}

# The agent in a container with the security context of the DaemonSet: without privileges, but for one capability.
agent_container() {
	cat <<-EOF
	{"metadata":{"name":"agent"},"image":{"image":"localhost/pinfold:1"},"log_path":"agent.log",
	 "args":["agent","--cgroup-root=/host/sys/fs/cgroup","--management=0","--no-cluster","--allow-namespace=default","--kubelet-state=/nonexistent"],
	 "mounts":[{"host_path":"/sys/fs/cgroup","container_path":"/host/sys/fs/cgroup"},
	           {"host_path":"$dir/run","container_path":"/run/pinfold"},{"host_path":"$dir","container_path":"/var/run/nri"}],
	 "linux":{"resources":{"cpu_shares":102,"cpu_period":100000},
	          "security_context":{"capabilities":{"drop_capabilities":["ALL"],"add_capabilities":["SYS_NICE"]},"run_as_user":{"value":0},
	                              "readonly_rootfs":true,"no_new_privs":true,"seccomp":{"profile_type":0},"namespace_options":{"pid":2,"network":2}}}}
	EOF
}
test_container() {
	local id path
	agent_down
	grep -q 'capabilities: {drop: \[ALL\], add: \[SYS_NICE\]}' "$here/../../deploy/agent/daemonset.yaml" || die "the DaemonSet has other capabilities"
	image_pinfold "$dir/pinfold.tar"
	"$(cat "$dir/bin")/ctr" -a "$dir/cri.sock" -n k8s.io images import "$dir/pinfold.tar" >/dev/null 2>&1 || die "cannot import the image"
	native_pod "$dir" daemon burstable/ >/dev/null
	agent_container >"$dir/agent.json"
	id=$(native_crictl "$dir" create "$(cat "$dir/pod-daemon.id")" "$dir/agent.json" "$dir/pod-daemon.json")
	native_crictl "$dir" start "$id" >/dev/null
	wait_for 60 agent_ready || die "the agent is not ready: $(native_crictl "$dir" logs "$id" 2>&1 | tail -n 5)"
	native_pod "$dir" contained burstable/ "$target" >/dev/null
	path=$(native_cgroup "$dir" "$(native_container "$dir" contained '"cpu_shares":2,"cpu_period":100000')")
	is "CPUs of a management container" "$(cpus_of "$path")" 0
	is "cpuset of its pause process, which the agent writes" "$(cpus_of "$(native_cgroup "$dir" "$(cat "$dir/pod-contained.id")")")" 0
	is "operations that were refused" "$(native_crictl "$dir" logs "$id" 2>&1 | grep -c 'not permitted\|denied\|Read-only' || :)" 0
	native_crictl "$dir" rmp -f "$(cat "$dir/pod-daemon.id")" "$(cat "$dir/pod-contained.id")" >/dev/null
}

test_uninstall() {
	agent_down
	"$pinfold" agent --uninstall --run-dir "$dir/run" || die "uninstall"
	is "CPUs after --uninstall" "$(cpus_of "$mgmt_path")" 0-1
}

[ "$(nproc)" -ge 2 ] || { echo "agent.sh: needs two CPUs" >&2; exit 77; }
for runtime in ${RUNTIMES:-containerd-1.7 containerd}; do
	dir=$(mktemp -d "/tmp/pinfold-agent-XXXXXX")
	# Expanded now: when the trap runs, "dir" may be the next runtime's.
	# shellcheck disable=SC2064
	trap "process_stop '$dir' agent; native_stop '$dir'" EXIT
	native_start "$dir" "$runtime"
	agent_flags=(--management 0 --allow-namespace default --nri-socket "$dir/nri.sock" --reconcile-interval 600)
	agent_up
	for t in ${TESTS:-attack types placement kubelet refusal drift absence runtime_restart storm confined container ended uninstall}; do
		echo "$runtime: $t" >&2
		"test_$t"
	done
	native_stop "$dir"
	trap - EXIT
	rm -rf "$dir"
done
echo "agent.sh: $checks checks passed"
