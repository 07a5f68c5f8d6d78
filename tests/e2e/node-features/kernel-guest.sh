# Runs as the only program of a machine (lib/kernel.sh): the agent with a runtime that only reports containers, and
# cgroups of a real kernel. Expectations are checked in the kernel.
# shellcheck shell=dash disable=SC3043  # busybox sh

top=/sys/fs/cgroup
n=${N:-400}
management_files='' shared_files='' # cpuset.cpus of all containers but container 0
explain() { tail -n 20 /tmp/agent.log; }

# Pod 0 owns two CPUs; of the others, odd ones are management pods and even ones shared.
parent_of() {
	local class=burstable/
	[ "$1" -ge 1 ] || class=
	printf 'kubepods/%spod%08x-0000-4000-8000-%012x' "$class" "$1" "$1"
}
path_of() { printf '%s/%064x' "$(parent_of "$1")" "$1"; }

make_cgroups() {
	local i parent path
	echo '+cpu +cpuset' >$top/cgroup.subtree_control
	mkdir -p $top/kubepods/burstable
	echo '+cpu +cpuset' >$top/kubepods/cgroup.subtree_control
	echo '+cpu +cpuset' >$top/kubepods/burstable/cgroup.subtree_control
	i=0
	while [ $i -lt "$n" ]; do
		path=$top/$(path_of $i)
		parent=${path%/*}
		mkdir "$parent"
		echo '+cpu +cpuset' >"$parent/cgroup.subtree_control"
		mkdir "$path"
		case $i in
		0) ;;
		*[13579]) management_files="$management_files $path/cpuset.cpus" ;;
		*) shared_files="$shared_files $path/cpuset.cpus" ;;
		esac
		i=$((i + 1))
	done
	for i in 0 1 2; do
		sleep 100000 &
		echo $! >"$top/$(path_of $i)/cgroup.procs"
	done
}

pools() {
	echo "$1" >/etc-pools.new && mv /etc-pools.new /etc-pools
}
start_runtime() {
	rm -f /run/nri.sock
	nri_runtime /run/nri.sock "$n" 0 1 >/tmp/runtime.log &
	runtime=$!
	wait_for 120 test -S /run/nri.sock || die "the runtime does not listen"
}
start_agent() {
	[ -n "${COUNT:-}" ] || set -- --reconcile-interval 1 "$@"
	pinfold agent --nri-socket /run/nri.sock --run-dir /run/pinfold --pools-file /etc-pools --marker-file /none \
		--kubelet-state /none --no-cluster --allow-namespace default "$@" >>/tmp/agent.log 2>&1 &
	agent=$!
}
status() { pinfold status --run-dir /run/pinfold "$@"; }
synchronised() { status -o json 2>/dev/null | grep -q '"connected": *true'; }
cpus_of() { cat "$top/$(path_of "$1")/cpuset.cpus"; }
partition_of() { cat "$top/$(path_of "$1")/cpuset.cpus.partition"; }
partition_is() { [ "$(partition_of "$1")" = "$2" ]; }

# Tasks that may run on CPU 6 or 7, other than those of container 0, kernel threads that are bound to one CPU, and the
# kernel's rescuer threads, which run only when memory is short and move to the CPU of the work they rescue.
foreign_tasks() {
	local task list pid
	for task in /proc/[0-9]*; do
		list=$(sed -n 's/^Cpus_allowed_list:\t//p' "$task/status" 2>/dev/null) || continue
		case $list in
		*[67]*) ;;
		*) continue ;;
		esac
		pid=${task#/proc/}
		grep -qx "$pid" "$top/$(path_of 0)/cgroup.procs" && continue
		if [ -z "$(tr -d '\0' <"$task/cmdline")" ]; then
			case $list in [67]) continue ;; esac
			case $(cat "$task/comm") in kworker/R-*) continue ;; esac
		fi
		echo "$pid $(cat "$task/comm" 2>/dev/null): $list"
	done
}
# Scheduling domains of a CPU: without one the kernel balances no load onto it.
domains_of() { awk -v cpu="cpu$1" '/^cpu/ { on = $1 == cpu } /^domain/ && on { n++ } END { print n + 0 }' /proc/schedstat; }

test_isolated() {
	wait_for 120 partition_is 0 isolated || die "container 0 is '$(partition_of 0)'"
	is "exclusive CPUs" "$(cat "$top/$(path_of 0)/cpuset.cpus.effective")" 6-7
	is "isolated CPUs of the kernel" "$(cat $top/cpuset.cpus.isolated)" 6-7
	is "CPUs of all other cgroups" "$(cat $top/cpuset.cpus.effective)" 0-5
	prints "foreign tasks on exclusive CPUs" '' foreign_tasks
	is "scheduling domains of an isolated CPU" "$(domains_of 6)" 0
	[ "$(domains_of 3)" -gt 0 ] || die "control: CPU 3 has no scheduling domain"
	wait_for 120 isolation_is 6-7 || die "status: $(status -o json)"
	status | grep -q 'not isolated' && die "the status warns: $(status)"
	pinfold verify --run-dir /run/pinfold >/tmp/verify.out || die "verify: $(cat /tmp/verify.out)"
	# Another process ends the partition: the agent restores it.
	echo member >"$top/$(path_of 0)/cpuset.cpus.partition"
	wait_for 120 partition_is 0 isolated || die "the partition was not restored"
	checks=$((checks + 3))
}
isolation_is() { status -o json | grep -A1 '"isolation"' | grep -q "\"cpus\": *\"$1\""; }

test_refused() {
	wait_for 120 warned || die "the kernel's refusal is not reported: $(status)"
	is "warning about the refusal" "$(status | sed -n 's/^warning: \(CPUs of 1 .*\)/\1/p')" \
		"CPUs of 1 containers are not isolated: the kernel refuses an isolated partition: Parent is not a partition root"
	is "partition type after the refusal" "$(partition_of 0)" member
	is "cpuset after the refusal" "$(cpus_of 0)" 6-7
	is "CPUs of all cgroups after the refusal" "$(cat $top/cpuset.cpus.effective)" 0-7
}
warned() { status | grep -q 'not isolated'; }

# Resizes back and forth, with busy tasks, while cpuset_sampler checks that pools never overlap.
wide='{"reserved":"0-3","shared":"4-5","guaranteed":"6-7"}'
narrow='{"reserved":"0-1","shared":"2-5","guaranteed":"6-7"}'
is_wide() { [ "$(cpus_of 1)" = 0-3 ] && [ "$(cpus_of 2)" = 4-5 ] && status -o json | grep -A1 '"resize"' | grep -q '"done"'; }
is_narrow() { [ "$(cpus_of 1)" = 0-1 ] && [ "$(cpus_of 2)" = 2-5 ]; }
refused() { status | grep -q 'default/pod-0/c owns CPUs 6-7'; }

watch_pools() {
	local file files
	files=2:$top/$(path_of 0)/cpuset.cpus
	for file in $management_files; do files="$files 1:$file"; done
	for file in $shared_files; do files="$files 0:$file"; done
	# shellcheck disable=SC2086
	cpuset_sampler $files >/tmp/sampler.out 2>&1 &
	sampler=$!
	wait_for 300 grep -q watching /tmp/sampler.out || die "sampler: $(cat /tmp/sampler.out)"
}
unwatch_pools() {
	kill -TERM $sampler
	wait $sampler || die "sampler: $(cat /tmp/sampler.out)"
	checks=$((checks + 1))
	echo "sampler: $(tail -n 1 /tmp/sampler.out)"
}

resize_rounds() {
	local round
	for round in 1 2 3; do
		pools "$wide"
		wait_for 300 is_wide || die "round $round, no resize: $(status)"
		pools "$narrow"
		wait_for 300 is_narrow || die "round $round, not back: $(status)"
	done
}

test_resize() {
	local i
	for i in 1 2; do
		while :; do :; done &
		echo $! >"$top/$(path_of $i)/cgroup.procs"
	done
	watch_pools
	resize_rounds
	# A resize is refused while a container owns the CPUs; the owner is reported and nothing moves.
	pools '{"reserved":"0-1,6-7","shared":"2-5","guaranteed":""}'
	wait_for 300 refused || die "no refusal: $(status)"
	is_narrow || die "containers were moved by a refused resize"
	unwatch_pools
	checks=$((checks + 8))
	print_resizes
}
print_resizes() {
	sed -n 's/.*msg="pools resized".* us=\([0-9]*\) cgroups=\([0-9]*\).*/resize: \2 cgroups in \1 us/p' /tmp/agent.log
}

# The agent is killed at some point of a resize; the next one finishes it.
test_crash() {
	local round
	pools "$narrow"
	wait_for 300 is_narrow || die "not resized back"
	watch_pools
	for round in 1 2 3 4 5 6; do
		if [ $((round % 2)) = 1 ]; then pools "$wide"; else pools "$narrow"; fi
		sleep 0.0$round
		kill -KILL $agent
		kill -KILL $runtime
		wait $agent $runtime
		start_runtime
		start_agent --isolated-partitions
		if [ $((round % 2)) = 1 ]; then
			wait_for 300 finished 0-3 4-5 || die "round $round, not finished: $(cpus_of 1) $(cpus_of 2)"
		else
			wait_for 300 finished 0-1 2-5 || die "round $round, not finished: $(cpus_of 1) $(cpus_of 2)"
		fi
	done
	unwatch_pools
	checks=$((checks + 6))
}
# Every container, not only the first.
finished() {
	# shellcheck disable=SC2086
	synchronised && ! cat $management_files | grep -qvx "$1" && ! cat $shared_files | grep -qvx "$2"
}

# The memory of a container with exclusive CPUs: with a policy that binds, on the NUMA node of its CPUs, by the kernel.
mems_of() { cat "$top/$(path_of "$1")/cpuset.mems"; }
mems_are() { [ "$(mems_of "$1")" = "$2" ]; }
# NUMA nodes with anonymous memory of a process that begins in container 0 and takes 16 MiB.
nodes_in_use() {
	(
		echo 0 >"$top/$(path_of 0)/cgroup.procs" &&
			exec awk 'BEGIN {
				s = sprintf("%1048576s", "")
				for (i = 0; i < 16; i++) held[i] = s i
				while ((getline line <"/proc/self/numa_maps") > 0)
					if (line ~ / anon=/)
						while (match(line, /N[0-9]+=/)) {
							print substr(line, RSTART, RLENGTH - 1)
							line = substr(line, RSTART + RLENGTH)
						}
			}'
	) | sort -u | tr '\n' ' '
}
restart_agent() {
	kill -TERM $agent
	kill -KILL $runtime
	wait $agent $runtime
	start_runtime
	start_agent --isolated-partitions
	wait_for 300 synchronised || die "not synchronised"
}
test_memory() {
	is "NUMA nodes of CPUs 3 and 6" "$(cd /sys/devices/system/cpu && echo cpu3/node* cpu6/node*)" "cpu3/node0 cpu6/node1"
	pools "$narrow"
	wait_for 300 is_narrow || die "not resized back"
	is "memory nodes with policy best-effort" "$(mems_of 0)" ""
	pools '{"reserved":"0-1","shared":"2-5","guaranteed":"6-7","topologyPolicy":"restricted"}'
	restart_agent
	wait_for 300 mems_are 0 1 || die "memory nodes with policy restricted: $(mems_of 0)"
	is "memory nodes that the kernel applies" "$(cat "$top/$(path_of 0)/cpuset.mems.effective")" 1
	is "memory nodes of its process" "$(sed -n 's/^Mems_allowed_list:\t//p' "/proc/$(head -n 1 "$top/$(path_of 0)/cgroup.procs")/status")" 1
	is "NUMA nodes of new memory" "$(nodes_in_use)" "N1 "
	is "memory nodes of a shared container" "$(mems_of 2)" ""
	is "memory nodes of a management container" "$(mems_of 1)" ""
	# Another process binds it elsewhere: the agent restores it.
	echo 0 >"$top/$(path_of 0)/cpuset.mems"
	wait_for 300 mems_are 0 1 || die "memory nodes were not restored: $(mems_of 0)"
	checks=$((checks + 2))
}

