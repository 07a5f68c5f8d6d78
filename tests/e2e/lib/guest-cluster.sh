# shellcheck shell=bash disable=SC2154  # "top" is the caller's
#
# A cluster whose nodes are guests of node.sh, and whose API server reaches pods and kubelets, so that webhooks,
# `kubectl logs` and `kubectl exec` work. Source node.sh first; the control plane is in $top/cp, and cp is set to that.
#
#	start_control_plane         API server, scheduler, controller manager
#	apply_platform              a network plugin and a DNS server, as management pods (deploy/platform.yaml)
#	start_egress [DIR]          after node_start: the API server's way into the guest DIR ($top/node) and, from there, to
#	                            the other nodes
#	partition_cluster           sets the cluster flag alone, without topologies, once its CRD is there
#	join_segment NUMBER         before node_start: node NUMBER (1 to 8) of several; pods of all nodes reach each other
#	calls_missed                how many calls of the webhook the API server gave up
#	stop_cluster [DIR...]       all of it, and the nodes

# The API server has no route to pods. It reaches them through the guest's ssh server.
start_egress() {
	local options
	mapfile -t options < <(guest_ssh_options "${1:-$top/node}")
	process_start "$top" egress python3 "$e2e_lib/../deploy/egress.py" "$top/egress.sock" ssh "${options[@]}" root@127.0.0.1 -W
}

join_segment() {
	[ -e "$top/segment" ] || free_port >"$top/segment"
	# shellcheck disable=SC2034  # read by guest.sh and node.sh
	GUEST_SEGMENT=$(cat "$top/segment") NODE_ADDRESS=192.168.76.$1
}

start_control_plane() {
	cp_egress "$top/egress.yaml" "$top/egress.sock"
	# shellcheck disable=SC2034  # read by control-plane.sh
	CP_APISERVER_FLAGS=(--egress-selector-config-file "$top/egress.yaml" --enable-aggregator-routing
		--kubelet-preferred-address-types InternalIP) # the guest does not know its name
	cp_start "$cp"
	cp_start_scheduler "$cp"
	cp_start_controller_manager "$cp" --node-monitor-grace-period 24h
}

apply_platform() { sed "s/@API_SERVER@/10.0.2.2:$(cat "$cp/port")/" "$e2e_lib/../deploy/platform.yaml" | kubectl apply -f - >/dev/null 2>&1; }

partition_cluster() {
	kubectl wait --for condition=Established crd/infrastructures.config.openshift.io --timeout 120s >/dev/null
	kubectl apply -f - >/dev/null <<<'{apiVersion: config.openshift.io/v1, kind: Infrastructure, metadata: {name: cluster}}'
	kubectl patch infrastructure cluster --subresource status --type merge -p '{"status":{"cpuPartitioning":"AllNodes"}}' >/dev/null
}

# Calls that the API server gave up: on a slow machine the webhook may not answer in time.
calls_missed() { grep -c 'failing open [a-z]*.mutate.pinfold.io' "$cp/logs/kube-apiserver.log" || :; }

stop_cluster() {
	local node
	process_stop "$top" egress
	for node in "${@:-$top/node}"; do
		[ ! -d "$node" ] || node_stop "$node"
	done
	cp_stop "$cp"
}
