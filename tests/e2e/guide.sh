#!/bin/bash
#
# The commands of docs/quickstart.md and docs/operations.md, as they stand there, on a stock cluster with one node: each must succeed
# and print what the page says. guide/blocks.py says which blocks are run.
#
#	RUNTIME=containerd          or crio
#	KEEP=DIR                    the node in DIR is used if it runs, and left running
#	PAGES="quickstart"          only these
#	FIRST=3                     of the first page only the blocks from this one on, on a node that was kept

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
RUNTIME=${RUNTIME:-containerd}
# shellcheck source=tests/e2e/lib/node.sh
. "$here/lib/node.sh"
# shellcheck source=tests/e2e/lib/agent-pods.sh
. "$here/lib/agent-pods.sh"
# shellcheck source=tests/e2e/lib/guest-cluster.sh
. "$here/lib/guest-cluster.sh"

repository=$(cd "$here/../.." && pwd)
top=${KEEP:-$(mktemp -d /tmp/pinfold-guide-XXXXXX)}
cp=$top/cp
node=worker-0
version=$(sed -n "s/^  version: '\(.*\)',/\1/p" "$repository/meson.build")
image=$repository/dist/pinfold-$version-image.tar
helm=$("$e2e_build" helm)/bin/helm

explain() {
	kubectl get pods -A -o wide
	kubectl get nodes -o 'custom-columns=NAME:.metadata.name,TAINTS:.spec.taints[*].key,CONDITIONS:.status.conditions[?(@.status=="True")].type'
	kubectl get events -A --sort-by .lastTimestamp | tail -n 15
	in_guest 'cat /var/log/pods/pinfold*/*/*.log 2>/dev/null | tail -n 30'
}

# The busybox that nodes of the reader would pull.
busybox_image() {
	command -v busybox >/dev/null || "$here/components/host-packages" busybox-static
	image_busybox "$top/busybox-1.36.tar" busybox:1.36
}

start_cluster() {
	start_control_plane
	apply_platform
	busybox_image
	# shellcheck disable=SC2034  # read by node.sh
	NODE_PAYLOAD=("$top/busybox-1.36.tar") NODE_CNI=none
	node_start "$top/node" "$cp" "$node" "$RUNTIME"
	start_egress
	wait_for 3600 platform_runs || die "the platform's pods do not run"
}
platform_runs() { [ "$(kubectl -n kube-system get pods -o 'jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}')" = "True True" ]; }

# The reader's programs. Step 6 of the quickstart adds pinfold, for the pages after it.
mkdir -p "$top/bin"
ln -sf "$helm" "$top/bin/helm"
run_here() {
	ln -sf "$(cp_bin "$cp" kubectl)" "$top/bin/kubectl"
	(cd "$repository" && PATH=$top/bin:$PATH KUBECONFIG=$cp/admin.kubeconfig HELM_CACHE_HOME=$top/helm HELM_CONFIG_HOME=$top/helm HELM_DATA_HOME=$top/helm \
		bash -euo pipefail "$1")
}
# /payload/bin has the runtime's programs. The image is what the page's `make image` has written.
run_on_node() {
	[ ! -e "$image" ] || guest_put "$top/node" "$image" /root/ >/dev/null
	in_guest "export PATH=/payload/bin:\$PATH; set -e; $(cat "$1")"
}

run_page() { # NAME
	local page=$repository/docs/$1.md dir=$top/blocks/$1 count script status
	rm -rf "$dir"
	count=$(python3 "$here/guide/blocks.py" "$page" "$dir" "$RUNTIME") || die "$1: no commands"
	for script in "$dir"/*.sh; do
		[ "$((10#$(basename "$script" .sh)))" -ge "${FIRST:-1}" ] || continue
		e2e_say "$1, block $(basename "$script" .sh) of $count ($SECONDS s): $(head -n 1 "$script")"
		status=0
		case $(cat "${script%.sh}.where") in
		node) run_on_node "$script" >"${script%.sh}.got" 2>"${script%.sh}.err" || status=$? ;;
		*) run_here "$script" >"${script%.sh}.got" 2>"${script%.sh}.err" || status=$? ;;
		esac
		[ $status = 0 ] || die "$1: exit status $status of: $(cat "$script") $(cat "${script%.sh}.got" "${script%.sh}.err")"
		checks=$((checks + 1))
		[ ! -e "${script%.sh}.out" ] || python3 "$here/guide/blocks.py" --printed "${script%.sh}.out" "${script%.sh}.got" ||
			die "$1: $(cat "$script") printed: $(cat "${script%.sh}.got")"
	done
}

if [ -z "${KEEP:-}" ] || ! process_alive "$top/node" qemu; then
	# shellcheck disable=SC2064  # expanded now
	[ -n "${KEEP:-}" ] || trap "stop_cluster; rm -rf '$top' '$repository'/pinfold-{backup,values}.yaml" EXIT
	start_cluster
fi

for page in ${PAGES:-quickstart operations}; do
	[ "$page" = quickstart ] || ln -sf "$repository/build-static-$(dpkg --print-architecture)/root/usr/bin/pinfold" "$top/bin/pinfold"
	run_page "$page"
	FIRST=
done
echo "guide.sh: $RUNTIME, $checks commands and outputs as the pages say, in $SECONDS s"
