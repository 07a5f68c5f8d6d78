#!/bin/bash
#
# The scenarios of the enhancements on a whole cluster: webhook, operator, agents, stock scheduler and controller manager, real
# kubelets, and two nodes of different size. What containers have is read in each node's kernel by kernel_truth, never from Pinfold.
# Every part has a negative control: the same read where the opposite has to be true.
#
#	PARTS="network none"        these only, in this order; all parts after "deployed" need it
#	RUNTIME=containerd          or containerd-1.7, crio; and the other variables of tests/e2e/cluster
#	KEEP=DIR                    the cluster in DIR is used if it runs, and left running
#	LIMIT=600                   seconds for every state, while a test is written
#	RESULTS=FILE                a line for each part is added to it (scripts/compatibility reads them)
#
# network      Services and DNS names reach pods, on the same node and on another one
# none         a cluster without a profile: converted, and on all CPUs
# deployed     the deployment workflow: profiles for a control plane node and a worker, step by step
# resized      the resize workflow: other sizes, while a pod owns CPUs
# kinds        management pods as Deployment, DaemonSet, StatefulSet, Job, CronJob and static pod
# types        two workload types with CPUs of their own on one node, and a node that has only one of them
# fairness     requests of 1:4 are CPU time of 1:4
# limits       requests and limits of 20m and 30m, and a pod that is throttled
# inplace      a resize of a running pod, as an autoscaler makes it
# pools        shared and guaranteed pods, over-commit, whole cores of one NUMA node
# counted      a resize of pods that are counted in a pool; needs "pools"
# restarts     of kubelet, runtime and agent; needs "pools"
# reboot       of a node; needs "pools"
# joining      a node that is not set up joins; needs "pools"
# dashboard    as a pod behind port forwarding: nodes, and how busy their CPUs are
# placement    one pod of each pool on worker-0, whatever its topology (matrix.sh); not one of the parts by default

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export NODES=${NODES:-2} CPUS=${CPUS:-8 4} NUMA=${NUMA:-2 1} SMT=${SMT:-on} RUNTIME=${RUNTIME:-containerd}
KUBERNETES=${KUBERNETES:-${CP_VERSION:-}}
top=${KEEP:-$(mktemp -d /tmp/pinfold-scenarios-XXXXXX)}
# shellcheck source=tests/e2e/lib/virtual-cluster.sh
. "$here/lib/virtual-cluster.sh"
# shellcheck source=tests/e2e/lib/node-kernel.sh
. "$here/lib/node-kernel.sh"
# shellcheck source=tests/e2e/lib/node-pods.sh
. "$here/lib/node-pods.sh"
# shellcheck source=tests/e2e/lib/record.sh
. "$here/lib/record.sh"

all_parts="network none deployed resized kinds types fairness limits inplace pools counted restarts reboot joining dashboard"
cores=management.workload.openshift.io/cores
case $RUNTIME in crio) unit=crio ;; *) unit=containerd ;; esac

explain() {
	kubectl get pods -A -o wide
	kubectl get np,performanceprofiles -o wide
	kubectl get events -A --sort-by .lastTimestamp | tail -n 20
	for node in $(vc_nodes); do
		on "$node" "cat /var/log/pods/pinfold*/*/*.log 2>/dev/null | tail -n 15; journalctl -u kubelet --no-pager -o cat -n 5"
	done
}

# --- objects ---

requests() { kubectl -n shop get pods -l "app=$1" -o "jsonpath={.items[0].spec.containers[0].resources.requests}"; }
capacity() { kubectl get node "$1" -o "jsonpath={.status.allocatable['${cores//./\\.}']}"; }
set_profile() { # NAME ROLE CPU
	profile "$1" "node-role.kubernetes.io/$2" "$3"
}
pending_because() { kubectl -n shop get pod "$1" -o 'jsonpath={.status.phase}: {.status.conditions[?(@.type=="PodScheduled")].message}'; }
is_pending_for() { [[ $(pending_because "$1") == Pending:*"$2"* ]]; }
says_pending() { # POD TEXT
	wait_for "$LIMIT" is_pending_for "$1" "$2" || die "pod $1 is not pending for $2: $(pending_because "$1")"
	checks=$((checks + 1))
}

# --- parts ---

