#!/bin/bash
#
# The PodResources API on the agent's socket, read by the kubelet's Go client: a real containerd and runc on this
# machine, CPUs compared with /proc; then beside a server built from the kubelet's library, whose devices and
# memory the agent passes on. Needs root, two CPUs and Go.

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/e2e/lib/native-runtime.sh
. "$here/lib/native-runtime.sh"
# shellcheck source=tests/e2e/lib/native-agent.sh
. "$here/lib/native-agent.sh"

call() { "$peer" client "$dir/podres.sock" "$@" 2>"$dir/client.err"; }
kubelet_up() { # [broken|hang]
	process_start "$dir" kubelet "$peer" server "$dir/kubelet.sock" "$dir/kubelet.json" "$@"
	wait_for 20 test -S "$dir/kubelet.sock" || die "the test kubelet does not listen"
}
kubelet_down() {
	process_stop "$dir" kubelet
	rm -f "$dir/kubelet.sock"
}

# "0,1" as the kernel lists the CPUs of a container's process.
proc_cpus() {
	local pid
	pid=$(native_crictl "$dir" inspect -o go-template --template '{{.info.pid}}' "$1")
	awk '/^Cpus_allowed_list/ { print $2 }' "/proc/$pid/status"
}

# The exclusive CPUs that List reports for a pod; none for shared and management pods.
ids_of() { # POD
	call list | jq -r --arg pod "$1" '.podResources[] | select(.name == $pod) | .containers[0].cpuIds // [] | join(",")'
}

test_without_kubelet() {
	agent_up --kubelet-podresources ""
	native_pod "$dir" mgmt burstable/ "$target" >/dev/null
	mgmt=$(native_container "$dir" mgmt '"cpu_shares":2,"cpu_period":100000')
	native_pod "$dir" share burstable/ >/dev/null
	share=$(native_container "$dir" share '"cpu_shares":102,"cpu_period":100000')
	native_pod "$dir" alone "" >/dev/null
	alone=$(native_container "$dir" alone '"cpu_shares":1024,"cpu_period":100000,"cpu_quota":100000')
	is "pods listed" "$(call list | jq -r '[.podResources[] | .namespace + "/" + .name] | sort | join(" ")')" \
		"default/alone default/mgmt default/share"
	is "List agrees with /proc" "$(ids_of alone)" "$(proc_cpus "$alone")"
	is "CPUs of the container with an exclusive CPU" "$(ids_of alone)" 1
	prints "a management container owns no CPU" "" ids_of mgmt
	prints "a shared container owns no CPU" "" ids_of share
	is "CPUs of the shared and the management container" "$(proc_cpus "$share") $(proc_cpus "$mgmt")" "0 0"
	is "allocatable CPUs without the management CPUs" "$(call allocatable | jq -c '.cpuIds')" '["1"]'
	is "Get of one pod" "$(call get default alone | jq -r '.podResources.name + " " + (.podResources.containers[0].cpuIds | join(","))')" "alone 1"
	call get default missing >/dev/null && die "Get of a missing pod succeeds"
	is "Get of a missing pod" "$(cat "$dir/client.err")" \
		"rpc error: code = Unknown desc = pod missing in namespace default not found"
	native_crictl "$dir" rmp -f "$(cat "$dir/pod-alone.id")" >/dev/null
	is "pods listed after a removal" "$(call list | jq -r '[.podResources[].name] | sort | join(" ")')" "mgmt share"
	is "allocatable CPUs do not depend on what is assigned" "$(call allocatable | jq -c '.cpuIds')" '["1"]'
	agent_down
}

