#!/bin/bash
#
# The live configuration of the host beside a stock kubelet in a guest that is never rebooted (cgroup v2, systemd): before,
# processes of the host may run on exclusive CPUs; after, verify --strict finds none. Reloads of systemd, new units and
# interrupts do not undo it, a killed agent leaves nothing behind, and --uninstall restores every cpuset, affinity and mask.
# Last, host files: with pinfold.io/host-configuration: managed the operator permits restarts, and the kubelet reserves the CPUs.
#
#	RUNTIME=containerd-1.7   or containerd, crio
#	KEEP=DIR                 the node in DIR is used if it runs, and left running
#	TESTS="before live"      these only

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/e2e/lib/node.sh
. "$here/lib/node.sh"
# shellcheck source=tests/e2e/lib/operator.sh
. "$here/lib/operator.sh"
# shellcheck source=tests/e2e/lib/agent-pods.sh
. "$here/lib/agent-pods.sh"

RUNTIME=${RUNTIME:-containerd-1.7}
tests=${TESTS:-before live keeps killed resize interrupts uninstall daemonset managed}
pinfold=$here/../../build/pinfold
top=${KEEP:-$(mktemp -d /tmp/pinfold-host-XXXXXX)}
mkdir -p "$top"
# shellcheck disable=SC2034  # used by agent-pods.sh
cp=$top/cp

start_node() {
	cp_start "$top/cp"
	cp_start_scheduler "$top/cp"
	cp_start_controller_manager "$top/cp"
	image_pinfold "$top/pinfold.tar"
	# shellcheck disable=SC2034  # read by node.sh
	NODE_PAYLOAD=("$top/pinfold.tar" "$pinfold" "$here/../../deploy/agent/pinfold-agent.service" "$here/../../deploy/agent/managed.conf")
	# shellcheck disable=SC2034
	NODE_TOOLS=
	node_start "$top/node" "$top/cp" worker-0 "$RUNTIME"
	node_wait_ready "$top/node"
	agent_install "--allow-namespace shop --host-configuration=off"
	in_guest cat /proc/sys/kernel/random/boot_id >"$top/boot-id"
}
flags() { in_guest "echo 'PINFOLD_AGENT_FLAGS=--allow-namespace shop $1' >/etc/default/pinfold-agent"; }

host_state() { node_host_state "$top/node"; }
foreign() { in_guest 'pinfold verify -o json' | tr -d ' \n' | grep -o '"pid":[0-9]*' | wc -l; }
strict_ok() { in_guest pinfold verify --strict >"$top/verify.out" 2>&1; }
strict_holds() {
	wait_for 60 strict_ok || die "verify --strict: $(cat "$top/verify.out"; explain)"
	checks=$((checks + 1))
}
configured() { in_guest pinfold status -o json | tr -d ' \n' | grep -q '"host":{[^}]*"configured":true'; }
all_configured() {
	wait_for 120 configured || die "not configured: $(in_guest pinfold status; explain)"
	checks=$((checks + 1))
}
# Interrupts that may use a guaranteed CPU.
stray_interrupts() { in_guest "grep -l '[4-7]' /proc/irq/*/smp_affinity_list | wc -l"; }
refused() { in_guest pinfold status -o json | tr -d ' \n' | sed 's/.*"interruptsRefused":\([0-9]*\).*/\1/'; }
unit_cpus() { in_guest "cat /sys/fs/cgroup/$1/cpuset.cpus.effective"; }
has_unit_cpus() { [ "$(unit_cpus "$1")" = "$2" ]; }

# The control: without the live configuration there are foreign processes.
test_before() {
	host_state >"$top/before"
	agent_start
	pod_manifest alone '' '' 'requests: {cpu: 2, memory: 256Mi}, limits: {cpu: 2, memory: 256Mi}' | kubectl apply -f - >/dev/null
	wait_running alone
	is "exclusive CPUs" "$(value alone cpuset.cpus.effective)" 4-5
	if strict_ok; then die "control: verify --strict passes without the live configuration"; fi
	foreign >"$top/foreign"
	stray_interrupts >"$top/stray"
	e2e_say "before: $(cat "$top/foreign") foreign processes, $(cat "$top/stray") interrupts that may use guaranteed CPUs"
	[ "$(cat "$top/foreign")" -gt 0 ] || die "control: no foreign process: $(cat "$top/verify.out")"
	checks=$((checks + 2))
}

