#!/bin/bash
#
# Kubernetes' own end-to-end suite, e2e.test, on a virtual node without Pinfold, and on one with its chart and a profile that leaves pods half
# of the CPUs: the results have to be the same (lib/suite.sh).
#
#	FOCUS=REGEX                 other specs than those below
#	PROCESSES=2                 of e2e.test in each cluster. Specs marked [Serial] run alone in theirs
#	LOGS=DIR                    reports and logs stay there
#	RUNTIME=containerd          and the other variables of tests/e2e/cluster
#	RESULTS=FILE                a line is added to it (scripts/compatibility reads them)
#
# The specs: pods, their QoS class, init containers and sidecars, resizes in place, quotas of pods, DaemonSets. Left out are those marked
# [Slow], quotas of objects that no pod has, most probes of sidecars, which take minutes each, and resizes of containers with a limit of
# 20m or 30m: a shell in them needs 80 s to start on an emulated CPU, and a spec starts dozens. The images of the suite cannot be
# pulled here: agnhost is built from its source, with busybox and lib/agnhost-curl instead of the other programs of its image, and busybox
# stands for nginx, too. Specs that need other images are not among them.
#
# Both clusters run at the same time, because specs mostly wait. Each is a process of its own, kubernetes-suite.sh without|with NAME FOCUS,
# which writes the report $LOGS/NAME-without.json or $LOGS/NAME-with.json.

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export NODES=1 CPUS=${CPUS:-8} NUMA=${NUMA:-1} SMT=${SMT:-on} RUNTIME=${RUNTIME:-containerd}
KUBERNETES=${KUBERNETES:-${CP_VERSION:-}} PROCESSES=${PROCESSES:-2}
top=$(mktemp -d /tmp/pinfold-suite-XXXXXX)
# shellcheck source=tests/e2e/lib/virtual-cluster.sh
. "$here/lib/virtual-cluster.sh"
# shellcheck source=tests/e2e/lib/node-kernel.sh
. "$here/lib/node-kernel.sh"
# shellcheck source=tests/e2e/lib/suite.sh
. "$here/lib/suite.sh"

focus='\[sig-node\] Pods (should (be submitted|be updated|support pod readiness|delete a collection|run through)|Extended.*QOS Class)'
focus+='|\[sig-node\] InitContainer'
focus+='|estartable init container should (be ready immediately|be restarted startup|have monotonically)|connect to the ports exposed by restartable init'
focus+='|InPlace Resize Container.*(deferred|scheduler-focused|quota-test (valid increase for|exceed maximum CPU and)|ranger-test.* CPU and)'
focus+='|\[sig-api-machinery\] ResourceQuota.*(life of a pod|scope).*\[Conformance\]'
focus+='|\[sig-apps\] Daemon set should (run and stop|retry|update pod).*\[Conformance\]'
skip='\[Slow\]'
dir=${LOGS:-$top/suite}
explain() { tail -n 20 "$dir"/*.log; }

# images NAMES: those that the suite wants, in all of their versions.
images() { suite "$bin/e2e.test" --list-images | grep -E "^localhost/e2e/($1):"; }
suite() { KUBE_TEST_REPO_LIST=$dir/registries "$@"; }

make_images() {
	local name root=$dir/root number=0
	mkdir -p "$dir/images"
	for name in $(images 'agnhost|busybox|nginx|pause'); do
		number=$((number + 1))
		rm -rf "$root" && mkdir "$root" && image_busybox_root "$root"
		case $name in
		*/agnhost:*)
			cp "$bin/agnhost" "$root/" && ln -s agnhost "$root/agnhost-2"
			install -m 755 "$here/lib/agnhost-curl" "$root/bin/curl"
			image_make "$root" "$name" "$dir/images/$number.tar" /agnhost -- pause
			;;
		*/nginx:*) image_make "$root" "$name" "$dir/images/$number.tar" /bin/httpd -f ;;
		*/busybox:*) image_make "$root" "$name" "$dir/images/$number.tar" -- sh ;;
		*/pause:*) image_pause "$dir/images/$number.tar" "$name" ;;
		esac
	done
}
load_images() {
	local file
	for file in "$dir"/images/*.tar; do
		vc_load worker-0 "$file" || return
	done
}

# run NAME FOCUS: the program's own status says that specs failed, which the comparison decides.
run() {
	suite "$bin/ginkgo" --procs "$PROCESSES" --focus "$2" --skip "$skip" --no-color -v --output-dir "$dir" --json-report "$1.json" "$bin/e2e.test" -- \
		--kubeconfig "$cp/admin.kubeconfig" --kubectl-path "$bin/kubectl" --provider skeleton --allowed-not-ready-nodes -1 --minStartupPods 0 --disable-log-dump >"$dir/$1.log" 2>&1 || :
	[ -s "$dir/$1.json" ] || die "e2e.test wrote no report"
	e2e_say "$1: $(grep '^Ran ' "$dir/$1.log") ($SECONDS s)"
}

cluster() { # SIDE
	case $1 in
	# Two copies of a saved state would use the same port.
	without) REBUILD=1 SAVE=0 PINFOLD_INSTALL=no vc_up ;;
	with) vc_up ;;
	esac && load_images
}
use_profile() {
	kubectl label node worker-0 node-role.kubernetes.io/worker= >/dev/null
	profile workers node-role.kubernetes.io/worker 'reserved: first 2 cores, isolated: rest'
	LIMIT=1800 soon "the profile is applied" "True 1" profile_status workers
}
pinfold_objects() { kubectl get namespaces,nodes -o json | grep -o 'pinfold[-a-z]*\|[a-z]*.workload.openshift.io/cores' | sort -u | paste -sd ' '; }
agent_containers() { agent_status_on worker-0 | jq '[.counters[] | numbers] | add'; }

side() { # SIDE NAME FOCUS
	trap 'vc_down >/dev/null 2>&1; rm -rf "$top"' EXIT
	cluster "$1" >"$dir/$2-$1-cluster.log" 2>&1 || { tail -n 20 "$dir/$2-$1-cluster.log" >&2; die "the cluster $1 Pinfold does not start"; }
	if [ "$1" = with ]; then
		use_profile
	else
		[ -z "$(pinfold_objects)" ] || die "the cluster without Pinfold has $(pinfold_objects)"
	fi
	run "$2-$1" "$3"
	[ "$1" = without ] || [ "$(agent_containers)" -gt 0 ] || die "the agent saw no container"
}
# both NAME FOCUS
both() {
	LOGS=$dir "$0" without "$@" &
	LOGS=$dir "$0" with "$@" &
	for _ in 1 2; do
		wait -n || die "one of the clusters failed"
	done
}

vc_settings
bin=$("$e2e_build" "kubernetes-$KUBERNETES:e2e.test,agnhost,ginkgo,kubectl")/bin
case ${1:-} in
without | with)
	side "$@"
	exit
	;;
esac
trap 'stop_descendants $$; wait; rm -rf "$top"' EXIT
mkdir -p "$dir"
# Nothing is pulled from these.
printf '%s\n' 'promoterE2eRegistry: localhost/e2e' 'gcRegistry: localhost/e2e' >"$dir/registries"
make_images || die "an image is not made"
if [ -z "${IMAGE:-}" ]; then
	export IMAGE=$dir/pinfold.tar # once for both
	image_pinfold "$IMAGE" "localhost/pinfold:$vc_version" >&2 || die "Pinfold's image is not made"
fi
suite_same "${FOCUS:-$focus}"
TOPOLOGY=$CPUS/$NUMA/$SMT suite_result "$RUNTIME" e2e.test
