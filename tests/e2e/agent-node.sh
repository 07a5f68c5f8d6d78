#!/bin/bash
#
# The node agent beside a stock kubelet (systemd cgroup driver, cgroup v2) and a stock runtime in a guest: pods of
# all three pools on their CPUs according to the guest's kernel, after restarts of kubelet, runtime and agent, with
# fair shares among management pods, and in every form of installation.
#
#	RUNTIME=containerd          or containerd-1.7, crio, crio-native (CRI-O's own drop-in, by render)
#	SMOKE=1                     the first tests only, and no scheduler and controller manager
#	TESTS="control placement"   these only; all others need the pods of "control"
#	STORM=300                   containers in the storm, 20 by default
#	KEEP=DIR                    the node in DIR is used if it runs, and left running

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/e2e/lib/node.sh
. "$here/lib/node.sh"
# shellcheck source=tests/e2e/lib/agent-pods.sh
. "$here/lib/agent-pods.sh"

# The smoke round often runs with a cold cache: containerd 1.7 is a package and is not built.
RUNTIME=${RUNTIME:-$([ -n "${SMOKE:-}" ] && echo containerd-1.7 || echo containerd)}
all="control placement confined drift restarts kill fairness watchdog storm plugin daemonset uninstall node"
tests=${TESTS:-$([ -n "${SMOKE:-}" ] && echo "control placement confined drift" || echo "$all")}
pinfold=$here/../../build/pinfold
top=${KEEP:-$(mktemp -d /tmp/pinfold-node-XXXXXX)}
cp=$top/cp

start_node() {
	cp_start "$top/cp"
	if [ -z "${SMOKE:-}" ]; then
		cp_start_scheduler "$top/cp"
		cp_start_controller_manager "$top/cp"
		NODE_PAYLOAD=("$top/pinfold.tar")
		image_pinfold "$top/pinfold.tar"
	fi
	NODE_PAYLOAD+=("$pinfold" "$here/../../deploy/agent/pinfold-agent.service")
	# shellcheck disable=SC2034  # read by node.sh
	[ -z "${SMOKE:-}" ] || NODE_TOOLS=
	[ "$RUNTIME" != crio-native ] || render_drop_in
	node_start "$top/node" "$top/cp" worker-0 "${RUNTIME%-native}"
	node_wait_ready "$top/node"
	agent_install "--reconcile-interval 86400 --allow-namespace shop"
}

render_drop_in() {
	cat >"$top/profile.yaml" <<-EOF
	apiVersion: performance.openshift.io/v2
	kind: PerformanceProfile
	metadata: {name: test}
	spec:
	  cpu: {reserved: "0-1", shared: "2-3", isolated: "4-7"}
	  nodeSelector: {node-role.kubernetes.io/worker: ""}
	EOF
	"$pinfold" render --target host --asset-input-dir "$top/profile.yaml" --asset-output-dir "$top/rendered"
	NODE_PAYLOAD+=("$top/rendered/worker/rootfs/etc/crio/crio.conf.d")
}

# Without the agent every expectation fails; after its start all of them hold.
test_control() {
	agent_stop
	make_three early
	if [ "$RUNTIME" = crio-native ]; then
		crio_holds early
	else
		all_differ early
	fi
	agent_start
	wait_hold 300 early 4-5
	verify_holds
	is "containers that started without the agent" "$(counter containers_adopted_late)" "$([ "$RUNTIME" = crio-native ] && echo 2 || echo 3)"
}

# With its own drop-in CRI-O places management containers correctly, and no others. infra_ctr_cpuset applies to pause
# processes and monitors.
crio_holds() {
	compare_set "$1" none >"$top/compared"
	is "expectations that hold with CRI-O alone" "$(sed -n 's/^holds \([^ ]*\) \([^p ].*\|pod.*\)$/\1 \2/p' "$top/compared" | sort | tr '\n' ';')" \
		"$1-alone monitor;$1-mgmt cpu.max;$1-mgmt cpu.weight;$1-mgmt cpuset.cpus.effective;$1-mgmt monitor;$1-share monitor;"
}

test_placement() {
	make_three fresh
	all_hold fresh 6-7
	inside_hold fresh 6-7
	verify_holds
	e2e_say "drift corrected: $(counter drift_corrected)"
}

# Another process writes to the cgroups. The agent reconciles once a day only, so it must have been notified.
test_drift() {
	local before
	before=$(counter drift_corrected)
	confine 0-7 early-mgmt early-alone
	in_guest "echo 9 >\$(find /sys/fs/cgroup/kubepods.slice -name '*$(id_of early-mgmt).scope')/../cpu.weight"
	wait_hold 300 early 4-5
	verify_holds
	[ "$(counter drift_corrected)" -ge $((before + 3)) ] || die "drift corrected: $before before, $(counter drift_corrected) after"
}

