#!/bin/bash
#
# Kubernetes' own end-to-end suite, e2e.test, on a virtual node, first without Pinfold, then with its chart and a profile that leaves pods half
# of the CPUs: the results have to be the same (lib/suite.sh).
#
#	FOCUS=REGEX                 other specs than those below
#	LOGS=DIR                    reports and logs stay there
#	RUNTIME=containerd          and the other variables of tests/e2e/cluster
#	RESULTS=FILE                a line is added to it (scripts/compatibility reads them)
#
# The specs: pods, their QoS class, init containers and sidecars, resizes in place, quotas of pods, DaemonSets. Left out are those marked
# [Slow], quotas of objects that no pod has, most probes of sidecars, which take minutes each, and resizes of containers with a limit of
# 20m or 30m: a shell in them needs 80 s to start on an emulated CPU, and a spec starts dozens. The images of the suite cannot be
# pulled here: agnhost is built from its source, without the other programs of its image, and busybox stands for nginx, too. Specs that
# need other images are not among them.

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export NODES=1 CPUS=${CPUS:-8} NUMA=${NUMA:-1} SMT=${SMT:-on} RUNTIME=${RUNTIME:-containerd}
KUBERNETES=${KUBERNETES:-${CP_VERSION:-}}
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
images() { suite --list-images | grep -E "^localhost/e2e/($1):"; }
suite() { KUBE_TEST_REPO_LIST=$dir/registries "$bin/e2e.test" "$@"; }

make_images() {
	local name root=$dir/root number=0
	mkdir -p "$dir/images"
	for name in $(images 'agnhost|busybox|nginx|pause'); do
		number=$((number + 1))
		rm -rf "$root" && mkdir "$root" && image_busybox_root "$root"
		case $name in
		*/agnhost:*)
			cp "$bin/agnhost" "$root/" && ln -s agnhost "$root/agnhost-2"
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
	suite --kubeconfig "$cp/admin.kubeconfig" --provider skeleton --allowed-not-ready-nodes -1 --minStartupPods 0 --disable-log-dump \
		--ginkgo.focus "$2" --ginkgo.skip "$skip" --ginkgo.no-color --ginkgo.v --ginkgo.json-report "$dir/$1.json" >"$dir/$1.log" 2>&1 || :
	[ -s "$dir/$1.json" ] || die "e2e.test wrote no report"
	e2e_say "$1: $(grep '^Ran ' "$dir/$1.log") ($SECONDS s)"
}

# One cluster after the other: each is a copy of a saved state.
cluster() { # yes or no: with Pinfold
	vc_down
	rm -rf "$cp" "$top/worker-0"
	PINFOLD_INSTALL=$1 vc_up >&2 || die "the cluster does not start"
	load_images >&2 || die "an image is not loaded"
	if [ "$1" = no ]; then
		[ -z "$(pinfold_objects)" ] || die "the cluster without Pinfold has $(pinfold_objects)"
		return
	fi
	kubectl label node worker-0 node-role.kubernetes.io/worker= >/dev/null
	profile workers node-role.kubernetes.io/worker 'reserved: first 2 cores, isolated: rest'
	LIMIT=1800 soon "the profile is applied" "True 1" profile_status workers
}
pinfold_objects() { kubectl get namespaces,nodes -o json | grep -o 'pinfold[-a-z]*\|[a-z]*.workload.openshift.io/cores' | sort -u | paste -sd ' '; }
# both NAME FOCUS
both() {
	cluster no
	run "$1-without" "$2"
	cluster yes
	run "$1-with" "$2"
	[ "$(agent_containers)" -gt 0 ] || die "the agent saw no container"
}
agent_containers() { agent_status_on worker-0 | jq '[.counters[] | numbers] | add'; }

vc_settings
mkdir -p "$dir"
# Nothing is pulled from these.
printf '%s\n' 'promoterE2eRegistry: localhost/e2e' 'gcRegistry: localhost/e2e' >"$dir/registries"
bin=$("$e2e_build" "kubernetes-$KUBERNETES:e2e.test,agnhost")/bin
# shellcheck disable=SC2064  # expanded now
trap "vc_down; rm -rf '$top'" EXIT
make_images || die "an image is not made"
suite_same "${FOCUS:-$focus}"
TOPOLOGY=$CPUS/$NUMA/$SMT suite_result "$RUNTIME" e2e.test
