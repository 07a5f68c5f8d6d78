#!/bin/bash
#
# The node agent beside a stock kubelet (systemd cgroup driver, cgroup v2) and a stock runtime in a
# guest: pods of all three pools on their CPUs, through restarts of everybody, and fair among
# management pods. RUNTIME: containerd (default), containerd-1.7 or crio.

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/e2e/lib/node.sh
. "$here/lib/node.sh"

runtime=${RUNTIME:-containerd}
dir=$(mktemp -d /tmp/pinfold-node-XXXXXX)
checks=0
trap 'node_stop "$dir/node"; cp_stop "$dir/cp"' EXIT

in_guest() { guest_run "$dir/node" "$@"; }
kubectl() { cp_kubectl "$dir/cp" "$@"; }
die() {
	echo "FAIL: $*" >&2
	in_guest journalctl -u pinfold-agent --no-pager -n 20 >&2 || :
	exit 1
}
is() {
	[ "$2" = "$3" ] || die "$1: got '$2', want '$3'"
	checks=$((checks + 1))
}

agent_ready() { in_guest curl -sf --unix-socket /run/pinfold/agent.sock http://agent/readyz >/dev/null 2>&1 ||
	in_guest /usr/local/bin/pinfold status >/dev/null 2>&1; }
running() { [ "$(kubectl get pod "$1" -o 'jsonpath={.status.phase}' 2>/dev/null)" = Running ]; }
verify_ok() { in_guest /usr/local/bin/pinfold verify >"$dir/verify.out" 2>&1; }

# pod NAME ANNOTATIONS RESOURCES COMMAND
pod() {
	kubectl apply -f - >/dev/null <<-EOF
	apiVersion: v1
	kind: Pod
	metadata: {name: $1, annotations: {$2}}
	spec:
	  terminationGracePeriodSeconds: 1
	  containers:
	  - name: c
	    image: localhost/busybox:1
	    imagePullPolicy: Never
	    args: ["-c", "${4:-sleep 100000}"]
	    resources: {$3}
	EOF
	wait_for 300 running "$1" || die "$1 does not run: $(kubectl describe pod "$1" | tail -n 8)"
}

# A value of the cgroup that the status lists for a pod's container. FILE; "pod/" for the pod's own.
value() {
	in_guest "p=\$(/usr/local/bin/pinfold status -o json | tr -d ' \n' | sed 's/.*\"pod\":\"$1\",[^}]*\"container\"[^}]*\"cgroup\":\"\([^\"]*\)\".*/\1/');
		[ '$2' = '${2#pod/}' ] || p=\$(dirname \"\$p\"); cat \"/sys/fs/cgroup/\$p/${2#pod/}\""
}
target='target.workload.openshift.io/management: "{\"effect\":\"PreferredDuringScheduling\"}"'
burn='while :; do :; done & while :; do :; done'

cp_start "$dir/cp"
cp_start_scheduler "$dir/cp"
cp_start_controller_manager "$dir/cp"
# shellcheck disable=SC2034  # read by node.sh
NODE_PAYLOAD=("$here/../../build/pinfold" "$here/../../deploy/agent/pinfold-agent.service")
node_start "$dir/node" "$dir/cp" worker-0 "$runtime"
node_wait_ready "$dir/node"

# Control: the same pod before the agent is there.
pod early "$target, resources.workload.openshift.io/c: '{\"cpushares\":51}'" 'requests: {memory: 64Mi}'

in_guest 'mkdir -p /usr/local/bin && cp /payload/extra/pinfold /usr/local/bin/ &&
	cp /payload/extra/pinfold-agent.service /etc/systemd/system/ &&
	echo "PINFOLD_AGENT_FLAGS=--reserved 0-1 --shared 2-3 --guaranteed 4-7 --reassert 2" >/etc/default/pinfold-agent &&
	systemctl daemon-reload'
early=$(in_guest 'cat $(find /sys/fs/cgroup/kubepods.slice -name "*.scope" | head -n 1)/cpuset.cpus.effective')
is "control: without the agent" "$early" 0-7
in_guest systemctl start pinfold-agent
wait_for 60 agent_ready || die "the agent is not ready"
is "the early pod is repaired" "$(value early cpuset.cpus.effective)" 0-1

pod mgmt "$target, resources.workload.openshift.io/c: '{\"cpushares\":400,\"cpulimit\":500}'" 'requests: {memory: 64Mi}'
is "management, cpus" "$(value mgmt cpuset.cpus.effective)" 0-1
is "management, quota" "$(value mgmt cpu.max)" "50000 100000"
is "management pod, weight" "$(value mgmt pod/cpu.weight)" 16
pod share '' 'requests: {cpu: 100m, memory: 64Mi}'
is "shared, cpus" "$(value share cpuset.cpus.effective)" 2-3
pod alone '' 'requests: {cpu: 2, memory: 64Mi}, limits: {cpu: 2, memory: 64Mi}'
is "exclusive, cpus" "$(value alone cpuset.cpus.effective)" 4-5
is "exclusive, quota" "$(value alone cpu.max)" "max 100000"
is "exclusive pod, quota" "$(value alone pod/cpu.max)" "max 100000"
verify_ok || die "verify: $(cat "$dir/verify.out")"

for unit in kubelet pinfold-agent "$([ "$runtime" = crio ] && echo crio || echo containerd)"; do
	e2e_say "restart of $unit"
	in_guest systemctl restart "$unit"
	wait_for 120 agent_ready || die "after $unit: not ready"
	wait_for 60 verify_ok || die "after $unit: $(cat "$dir/verify.out")"
	is "after $unit, management" "$(value mgmt cpuset.cpus.effective)" 0-1
	is "after $unit, exclusive" "$(value alone cpuset.cpus.effective)" 4-5
done
in_guest systemctl kill -s KILL pinfold-agent
wait_for 60 agent_ready || die "not back after SIGKILL"
wait_for 60 verify_ok || die "after SIGKILL: $(cat "$dir/verify.out")"
checks=$((checks + 1))

# Fairness: 100m and 400m on the same two CPUs.
usage() { value "$1" cpu.stat | awk '$1 == "usage_usec" { print $2 }'; }
measure() { # prints the ratio times 100
	local a b c d
	a=$(usage small) b=$(usage large)
	in_guest sleep 20
	c=$(usage small) d=$(usage large)
	echo $(((d - b) * 100 / (c - a)))
}
kubectl delete pod early mgmt --wait=false >/dev/null
pod small "$target, resources.workload.openshift.io/c: '{\"cpushares\":102}'" 'requests: {memory: 64Mi}' "$burn"
pod large "$target, resources.workload.openshift.io/c: '{\"cpushares\":409}'" 'requests: {memory: 64Mi}' "$burn"
ratio=$(measure)
e2e_say "CPU time of 400m over 100m: $ratio/100"
if [ "$ratio" -lt 280 ] || [ "$ratio" -gt 560 ]; then die "not fair: $ratio/100, want about 400"; fi
checks=$((checks + 1))
is "capacity of the CPUs did not change" "$(kubectl get node worker-0 -o 'jsonpath={.status.capacity.cpu}')" 8
echo "agent-node.sh: $runtime, $checks checks passed"