# A web server on each node, and a client that asks for both by the name of their Service and by their own.
part_network() {
	local node
	for node in worker-0 worker-1; do
		pod "web-$node" $node '' 'requests: {cpu: 10m, memory: 32Mi}' "mkdir /tmp/www && hostname >/tmp/www/index.html && exec httpd -f -p 8080 -h /tmp/www"
		kubectl -n shop expose pod "web-$node" --port 80 --target-port 8080 >/dev/null 2>&1 || :
	done
	kubectl -n shop create service clusterip nothing --tcp 80:8080 >/dev/null 2>&1 || :
	pod client worker-0 '' 'requests: {cpu: 10m, memory: 32Mi}'
	running web-worker-0 web-worker-1 client
	soon "a Service of a pod on this node" web-worker-0 ask web-worker-0
	soon "a Service of a pod on another node" web-worker-1 ask web-worker-1
	soon "the API server by its name" 10.96.0.1 resolve kubernetes.default
	prints "control: a name that does not exist" "" resolve web-worker-9.shop
	[ -n "$(resolve nothing.shop)" ] || die "control: a Service without pods has no name"
	prints "control: a Service without pods" "" ask nothing
	remove web-worker-0 web-worker-1 client
	kubectl -n shop delete service web-worker-0 web-worker-1 nothing >/dev/null
}
# resolve NAME.NAMESPACE: the address that the pod's DNS server has, or nothing. busybox' own programs cannot look up names: it is linked
# statically.
resolve() {
	kubectl -n shop exec client -- nslookup "$1.svc.cluster.local" 2>/dev/null |
		awk '/^Name:/ { on = 1 } /^Address/ && on && !address { address = $NF } END { print address }' || :
}
# ask SERVICE: the page that it returns to the client, or nothing.
ask() {
	local address
	address=$(resolve "$1.shop") && [ -n "$address" ] || return 1
	kubectl -n shop exec client -- sh -c "printf 'GET / HTTP/1.0\r\n\r\n' | nc -w 60 $address 80" 2>/dev/null | sed '1,/^\r*$/d' || :
}

# A cluster without any profile.
part_none() {
	{
		controller DaemonSet platform "$management" 'requests: {cpu: 100m, memory: 32Mi}'
		controller DaemonSet web '' 'requests: {cpu: 100m, memory: 32Mi}'
	} | kubectl apply -f - >/dev/null
	soon "CPUs without a profile, 8 CPUs" "0-7 0-7" cpus worker-0 platform web
	soon "CPUs without a profile, 4 CPUs" "0-3 0-3" cpus worker-1 platform web
	is "the management pod's requests" "$(requests platform)" "{\"$cores\":\"100\",\"memory\":\"32Mi\"}"
	is "control: the ordinary pod's requests" "$(requests web)" '{"cpu":"100m","memory":"32Mi"}'
}

# Step 2: profiles. 3: the flag is set since the installation. 6: nodes advertise the resource. 8, 9: profiles are applied, here without
# a restart. 10 to 12: pods that opt in are converted, scheduled by that resource, and run on the reserved CPUs.
part_deployed() {
	kubectl label node worker-0 node-role.kubernetes.io/control-plane= --overwrite >/dev/null
	kubectl label node worker-1 node-role.kubernetes.io/worker= --overwrite >/dev/null
	is "step 3: the cluster flag" "$(kubectl get infrastructure cluster -o 'jsonpath={.status.cpuPartitioning}')" AllNodes
	is "step 6: the resource of both nodes" "$(capacity worker-0) $(capacity worker-1)" "8k 4k"
	set_profile control-plane control-plane 'reserved: first 1 core of each numa, isolated: rest'
	set_profile worker worker 'reserved: first 1 core, isolated: rest'
	soon "step 9: CPUs on the control plane node" "0-1,4-5 2-3,6-7" cpus worker-0 platform web
	soon "step 9: CPUs on the worker" "0-1 2-3" cpus worker-1 platform web
	soon "the status of the profile of the control plane" "True 1" profile_status control-plane
	soon "the status of the profile of the worker" "True 1" profile_status worker
	pod late worker-1 "$management" 'requests: {cpu: 400m, memory: 32Mi}'
	running late
	is "step 11: the shares in the annotation" "$(kubectl -n shop get pod late -o 'jsonpath={.metadata.annotations.resources\.workload\.openshift\.io/c}')" '{"cpushares":409}'
	soon "step 12: its CPUs and weight" "0-1 16" pod_truth shop app=late worker-1 3 7
	# More of the resource than any node has: the scheduler of Kubernetes refuses, although the nodes have CPU enough.
	pod toomuch worker-1 "$management" 'requests: {cpu: 4500m, memory: 32Mi}'
	says_pending toomuch "Insufficient $cores"
	soon "control: an ordinary pod of the worker stays off the reserved CPUs" 2-3 cpus worker-1 web
	remove late toomuch
}

