#!/bin/bash
#
# The PodResources API on the agent's own socket, read by the kubelet's own Go client: a real
# containerd and runc on this machine, CPUs compared with /proc; then beside a server made of the
# kubelet's own library, whose devices and memory are passed on. Needs root, two CPUs and Go.

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/e2e/lib/native-runtime.sh
. "$here/lib/native-runtime.sh"
# shellcheck source=tests/e2e/lib/native-agent.sh
. "$here/lib/native-agent.sh"

agent_up() { # KUBELET-SOCKET
	agent_start --reserved 0 --nri-socket "$dir/nri.sock" --podresources "$dir/podres.sock" --kubelet-podresources "$1"
	wait_for 30 agent_ready || die "the agent is not ready"
}

ask() { "$peer" client "$dir/podres.sock" "$@" 2>"$dir/client.err"; }
kubelet_up() { # MOOD
	process_start "$dir" kubelet "$peer" server "$dir/kubelet.sock" "$dir/kubelet.json" "$@"
	wait_for 20 test -S "$dir/kubelet.sock" || die "the stand-in for the kubelet does not listen"
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

# Every container of the list: its ids, or none for those who share.
ids_of() { # POD
	ask list | jq -r --arg pod "$1" '.podResources[] | select(.name == $pod) | .containers[0].cpuIds // [] | join(",")'
}

test_without_kubelet() {
	agent_up ""
	native_pod "$dir" mgmt burstable/ "$target" >/dev/null
	mgmt=$(native_container "$dir" mgmt '"cpu_shares":2,"cpu_period":100000')
	native_pod "$dir" share burstable/ >/dev/null
	share=$(native_container "$dir" share '"cpu_shares":102,"cpu_period":100000')
	native_pod "$dir" alone "" >/dev/null
	alone=$(native_container "$dir" alone '"cpu_shares":1024,"cpu_period":100000,"cpu_quota":100000')
	is "pods listed" "$(ask list | jq -r '[.podResources[] | .namespace + "/" + .name] | sort | join(" ")')" \
		"default/alone default/mgmt default/share"
	is "List and /proc agree" "$(ids_of alone)" "$(proc_cpus "$alone")"
	is "the exclusive one" "$(ids_of alone)" 1
	is "management owns nothing" "$(ids_of mgmt)" ""
	is "who shares owns nothing" "$(ids_of share)" ""
	is "and is elsewhere" "$(proc_cpus "$share") $(proc_cpus "$mgmt")" "0 0"
	is "allocatable: no reserved CPU" "$(ask allocatable | jq -c '.cpuIds')" '["1"]'
	is "one pod" "$(ask get default alone | jq -r '.podResources.name + " " + (.podResources.containers[0].cpuIds | join(","))')" "alone 1"
	ask get default nobody >/dev/null && die "a pod that is not there"
	is "no such pod" "$(cat "$dir/client.err")" \
		"rpc error: code = Unknown desc = pod nobody in namespace default not found"
	native_crictl "$dir" rmp -f "$(cat "$dir/pod-alone.id")" >/dev/null
	is "gone from the list" "$(ask list | jq -r '[.podResources[].name] | sort | join(" ")')" "mgmt share"
	is "allocatable is what can be handed out, not what is free" "$(ask allocatable | jq -c '.cpuIds')" '["1"]'
	process_stop "$dir" agent
}

test_beside_kubelet() {
	local answer
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
	agent_up "$dir/kubelet.sock"
	is "no kubelet yet: only CPUs" "$(ask allocatable | jq -c .)" '{"cpuIds":["1"]}'
	native_pod "$dir" alone "" >/dev/null
	alone=$(native_container "$dir" alone '"cpu_shares":1024,"cpu_period":100000,"cpu_quota":100000')
	kubelet_up
	answer=$(ask list)
	is "devices, memory and claims as the kubelet says" \
		"$(jq -cS '.podResources[] | select(.name == "share").containers[0] | del(.cpuIds)' <<<"$answer")" \
		"$(jq -cS '.list.podResources[0].containers[0] | del(.cpuIds)' "$dir/kubelet.json")"
	is "but the CPUs are ours" "$(jq -r '.podResources[] | select(.name == "share") | .containers[0].cpuIds // [] | length' <<<"$answer")" 0
	is "the kubelet's pods, and who owns CPUs" "$(jq -r '[.podResources[].name] | join(" ")' <<<"$answer")" "share pending alone"
	is "List and /proc agree" "$(ids_of alone)" "$(proc_cpus "$alone")"
	is "allocatable" "$(ask allocatable | jq -cS .)" \
		"$(jq -cS '.allocatable | .cpuIds = ["1"]' "$dir/kubelet.json")"
	is "many at once" "$(seq 40 | xargs -P 8 -I{} sh -c '"$0" client "$1" list | md5sum' "$peer" "$dir/podres.sock" | sort | uniq -c | wc -l)" 1
	kubelet_down
	ask list >/dev/null && die "devices vanished without a word"
	grep -q 'code = Unavailable' "$dir/client.err" || die "a kubelet that is away: $(cat "$dir/client.err")"
	checks=$((checks + 1))
}

test_moods() {
	local pid
	kubelet_up broken
	ask list >/dev/null && die "the kubelet's refusal was lost"
	is "the kubelet's refusal" "$(cat "$dir/client.err")" \
		"rpc error: code = ResourceExhausted desc = the kubelet answered: rejected by rate limit"
	kubelet_down
	kubelet_up hang
	ask list >"$dir/hang.out" &
	pid=$!
	agent_ready || die "the agent waits for the kubelet"
	native_pod "$dir" meanwhile burstable/ "$target" >/dev/null
	is "a container is placed meanwhile" "$(proc_cpus "$(native_container "$dir" meanwhile '"cpu_shares":2,"cpu_period":100000')")" 0
	if wait "$pid"; then die "a kubelet that hangs has answered"; fi
	is "the time limit" "$(cat "$dir/client.err")" \
		"rpc error: code = DeadlineExceeded desc = the kubelet did not answer within 5000 ms"
	kubelet_down
	curl -s --http0.9 --max-time 5 --unix-socket "$dir/podres.sock" http://x/ >/dev/null || :
	agent_ready || die "the agent fell to a client that speaks HTTP/1"
	checks=$((checks + 1))
}

[ "$(nproc)" -ge 2 ] || { echo "podresources.sh: needs two CPUs" >&2; exit 77; }
command -v go >/dev/null || { echo "podresources.sh: skipped, there is no go" >&2; exit 77; }
peer=$("$here/../bench/peers/build" podresources)
dir=$(mktemp -d "/tmp/pinfold-podres-XXXXXX")
trap 'process_stop "$dir" agent; process_stop "$dir" kubelet; native_stop "$dir"' EXIT
native_start "$dir" containerd
for t in without_kubelet beside_kubelet moods; do
	echo "podresources: $t" >&2
	"test_$t"
done
echo "  agent $(awk '/VmRSS/ { print $2 }' "/proc/$(cut -d' ' -f1 "$dir/agent.pid")/status") kB" >&2
process_stop "$dir" agent
native_stop "$dir"
trap - EXIT
rm -rf "$dir"
echo "podresources.sh: $checks checks passed"