test_live() {
	local refused unit
	flags ''
	in_guest systemctl restart pinfold-agent
	wait_for 600 agent_ready || die "the agent is not ready"
	all_configured
	strict_holds
	is "foreign processes" "$(foreign)" 0
	for unit in system.slice user.slice init.scope; do is "CPUs of $unit" "$(unit_cpus $unit)" 0-1; done
	is "mask of workqueues" "$(in_guest 'cat /sys/devices/virtual/workqueue/cpumask')" 0f
	is "mask of new interrupts" "$(in_guest 'cat /proc/irq/default_smp_affinity')" 0f
	refused=$(refused)
	is "interrupts on guaranteed CPUs, all of them refused by the kernel" "$(stray_interrupts)" "$refused"
	e2e_say "after: no foreign process, $refused interrupts that the kernel does not move"
	[ "$refused" -lt "$(cat "$top/stray")" ] || die "no interrupt was moved"
	is "operations that were refused" "$(in_guest "journalctl -o cat --no-pager _SYSTEMD_INVOCATION_ID=\$(systemctl show -p InvocationID --value pinfold-agent) |
		grep -c 'not permitted\|not configured completely' || :")" 0
	is "boot" "$(in_guest cat /proc/sys/kernel/random/boot_id)" "$(cat "$top/boot-id")"
}

# What systemd and devices do by themselves.
test_keeps() {
	local device
	in_guest 'systemctl daemon-reload && systemd-run -q --unit=later sleep infinity &&
		systemctl set-property --runtime system.slice CPUWeight=90 && systemd-run -q --unit=apart --slice=apart sleep infinity'
	is "CPUs of a new service" "$(in_guest "sed -n 's/^Cpus_allowed_list:\t//p' /proc/\$(systemctl show -p MainPID --value later)/status")" 0-1
	wait_for 60 has_unit_cpus apart.slice 0-1 || die "a new slice has CPUs $(unit_cpus apart.slice)"
	is "CPUs of system.slice after a reload" "$(unit_cpus system.slice)" 0-1
	in_guest 'echo 6 >/proc/irq/$(awk -F: "/virtio.*input/ { print \$1 + 0; exit }" /proc/interrupts)/smp_affinity_list'
	wait_for 60 interrupts_settled || die "an interrupt stays on guaranteed CPUs"
	device=$(in_guest 'ls /sys/bus/virtio/drivers/virtio_rng | grep ^virtio')
	in_guest "cd /sys/bus/virtio/drivers/virtio_rng && echo $device >unbind && echo $device >bind"
	wait_for 60 interrupts_settled || die "a new interrupt may use guaranteed CPUs"
	strict_holds
	in_guest 'systemctl stop later apart apart.slice; systemctl set-property --runtime system.slice CPUWeight=; rm -f /run/systemd/system.control/system.slice.d/50-CPUWeight.conf; systemctl daemon-reload'
	checks=$((checks + 3))
}
interrupts_settled() { [ "$(stray_interrupts)" = "$(refused)" ]; }

# A killed agent leaves the host as it is, and the next one the record.
test_killed() {
	local record
	record=$(in_guest cat /var/lib/pinfold/host-originals.json)
	in_guest systemctl kill -s KILL pinfold-agent
	wait_for 600 agent_ready || die "the agent is not ready"
	all_configured
	is "the record after a kill" "$(in_guest cat /var/lib/pinfold/host-originals.json)" "$record"
	strict_holds
}

