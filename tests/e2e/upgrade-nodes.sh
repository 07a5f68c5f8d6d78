#!/bin/bash
#
# An upgrade of a whole cluster from 0.1.0 to this version, and back, as docs/operations.md says: agents with the state of the other version, and
# the webhook, while pods are created. In two virtual nodes (lib/virtual-cluster.sh) the kernel is read once a second all the time: no
# container may leave its CPUs for a moment, and no pod may be stored unconverted.
#
#	RUNTIME=containerd          and the other variables of tests/e2e/cluster
#	RESULTS=FILE                a line is added to it (scripts/compatibility reads them)
#
# The program of 0.1.0 is built from git's history, and its manifests are installed as a chart, so that helm can return to them. 0.1.0 takes
# the pools of a node from a file on it; this version reads it, too.

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export NODES=2 CPUS=${CPUS:-8 4} NUMA=${NUMA:-2 1} SMT=${SMT:-on} RUNTIME=${RUNTIME:-containerd}
KUBERNETES=${KUBERNETES:-${CP_VERSION:-}}
top=$(mktemp -d /tmp/pinfold-upgrade-XXXXXX)
# shellcheck source=tests/e2e/lib/virtual-cluster.sh
. "$here/lib/virtual-cluster.sh"
# shellcheck source=tests/e2e/lib/node-kernel.sh
. "$here/lib/node-kernel.sh"
# shellcheck source=tests/e2e/lib/node-pods.sh
. "$here/lib/node-pods.sh"
# shellcheck source=tests/e2e/lib/record.sh
. "$here/lib/record.sh"
# shellcheck source=tests/packages/lib/old-program.sh
. "$here/../packages/lib/old-program.sh"

dir=$top/upgrade
explain() {
	kubectl get pods -A -o wide
	for node in $(vc_nodes); do on "$node" "cat /var/log/pods/pinfold*/*/*.log 2>/dev/null | tail -n 15"; done
}

# --- both versions ---

old_image() {
	local program
	program=$(old_program) && LD_LIBRARY_PATH=$program image_program "$dir/old.tar" localhost/pinfold:0.1.0 "$program/pinfold"
}
# The manifests as `kubectl kustomize deploy/` printed them, except for the namespace that helm makes, and that a pod fails when a call does. On
# emulated CPUs a call may take longer than the default allows.
old_chart() {
	mkdir -p "$dir/chart/templates"
	printf '%s\n' 'apiVersion: v2' 'name: pinfold' 'version: 0.1.0' >"$dir/chart/Chart.yaml"
	awk 'BEGIN { RS = "---\n"; ORS = "---\n" } !/kind: Namespace\n.*name: pinfold\n/' "$here/chart/manifests-0.1.0.yaml" |
		sed 's/failurePolicy: Ignore/failurePolicy: Fail/; s/timeoutSeconds: [125]$/timeoutSeconds: 30/' >"$dir/chart/templates/all.yaml"
}
load_old() { vc_load "$1" "$dir/old.tar"; }
pools_file() {
	on "$1" 'mkdir -p /etc/kubernetes && cat >/etc/kubernetes/openshift-workload-pinning' <<<'{"management":{"cpuset":"0-1"}}'
}
rolled_out() {
	vc_rollout pinfold deployment/pinfold-webhook >/dev/null || die "the webhook is not replaced"
	vc_rollout pinfold-agent daemonset/pinfold-agent >/dev/null || die "the agents are not replaced"
}
agent_version() { kubectl -n pinfold-agent get pods --field-selector "spec.nodeName=$1" -o 'jsonpath={.items[*].spec.containers[0].image}'; }

# --- load, and what the kernels say meanwhile ---

# Pods that no node takes: what counts is that each is stored, converted.
create_pods() { # BATCH
	local i=0
	while [ ! -e "$dir/stop" ]; do
		i=$((i + 1))
		pod_manifest "$1-$i" nowhere "$management" 'requests: {cpu: 100m, memory: 16Mi}' |
			sed "s/labels: {/labels: {batch: $1, /" | kubectl create -f - >/dev/null 2>>"$dir/refused" || echo "pod $1-$i" >>"$dir/refused"
		sleep 0.5
	done
	echo $i >"$dir/created"
}
unconverted() { kubectl -n shop get pods -l "batch=$1" -o json | jq '[.items[] | select(.spec.containers[0].resources.requests."management.workload.openshift.io/cores" != "100")] | length'; }
stored() { kubectl -n shop get pods -l "batch=$1" -o name | wc -l; }