part_resized() {
	pod alone worker-0 '' 'limits: {cpu: 2, memory: 256Mi}'
	soon "CPUs of a pod that owns them" "2-3" cpus worker-0 alone
	set_profile control-plane control-plane 'reserved: first 1 core, isolated: rest'
	soon "CPUs after the resize: they shrink, and the owner keeps its own" "2-3 0-1 4-7" cpus worker-0 alone platform web
	soon "control: the node of the other profile is not concerned" "0-1 2-3" cpus worker-1 platform web
	set_profile control-plane control-plane 'reserved: first 1 core of each numa, isolated: rest'
	soon "CPUs after the resize back" "2-3 0-1,4-5 6-7" cpus worker-0 alone platform web
	remove alone
	soon "CPUs after the owner ended" "0-1,4-5 2-3,6-7" cpus worker-0 platform web
}

part_kinds() {
	local kind app static small='requests: {cpu: 50m, memory: 16Mi}'
	{
		controller Deployment deployment "$management" "$small" 'replicas: 2,'
		controller StatefulSet statefulset "$management" "$small" 'serviceName: none,'
		controller Deployment ordinary '' "$small"
		for kind in job cron; do
			app=$(pod_template $kind "$management" "$small" 'exec sleep 600' 'restartPolicy: Never,')
			if [ $kind = job ]; then
				echo "{apiVersion: batch/v1, kind: Job, metadata: {name: job, namespace: shop}, spec: {template: $app}}"
			else
				echo "{apiVersion: batch/v1, kind: CronJob, metadata: {name: cron, namespace: shop}, spec: {schedule: '* * * * *', concurrencyPolicy: Forbid, jobTemplate: {spec: {template: $app}}}}"
			fi
			echo ---
		done
	} | kubectl apply -f - >/dev/null
	# The kubelet takes a file that begins with a brace for JSON.
	static=$(pod_template static "$management" "$small") static=${static#*\}\}, }
	printf '%s\n' 'apiVersion: v1' 'kind: Pod' "metadata: {name: static, namespace: shop, labels: {app: static}, annotations: {$management}}" "${static%\}}" |
		on worker-1 'cat >/etc/kubernetes/static.yaml && mv /etc/kubernetes/static.yaml /etc/kubernetes/manifests/'
	for app in deployment statefulset job cron; do
		soon "a management pod of kind $app is pinned" reserved where app=$app
	done
	soon "a static management pod is pinned" reserved where app=static
	soon "control: the ordinary pod is not" other where app=ordinary
	kubectl -n shop delete deployment/deployment statefulset/statefulset deployment/ordinary job/job cronjob/cron --wait=false >/dev/null
	on worker-1 rm /etc/kubernetes/manifests/static.yaml
}
# where SELECTOR: whether the pod's threads are on the reserved CPUs of its node, as part "deployed" set them.
where() {
	local node cpus
	node=$(kubectl -n shop get pods -l "$1" --field-selector status.phase=Running -o 'jsonpath={.items[0].spec.nodeName}') || return 1
	cpus=$(pod_truth shop "$1" "$node" 3) || return 1
	case $node:$cpus in
	worker-0:0-1,4-5 | worker-1:0-1) echo reserved ;;
	*:gone | *:) return 1 ;;
	*) echo other ;;
	esac
}