# After restarts of kubelet, agent and runtime all pods keep their CPUs, and new pods are placed as before.
test_restarts() {
	local service
	for service in kubelet pinfold-agent "$unit"; do
		e2e_say "restart of $service"
		in_guest systemctl restart "$service"
		wait_for 600 agent_ready || die "not ready after a restart of $service"
		wait_hold 300 fresh 6-7
		verify_holds
	done
	remove fresh
	make_three again
	all_hold again 6-7
	remove again
	is "CPU capacity of the Node" "$(kubectl get node worker-0 -o 'jsonpath={.status.capacity.cpu}')" 8
}

test_kill() {
	in_guest systemctl kill -s KILL pinfold-agent
	wait_for 600 agent_ready || die "not ready after SIGKILL"
	wait_hold 300 early 4-5
	verify_holds
}

# Two pods use the same CPU all the time; one has 100m, the other 400m.
test_fairness() {
	local ratio
	agent_stop
	make_burners
	# The control: on the same CPU, without weights.
	confine 1 small large
	ratio=$(measure small large)
	e2e_say "ratio of CPU time of 400m to 100m without the agent: $ratio/100"
	[ "$ratio" -lt 200 ] || die "control: fair without the agent, $ratio/100"
	agent_start
	wait_for 60 has small cpuset.cpus.effective 1 || die "small is not on CPU 1"
	wait_for 60 has large pod/cpu.weight 16 || die "large has no weight"
	ratio=$(measure small large)
	e2e_say "ratio of CPU time of 400m to 100m: $ratio/100"
	if [ "$ratio" -lt 280 ] || [ "$ratio" -gt 560 ]; then die "not fair: $ratio/100, want about 400"; fi
	checks=$((checks + 2))
	kubectl delete pod small large --wait=false >/dev/null
}

# attack: agent-privileges: code in the agent uses capabilities, system calls or files that the agent does not need.
# What is refused is tested by test_confine; this is whether the agent that a service manager starts is confined, too.
confinement() { # PID
	in_guest "cat /proc/$1/task/*/status | grep -E '^(CapPrm|CapEff|CapInh|NoNewPrivs|Seccomp):' | sort -u | tr -s '\\t\\n' ' '"
}
confined="CapEff: 0000000000800000 CapInh: 0000000000000000 CapPrm: 0000000000800000 NoNewPrivs: 1 Seccomp: 2 "
test_confined() {
	is "what all threads of the unit's agent may" "$(confinement "$(in_guest systemctl show -p MainPID --value pinfold-agent)")" "$confined"
	in_guest "journalctl -u pinfold-agent -o cat --no-pager | grep 'process confined.*landlock=[1-9]'" >&2 || die "no Landlock"
	is "operations that were refused" "$(in_guest "journalctl -u pinfold-agent -o cat --no-pager | grep -c 'not permitted' || :")" 0
}

# systemd restarts an agent that hangs. The unit is sandboxed.
test_watchdog() {
	local pid exposure before
	exposure=$(in_guest systemd-analyze security --no-pager pinfold-agent | sed -n 's/.*exposure level for .*: \([0-9]\).*/\1/p')
	e2e_say "exposure by systemd-analyze: $exposure of 10"
	[ "${exposure:-9}" -lt 3 ] || die "exposed: $exposure"
	in_guest 'mkdir -p /run/systemd/system/pinfold-agent.service.d && systemctl stop pinfold-agent &&
		printf "[Service]\nWatchdogSec=10s\n" >/run/systemd/system/pinfold-agent.service.d/test.conf &&
		systemctl daemon-reload && systemctl start pinfold-agent'
	wait_for 600 agent_ready || die "not ready"
	before=$(watchdog_timeouts)
	pid=$(in_guest systemctl show -p MainPID --value pinfold-agent)
	in_guest kill -STOP "$pid"
	wait_for 300 other_pid "$pid" || die "systemd did not restart the agent that hangs"
	wait_for 600 agent_ready || die "not ready after the watchdog restart"
	is "restarts by the watchdog" "$(watchdog_timeouts)" $((before + 1))
	in_guest 'rm -r /run/systemd/system/pinfold-agent.service.d && systemctl daemon-reload'
	verify_soon
}
watchdog_timeouts() { in_guest "journalctl -u pinfold-agent -o cat --no-pager | grep -c 'Watchdog timeout' || :"; }
other_pid() {
	local now
	now=$(in_guest systemctl show -p MainPID --value pinfold-agent) && [ "$now" != 0 ] && [ "$now" != "$1" ]
}

