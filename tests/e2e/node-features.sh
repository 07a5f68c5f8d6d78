#!/bin/bash
#
# Pool resizes, in-place pod resizes and static pods with a real containerd and runc on this machine, without a
# kubelet; static pods are converted while the agent is killed at random times. Needs root and two CPUs.
# RUNTIMES="containerd-1.7" uses the older containerd.

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/e2e/lib/native-runtime.sh
. "$here/lib/native-runtime.sh"
# shellcheck source=tests/e2e/lib/native-agent.sh
. "$here/lib/native-agent.sh"

rounds=${ROUNDS:-$([ -n "${SMOKE:-}" ] && echo 5 || echo 25)}

pools() { echo "$1" >"$dir/pools.new" && mv "$dir/pools.new" "$dir/pools"; }
status() { "$pinfold" status --run-dir "$dir/run"; }
warnings() { status >"$dir/status.out" && sed -n '/^warning/p' "$dir/status.out"; }
status_has() { status | grep -q "$1"; }

make_containers() {
	native_pod "$dir" mgmt burstable/ "$target,\"resources.workload.openshift.io/c\":\"{\\\"cpushares\\\":400}\"" >/dev/null
	mgmt_path=$(native_cgroup "$dir" "$(native_container "$dir" mgmt '"cpu_shares":2,"cpu_period":100000')")
	native_pod "$dir" share burstable/ >/dev/null
	share=$(native_container "$dir" share '"cpu_shares":102,"cpu_period":100000')
	share_path=$(native_cgroup "$dir" "$share")
	pause_path=$(native_cgroup "$dir" "$(cat "$dir/pod-share.id")")
}

# The pools swap their CPUs and swap back; all containers move with them, pause processes too.
test_resize() {
	is "CPUs of a management container" "$(cpus_of "$mgmt_path")" 0
	is "CPUs of a shared container" "$(cpus_of "$share_path")" 1
	pools '{"reserved":"1","shared":"0"}'
	wait_for 10 has_cpus "$mgmt_path" 1 || die "the management container did not move"
	wait_for 10 has_cpus "$share_path" 0 || die "the shared container did not move"
	is "CPUs of a pause process" "$(cpus_of "$pause_path")" 1
	echo '{"reserved":"0",' >"$dir/pools" # an incomplete file
	wait_for 10 status_has 'new pools are refused: .*pools:2:1: unexpected end of data' || die "an incomplete pools file is not reported: $(status)"
	is "CPUs after refused pools" "$(cpus_of "$mgmt_path")" 1
	pools '{"reserved":"0","shared":"1"}'
	wait_for 10 has_cpus "$mgmt_path" 0 || die "the management container did not move back"
	is "CPUs of the shared container after moving back" "$(cpus_of "$share_path")" 1
	prints "warnings after a valid pools file" "" warnings
	checks=$((checks + 3))
}

# Classic mode: a container owns CPU 1, which the new pools contain.
test_refused() {
	pools '{"reserved":"0"}'
	wait_for 10 status_has 'mode classic' || die "not in classic mode: $(status)"
	native_pod "$dir" alone "" >/dev/null
	alone=$(native_container "$dir" alone '"cpu_shares":1024,"cpu_period":100000,"cpu_quota":100000')
	alone_path=$(native_cgroup "$dir" "$alone")
	is "CPUs of a container with an exclusive CPU" "$(cpus_of "$alone_path")" 1
	pools '{"reserved":"1"}'
	wait_for 10 status_has 'default/alone/c owns CPUs 1' || die "the owner is not reported: $(status)"
	status_has 'new pools are refused' || die "the pools are not refused: $(status)"
	is "CPUs after refused pools" "$(cpus_of "$mgmt_path")" 0
	checks=$((checks + 2))
}