test_resize() {
	in_guest 'echo "{\"reserved\":\"0-2\",\"shared\":\"3\",\"guaranteed\":\"4-7\"}" >/etc/kubernetes/openshift-cpu-pools'
	wait_for 60 has_unit_cpus system.slice 0-2 || die "the services were not resized"
	in_guest 'echo "{\"reserved\":\"0-1\",\"shared\":\"2-3\",\"guaranteed\":\"4-7\"}" >/etc/kubernetes/openshift-cpu-pools'
	wait_for 60 has_unit_cpus system.slice 0-1 || die "the services were not resized back"
	checks=$((checks + 2))
	strict_holds
}

interrupt_lines() { sed -n '/^default:/p; /^.proc.irq/p' "$@"; }

# --interrupts=keep restores interrupts, and only these.
test_interrupts() {
	flags --interrupts=keep
	in_guest systemctl restart pinfold-agent
	wait_for 600 agent_ready || die "the agent is not ready"
	all_configured
	is "interrupts with --interrupts=keep" "$(host_state | interrupt_lines)" "$(interrupt_lines "$top/before")"
	is "CPUs of system.slice with --interrupts=keep" "$(unit_cpus system.slice)" 0-1
	flags ''
	in_guest systemctl restart pinfold-agent
	wait_for 600 agent_ready || die "the agent is not ready"
	all_configured
	wait_for 60 interrupts_settled || die "interrupts were not moved again"
}

test_uninstall() {
	agent_stop
	is "CPUs of system.slice without an agent" "$(unit_cpus system.slice)" 0-1
	in_guest pinfold agent --uninstall || die "uninstall"
	restored
}
restored() {
	host_state >"$top/after"
	diff "$top/before" "$top/after" >&2 || die "the host is not as before"
	prints "the record after --uninstall" '' in_guest 'ls -A /var/lib/pinfold'
}

# The same from a container.
test_daemonset() {
	local part
	for part in namespace rbac daemonset; do
		sed 's,image: pinfold:latest,image: localhost/pinfold:1\n        imagePullPolicy: Never,; s/args: \[agent,/& --allow-namespace=shop,/' "$here/../../deploy/agent/$part.yaml"
		echo ---
	done | kubectl apply -f - >/dev/null
	wait_for 900 daemon_ready || die "the DaemonSet is not ready: $(kubectl -n pinfold-agent describe pods | tail -n 12)"
	all_configured
	strict_holds
	is "CPUs of system.slice" "$(unit_cpus system.slice)" 0-1
	wait_for 60 interrupts_settled || die "interrupts are on guaranteed CPUs"
	kubectl -n pinfold-agent delete daemonset pinfold-agent --wait=false >/dev/null
	wait_for 600 agent_gone || die "the DaemonSet's agent does not end"
	in_guest pinfold agent --uninstall || die "uninstall"
	restored
}
# Host files with the real kubelet, as a unit. The kubelet's own unit is like kubeadm's, whose variable the files set.
managed_node() {
	flags '--distro=kubeadm --node-name=worker-0 --kubeconfig=/etc/kubernetes/kubelet.conf'
	in_guest "$(cat <<-'EOF'
	set -e
	mkdir -p /etc/systemd/system/kubelet.service.d /etc/systemd/system/pinfold-agent.service.d
	cp /payload/kubelet.yaml /var/lib/kubelet/config.yaml
	start=$(sed -n 's,^ExecStart=\(.*\) --config /payload/kubelet.yaml,ExecStart=\1 $KUBELET_CONFIG_ARGS,p' /etc/systemd/system/kubelet.service)
	printf '[Service]\nEnvironment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"\nExecStart=\n%s\n' "$start" >/etc/systemd/system/kubelet.service.d/10-kubeadm.conf
	cp /payload/extra/managed.conf /etc/systemd/system/pinfold-agent.service.d/
	rm /etc/kubernetes/openshift-cpu-pools
	systemctl daemon-reload
	systemctl restart kubelet
	find /etc /usr/local -type f -exec sha256sum {} + | sort >/root/files
	EOF
	)"
	(cd "$here/../.." && op_install "$cp" && op_account "$cp" && kubectl apply -f deploy/base/policy-nodepartitions.yaml >/dev/null)
	op_start "$top" operator "$cp"
}
managed_profile() { # ANNOTATION: VALUE...
	kubectl apply -f - >/dev/null <<-EOF
	apiVersion: performance.openshift.io/v2
	kind: PerformanceProfile
	metadata: {name: worker, annotations: {$(IFS=,; echo "$*")}}
	spec: {cpu: {reserved: 0-1, shared: 2-3, isolated: 4-7}, nodeSelector: {node-role.kubernetes.io/worker: ""}}
	EOF
}
allocatable_is() { [ "$(kubectl get node worker-0 -o 'jsonpath={.status.allocatable.cpu}')" = "$1" ]; }
pending_has() { kubectl get np worker-0 -o json | jq -e --arg what "$1" '.status.pending[]? | select(.what == $what)' >/dev/null; }
pending_has_not() { kubectl get np worker-0 -o json | jq -e --arg what "$1" '[.status.pending[]? | select(.what == $what)] == []' >/dev/null; }
invocation() { in_guest systemctl show -p InvocationID --value "$1"; }
report() { kubectl get np worker-0 -o yaml; explain; }