# At least STORM containers in ten pods of all pools start at the same time. Meanwhile the agent is killed and started
# again later; then the runtime is restarted.
test_storm() {
	local more=$(((${STORM:-20} - 2 + 8) / 9 - 1)) n before pod id got
	n=$(((more + 1) * 9 + 2))
	before=$(scopes)
	storm_manifests "$more" | kubectl apply -f - >/dev/null
	wait_for 3600 storm_reached $((n / 3)) || die "the storm does not start"
	in_guest 'systemctl kill -s KILL pinfold-agent; systemctl stop pinfold-agent'
	wait_for 3600 storm_reached $((n / 3 + 6)) || die "the storm makes no progress"
	[ -n "$(in_guest "$storm_guest"$'\n'unpinned)" ] || die "control: nothing is unpinned without the agent"
	pinned_after systemctl start pinfold-agent
	e2e_say "storm: $(counter containers_adopted_late) started without the agent"
	wait_for 3600 storm_reached $((n * 2 / 3)) || die "the storm makes no progress"
	pinned_after systemctl restart "$unit"
	wait_for 3600 storm_runs "$n" || die "containers are missing: $(kubectl get pods | grep storm)"
	verify_soon

	storm_containers >"$top/storm"
	awk '{ print $2, "cpuset.cpus.effective" }' "$top/storm" | values >"$top/values"
	is "containers read" "$(wc -l <"$top/values")" "$n"
	while read -r pod id && read -r got <&3; do
		case $pod in
		*-mgmt*) is "CPUs of $pod $id" "$got" 0-1 ;;
		*-share*) is "CPUs of $pod $id" "$got" 2-3 ;;
		*) echo "$got" ;;
		esac
	done <"$top/storm" 3<"$top/values" >"$top/alone"
	is "exclusive CPUs" "$(sort "$top/alone" | tr '\n' ' ')" "6 7 "
	e2e_say "storm: $n containers; the agent's memory: $(in_guest "grep VmRSS /proc/\$(systemctl show -p MainPID --value pinfold-agent)/status")"
	remove storm 3600
}

# storm_manifests MORE: each pod has MORE + 1 containers; the pod with exclusive CPUs has two.
storm_manifests() {
	local i
	for i in 1 2 3 4 5 6; do
		pod_manifest "storm-mgmt-$i" "$(management "{\"cpushares\":$((100 + i))}" "$1")" '' 'requests: {memory: 1Mi}' "$1"
		echo ---
	done
	for i in 1 2 3; do
		pod_manifest "storm-share-$i" '' '' 'requests: {cpu: 1m, memory: 1Mi}' "$1"
		echo ---
	done
	pod_manifest storm-alone '' '' 'limits: {cpu: 1, memory: 256Mi}' 1
}

# The kubelet reports a pod's containers after it has started the last one, so count cgroups.
scopes() { in_guest "$scopes_there | wc -l"; }
storm_reached() { [ "$(scopes)" -ge $((before + $1)) ]; }

# Lines "POD ID".
storm_containers() {
	kubectl get pods -l set=storm -o 'go-template={{range .items}}{{$pod := .metadata.name}}{{range .status.containerStatuses}}{{if .state.running}}{{$pod}} {{.containerID}}{{"\n"}}{{end}}{{end}}{{end}}' |
		sed 's, .*//, ,'
}
storm_runs() { [ "$(storm_containers | wc -l)" = "$1" ]; }

# For the guest's shell: unpinned lists containers that run and may use all CPUs (runc's own process only waits), and settled
# prints for how many milliseconds there are any. One scan takes seconds here, so only what two scans find counts.
storm_guest=$(cat <<-'EOF'
	unpinned() {
		grep -rlx 0-7 /sys/fs/cgroup/kubepods.slice --include=cpuset.cpus.effective | grep '[.]scope/' | grep -v conmon |
			while read -r at; do
				pid=$(head -n 1 "${at%/*}/cgroup.procs" 2>/dev/null)
				case ${pid:+$(cat "/proc/$pid/comm" 2>/dev/null)} in '' | runc*) ;; *) echo "$at" ;; esac
			done
	}
	settled() {
		began=$(date +%s%3N)
		last=$(unpinned)
		while :; do
			seen=$(date +%s%3N)
			next=$(unpinned)
			[ -n "$(printf '%s\n' $last $next | sort | uniq -d)" ] && [ $((seen - began)) -lt 60000 ] || break
			last=$next
		done
		echo $((seen - began))
	}
EOF
)

# pinned_after COMMAND...: runs it in the guest; soon after that nothing is unpinned. An emulated machine needs seconds.
pinned_after() {
	local ms
	ms=$(in_guest "$storm_guest"$'\n'"$* && until $ready_there; do :; done && settled")
	e2e_say "storm: $*: nothing unpinned $ms ms after the agent was ready"
	[ "$ms" -lt 10000 ] || die "$*: containers were unpinned for $ms ms"
	checks=$((checks + 1))
}