watch_node() { on "$1" /root/kernel_truth /sys/fs/cgroup/kubepods.slice 1000 >"$dir/$1.truth"; }
# seen NODE "APP=ID...": "APP CPUS" for all different CPUs that the container had, and "few reads: N" when there were less than ten.
seen() {
	awk -F '\t' -v ids="$2" 'BEGIN { n = split(ids, pair, " "); for (i = 1; i <= n; i++) { split(pair[i], p, "="); app[p[2]] = p[1] } }
		/^end / { reads++; next }
		!index($1, "conmon") { for (id in app) if (index($1, id)) had[app[id] " " $3] = 1 }
		END { if (reads < 10) print "few reads:", reads; for (each in had) print each }' "$dir/$1.truth" | sort | paste -sd ' '
}
# under_load BATCH COMMAND...: the command, while pods are created and the kernels are read.
under_load() {
	local batch=$1 node creator
	shift
	rm -f "$dir/stop" "$dir/refused"
	for node in $(vc_nodes); do
		process_start "$dir" "watch-$node" watch_node "$node"
	done
	create_pods "$batch" &
	creator=$!
	"$@"
	pod "during-$batch" worker-1 '' 'requests: {cpu: 100m, memory: 16Mi}'
	running "during-$batch"
	sleep 10
	touch "$dir/stop"
	wait $creator
	for node in $(vc_nodes); do process_stop "$dir" "watch-$node"; done
	prints "pods that were refused" "" cat_refused
	is "pods that were stored" "$(stored "$batch")" "$(cat "$dir/created")"
	prints "pods that were not converted" 0 unconverted "$batch"
	e2e_say "$batch: $(cat "$dir/created") pods created meanwhile"
	kubectl -n shop delete pods -l "batch=$batch" --wait=false >/dev/null
}
cat_refused() { cat "$dir/refused" 2>/dev/null || :; }

# unchanged WHAT: the containers are the same, and none left its CPUs.
unchanged() {
	is "$1: containers" "$(identity alone platform web)" "$before"
	is "$1: CPUs on worker-0, all the time" "$(seen worker-0 "$ids_0")" "alone 2-3 platform 0-1 web 4-7"
	is "$1: CPUs on worker-1, all the time" "$(seen worker-1 "$ids_1")" "platform 0-1 web 2-3"
}

# --- ---

vc_settings
mkdir -p "$dir"
# shellcheck disable=SC2064  # expanded now
trap "vc_down; rm -rf '$top'" EXIT
PINFOLD_INSTALL=no vc_up >&2
old_chart
old_image || die "0.1.0 is not built: a clone with git's history is needed"
for load in load_old vc_load_image; do
	vc_each $load >>"$top/logs/up.log" 2>&1 || die "an image is not loaded"
done
kernel_truth_build
vc_each pools_file
shop_namespace

e2e_say "0.1.0 ($SECONDS s)"
vc_helm install pinfold "$dir/chart" --create-namespace >/dev/null || die "0.1.0 is not installed"
rolled_out
partition_cluster
wait_for "$LIMIT" vc_partitioned || die "the nodes are not partitioned"
{
	controller DaemonSet platform "$management" 'requests: {cpu: 100m, memory: 32Mi}'
	controller DaemonSet web '' 'requests: {cpu: 100m, memory: 32Mi}'
} | kubectl apply -f - >/dev/null
pod alone worker-0 '' 'limits: {cpu: 2, memory: 256Mi}'
soon "CPUs on worker-0 with 0.1.0" "2-3 0-1 4-7" cpus worker-0 alone platform web
soon "CPUs on worker-1 with 0.1.0" "0-1 2-3" cpus worker-1 platform web
before=$(identity alone platform web)
ids_0=$(container_ids worker-0) ids_1=$(container_ids worker-1)

e2e_say "upgrade ($SECONDS s)"
upgrade() {
	vc_helm upgrade pinfold "$vc_source/deploy/chart" --take-ownership --set image.pullPolicy=Never,webhook.timeoutSeconds=30,webhook.failurePolicy=Fail >/dev/null ||
		die "helm does not upgrade"
	vc_pinfold_runs >/dev/null || die "the pods are not replaced"
}
under_load upgrade upgrade
is "the agents are of this version" "$(agent_version worker-0) $(agent_version worker-1)" "localhost/pinfold:$vc_version localhost/pinfold:$vc_version"
unchanged upgrade
soon "CPUs of a pod that was created meanwhile" 2-3 cpus worker-1 during-upgrade
remove alone
soon "control: the new agent knows which CPUs the old one assigned, and returns them" "0-1 2-7" cpus worker-0 platform web
pod alone worker-0 '' 'limits: {cpu: 2, memory: 256Mi}'
soon "and assigns them" "2-3 0-1 4-7" cpus worker-0 alone platform web
before=$(identity alone platform web)
ids_0=$(container_ids worker-0)

e2e_say "downgrade ($SECONDS s)"
downgrade() {
	vc_helm rollback pinfold 1 >/dev/null || die "helm does not return to 0.1.0"
	rolled_out
}
under_load downgrade downgrade
is "the agents are of 0.1.0" "$(agent_version worker-0) $(agent_version worker-1)" "localhost/pinfold:0.1.0 localhost/pinfold:0.1.0"
unchanged downgrade
remove alone
soon "control: 0.1.0 returns CPUs that the new agent assigned" "0-1 2-7" cpus worker-0 platform web

record "$KUBERNETES" "$RUNTIME" "$CPUS/$NUMA/$SMT" "upgrade from 0.1.0 and back" "$checks checks passed" $SECONDS
echo "upgrade-nodes.sh: $checks checks passed in $SECONDS s"