# Types of the worker's profile only: the other node does not have the resource of the second one.
part_types() {
	local ran="target.workload.openshift.io/ran: '{\"effect\":\"PreferredDuringScheduling\"}'"
	kubectl annotate performanceprofile worker --overwrite 'pinfold.io/workload-types={"management":"0","ran":"1"}' >/dev/null
	kubectl annotate namespace shop --overwrite workload.openshift.io/allowed=management,ran >/dev/null
	soon "CPUs of the first type" 0 cpus worker-1 platform
	soon "cores of the second type" "4k " ran_capacity
	soon "the webhook knows the namespace" 100 converted_to_ran "$ran"
	pod ran worker-1 "$ran" 'requests: {cpu: 100m, memory: 16Mi}'
	pod ran-elsewhere worker-0 "$ran" 'requests: {cpu: 100m, memory: 16Mi}'
	running ran
	soon "CPUs of both types" "0 1" cpus worker-1 platform ran
	says_pending ran-elsewhere "Insufficient ran.workload.openshift.io/cores"
	soon "control: a node whose profile has no types" 0-1,4-5 cpus worker-0 platform
	remove ran ran-elsewhere
	kubectl annotate performanceprofile worker pinfold.io/workload-types- >/dev/null
	kubectl annotate namespace shop --overwrite workload.openshift.io/allowed=management >/dev/null
	soon "CPUs without types" 0-1 cpus worker-1 platform
}
ran_capacity() {
	local node
	for node in worker-1 worker-0; do
		kubectl get node $node -o 'jsonpath={.status.allocatable.ran\.workload\.openshift\.io/cores} ' || return
	done | sed 's/ $//'
}
converted_to_ran() {
	pod_manifest dry worker-1 "$1" 'requests: {cpu: 100m, memory: 16Mi}' | kubectl create --dry-run=server -f - \
		-o 'jsonpath={.spec.containers[0].resources.requests.ran\.workload\.openshift\.io/cores}'
}

# ratio A B: CPU time of B in percent of that of A, in the same half minute.
ratio() {
	local a b c d
	read -r a b < <(usages "$1" "$2")
	sleep 30
	read -r c d < <(usages "$1" "$2")
	echo $(((d - b) * 100 / (c - a + 1)))
}
usages() {
	local ids
	ids=$(for app in "$1" "$2"; do kubectl -n shop get pod "$app" -o 'jsonpath={.status.containerStatuses[0].containerID}{"\n"}'; done | sed 's,.*//,,' | tr '\n' ' ')
	node_truth worker-1 | awk -F '\t' -v ids="$ids" '
		BEGIN { n = split(ids, id, " ") } { for (i = 1; i <= n; i++) if (index($1, id[i]) && !index($1, "conmon")) used[i] = $8 } END { print used[1], used[2] }'
}
within() { # WHAT VALUE LOW HIGH
	if [ "$2" -lt "$3" ] || [ "$2" -gt "$4" ]; then die "$1: $2 is not between $3 and $4"; fi
	checks=$((checks + 1))
	echo "  $1: $2" >&2
}
# Two loops each, on the two reserved CPUs of the worker.
burn='(while :; do :; done) & while :; do :; done'
part_fairness() {
	local name
	for name in small same; do pod $name worker-1 "$management" 'requests: {cpu: 200m, memory: 16Mi}' "$burn"; done
	running small same
	soon "their CPUs" "0-1 0-1" cpus worker-1 small same
	within "control: CPU time of equal requests, in percent" "$(ratio small same)" 65 150
	remove same
	pod large worker-1 "$management" 'requests: {cpu: 800m, memory: 16Mi}' "$burn"
	running large
	wait_for "$LIMIT" pods_gone same || die "the pod does not end"
	soon "weights of 1:4" "8 32" weights small large
	within "CPU time of requests 1:4, in percent" "$(ratio small large)" 280 560
	remove small large
	wait_for "$LIMIT" pods_gone small large || die "the pods do not end"
}
weights() { for name; do pod_truth shop "app=$name" worker-1 7; done | tr '\n' ' ' | sed 's/ $//'; }