# The runtime starts the program as a plugin, without arguments.
test_plugin() {
	agent_stop
	in_guest "mkdir -p /opt/nri/plugins && cp /usr/local/bin/pinfold /opt/nri/plugins/90-pinfold && systemctl restart $unit"
	wait_for 600 agent_ready || die "the runtime did not start the plugin"
	is "parent of the agent" "$(in_guest "ps -o comm= -p \$(ps -o ppid= -p \$(pgrep -f ^/opt/nri/plugins/90-pinfold))")" "$unit"
	make_three plugin
	all_hold plugin 6-7
	verify_holds
	remove plugin
	in_guest "rm /opt/nri/plugins/90-pinfold && systemctl restart $unit"
	wait_for 120 agent_gone || die "the agent runs after its plugin file is removed"
	checks=$((checks + 1))
}
agent_gone() { ! agent_ready; }

# The API server cannot be reached from its pod (there is no kube-proxy): pinning works without it.
test_daemonset() {
	local part
	agent_stop
	for part in namespace rbac daemonset; do
		sed 's,image: pinfold:latest,image: localhost/pinfold:1\n        imagePullPolicy: Never,; s/args: \[agent,/& --allow-namespace=shop,/' "$here/../../deploy/agent/$part.yaml"
		echo ---
	done | kubectl apply -f - >/dev/null
	wait_for 900 daemon_ready || die "the DaemonSet is not ready: $(kubectl -n pinfold-agent describe pods | tail -n 12)"
	is "what all threads of the DaemonSet's agent may" "$(confinement "$(in_guest pgrep -f "'pinfold agent'")")" "$confined"
	make_three daemon
	all_hold daemon 6-7
	verify_holds
	remove daemon
	kubectl -n pinfold-agent delete daemonset pinfold-agent --wait=false >/dev/null
	wait_for 600 agent_gone || die "the DaemonSet's agent does not end"
	agent_start
	checks=$((checks + 1))
}
daemon_ready() { [ "$(kubectl -n pinfold-agent get daemonset pinfold-agent -o 'jsonpath={.status.numberReady}')" = 1 ]; }

test_uninstall() {
	agent_stop
	in_guest pinfold agent --uninstall
	is "CPUs after --uninstall" "$(value early-mgmt cpuset.cpus.effective)" 0-7
}

# With the kubelet's identity, before the kubelet starts: the Node exists with its resources, and keeps them when the
# kubelet finds it and restarts.
test_node() {
	local round
	in_guest 'echo "PINFOLD_AGENT_FLAGS=--reconcile-interval 86400 --kubeconfig /payload/kubeconfig --register" >/etc/default/pinfold-agent &&
		systemctl stop kubelet pinfold-agent'
	kubectl delete node worker-0 >/dev/null
	agent_start
	wait_for 300 has_resources || die "the agent did not register the Node: $(resources)"
	prints "kubelet version before the kubelet starts" '' kubectl get node worker-0 -o 'jsonpath={.status.nodeInfo.kubeletVersion}'
	in_guest systemctl start kubelet
	node_wait_ready "$top/node" || die "the kubelet does not accept the Node"
	wait_for 120 has_resources || die "resources lost when the kubelet started: $(resources)"
	for round in 1 2; do
		in_guest systemctl restart kubelet
		node_wait_ready "$top/node" || die "restart $round: not ready"
		wait_for 120 has_resources || die "restart $round: resources lost: $(resources)"
	done
	is "CPU capacity after registration" "$(kubectl get node worker-0 -o 'jsonpath={.status.capacity.cpu}')" 8
	make_three home
	verify_holds
	checks=$((checks + 4))
}
resources() {
	local part
	for part in capacity allocatable; do
		kubectl get node worker-0 -o "jsonpath={.status.$part.management\.workload\.openshift\.io/cores} {.status.$part.openshift\.io/shared-cpus} {.status.$part.openshift\.io/guaranteed-cpus};"
	done
}
has_resources() { [ "$(resources 2>/dev/null)" = "8k 2k 4k;8k 2k 4k;" ]; }

if [ -z "${KEEP:-}" ] || ! process_alive "$top/node" qemu; then
	# Expanded now: a trap must not depend on what a test does to "top".
	# shellcheck disable=SC2064
	[ -n "${KEEP:-}" ] || trap "node_stop '$top/node'; cp_stop '$top/cp'; rm -rf '$top'" EXIT
	start_node
fi
for t in $tests; do
	e2e_say "$RUNTIME: $t ($SECONDS s)"
	"test_$t"
done
echo "agent-node.sh: $RUNTIME, $checks checks passed in $SECONDS s"
