# shellcheck shell=bash
#
# Nodes without kubelets beside a control plane of control-plane.sh: kwok keeps them Ready and runs their pods. No controller manager removes
# the taint of new nodes, so the API server must not add it: CP_APISERVER_FLAGS+=("${kwok_apiserver_flags[@]}") before cp_start.
#
#	kwok_start DIR CPDIR              every Node of the cluster is kwok's; KWOK_FLAGS has more flags
#	kwok_stop DIR

# shellcheck source=tests/e2e/lib/process.sh
. "$(dirname "${BASH_SOURCE[0]}")/process.sh"

# shellcheck disable=SC2034 # used by the scripts that source this
kwok_apiserver_flags=(--disable-admission-plugins "TaintNodesByCondition,ServiceAccount")

kwok_is_ready() { curl -sf "http://127.0.0.1:$(cat "$1/kwok-port")/healthz" >/dev/null; }

kwok_start() {
	local dir=$1 cp=$2 program
	program=$("$e2e_build" kwok)/bin/kwok || return
	mkdir -p "$dir"
	free_port >"$dir/kwok-port"
	process_start "$dir" kwok "$program" --kubeconfig "$cp/admin.kubeconfig" -c "$e2e_lib/../kwok/stages.yaml" \
		--manage-all-nodes --node-lease-duration-seconds=200 --cidr 10.0.0.0/8 --server-address "127.0.0.1:$(cat "$dir/kwok-port")" \
		"${KWOK_FLAGS[@]}"
	wait_ready "$dir" kwok 60 kwok_is_ready "$dir"
}

kwok_stop() { process_stop "$1" kwok; }
