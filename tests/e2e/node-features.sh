#!/bin/bash
#
# Pool resizes, in-place pod resizes and static pods with a real containerd and runc on this machine, no kubelet: pools that change while
# containers run, containers that are resized in place, static pods converted through crashes. Needs root and two
# CPUs. RUNTIMES="containerd" runs one of them only.

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/e2e/lib/native-runtime.sh
. "$here/lib/native-runtime.sh"
# shellcheck source=tests/e2e/lib/native-agent.sh
. "$here/lib/native-agent.sh"

rounds=${ROUNDS:-$([ -n "${SMOKE:-}" ] && echo 5 || echo 25)}

on() { [ "$(cpus_of "$1")" = "$2" ]; }

pools() { echo "$1" >"$dir/pools.new" && mv "$dir/pools.new" "$dir/pools"; }
agent_up() {
	agent_start --pools-file "$dir/pools" --marker-file "$dir/none" --nri-socket "$dir/nri.sock" --no-cluster \
		--static-pods "$dir/manifests"
	wait_for 30 agent_ready || die "the agent is not ready"
}
status() { "$pinfold" status --run-dir "$dir/run"; }
status_has() { status | grep -q "$1"; }

make_containers() {
	native_pod "$dir" mgmt burstable/ "$target,\"resources.workload.openshift.io/c\":\"{\\\"cpushares\\\":400}\"" >/dev/null
	mgmt_path=$(native_cgroup "$dir" "$(native_container "$dir" mgmt '"cpu_shares":2,"cpu_period":100000')")
	native_pod "$dir" share burstable/ >/dev/null
	share=$(native_container "$dir" share '"cpu_shares":102,"cpu_period":100000')
	share_path=$(native_cgroup "$dir" "$share")
	pause_path=$(native_cgroup "$dir" "$(cat "$dir/pod-share.id")")
}

# The pools change places and come back; everybody follows, pause containers too.
test_resize() {
	is "management" "$(cpus_of "$mgmt_path")" 0
	is "shared" "$(cpus_of "$share_path")" 1
	pools '{"reserved":"1","shared":"0"}'
	wait_for 10 on "$mgmt_path" 1 || die "management did not follow"
	wait_for 10 on "$share_path" 0 || die "shared did not follow"
	is "pause" "$(cpus_of "$pause_path")" 1
	echo '{"reserved":"0",' >"$dir/pools" # half of a file, and closed
	wait_for 10 status_has 'new pools are refused: .*pools:2:1: unexpected end of data' || die "nothing said about a broken file: $(status)"
	is "nothing moves" "$(cpus_of "$mgmt_path")" 1
	pools '{"reserved":"0","shared":"1"}'
	wait_for 10 on "$mgmt_path" 0 || die "not back"
	is "shared is back" "$(cpus_of "$share_path")" 1
	is "the pools as they are" "$(status | grep -c warning)" 0
	checks=$((checks + 3))
}

# Classic mode: somebody owns CPU 1, which the new pools want.
test_in_the_way() {
	pools '{"reserved":"0"}'
	wait_for 10 status_has 'mode classic' || die "not classic: $(status)"
	native_pod "$dir" alone "" >/dev/null
	alone=$(native_container "$dir" alone '"cpu_shares":1024,"cpu_period":100000,"cpu_quota":100000')
	alone_path=$(native_cgroup "$dir" "$alone")
	is "exclusive" "$(cpus_of "$alone_path")" 1
	pools '{"reserved":"1"}'
	wait_for 10 status_has 'default/alone/c is on CPUs 1' || die "not named: $(status)"
	status_has 'new pools are refused' || die "not refused: $(status)"
	is "nothing moves" "$(cpus_of "$mgmt_path")" 0
	checks=$((checks + 2))
}

