#!/bin/bash
#
# Static pods, pool resizes and isolated partitions beside a stock kubelet in a guest (cgroup v2, systemd driver,
# Debian 13's kernel): a static pod that opts in is converted in place, accounted in cores and pinned, also after a
# reboot; exclusive CPUs are an isolated partition; --uninstall reverts all of it.
#
#	RUNTIME=containerd-1.7   or containerd, crio
#	KEEP=DIR                 the node in DIR is used if it runs, and left running
#	TESTS="static reboot"    these only

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/e2e/lib/node.sh
. "$here/lib/node.sh"
# shellcheck source=tests/e2e/lib/agent-pods.sh
. "$here/lib/agent-pods.sh"

RUNTIME=${RUNTIME:-containerd-1.7}
tests=${TESTS:-control static resize isolated reboot uninstall}
pinfold=$here/../../build/pinfold
top=${KEEP:-$(mktemp -d /tmp/pinfold-node-features-XXXXXX)}
cp=$top/cp
manifest=/etc/kubernetes/manifests/static.yaml
original=/etc/kubernetes/manifests/.static.yaml.pinfold-original

start_node() {
	cp_start "$top/cp"
	# shellcheck disable=SC2034  # read by node.sh
	NODE_PAYLOAD=("$pinfold" "$here/../../deploy/agent/pinfold-agent.service"
		"$here/../../deploy/agent/isolated-partitions.conf")
	# shellcheck disable=SC2034
	NODE_TOOLS=
	node_start "$top/node" "$top/cp" worker-0 "$RUNTIME"
	node_wait_ready "$top/node"
	agent_install "--static-pods /etc/kubernetes/manifests --isolated-partitions --kubeconfig /etc/kubernetes/kubeconfig --node-name worker-0"
	in_guest 'cp /payload/kubeconfig /etc/kubernetes/kubeconfig &&
		mkdir -p /etc/systemd/system/pinfold-agent.service.d &&
		cp /payload/extra/isolated-partitions.conf /etc/systemd/system/pinfold-agent.service.d/ &&
		systemctl daemon-reload && systemctl -q enable pinfold-agent'
}

static_manifest() {
	pod_manifest static "target.workload.openshift.io/management: '{\"effect\":\"PreferredDuringScheduling\"}'" '' \
		'requests: {cpu: 300m, memory: 64Mi}, limits: {cpu: 400m}' |
		sed '/nodeName:/d; s/^  name: static$/&\n  namespace: shop/'
}
cores_of() {
	kubectl get pod static-worker-0 -o 'jsonpath={.spec.containers[0].resources.requests.management\.workload\.openshift\.io/cores}'
}
is_converted() { [ "$(cores_of 2>/dev/null)" = 300 ] && all_running static-worker-0; }
is_unconverted() { [ -z "$(cores_of)" ] && all_running static-worker-0; }

# Without the agent it runs as its manifest says: its CPU request is a node CPU request, and it may use all CPUs.
test_control() {
	static_manifest | in_guest "cat >/tmp/static.yaml && mv /tmp/static.yaml $manifest"
	wait_for 900 is_unconverted || die "the static pod does not run: $(kubectl get pods)"
	is "control: CPUs of the static pod" "$(value static-worker-0 cpuset.cpus.effective)" 0-7
	is "control: CPU request of the static pod" "$(kubectl get pod static-worker-0 -o 'jsonpath={.spec.containers[0].resources.requests.cpu}')" 300m
}

pinned() { has static-worker-0 cpuset.cpus.effective 0-1; }
static_holds() {
	wait_for 900 is_converted || die "not converted: $(in_guest "cat $manifest; ls -la $(dirname $manifest)"; kubectl get pods)"
	wait_for 900 pinned || die "not pinned: $(value static-worker-0 cpuset.cpus.effective)"
	is "cpu.weight for 307 shares" "$(value static-worker-0 cpu.weight)" 12
	is "cpu.max for a limit of 400m" "$(value static-worker-0 cpu.max)" "40000 100000"
	prints "CPU request after the conversion" '' kubectl get pod static-worker-0 -o 'jsonpath={.spec.containers[0].resources.requests.cpu}'
	is "capacity of the Node in cores" "$(kubectl get node worker-0 -o 'jsonpath={.status.capacity.management\.workload\.openshift\.io/cores}')" 8k
	verify_holds
}

