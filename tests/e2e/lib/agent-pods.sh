# shellcheck shell=bash disable=SC2154  # "top" is the caller's
#
# The agent and pods of all pools on the node of node.sh, and their state in the guest's kernel. The test has set cp to
# $top/cp, the control plane, and its node worker-0 is in $top/node; RUNTIME is node.sh's. The pools are 0-1 management,
# 2-3 shared, 4-7 guaranteed. The runtime's unit is $unit.
#
#	agent_install FLAGS               installs the agent's unit and the pools; kubectl uses the new namespace shop
#	make_three SET                    runs SET-mgmt, SET-share and SET-alone
#	all_hold SET CPUS                 every expectation of a set holds, SET-alone on CPUS; ends the test if not
#	all_differ SET                    no expectation holds: the control
#	wait_hold SECONDS SET CPUS        waits for all_hold
#	inside_hold SET CPUS              the CPUs that the containers saw when they started
#	value POD FILE                    of its container's cgroup; pod/FILE of the pod's, pause/FILE of the sandbox's
#
# Where a container is does not come from the agent: ids come from the API server, cgroups are found by id.

case ${RUNTIME:-} in crio*) unit=crio ;; *) unit=containerd ;; esac

in_guest() { guest_run "$top/node" "$@"; }

agent_install() {
	cp_namespace "$cp" shop >/dev/null
	kubectl annotate namespace shop workload.openshift.io/allowed=management >/dev/null
	# shellcheck disable=SC2154  # e2e_lib is of process.sh
	kubectl apply -f "$e2e_lib/../../../deploy/agent/node-rbac.yaml" >/dev/null
	kubectl config set-context --current --namespace shop >/dev/null
	in_guest "mkdir -p /usr/local/bin && cp /payload/extra/pinfold /usr/local/bin/ &&
		cp /payload/extra/pinfold-agent.service /etc/systemd/system/ &&
		echo '{\"reserved\":\"0-1\",\"shared\":\"2-3\",\"guaranteed\":\"4-7\"}' >/etc/kubernetes/openshift-cpu-pools &&
		echo 'PINFOLD_AGENT_FLAGS=$1' >/etc/default/pinfold-agent &&
		systemctl daemon-reload"
}

explain() { in_guest 'journalctl -u pinfold-agent --no-pager -o cat -n 25; journalctl -t pinfold -t pinfold-agent --no-pager -o cat -n 5'; }

# For the guest's shell: whether the agent is ready, and the cgroups of all containers.
ready_there="printf 'GET /readyz HTTP/1.0\r\n\r\n' | socat -t 20 - UNIX-CONNECT:/run/pinfold/agent.sock 2>/dev/null | head -n 1 | grep -q ' 200 '"
scopes_there="find /sys/fs/cgroup/kubepods.slice -name '*.scope' ! -name '*conmon*'"
agent_ready() { in_guest "$ready_there"; }
agent_start() {
	in_guest systemctl start pinfold-agent
	wait_for 600 agent_ready || die "the agent is not ready"
}
agent_stop() { in_guest systemctl stop pinfold-agent; }
verify_ok() { in_guest /usr/local/bin/pinfold verify >"$top/verify.out" 2>&1; }
verify_holds() {
	verify_ok || die "verify: $(cat "$top/verify.out")"
	checks=$((checks + 1))
}
# Waits until the agent has corrected changes by other processes; a systemctl daemon-reload, for one, writes the
# quotas of pods again.
verify_soon() {
	wait_for 60 verify_ok || :
	verify_holds
}
counter() { in_guest pinfold status -o json | tr -d ' \n' | sed "s/.*\"counters\":{[^}]*\"$1\":\([0-9]*\).*/\1/"; }

# management RESOURCES [MORE]: annotations for a pod of pod_manifest.
management() {
	local i
	printf "target.workload.openshift.io/management: '%s'" '{"effect":"PreferredDuringScheduling"}'
	for ((i = 0; i <= ${2:-0}; i++)); do
		printf ", resources.workload.openshift.io/c%s: '%s'" "${i#0}" "$1"
	done
}