# The example: requests 20m, limits 30m. And what a limit does.
part_limits() {
	pod example worker-1 "$management" 'requests: {cpu: 20m, memory: 100Mi}, limits: {cpu: 30m, memory: 100Mi}'
	pod limited worker-1 "$management" 'requests: {cpu: 100m, memory: 16Mi}, limits: {cpu: 200m, memory: 64Mi}' "$burn"
	pod free worker-1 "$management" 'requests: {cpu: 100m, memory: 16Mi}' 'while :; do :; done'
	running example limited free
	is "the annotation of the example" "$(kubectl -n shop get pod example -o 'jsonpath={.metadata.annotations.resources\.workload\.openshift\.io/c}')" '{"cpushares":20,"cpulimit":30}'
	soon "CPUs, quota, period and weight of the example" "0-1 3000 100000 1" pod_truth shop app=example worker-1 3 5 6 7
	soon "quota of a limit of 200m" "20000 100000" pod_truth shop app=limited worker-1 5 6
	soon "control: quota without a limit" "max 100000" pod_truth shop app=free worker-1 5 6
	within "CPU time with a limit of 200m, in thousandths of a CPU" "$(thousandths limited)" 100 260
	within "control: CPU time without a limit, in thousandths of a CPU" "$(thousandths free)" 300 1100
	[ "$(pod_truth shop app=limited worker-1 9 | cut -d/ -f2)" -gt 0 ] || die "the pod was never throttled"
	is "control: how often the pod without a limit was throttled" "$(pod_truth shop app=free worker-1 9 | cut -d/ -f2)" 0
	checks=$((checks + 1))
	remove example limited free
}
# thousandths POD: its CPU time in twenty seconds of the guest's clock, which is read together with it.
thousandths() {
	local id
	id=$(kubectl -n shop get pod "$1" -o 'jsonpath={.status.containerStatuses[0].containerID}')
	on worker-1 'for i in 1 2; do cut -d" " -f1 /proc/uptime; /root/kernel_truth /sys/fs/cgroup/kubepods.slice; [ $i = 2 ] || sleep 20; done' |
		awk -F '\t' -v id="${id##*/}" 'NF == 1 { time[++n] = $1 } index($1, id) && !index($1, "conmon") { used[n] = $8 }
			END { printf "%d\n", (used[2] - used[1]) / (time[2] - time[1]) / 1000 }'
}

part_pools() {
	vc_helm upgrade pinfold "$vc_source/deploy/chart" --reset-then-reuse-values --set webhook.pools=true >/dev/null ||
		die "helm does not upgrade"
	vc_rollout pinfold deployment/pinfold-webhook >/dev/null
	soon "the new replicas of the webhook are on both nodes" "worker-0 worker-1" webhook_nodes
	set_profile control-plane control-plane 'reserved: "0-1", shared: "2,4-5", isolated: "3,6-7"'
	set_profile worker worker 'reserved: "0", shared: "1", isolated: "2-3"'
	soon "millicores of the pools, as the scheduler sees them" "3k 3k 1k 2k" pool_resources
	soon "the webhook counts pods" 200 counted
	pod share worker-0 '' 'requests: {cpu: 200m, memory: 16Mi}, limits: {cpu: 400m}'
	pod alone worker-0 '' 'limits: {cpu: 2, memory: 256Mi}'
	pod fraction worker-0 '' 'limits: {cpu: 500m, memory: 256Mi}'
	running share alone fraction
	is "the shared pod's requests" "$(requests share)" '{"cpu":"200m","memory":"16Mi","openshift.io/shared-cpus":"200"}'
	is "the guaranteed pod's requests" "$(requests alone)" '{"cpu":"2","memory":"256Mi","openshift.io/guaranteed-cpus":"2k"}'
	soon "CPUs and quota of the guaranteed pod" "6-7 max" pod_truth shop app=alone worker-0 3 5
	is "they are one core" "$(siblings worker-0 6)" 6-7
	is "in one NUMA node" "$(numa_of worker-0 6 7)" node1
	is "control: two other CPUs of the pool are in two" "$(numa_of worker-0 3 6)" "node0 node1"
	soon "CPUs and quota of the shared pod" "2,4-5 40000" pod_truth shop app=share worker-0 3 5
	soon "CPUs and quota of a Guaranteed pod with a fraction" "2,4-5 50000" pod_truth shop app=fraction worker-0 3 5
	# One CPU of the pool is left, and 2300 millicores of the shared one; the node has more than 4 CPUs without requests.
	pod over worker-0 '' 'limits: {cpu: 2, memory: 256Mi}'
	pod overshared worker-0 '' 'requests: {cpu: 2500m, memory: 16Mi}'
	says_pending over "Insufficient openshift.io/guaranteed-cpus"
	says_pending overshared "Insufficient openshift.io/shared-cpus"
	pod fits worker-0 '' 'limits: {cpu: 1, memory: 256Mi}'
	running fits
	soon "control: a pod that fits has the last CPU" 3 cpus worker-0 fits
	is "control: what the first one has" "$(cpus worker-0 alone)" 6-7
	remove over overshared fits fraction
}
webhook_nodes() { kubectl -n pinfold get pods -l app.kubernetes.io/component=webhook -o 'jsonpath={range .items[*]}{.spec.nodeName}{"\n"}{end}' | sort | paste -sd ' '; }
# The webhook learns of the nodes' pools a moment after the API server.
counted() {
	pod_manifest dry worker-0 '' 'requests: {cpu: 200m, memory: 16Mi}' | kubectl create --dry-run=server -f - \
		-o 'jsonpath={.spec.containers[0].resources.requests.openshift\.io/shared-cpus}'
}
pool_resources() {
	local node
	for node in worker-0 worker-1; do
		kubectl get node $node -o 'jsonpath={.status.allocatable.openshift\.io/shared-cpus} {.status.allocatable.openshift\.io/guaranteed-cpus}{" "}' || return
	done | sed 's/ $//'
}

