#!/bin/bash
#
# Host files of a profile, from the annotation to the restart: a real API server, containerd, operator and agent. The host that the
# agent configures is a directory, and tests/e2e/host/systemd.py is its systemd, because units cannot be restarted here;
# host-node.sh does it in a guest. report -> managed -> grant -> restart -> reboot -> profile deleted -> --uninstall. Needs root.

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
# shellcheck source=tests/e2e/lib/native-runtime.sh
. "$here/lib/native-runtime.sh"
# shellcheck source=tests/e2e/lib/operator.sh
. "$here/lib/operator.sh"
# shellcheck source=tests/e2e/lib/native-agent.sh
. "$here/lib/native-agent.sh"

name=worker-0
drop_in=etc/kubernetes/kubelet.conf.d/50-pinfold.conf
LIMIT=60

# A host of kubeadm on which nothing of Pinfold is installed, except that its kubelet has a drop-in of that name already.
make_host() {
	mkdir -p "$host"/etc/{containerd,kubernetes/kubelet.conf.d,systemd/system,tuned} "$host"/{proc/irq,run/systemd/units,usr/local} \
		"$host/sys/devices/virtual/workqueue" "$host/var/lib/kubelet"
	echo root:x:0:0:: >"$host/etc/passwd"
	echo '# of the administrator' >"$host/$drop_in"
	chmod 640 "$host/$drop_in"
	echo balanced >"$host/etc/tuned/active_profile"
	echo 3 >"$host/proc/irq/default_smp_affinity"
	echo 3 >"$host/sys/devices/virtual/workqueue/cpumask"
	echo 'BOOT_IMAGE=/vmlinuz ro quiet' >"$host/proc/cmdline"
	echo '{"policyName":"none","defaultCpuSet":"","checksum":0}' >"$host/var/lib/kubelet/cpu_manager_state"
	for unit in kubelet containerd; do ln -s first "$host/run/systemd/units/invocation:$unit.service"; done
	process_start "$dir" systemd python3 "$here/host/systemd.py" "$host"
}
# Every file, with its mode and content.
host_files() { (cd "$host" && find etc usr -type f -printf '%m %p\n' -exec sha256sum {} + | sort); }

# shellcheck disable=SC2317
changed_files() { host_files | diff "$dir/before" - || :; }

start() {
	cp_start "$cp"
	op_install "$cp"
	op_account "$cp"
	kubectl apply -f deploy/base/policy-nodepartitions.yaml -f deploy/agent/namespace.yaml -f deploy/agent/rbac.yaml -f deploy/agent/policy.yaml >/dev/null
	wait_for 30 kubectl -n pinfold-agent get serviceaccount pinfold-agent >/dev/null 2>&1 || kubectl -n pinfold-agent create serviceaccount pinfold-agent >/dev/null
	kubectl create -f - >/dev/null <<-EOF
	{apiVersion: v1, kind: Node, metadata: {name: $name, labels: {node-role.kubernetes.io/worker: ""}}}
	EOF
	kubectl patch node "$name" --subresource status --type merge \
		-p '{"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","message":"","lastHeartbeatTime":"2026-01-01T00:00:00Z","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}' >/dev/null
	agent_kubeconfig "$dir/agent.kubeconfig" "$name"
	op_start "$dir" operator "$cp"
	host_begin
}
# In a PID namespace of its own: without systemd the live configuration sets the affinity of every process that it sees.
host_begin() {
	process_start "$dir" agent unshare --pid --fork --kill-child --mount-proc "$pinfold" agent --run-dir "$dir/run" --state-dir "$dir/kept" \
		--kubelet-state "$host/var/lib/kubelet/cpu_manager_state" --distro kubeadm --nri-socket "$dir/nri.sock" --cgroup-root /sys/fs/cgroup --node-name "$name" --kubeconfig "$dir/agent.kubeconfig" \
		--pools-file "$dir/pools" --marker-file "$dir/marker" --host-configuration "${1:-managed}" --host-root "$host"
	wait_ready "$dir" agent 60 agent_ready || die "the agent is not ready"
}
host_end() { # SIGKILL to the agent: unshare ends with it
	pkill -KILL -P "$(cut -d' ' -f1 "$dir/agent.pid")" || :
	wait "$(cut -d' ' -f1 "$dir/agent.pid")" 2>/dev/null || :
	rm -f "$dir/agent.pid"
}
profile() { # [ANNOTATION: VALUE...]
	kubectl apply -f - >/dev/null <<-EOF
	apiVersion: performance.openshift.io/v2
	kind: PerformanceProfile
	metadata: {name: worker, annotations: {$(IFS=,; echo "$*")}}
	spec: {cpu: {reserved: "0", isolated: "1"}, nodeSelector: {node-role.kubernetes.io/worker: ""}}
	EOF
}
np() { kubectl get np "$name" -o "jsonpath={.status$1}"; }
# shellcheck disable=SC2317  # called by name, as most of the following
configured() { np '.conditions[?(@.type=="HostConfigured")].status}:{.status.conditions[?(@.type=="HostConfigured")].reason'; }
# "KubeletRestart+ Reboot": with a hash, without.
# shellcheck disable=SC2317
pending() { kubectl get np "$name" -o json | jq -r '[.status.pending[]? | .what + (if (.hash // "") == "" then "" else "+" end)] | join(" ")'; }
granted() { kubectl get np "$name" -o 'jsonpath={.spec.granted}'; }
# shellcheck disable=SC2317
calls() { grep -v '^Reload\|UnitFiles\|TryRestart' "$host/calls" | tr '\n' ' ' | sed 's/ $//'; }
message() { kubectl get np "$name" -o json | jq -r ".status.pending[]? | select(.what == \"$1\") | .message"; }
# shellcheck disable=SC2317
why_not() { message KubeletRestart | sed 's/.*not applied: //'; }
# shellcheck disable=SC2317
node_annotation() { kubectl get node "$name" -o "jsonpath={.metadata.annotations.pinfold\\.io/$1}"; }

