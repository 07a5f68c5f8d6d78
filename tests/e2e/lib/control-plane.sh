# shellcheck shell=bash
#
# A real control plane as ordinary processes on 127.0.0.1: etcd and kube-apiserver, and on request the
# scheduler and the controller manager. Source it, then:
#
#	cp_start DIR                      DIR/admin.kubeconfig works when it returns
#	cp_start_scheduler DIR
#	cp_start_controller_manager DIR [FLAG...]
#	cp_policy_warnings DIR            what the type check finds in the expressions of validating policies, "POLICY: FIELD: WARNING"
#	cp_kubectl DIR ARG...             kubectl as system:masters
#	kubectl ARG...                    the same for the control plane in $cp, the only one of most tests
#	cp_namespace DIR NAME             a namespace that accepts pods, with or without controller manager
#	cp_egress FILE SOCKET             writes the API server's configuration to reach pods through a proxy at SOCKET; for
#	                                  --egress-selector-config-file
#	profile NAME ROLE CPU             a PerformanceProfile in $cp: the nodes with label ROLE, CPU has the members of spec.cpu
#	cp_restart_apiserver DIR          same port, same flags, same data
#	cp_stop DIR                       stops all of them; DIR stays, with logs/
#	cp_resume DIR                     after cp_stop, or for a copy of its DIR: starts etcd and API server with the data in it
#
# CP_VERSION chooses the Kubernetes version (default: the newest of components/versions), and the array
# CP_APISERVER_FLAGS adds flags. Both are stored in DIR.

# shellcheck source=tests/e2e/lib/process.sh
. "$(dirname "${BASH_SOURCE[0]}")/process.sh"

# cp_cert DIR NAME SUBJECT [SAN]: DIR/pki/NAME.{key,crt}, signed by the CA, for server and client.
cp_cert() {
	local pki=$1/pki
	openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "$3" \
		-keyout "$pki/$2.key" -out "$pki/$2.csr" 2>/dev/null &&
		openssl x509 -req -in "$pki/$2.csr" -CA "$pki/ca.crt" -CAkey "$pki/ca.key" -days 30 \
			-set_serial "0x$(openssl rand -hex 8)" -out "$pki/$2.crt" 2>/dev/null \
			-extfile <(echo "extendedKeyUsage=serverAuth,clientAuth${4:+
subjectAltName=$4}")
}

# cp_kubeconfig DIR NAME SUBJECT [HOST]: DIR/NAME.kubeconfig with a client certificate of its own.
# Keys and certificates are inside the file, so that it can be copied into a guest (with HOST 10.0.2.2).
cp_kubeconfig() {
	local dir=$1 name=$2 host=${4:-127.0.0.1}
	cp_cert "$dir" "$name" "$3" || return
	cat >"$dir/$name.kubeconfig" <<-EOF
	apiVersion: v1
	kind: Config
	current-context: test
	clusters:
	- name: test
	  cluster:
	    server: https://$host:$(cat "$dir/port")
	    certificate-authority-data: $(base64 -w0 "$dir/pki/ca.crt")
	users:
	- name: $name
	  user:
	    client-certificate-data: $(base64 -w0 "$dir/pki/$name.crt")
	    client-key-data: $(base64 -w0 "$dir/pki/$name.key")
	contexts:
	- name: test
	  context: {cluster: test, user: $name}
	EOF
}

# cp_node_kubeconfig DIR NODE [HOST]: the identity a kubelet needs to pass the Node authorizer.
cp_node_kubeconfig() { cp_kubeconfig "$1" "$2" "/O=system:nodes/CN=system:node:$2" "${3:-10.0.2.2}"; }

cp_pki() {
	local pki=$1/pki
	mkdir -p "$pki" && chmod 700 "$pki" || return
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 \
		-subj /CN=pinfold-test-ca -keyout "$pki/ca.key" -out "$pki/ca.crt" 2>/dev/null || return
	openssl ecparam -name prime256v1 -genkey -noout -out "$pki/service-account.key" || return
	# 10.0.2.2 is what qemu's user network calls the host's loopback, 10.96.0.1 is Service kubernetes.
	cp_cert "$1" apiserver /CN=kube-apiserver \
		IP:127.0.0.1,IP:10.0.2.2,IP:10.96.0.1,DNS:localhost,DNS:kubernetes.default.svc
}

cp_bin() { echo "$(cat "$1/bindir")/$2"; }

cp_kubectl() {
	local dir=$1
	shift
	"$(cp_bin "$dir" kubectl)" --kubeconfig "$dir/admin.kubeconfig" "$@"
}
kubectl() { cp_kubectl "${cp:?}" "$@"; }

cp_start() {
	local dir=$1
	# shellcheck source=tests/e2e/components/versions
	. "$e2e_lib/../components/versions"
	mkdir -p "$dir/logs" || return
	echo "${CP_VERSION:-$KUBERNETES_VERSION}" >"$dir/version"
	"$e2e_build" "kubernetes-$(cat "$dir/version"):kube-apiserver,kubectl" >"$dir/bindir" || return
	sed -i 's,$,/bin,' "$dir/bindir"
	free_port >"$dir/port"
	cp_pki "$dir" && cp_kubeconfig "$dir" admin /O=system:masters/CN=admin || return
	printf '%s\n' "${CP_APISERVER_FLAGS[@]}" >"$dir/apiserver-flags"
	cp_resume "$dir"
}