# All three, under the pods of part "pools". What containers have is in the kernel and must not change for a moment.
part_restarts() {
	local before each
	before=$(identity alone share)
	is "CPUs before" "$(cpus worker-0 alone share platform)" "6-7 2,4-5 0-1"
	for each in kubelet "$unit"; do
		on worker-0 systemctl restart "$each"
		soon "the node reports after a restart of $each" yes reports worker-0
		is "CPUs after a restart of $each" "$(cpus worker-0 alone share platform)" "6-7 2,4-5 0-1"
	done
	on worker-0 "pkill -KILL -f '^/usr/local/bin/pinfold agent'"
	is "CPUs while the agent is gone" "$(cpus worker-0 alone share platform)" "6-7 2,4-5 0-1"
	wait_for "$LIMIT" agent_ready_on worker-0 || die "the agent does not start again"
	is "CPUs after a kill of the agent" "$(cpus worker-0 alone share platform)" "6-7 2,4-5 0-1"
	is "the containers are the same" "$(identity alone share)" "$before"
	# Control: a container that starts now is placed; the agent that was killed has not left anything undone.
	pod after worker-0 '' 'requests: {cpu: 100m, memory: 16Mi}'
	running after
	soon "CPUs of a new pod" 2,4-5 cpus worker-0 after
	remove after
}
# Everything of the kernel is gone; the agent starts after the kubelet, and the ledger is of another boot.
part_reboot() {
	guest_reboot "$top/worker-0" || die "worker-0 does not boot again"
	on worker-0 /payload/up "$RUNTIME" >>"$top/worker-0/logs/up.log" 2>&1 || die "worker-0 does not start its runtime"
	soon "the node reports after its reboot" yes reports worker-0
	soon "CPUs after the reboot" "6-7 2,4-5 0-1" cpus worker-0 alone share platform
	soon "control: the other node was not concerned" "0 1" cpus worker-1 platform web
}
reports() {
	local now before
	before=$(vc_heartbeat "$1") && sleep 10 && now=$(vc_heartbeat "$1") && [ "$before" != "$now" ] && node_is_ready "$top/$1" && echo yes
}

# What to expect comes from the node's own sysfs: the threads of its first core, and the cores of NUMA nodes.
part_placement() {
	local first all rest size=1 own
	all=$(on worker-0 cat /sys/devices/system/cpu/online)
	first=$(siblings worker-0 0)
	[ "$first" = 0 ] || size=2
	rest=$(without "$all" "$first")
	pod platform worker-0 "$management" 'requests: {cpu: 100m, memory: 32Mi}'
	pod web worker-0 '' 'requests: {cpu: 100m, memory: 32Mi}'
	running platform web
	soon "control: CPUs without a profile" "$all $all" cpus worker-0 platform web
	kubectl label node worker-0 node-role.kubernetes.io/worker= --overwrite >/dev/null
	set_profile worker worker 'reserved: first 1 core, isolated: rest'
	soon "CPUs with a profile" "$first $rest" cpus worker-0 platform web
	if [ "$(wc -w <<<"$(expand "$rest")")" -le $size ]; then
		e2e_say "no CPU would be left for the shared pool: no pod with CPUs of its own"
	else
		pod alone worker-0 '' "limits: {cpu: $size, memory: 256Mi}"
		running alone
		own=$(cpus worker-0 alone)
		is "CPUs of its own" "$(wc -w <<<"$(expand "$own")")" $size
		is "they are a whole core" "$(siblings worker-0 "$(expand "$own" | cut -d' ' -f1)")" "$own"
		soon "CPUs of the others" "$first $(without "$rest" "$own")" cpus worker-0 platform web
		remove alone
		soon "CPUs of the others afterwards" "$first $rest" cpus worker-0 platform web
	fi
	remove platform web
}
# expand LIST: the CPUs of a list, with blanks. without LIST OTHER: those that are not in OTHER, as a list.
expand() { awk -v list="$1" 'BEGIN { n = split(list, part, ","); for (i = 1; i <= n; i++) { m = split(part[i], end, "-"); for (c = end[1]; c <= end[m]; c++) printf "%s ", c } }' | sed 's/ $//'; }
without() {
	local cpu rest=''
	for cpu in $(expand "$1"); do [[ " $(expand "$2") " == *" $cpu "* ]] || rest+="$cpu "; done
	awk -v rest="$rest" 'BEGIN { n = split(rest, c, " "); for (i = 1; i <= n; i = j + 1) { j = i; while (j < n && c[j + 1] == c[j] + 1) j++
		printf "%s%s%s", (i > 1 ? "," : ""), c[i], (j > i ? "-" c[j] : "") } }'
}