test_report() {
	host_files >"$dir/before"
	profile
	soon "what differs is reported" "RuntimeRestart KubeletRestart Reboot" pending
	soon "the condition" False:HostFilesNotManaged configured
	soon "the message names the files and the reason" "the profile has no annotation pinfold.io/host-configuration: managed" why_not
	is "the files" "$(message KubeletRestart | sed 's/;.*//')" \
		"/$drop_in differs, /etc/systemd/system/kubelet.service.d/50-pinfold.conf is missing"
	sleep 5
	is "a reboot would not help" "$(node_annotation reboot-required)" ''
	is "what is granted" "$(granted)" ''
	is "changed files" "$(changed_files)" ''
	is "calls of systemd" "$(cat "$host/calls" 2>/dev/null || :)" ''
	echo "  agent $(rss) kB" >&2
}
rss() { awk '/VmRSS/ { print $2 }' "/proc/$(pgrep -P "$(cut -d' ' -f1 "$dir/agent.pid")")/status"; }

# An agent that may not write says so, and offers nothing to the operator.
test_live() {
	host_end
	host_begin live
	profile 'pinfold.io/host-configuration: managed'
	soon "an agent that may not write" "RuntimeRestart KubeletRestart Reboot" pending
	soon "and why" "the agent runs without --host-configuration=managed" why_not
	is "changed files" "$(changed_files)" ''
	profile
	host_end
	host_begin
}

# The operator permits one restart after the other. The second one hangs, and the agent is killed.
test_managed() {
	profile 'pinfold.io/host-configuration: managed' 'pinfold.io/paused: "true"'
	soon "with a hash everything can be granted" "RuntimeRestart+ KubeletRestart+ Reboot+" pending
	is "files that disturb nothing" "$(tr '\n' ' ' <"$host/etc/systemd/system/system.slice.d/50-pinfold.conf")" "[Slice] AllowedCPUs=0 "
	is "the profile of TuneD" "$(cat "$host/etc/tuned/active_profile")" pinfold
	is "the kubelet's file" "$(cat "$host/$drop_in")" '# of the administrator'
	soon "the boot loader" "StartUnit pinfold-kernel-args@update.service" calls
	soon "the sentinel" "pinfold: kernel arguments or units that run at boot have changed" cat "$host/run/reboot-required"
	is "what is granted while the rollout is paused" "$(granted)" ''
	: >"$host/hold"
	profile 'pinfold.io/host-configuration: managed'
	soon "the runtime's restart hangs" RuntimeNotRestarted np '.pending[0].reason'
	[ -s "$host/etc/containerd/conf.d/50-pinfold.toml" ] || die "containerd's file is not written"
	host_end
	rm "$host/hold"
	host_begin
	soon "all restarts are applied" "Reboot+" pending
	soon "each unit was restarted as granted" "StartUnit pinfold-kernel-args@update.service RestartUnit containerd.service RestartUnit containerd.service RestartUnit kubelet.service" calls
	grep -q KubeletConfiguration "$host/$drop_in" || die "the kubelet's file is not written"
	grep -q 'reservedSystemCPUs: "0"' "$host/$drop_in" || grep -q reservedSystemCPUs "$host/$drop_in" || die "the kubelet's file: $(cat "$host/$drop_in")"
	is "the kubelet's state of another policy" "$(ls "$host/var/lib/kubelet")" ''
	soon "the grant is withdrawn" '' granted
	soon "the hash on the Node" "$(np '.pending[0].hash')" node_annotation reboot-required
	soon "the condition" False:HostChangesWait configured
	sleep 5
	is "the operator reboots nothing" "$(grep -c reboot.target "$host/calls" || :)" 0
	echo "  agent $(rss) kB, $(grep -E 'RssAnon|RssFile' "/proc/$(pgrep -P "$(cut -d' ' -f1 "$dir/agent.pid")")/status" | tr -s '\t\n ' ' ')" >&2
	[ "$(rss)" -le 6144 ] || die "the agent has $(rss) kB"
	checks=$((checks + 2))
}