# pod_manifest NAME ANNOTATIONS COMMAND REQUESTS-AND-LIMITS [MORE]: container c and MORE like it, c1 and so on. The manifest
# names the node, so that no scheduler is needed, and mounts no token, so that no controller manager is.
pod_manifest() {
	local i
	cat <<-EOF
	apiVersion: v1
	kind: Pod
	metadata:
	  name: $1
	  labels: {set: ${1%%-*}}
	  annotations: {$2}
	spec:
	  nodeName: worker-0
	  automountServiceAccountToken: false
	  terminationGracePeriodSeconds: 1
	  containers:
	EOF
	for ((i = 0; i <= ${5:-0}; i++)); do
		cat <<-EOF
		  - name: c${i#0}
		    image: localhost/busybox:1
		    imagePullPolicy: Never
		    args: ["-c", "grep Cpus_allowed_list /proc/self/status; ${3:-sleep 1000000}"]
		    resources: {$4}
		EOF
	done
}

all_running() {
	kubectl get pods "$@" --no-headers 2>/dev/null | awk -v n=$# '$3 == "Running" { n-- } END { exit n != 0 }'
}

wait_running() {
	wait_for 900 all_running "$@" ||
		die "not running: $(kubectl get pods; kubectl describe pod "$@" | grep -A 12 ^Events)"
}

# A Guaranteed pod's memory limit also covers runc at the start, which needs more than the program.
make_three() {
	{
		pod_manifest "$1-mgmt" "$(management '{"cpushares":400,"cpulimit":500}')" '' 'requests: {memory: 64Mi}'
		echo ---
		pod_manifest "$1-share" '' '' 'requests: {cpu: 100m, memory: 64Mi}'
		echo ---
		pod_manifest "$1-alone" '' '' 'requests: {cpu: 2, memory: 256Mi}, limits: {cpu: 2, memory: 256Mi}'
	} | kubectl apply -f - >/dev/null
	wait_running "$1-mgmt" "$1-share" "$1-alone"
}

gone() { [ -z "$(kubectl get pods "$@" --ignore-not-found -o name)" ]; }
# remove SET [SECONDS]
remove() {
	kubectl delete pods -l "set=$1" --wait=false >/dev/null
	wait_for "${2:-600}" gone -l "set=$1" || die "the pods of $1 do not end"
}

id_of() { kubectl get pod "$1" -o 'jsonpath={.status.containerStatuses[0].containerID}' | sed 's,.*//,,'; }

# Reads lines "ID FILE" and prints a value for each, with one connection and one search for all of them: each takes seconds.
values() {
	in_guest "scopes=\$($scopes_there)"$'\n'"$(cat <<-'EOF'
	while read -r id file; do
		scope=$(grep "$id" <<<"$scopes")
		case $file in
		pod/*) at=$(dirname "$scope") ;;
		monitor)
			pid=$(pgrep -f "conmon .*-c $id ")
			sed -n 's/Cpus_allowed_list:\t//p' "/proc/$pid/status" 2>/dev/null || echo missing
			continue ;;
		pause/*)
			at=
			for other in "$(dirname "$scope")"/*.scope; do
				case $other in "$scope" | *conmon*) ;; *) at=$other ;; esac
			done ;;
		*) at=$scope ;;
		esac
		cat "$at/${file#*/}" 2>/dev/null || echo missing
	done
	EOF
	)"
}
value() { echo "$(id_of "$1") $2" | values; }
has() { [ "$(value "$1" "$2")" = "$3" ]; }

# The expectations of a set: POD FILE WANT.
expectations() {
	cat <<-EOF
	$1-mgmt cpuset.cpus.effective 0-1
	$1-mgmt cpu.max 50000 100000
	$1-mgmt cpu.weight 16
	$1-mgmt pod/cpu.weight 16
	$1-mgmt pause/cpuset.cpus.effective 0-1
	$1-share cpuset.cpus.effective 2-3
	$1-share pause/cpuset.cpus.effective 0-1
	$1-alone cpuset.cpus.effective $2
	$1-alone cpu.max max 100000
	$1-alone pod/cpu.max max 100000
	$1-alone pause/cpuset.cpus.effective 0-1
	EOF
	[ "$unit" != crio ] || printf '%s monitor 0-1\n' "$1-mgmt" "$1-share" "$1-alone"
}

# Prints "holds" or "differs" for every expectation of a set.
compare_set() {
	local pod file want got
	declare -A id=(["$1-mgmt"]=$(id_of "$1-mgmt") ["$1-share"]=$(id_of "$1-share") ["$1-alone"]=$(id_of "$1-alone"))
	expectations "$@" | while read -r pod file want; do echo "${id[$pod]} $file"; done | values >"$top/values"
	while read -r pod file want; do
		if ! read -r got <&3; then
			echo "unread $pod $file"
		elif [ "$got" = "$want" ]; then
			echo "holds $pod $file"
		else
			echo "differs $pod $file: got '$got', want '$want'"
		fi
	done < <(expectations "$@") 3<"$top/values"
}

holds() {
	compare_set "$@" >"$top/compared"
	[ -s "$top/compared" ] && ! grep -qv ^holds "$top/compared"
}
all_hold() {
	holds "$@" || die "$(grep -v ^holds "$top/compared")"
	checks=$((checks + $(wc -l <"$top/compared")))
}
wait_hold() {
	wait_for "$1" holds "${@:2}" || :
	all_hold "${@:2}"
}
all_differ() {
	compare_set "$1" none >"$top/compared"
	if grep -v ^differs "$top/compared"; then die "control: these hold without the agent"; fi
	checks=$((checks + $(wc -l <"$top/compared")))
}

inside_hold() {
	local pod cpus
	while read -r pod cpus; do
		is "CPUs that $pod sees" "$(in_guest "cat /var/log/pods/shop_$pod""_*/c/0.log | sed -n 's/.*allowed_list:[[:space:]]*//p'" </dev/null)" "$cpus"
	done <<-EOF
	$1-mgmt 0-1
	$1-share 2-3
	$1-alone $2
	EOF
}

make_burners() {
	{
		pod_manifest small "$(management '{"cpushares":102,"cpuset":"1"}')" 'while :; do :; done' 'requests: {memory: 64Mi}'
		echo ---
		pod_manifest large "$(management '{"cpushares":409,"cpuset":"1"}')" 'while :; do :; done' 'requests: {memory: 64Mi}'
	} | kubectl apply -f - >/dev/null
	wait_running small large
}

# confine CPUS POD...: writes cpusets, as an administrator might.
confine() {
	local pod cpus=$1
	shift
	for pod in "$@"; do
		in_guest "echo $cpus >\$(find /sys/fs/cgroup/kubepods.slice -name '*$(id_of "$pod").scope')/cpuset.cpus"
	done
}

# The ratio, times 100, of the second pod's CPU time to the first's in the same interval, from cpu.stat. One shell in
# the guest reads both, so that the connection's latency has no effect.
measure() {
	in_guest "used() { awk '\$1 == \"usage_usec\" { print \$2 }' \$(find /sys/fs/cgroup/kubepods.slice -name \"*\$1.scope\")/cpu.stat; }
		a=\$(used $(id_of "$1")) b=\$(used $(id_of "$2")); sleep 30
		c=\$(used $(id_of "$1")) d=\$(used $(id_of "$2")); echo \$(((d - b) * 100 / (c - a + 1)))"
}