# A resize as an autoscaler makes it: weight and quota change, CPUs do not.
part_inplace() {
	local name
	for name in grow stay; do pod $name worker-1 '' 'requests: {cpu: 100m, memory: 16Mi}, limits: {cpu: 200m, memory: 64Mi}'; done
	pod platform-grow worker-1 "$management" 'requests: {cpu: 100m, memory: 16Mi}'
	running grow stay platform-grow
	soon "CPUs, weight and quota before" "2-3 4 20000" pod_truth shop app=grow worker-1 3 7 5
	resize grow '"requests":{"cpu":"300m"},"limits":{"cpu":"400m"}' >/dev/null || die "a resize is refused"
	soon "CPUs, weight and quota after a resize" "2-3 12 40000" pod_truth shop app=grow worker-1 3 7 5
	is "control: those of the other pod" "$(pod_truth shop app=stay worker-1 3 7 5)" "2-3 4 20000"
	# The CPU of a management pod is in its annotations and cores, which cannot be resized.
	refuses "a resize of a management pod" platform-grow '"requests":{"cpu":"300m"}' "cannot be resized in place"
	is "CPUs and weight of the management pod" "$(pod_truth shop app=platform-grow worker-1 3 7)" "0-1 4"
	remove grow stay platform-grow
}
refuses() { # WHAT POD RESOURCES TEXT
	local text
	! text=$(resize "$2" "$3" 2>&1) || die "$1 is accepted"
	[[ $text == *"$4"* ]] || die "$1 is refused for another reason: $text"
	checks=$((checks + 1))
}
# Counted pods are resized by creating them again: the API server's answer says so.
part_counted() {
	soon "weight and quota before" "8 40000" pod_truth shop app=share worker-0 7 5
	refuses "a resize of exclusive CPUs" alone '"limits":{"cpu":"1"},"requests":{"cpu":"1"}' "cannot be resized in place"
	refuses "a resize of a shared pod's CPU" share '"requests":{"cpu":"300m"}' "cannot be resized in place"
	is "CPUs after the refused resizes" "$(cpus worker-0 alone share)" "6-7 2,4-5"
	# Memory is no business of the pools.
	resize share '"requests":{"memory":"24Mi"}' >/dev/null || die "a resize of memory is refused"
	soon "control: a resize of memory arrives" 24Mi kubectl -n shop get pod share -o 'jsonpath={.status.containerStatuses[0].resources.requests.memory}'
	soon "its CPUs stay" "2,4-5 8 40000" pod_truth shop app=share worker-0 3 7 5
}
resize() { kubectl -n shop patch pod "$1" --subresource resize -p "{\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{$2}}]}}"; }