test_uninstall() {
	kill -TERM $agent
	wait $agent
	pinfold agent --uninstall --no-cluster --run-dir /run/pinfold || die "uninstall"
	is "partition type after --uninstall" "$(partition_of 0)" member
	is "CPUs of all cgroups after --uninstall" "$(cat $top/cpuset.cpus.effective)" 0-7
	if [ -e $top/cpuset.cpus.isolated ]; then
		prints "isolated CPUs after --uninstall" '' cat $top/cpuset.cpus.isolated
		prints "cpuset.cpus.exclusive after --uninstall" '' cat $top/kubepods/cpuset.cpus.exclusive
	fi
}

# Without load and sampler: the cost of a resize alone. For tests/bench/resize-count.sh.
count_resizes() {
	resize_rounds
	print_resizes
}
# The agent checks every cgroup once in that time.
count_idle() {
	local before after
	sleep 5
	read -r before _ </proc/$agent/schedstat
	sleep 20
	read -r after _ </proc/$agent/schedstat
	echo "idle: $(((after - before) / 20000)) us CPU a second"
}

uname -r
make_cgroups
pools "$narrow"
start_runtime
start_agent --isolated-partitions
wait_for 300 synchronised || die "not synchronised"
cat /tmp/runtime.log
[ -z "${COUNT:-}" ] || { count_resizes; count_idle; exit; }
if [ -e $top/cpuset.cpus.isolated ]; then test_isolated; else test_refused; fi
test_resize
test_crash
test_memory
test_uninstall
echo "$checks checks passed"