# A kubelet that has become static assigns exclusive CPUs itself: the agent starts anew and leaves that to it.
test_policy() {
	echo '{"policyName":"static","defaultCpuSet":"0-1","checksum":0}' >"$host/var/lib/kubelet/cpu_manager_state"
	wait_for 30 process_gone "$dir" agent || die "the agent does not notice the kubelet's policy"
	rm -f "$dir/agent.pid"
	host_begin
	soon "what assigns exclusive CPUs" kubelet agent_status .cpuManager.assigns
	checks=$((checks + 1))
}

test_reboot() {
	profile 'pinfold.io/host-configuration: managed' 'pinfold.io/reboot: operator'
	# shellcheck disable=SC2317
	reboots() { grep -c 'StartUnit reboot.target' "$host/calls" || :; }
	soon "the reboot is requested when it is granted" 1 reboots
	[ ! -e "$host/run/reboot-required" ] || die "the sentinel stays"
	# After the reboot the kernel has its arguments.
	echo "BOOT_IMAGE=/vmlinuz ro quiet $(tr '\n' ' ' <"$host/etc/pinfold/kernel-args")" >"$host/proc/cmdline"
	soon "nothing waits" '' pending
	soon "the condition" True:HostConfigured configured
	soon "the grant is withdrawn" '' granted
	soon "the Node" '' node_annotation reboot-required
	# Another program changes a file: it waits for a grant again, and is restored with it.
	profile 'pinfold.io/host-configuration: managed' 'pinfold.io/paused: "true"'
	echo '# changed' >>"$host/$drop_in"
	soon "drift waits for a grant" "KubeletRestart+" pending
	profile 'pinfold.io/host-configuration: managed'
	soon "and is corrected" '' pending
	is "the file" "$(grep -c '# changed' "$host/$drop_in" || :)" 0
}

test_deleted() {
	kubectl delete performanceprofile worker >/dev/null
	soon "without a profile the files go back, with grants" '' changed_files
	# Not what the live configuration leaves: process 1 of the namespace is the agent, whose affinity stays.
	# shellcheck disable=SC2317
	waiting() { pending | grep -o '[A-Za-z]*+' || :; }
	soon "nothing waits" '' waiting
	soon "and the grant is withdrawn" '' granted
	[ ! -e "$dir/kept/host-files.json" ] || die "the record stays"
	checks=$((checks + 1))
}

test_uninstall() {
	profile 'pinfold.io/host-configuration: managed'
	# shellcheck disable=SC2317
	managed_again() { grep -c KubeletConfiguration "$host/$drop_in" || :; }
	soon "managed again" 1 managed_again
	soon "nothing waits" '' pending
	process_stop "$dir" operator
	host_end
	"$pinfold" agent --uninstall --run-dir "$dir/run" --state-dir "$dir/kept" --distro kubeadm --node-name "$name" --kubeconfig "$dir/agent.kubeconfig" \
		--host-root "$host" 2>>"$dir/logs/agent.log" || die "uninstall: $(tail -n 3 "$dir/logs/agent.log")"
	is "files after --uninstall" "$(changed_files)" ''
	is "the state directory" "$(ls -A "$dir/kept")" ''
}

dir=$(mktemp -d /tmp/pinfold-managed-XXXXXX)
host=$dir/host cp=$dir
trap 'process_stop "$dir" agent; process_stop "$dir" operator; process_stop "$dir" systemd; native_stop "$dir"; cp_stop "$cp"; [ -n "${KEEP:-}" ] || rm -rf "$dir"' EXIT
make_host
native_start "$dir"
start
for t in ${TESTS:-report live managed policy reboot deleted uninstall}; do
	echo "$t ($SECONDS s)" >&2
	"test_$t"
done
echo "managed.sh: $checks checks passed in $SECONDS s"