# A node without an agent joins: the Node gets a taint and takes no ordinary pod, until the agent has set it up.
part_joining() {
	kubectl -n pinfold-agent patch daemonset pinfold-agent --type merge -p '{"spec":{"template":{"spec":{"nodeSelector":{"kubernetes.io/hostname":"worker-0"}}}}}' >/dev/null
	wait_for "$LIMIT" agent_is_gone worker-1 || die "the agent does not leave worker-1"
	joins worker-1
	soon "the joining node has the taint" pinfold.io/unpartitioned taint worker-1
	is "it does not advertise the resource" "$(capacity worker-1)" ""
	pod early worker-1 '' 'requests: {cpu: 50m, memory: 16Mi}'
	says_pending early "untolerated taint"
	pod elsewhere worker-0 '' 'requests: {cpu: 50m, memory: 16Mi}'
	running elsewhere
	soon "control: the other node takes pods" 2,4-5 cpus worker-0 elsewhere
	kubectl -n pinfold-agent patch daemonset pinfold-agent --type json -p '[{"op":"remove","path":"/spec/template/spec/nodeSelector"}]' >/dev/null
	soon "the node is set up" "4k" capacity worker-1
	# A node that was deleted has lost its role, and without a profile it has no shared pool, in which the pod is counted.
	says_pending early "Insufficient openshift.io/shared-cpus"
	kubectl label node worker-1 node-role.kubernetes.io/worker= >/dev/null
	running early
	soon "the pod that waited has the CPUs of its pool" 1 cpus worker-1 early
	remove early elsewhere
}
# joins NODE: it registers as if it was new; again when the API server gave up a call of the webhook.
joins() {
	local missed
	while :; do
		missed=$(calls_missed)
		on "$1" systemctl stop kubelet
		kubectl delete node "$1" >/dev/null
		on "$1" systemctl start kubelet
		wait_for "$LIMIT" node_exists "$1" || die "$1 does not join"
		[ "$(calls_missed)" != "$missed" ] || return 0
	done
}
node_exists() { [ -n "$(kubectl get node "$1" --ignore-not-found -o name)" ]; }
agent_is_gone() { [ -z "$(kubectl -n pinfold-agent get pods --field-selector "spec.nodeName=$1" -o name)" ]; }
taint() { kubectl get node "$1" -o 'jsonpath={.spec.taints[?(@.key=="pinfold.io/unpartitioned")].key}'; }

# The manifests as they are. How busy CPUs are comes from the agent of the node, through the API server.
part_dashboard() {
	local port
	port=$(free_port)
	kubectl apply -k "$here/../../deploy/dashboard" >/dev/null
	soon "the dashboard's pod" 1 kubectl -n pinfold get deployment pinfold-dashboard -o 'jsonpath={.status.readyReplicas}'
	process_start "$top" forward "$(cp_bin "$cp" kubectl)" --kubeconfig "$cp/admin.kubeconfig" -n pinfold port-forward deployment/pinfold-dashboard "$port:8088"
	soon "the nodes of the page" "$(vc_nodes | tr ' ' '\n')" dashboard_nodes "$port"
	is "control: another name of the host" "$(curl -s -o /dev/null -w '%{http_code}' -H 'Host: example.com' "http://localhost:$port/api/cluster")" 421
	soon "the CPUs of worker-0 that are measured" "$(seq 0 7)" dashboard_use "$port" worker-0
	process_stop "$top" forward
	kubectl delete -k "$here/../../deploy/dashboard" --wait=false >/dev/null
}
dashboard_nodes() { curl -sf -m 60 "http://localhost:$1/api/cluster" | jq -r '.nodes[].name'; } # PORT
# dashboard_use PORT NODE: the numbers of the CPUs in the first event about their use. They are measured while a client asks.
dashboard_use() {
	curl -sf -m 60 "http://localhost:$1/api/use?node=$2" >/dev/null || :
	timeout 30 curl -sN "http://localhost:$1/api/events" | sed -n '/^event: use/ { n; s/^data: //p; q }' | jq -r '.use | keys_unsorted[]' || :
}

# --- ---

if [ -z "${KEEP:-}" ] || ! vc_running; then
	vc_settings
	# shellcheck disable=SC2034  # read by process.sh
	[ -z "${KEEP:-}" ] || process_prefix=(setsid)
	# shellcheck disable=SC2064  # expanded now
	[ -n "${KEEP:-}" ] || trap "vc_down; rm -rf '$top'" EXIT
	vc_up >&2 || exit 1
else
	vc_settings
fi
kernel_truth_build
shop_namespace
total=0
for part in ${PARTS:-$all_parts}; do
	e2e_say "$KUBERNETES, $RUNTIME: $part ($SECONDS s)"
	began=$SECONDS checks=0
	"part_$part"
	total=$((total + checks))
	record "$KUBERNETES" "$RUNTIME" "$CPUS/$NUMA/$SMT" "scenarios $part" "$checks checks passed" $((SECONDS - began))
done
echo "scenarios.sh: Kubernetes $KUBERNETES, $RUNTIME, $total checks passed in $SECONDS s"