test_managed() {
	local kubelet runtime container
	managed_node
	kubectl label node worker-0 --overwrite node-role.kubernetes.io/worker= >/dev/null
	node_wait_ready "$top/node"
	allocatable_is 8 || die "control: allocatable CPUs $(kubectl get node worker-0 -o 'jsonpath={.status.allocatable.cpu}')"
	kubelet=$(invocation kubelet) runtime=$(invocation "$unit")
	managed_profile
	agent_start
	wait_for 120 pending_has KubeletRestart || die "nothing is reported: $(report)"
	is "files that a report changes" "$(in_guest 'find /etc /usr/local -type f -exec sha256sum {} + | sort | diff /root/files -')" ''
	is "the kubelet while files are only reported" "$(invocation kubelet)" "$kubelet"
	container=$(in_guest "$scopes_there" | sort)

	managed_profile 'pinfold.io/host-configuration: managed'
	wait_for 300 allocatable_is 6 || die "the kubelet does not reserve the management CPUs: $(report)"
	wait_for 120 pending_has_not KubeletRestart || die "the restart still waits: $(report)"
	wait_for 120 pending_has_not RuntimeRestart || die "the runtime's restart still waits: $(report)"
	node_wait_ready "$top/node"
	[ "$(invocation kubelet)" != "$kubelet" ] || die "the kubelet was not restarted"
	[ "$(invocation "$unit")" != "$runtime" ] || die "the runtime was not restarted"
	is "containers after the restarts" "$(in_guest "$scopes_there" | sort)" "$container"
	is "operations that were refused" "$(in_guest "journalctl -o cat --no-pager _SYSTEMD_INVOCATION_ID=\$(systemctl show -p InvocationID --value pinfold-agent) |
		grep -c 'not permitted\|cannot configure host files' || :")" 0
	checks=$((checks + 6))

	agent_stop
	process_stop "$top" operator
	in_guest pinfold agent --uninstall --distro=kubeadm --node-name=worker-0 --kubeconfig=/etc/kubernetes/kubelet.conf || die "uninstall"
	is "files after --uninstall" "$(in_guest 'find /etc /usr/local -type f -exec sha256sum {} + | sort | diff /root/files -')" ''
	restored
	in_guest systemctl restart kubelet
	wait_for 120 allocatable_is 8 || die "the kubelet still reserves CPUs"
	checks=$((checks + 1))
}

daemon_ready() { [ "$(kubectl -n pinfold-agent get daemonset pinfold-agent -o 'jsonpath={.status.numberReady}')" = 1 ]; }
agent_gone() { ! agent_ready; }

[ -n "${KEEP:-}" ] || trap 'process_stop "$top" operator; node_stop "$top/node"; cp_stop "$top/cp"; rm -rf "$top"' EXIT
if ! { [ -e "$top/node/node" ] && guest_is_up "$top/node"; }; then start_node; fi
for t in $tests; do
	e2e_say "$RUNTIME: $t ($SECONDS s)"
	"test_$t"
done
echo "host-node.sh: $RUNTIME, $checks checks passed in $SECONDS s"
