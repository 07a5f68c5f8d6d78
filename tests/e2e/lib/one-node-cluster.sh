# shellcheck shell=bash disable=SC2154  # "top" is the caller's
#
# A cluster with one node, the guest of node.sh in $top/node, whose API server reaches pods and kubelet, so that webhooks,
# `kubectl logs` and `kubectl exec` work. Source node.sh first; the control plane is in $top/cp, and cp is set to that.
#
#	start_control_plane    API server, scheduler, controller manager
#	apply_platform         a network plugin and a DNS server, as management pods (deploy/platform.yaml)
#	start_egress           after node_start: the API server's way into the guest
#	stop_cluster           all of it, and the node

# The API server has no route to pods. It reaches them through the guest's ssh server.
start_egress() {
	local options
	mapfile -t options < <(guest_ssh_options "$top/node")
	process_start "$top" egress python3 "$e2e_lib/../deploy/egress.py" "$top/egress.sock" ssh "${options[@]}" root@127.0.0.1 -W
}

start_control_plane() {
	cat >"$top/egress.yaml" <<-EOF
	apiVersion: apiserver.k8s.io/v1beta1
	kind: EgressSelectorConfiguration
	egressSelections:
	- name: cluster
	  connection:
	    proxyProtocol: HTTPConnect
	    transport: {uds: {udsName: $top/egress.sock}}
	EOF
	# shellcheck disable=SC2034  # read by control-plane.sh
	CP_APISERVER_FLAGS=(--egress-selector-config-file "$top/egress.yaml" --enable-aggregator-routing
		--kubelet-preferred-address-types InternalIP) # the guest does not know its name
	cp_start "$cp"
	cp_start_scheduler "$cp"
	cp_start_controller_manager "$cp" --node-monitor-grace-period 24h
}

apply_platform() { sed "s/@API_SERVER@/10.0.2.2:$(cat "$cp/port")/" "$e2e_lib/../deploy/platform.yaml" | kubectl apply -f - >/dev/null 2>&1; }

stop_cluster() {
	process_stop "$top" egress
	node_stop "$top/node"
	cp_stop "$cp"
}