# Updates of a running container by a kubelet that are refused, and one that is accepted.
test_pod_resize() {
	local out
	out=$(native_crictl "$dir" update --cpu-share 2048 --cpu-quota 200000 "$alone" 2>&1) && die "a resize to two CPUs is accepted"
	case $out in
	*"pinfold: default/alone, container c: "*"owns 1 CPUs and cannot change to 2000 millicores while it runs: recreate the pod"*) ;;
	*) die "refused without the reason: $out" ;;
	esac
	is "CPUs after a refused resize" "$(cpus_of "$alone_path")" 1
	is "shares after a refused resize" "$(control cpu cpu.shares "$alone_path")" 1024
	is "quota after a refused resize" "$(control cpu cpu.cfs_quota_us "$alone_path")" -1
	is "refused resizes counted" "$(counter resizes_refused)" 1
	native_crictl "$dir" update --cpu-share 512 --cpu-quota 60000 --cpuset-cpus 0-1 "$share" >/dev/null
	is "shares of a shared container after a resize" "$(control cpu cpu.shares "$share_path")" 512
	is "quota of a shared container after a resize" "$(control cpu cpu.cfs_quota_us "$share_path")" 60000
	is "CPUs of a shared container after a resize" "$(cpus_of "$share_path")" 0
	"$pinfold" verify --run-dir "$dir/run" >"$dir/verify.out" || die "verify: $(cat "$dir/verify.out")"
	checks=$((checks + 1))
}

test_deferred() {
	pools '{"reserved":"1","resize":"defer"}'
	wait_for 10 status_has 'new pools are deferred' || die "not deferred: $(status)"
	agent_kill # deferred pools survive a restart
	agent_up
	is "CPUs of the owner while the pools are deferred" "$(cpus_of "$alone_path")" 1
	native_crictl "$dir" rmp -f "$(cat "$dir/pod-alone.id")" >/dev/null
	wait_for 20 has_cpus "$mgmt_path" 1 || die "deferred pools are not applied after the owner is removed: $(status)"
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
	is "the kept original" "$(cat "$dir/manifests/.slow.yaml.pinfold-original")" "$(manifest slow)"
	# The agent is killed at a random time after a manifest is written.
	local i
	for ((i = 0; i < rounds; i++)); do
		manifest "$i" >"$dir/manifests/.tmp" && mv "$dir/manifests/.tmp" "$dir/manifests/$i.yaml"
		sleep "0.$((150 + RANDOM % 150))"
		agent_kill
		if ! has_cores "$i"; then
			is "round $i: the manifest is unchanged" "$(cat "$dir/manifests/$i.yaml")" "$(manifest "$i")"
		fi
		agent_up
		wait_for 20 has_cores "$i" || die "round $i: not converted"
		is "round $i: the kept original" "$(cat "$dir/manifests/.$i.yaml.pinfold-original")" "$(manifest "$i")"
	done
	is "temporary files left" "$(find "$dir/manifests" -name '.*' ! -name '*.pinfold-original' -type f | wc -l)" 0
	agent_down
	"$pinfold" agent --uninstall --no-cluster --run-dir "$dir/run" --static-pods "$dir/manifests" || die "uninstall"
	is "the manifest after --uninstall" "$(cat "$dir/manifests/slow.yaml")" "$(manifest slow)"
	is "originals left after --uninstall" "$(find "$dir/manifests" -name '.*' -type f | wc -l)" 0
}

[ "$(nproc)" -ge 2 ] || { echo "node-features.sh: needs two CPUs" >&2; exit 77; }
for runtime in ${RUNTIMES:-containerd}; do
	dir=$(mktemp -d "/tmp/pinfold-node-features-XXXXXX")
	trap 'process_stop "$dir" agent; native_stop "$dir"' EXIT
	mkdir "$dir/manifests"
	native_start "$dir" "$runtime"
	pools '{"reserved":"0","shared":"1"}'
	agent_flags=(--allow-namespace default --pools-file "$dir/pools" --marker-file "$dir/none" --nri-socket "$dir/nri.sock" --no-cluster
		--static-pods "$dir/manifests")
	agent_up
	make_containers
	for t in resize refused pod_resize deferred static; do
		echo "$runtime: $t" >&2
		"test_$t"
	done
	native_stop "$dir"
	trap - EXIT
	rm -rf "$dir"
done
echo "node-features.sh: $checks checks passed"