test_beside_kubelet() {
	local response
	cat >"$dir/kubelet.json" <<-'END'
	{"list":{"podResources":[
	  {"name":"share","namespace":"default","containers":[{"name":"c",
	    "devices":[{"resourceName":"example.com/nic","deviceIds":["vf0","vf1"],"topology":{"nodes":[{"ID":"1"}]}}],
	    "memory":[{"memoryType":"hugepages-1Gi","size":"2147483648","topology":{"nodes":[{"ID":"2"}]}}],
	    "dynamicResources":[{"claimName":"gpu","claimNamespace":"default","claimResources":[{"driverName":"d","poolName":"p","deviceName":"x"}]}],
	    "cpuIds":["0","1"]}]},
	  {"name":"pending","namespace":"shop","containers":[{"name":"web"}]}]},
	 "allocatable":{"devices":[{"resourceName":"example.com/nic","deviceIds":["vf0","vf1","vf2"],"topology":{"nodes":[{"ID":"1"}]}}],
	  "memory":[{"memoryType":"memory","size":"1073741824","topology":{"nodes":[{"ID":"2"}]}}],"cpuIds":["0","1"]}}
	END
	agent_up --kubelet-podresources "$dir/kubelet.sock"
	is "allocatable without a kubelet" "$(call allocatable | jq -c .)" '{"cpuIds":["1"]}'
	native_pod "$dir" alone "" >/dev/null
	alone=$(native_container "$dir" alone '"cpu_shares":1024,"cpu_period":100000,"cpu_quota":100000')
	kubelet_up
	response=$(call list)
	is "devices, memory and claims come from the kubelet" \
		"$(jq -cS '.podResources[] | select(.name == "share").containers[0] | del(.cpuIds)' <<<"$response")" \
		"$(jq -cS '.list.podResources[0].containers[0] | del(.cpuIds)' "$dir/kubelet.json")"
	is "CPUs come from the agent" "$(jq -r '.podResources[] | select(.name == "share") | .containers[0].cpuIds // [] | length' <<<"$response")" 0
	is "pods of the kubelet and pods with exclusive CPUs" "$(jq -r '[.podResources[].name] | join(" ")' <<<"$response")" "share pending alone"
	is "List agrees with /proc" "$(ids_of alone)" "$(proc_cpus "$alone")"
	is "allocatable beside a kubelet" "$(call allocatable | jq -cS .)" \
		"$(jq -cS '.allocatable | .cpuIds = ["1"]' "$dir/kubelet.json")"
	is "different responses to 40 parallel calls" "$(seq 40 | xargs -P 8 -I{} sh -c '"$0" client "$1" list | md5sum' "$peer" "$dir/podres.sock" | sort | uniq -c | wc -l)" 1
	kubelet_down
	call list >/dev/null && die "List succeeds without the kubelet"
	grep -q 'code = Unavailable' "$dir/client.err" || die "List without the kubelet: $(cat "$dir/client.err")"
	checks=$((checks + 1))
}

test_kubelet_errors() {
	local pid
	kubelet_up broken
	call list >/dev/null && die "an error of the kubelet is hidden"
	is "error of the kubelet" "$(cat "$dir/client.err")" \
		"rpc error: code = ResourceExhausted desc = the kubelet responded: rejected by rate limit"
	kubelet_down
	kubelet_up hang
	call list >"$dir/hang.out" &
	pid=$!
	agent_ready || die "the agent blocks on the kubelet"
	native_pod "$dir" meanwhile burstable/ "$target" >/dev/null
	is "CPUs of a container started in the meantime" "$(proc_cpus "$(native_container "$dir" meanwhile '"cpu_shares":2,"cpu_period":100000')")" 0
	if wait "$pid"; then die "a call to a hanging kubelet succeeds"; fi
	is "error of a hanging kubelet" "$(cat "$dir/client.err")" \
		"rpc error: code = DeadlineExceeded desc = no response from the kubelet within 5000 ms"
	kubelet_down
	curl -s --http0.9 --max-time 5 --unix-socket "$dir/podres.sock" http://x/ >/dev/null || :
	agent_ready || die "the agent stopped after an HTTP/1 request"
	checks=$((checks + 1))
}

[ "$(nproc)" -ge 2 ] || { echo "podresources.sh: needs two CPUs" >&2; exit 77; }
command -v go >/dev/null || { echo "podresources.sh: skipped, there is no go" >&2; exit 77; }
peer=$("$here/../bench/peers/build" podresources)
dir=$(mktemp -d "/tmp/pinfold-podres-XXXXXX")
trap 'process_stop "$dir" agent; process_stop "$dir" kubelet; native_stop "$dir"' EXIT
native_start "$dir" containerd
agent_flags=(--management 0 --allow-namespace default --nri-socket "$dir/nri.sock" --podresources "$dir/podres.sock")
for t in without_kubelet beside_kubelet kubelet_errors; do
	echo "podresources: $t" >&2
	"test_$t"
done
echo "  agent $(agent_rss) kB" >&2
process_stop "$dir" agent
native_stop "$dir"
trap - EXIT
rm -rf "$dir"
echo "podresources.sh: $checks checks passed"