test_static() {
	agent_start
	static_holds
	is "the kept original" "$(in_guest cat $original)" "$(static_manifest)"
	is "state of the static pod in the status" "$(in_guest 'pinfold status -o json' | tr -d ' \n' | grep -o '"staticPods":\[{[^]]*' | grep -o '"state":"[a-z]*"')" '"state":"converted"'
}

# The agent reads a changed pools file and moves running containers.
test_resize() {
	in_guest 'echo "{\"reserved\":\"0-2\",\"shared\":\"3\",\"guaranteed\":\"4-7\"}" >/etc/kubernetes/pools.new &&
		mv /etc/kubernetes/pools.new /etc/kubernetes/openshift-cpu-pools'
	wait_for 60 has static-worker-0 cpuset.cpus.effective 0-2 || die "the pools were not resized"
	in_guest 'echo "{\"reserved\":\"0-1\",\"shared\":\"2-3\",\"guaranteed\":\"4-7\"}" >/etc/kubernetes/openshift-cpu-pools'
	wait_for 60 pinned || die "the pools were not resized back"
	checks=$((checks + 2))
	verify_holds
}

top_file() { in_guest "cat /sys/fs/cgroup/$1"; }
none_isolated() { [ -z "$(top_file cpuset.cpus.isolated)" ]; }
# Threads of other processes that may run on the exclusive CPUs.
foreign_threads() {
	in_guest 'for t in /proc/[0-9]*/task/[0-9]*; do
		[ -n "$(tr -d "\0" <${t%/task*}/cmdline 2>/dev/null)" ] || continue
		grep -q "kubepods.*'"$1"'" ${t%/task*}/cgroup 2>/dev/null && continue
		sed -n "s/^Cpus_allowed_list:\t//p" $t/status 2>/dev/null | grep -q "[4-5]" && cat $t/comm
	done; :'
}

test_isolated() {
	pod_manifest alone '' '' 'requests: {cpu: 2, memory: 256Mi}, limits: {cpu: 2, memory: 256Mi}' | kubectl apply -f - >/dev/null
	wait_running alone
	wait_for 120 has alone cpuset.cpus.partition isolated || die "partition: $(value alone cpuset.cpus.partition)"
	is "exclusive CPUs" "$(value alone cpuset.cpus.effective)" 4-5
	is "isolated CPUs of the kernel" "$(top_file cpuset.cpus.isolated)" 4-5
	is "CPUs of all other cgroups" "$(top_file cpuset.cpus.effective)" 0-3,6-7
	is "CPUs of process 1" "$(in_guest "sed -n 's/^Cpus_allowed_list:\t//p' /proc/1/status")" 0-1
	is "scheduling domains of CPU 4" "$(in_guest "awk '/^cpu/ { on = \$1 == \"cpu4\" } /^domain/ && on { n++ } END { print n + 0 }' /proc/schedstat")" 0
	prints "foreign threads on exclusive CPUs" '' foreign_threads "$(id_of alone)"
	verify_holds
	kubectl delete pod alone --wait=false >/dev/null
	wait_for 600 gone alone || die "the pod does not end"
	wait_for 120 none_isolated || die "still isolated: $(top_file cpuset.cpus.isolated)"
	is "CPUs of all cgroups after the removal" "$(top_file cpuset.cpus.effective)" 0-7
}

test_reboot() {
	guest_reboot "$top/node"
	in_guest /payload/up "${RUNTIME%-*}" >>"$top/node/logs/up.log" 2>&1
	wait_for 900 agent_ready || die "the agent is not ready after the reboot"
	node_wait_ready "$top/node"
	static_holds
}

test_uninstall() {
	agent_stop
	in_guest 'pinfold agent --uninstall --static-pods /etc/kubernetes/manifests' || die "uninstall"
	is "the manifest after --uninstall" "$(in_guest cat $manifest)" "$(static_manifest)"
	is "files in the manifest directory after --uninstall" "$(in_guest "ls -A $(dirname $manifest)")" static.yaml
	is "state of the kubelet" "$(in_guest systemctl is-active kubelet)" active
	wait_for 900 is_unconverted || die "the kubelet does not run the original: $(kubectl get pods)"
}

[ -n "${KEEP:-}" ] || trap 'node_stop "$top/node"; cp_stop "$top/cp"; rm -rf "$top"' EXIT
if ! { [ -e "$top/node/node" ] && guest_is_up "$top/node"; }; then start_node; fi
for t in $tests; do
	e2e_say "$RUNTIME: $t"
	"test_$t"
done
echo "node-features-guest.sh: $checks checks passed"