cp_resume() {
	local dir=$1 etcd etcd_port
	etcd=$("$e2e_build" etcd) || return
	etcd_port=$(free_port)
	echo "$etcd_port" >"$dir/etcd-port"
	process_start "$dir" etcd "$etcd/bin/etcd" --data-dir "$dir/etcd" --unsafe-no-fsync \
		--listen-client-urls "http://127.0.0.1:$etcd_port" \
		--advertise-client-urls "http://127.0.0.1:$etcd_port" \
		--listen-peer-urls "http://127.0.0.1:$(free_port)" --log-level warn
	cp_start_apiserver "$dir"
}

cp_is_ready() { [ "$(cp_kubectl "$1" get --raw /readyz --request-timeout 5s 2>/dev/null)" = ok ]; }

cp_start_apiserver() {
	local dir=$1 pki=$1/pki flags
	mapfile -t flags < <(grep . "$dir/apiserver-flags")
	process_start "$dir" kube-apiserver "$(cp_bin "$dir" kube-apiserver)" \
		--etcd-servers "http://127.0.0.1:$(cat "$dir/etcd-port")" \
		--bind-address 127.0.0.1 --secure-port "$(cat "$dir/port")" --advertise-address 10.0.2.2 \
		--client-ca-file "$pki/ca.crt" \
		--tls-cert-file "$pki/apiserver.crt" --tls-private-key-file "$pki/apiserver.key" \
		--kubelet-client-certificate "$pki/admin.crt" --kubelet-client-key "$pki/admin.key" \
		--service-account-key-file "$pki/service-account.key" \
		--service-account-signing-key-file "$pki/service-account.key" \
		--service-account-issuer https://kubernetes.default.svc \
		--service-cluster-ip-range 10.96.0.0/16 --authorization-mode Node,RBAC \
		--enable-admission-plugins NodeRestriction --allow-privileged "${flags[@]}"
	wait_ready "$dir" kube-apiserver 180 cp_is_ready "$dir"
}

cp_restart_apiserver() {
	process_stop "$1" kube-apiserver
	cp_start_apiserver "$1"
}

cp_healthz() { curl -sk --max-time 5 "https://127.0.0.1:$1/healthz" | grep -qx ok; }

# cp_start_client DIR PROGRAM FLAG...: scheduler and controller manager differ only in their flags.
cp_start_client() {
	local dir=$1 program=$2 port
	shift 2
	"$e2e_build" "kubernetes-$(cat "$dir/version"):$program" >/dev/null || return
	port=$(free_port)
	cp_kubeconfig "$dir" "$program" "/CN=system:$program" || return
	process_start "$dir" "$program" "$(cp_bin "$dir" "$program")" \
		--kubeconfig "$dir/$program.kubeconfig" \
		--authentication-kubeconfig "$dir/$program.kubeconfig" \
		--authorization-kubeconfig "$dir/$program.kubeconfig" \
		--bind-address 127.0.0.1 --secure-port "$port" --leader-elect=false "$@"
	wait_ready "$dir" "$program" 120 cp_healthz "$port"
}

cp_start_scheduler() { cp_start_client "$1" kube-scheduler; }

cp_start_controller_manager() {
	local dir=$1 pki=$1/pki
	shift
	cp_start_client "$dir" kube-controller-manager --use-service-account-credentials \
		--service-account-private-key-file "$pki/service-account.key" --root-ca-file "$pki/ca.crt" \
		--cluster-signing-cert-file "$pki/ca.crt" --cluster-signing-key-file "$pki/ca.key" "$@"
}

# The controller manager checks the types of expressions; without it a policy has no status. No other controller runs: they would
# taint nodes that have no kubelet.
cp_policies_have_status() {
	cp_kubectl "$1" get validatingadmissionpolicies -o json |
		jq -e '[.items[] | .status.observedGeneration == .metadata.generation] | length > 0 and all' >/dev/null
}
cp_policy_warnings() {
	cp_start_controller_manager "$1" --controllers validatingadmissionpolicy-status-controller || return
	wait_for 180 cp_policies_have_status "$1" || echo "the status of a policy is missing"
	process_stop "$1" kube-controller-manager
	cp_kubectl "$1" get validatingadmissionpolicies -o json | jq -r '.items[] | .metadata.name as $name |
		.status.typeChecking.expressionWarnings[]? | "\($name): \(.fieldRef): \(.warning | gsub("\\s+"; " "))"'
}

# The ServiceAccount is what a controller manager would create; without it every pod is refused.
cp_namespace() {
	cp_kubectl "$1" create namespace "$2" &&
		{ cp_kubectl "$1" -n "$2" create serviceaccount default 2>/dev/null ||
			cp_kubectl "$1" -n "$2" get serviceaccount default >/dev/null; }
}

cp_egress() {
	cat >"$1" <<-EOF
	apiVersion: apiserver.k8s.io/v1beta1
	kind: EgressSelectorConfiguration
	egressSelections:
	- name: cluster
	  connection:
	    proxyProtocol: HTTPConnect
	    transport: {uds: {udsName: $2}}
	EOF
}

profile() {
	kubectl apply -f - >/dev/null <<-EOF
	apiVersion: performance.openshift.io/v2
	kind: PerformanceProfile
	metadata: {name: $1}
	spec:
	  cpu: {$3}
	  nodeSelector: {$2: ""}
	EOF
}
profile_status() { kubectl get performanceprofile "$1" -o 'jsonpath={.status.conditions[?(@.type=="Available")].status} {.status.nodes.ready}'; } # NAME

cp_stop() {
	local name
	for name in kube-scheduler kube-controller-manager kube-apiserver etcd; do
		process_stop "$1" $name
	done
}