# What a kubelet may change of a running container, and what it may not.
test_pod_resize() {
	local words
	words=$(native_crictl "$dir" update --cpu-share 2048 --cpu-quota 200000 "$alone" 2>&1) && die "a CPU was promised that it has not"
	case $words in
	*"pinfold: default/alone, container c: "*"owns 1 CPUs and cannot change to 2000 millicores while it runs: create the pod anew"*) ;;
	*) die "refused without a reason: $words" ;;
	esac
	is "its CPUs" "$(cpus_of "$alone_path")" 1
	is "its shares" "$(control cpu cpu.shares "$alone_path")" 1024
	is "its quota" "$(control cpu cpu.cfs_quota_us "$alone_path")" -1
	is "counted" "$(counter resizes_refused)" 1
	native_crictl "$dir" update --cpu-share 512 --cpu-quota 60000 --cpuset-cpus 0-1 "$share" >/dev/null
	is "shared, new shares" "$(control cpu cpu.shares "$share_path")" 512
	is "shared, new quota" "$(control cpu cpu.cfs_quota_us "$share_path")" 60000
	is "shared, the same pool" "$(cpus_of "$share_path")" 0
	"$pinfold" verify --run-dir "$dir/run" >"$dir/verify.out" || die "verify: $(cat "$dir/verify.out")"
	checks=$((checks + 1))
}

test_deferred() {
	pools '{"reserved":"1","resize":"defer"}'
	wait_for 10 status_has 'new pools are deferred' || die "not deferred: $(status)"
	agent_kill # the wish outlives the agent
	agent_up
	is "still in its place" "$(cpus_of "$alone_path")" 1
	native_crictl "$dir" rmp -f "$(cat "$dir/pod-alone.id")" >/dev/null
	wait_for 20 on "$mgmt_path" 1 || die "not applied when it was gone: $(status)"
	checks=$((checks + 2))
}

manifest() {
	cat <<-EOF
	apiVersion: v1
	kind: Pod
	metadata:
	  name: etcd-$1
	  annotations: {target.workload.openshift.io/management: '{"effect": "PreferredDuringScheduling"}'}
	spec:
	  containers:
	  - {name: etcd, image: e, resources: {requests: {cpu: 300m, memory: 1Gi}}}
	EOF
}
has_cores() { grep -q 'management.workload.openshift.io/cores: "300"' "$dir/manifests/$1.yaml"; }

test_static() {
	{
		manifest slow | head -n 5
		sleep 2
		manifest slow | tail -n +6
	} >"$dir/manifests/slow.yaml"
	wait_for 20 has_cores slow || die "not converted: $(cat "$dir/manifests/slow.yaml")"
	is "the original" "$(cat "$dir/manifests/.slow.yaml.pinfold-original")" "$(manifest slow)"
	# Killed without warning at some moment after a manifest has come.
	local i
	for ((i = 0; i < rounds; i++)); do
		manifest "$i" >"$dir/manifests/.tmp" && mv "$dir/manifests/.tmp" "$dir/manifests/$i.yaml"
		sleep "0.$((150 + RANDOM % 150))"
		agent_kill
		if ! has_cores "$i"; then
			is "round $i: the old one, whole" "$(cat "$dir/manifests/$i.yaml")" "$(manifest "$i")"
		fi
		agent_up
		wait_for 20 has_cores "$i" || die "round $i: not finished"
		is "round $i: the original" "$(cat "$dir/manifests/.$i.yaml.pinfold-original")" "$(manifest "$i")"
	done
	is "nothing else is left" "$(find "$dir/manifests" -name '.*' ! -name '*.pinfold-original' -type f | wc -l)" 0
	process_stop "$dir" agent
	"$pinfold" agent --uninstall --no-cluster --run-dir "$dir/run" --static-pods "$dir/manifests" || die "uninstall"
	is "given back" "$(cat "$dir/manifests/slow.yaml")" "$(manifest slow)"
	is "no original is left" "$(find "$dir/manifests" -name '.*' -type f | wc -l)" 0
}

[ "$(nproc)" -ge 2 ] || { echo "node-features.sh: needs two CPUs" >&2; exit 77; }
for runtime in ${RUNTIMES:-containerd}; do
	dir=$(mktemp -d "/tmp/pinfold-node-features-XXXXXX")
	trap 'process_stop "$dir" agent; native_stop "$dir"' EXIT
	mkdir "$dir/manifests"
	native_start "$dir" "$runtime"
	pools '{"reserved":"0","shared":"1"}'
	agent_up
	make_containers
	for t in resize in_the_way pod_resize deferred static; do
		echo "$runtime: $t" >&2
		"test_$t"
	done
	native_stop "$dir"
	trap - EXIT
	rm -rf "$dir"
done
echo "node-features.sh: $checks checks passed"
