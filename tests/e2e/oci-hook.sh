#!/bin/bash
#
# The OCI hook with a real runc, driven by hand, and with podman: containers on the right CPUs as
# /proc tells, with an agent and without one, and no exclusive CPU twice. Needs root and two CPUs;
# podman is installed when it is missing, and left out when it cannot be.

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/e2e/lib/process.sh
. "$here/lib/process.sh"

pinfold=${PINFOLD:-$here/../../build/pinfold}
pinfold=$(cd "$(dirname "$pinfold")" && pwd)/$(basename "$pinfold")
target='"target.workload.openshift.io/management":"{\"effect\":\"PreferredDuringScheduling\"}"'
checks=0

die() {
	echo "FAIL: $*" >&2
	tail -n 15 "$dir/logs/agent.log" "$dir/runc.log" 2>/dev/null >&2 || :
	exit 1
}

# is WHAT GOT WANT
is() {
	[ "$2" = "$3" ] || die "$1: got '$2', want '$3'"
	checks=$((checks + 1))
}

# A bundle whose hooks are ours. ANNOTATIONS and CPU, MEMORY are the insides of JSON objects.
bundle() { # NAME ANNOTATIONS CPU MEMORY
	local at=$dir/$1
	mkdir -p "$at"
	(cd "$at" && rm -f config.json && runc spec)
	jq --arg root "$dir/rootfs" --arg group "/$(basename "$dir")/$1" --arg pinfold "$pinfold" --arg run "$dir/run" \
		--argjson annotations "{$2}" --argjson cpu "{$3}" --argjson memory "{$4}" '
		.root.path = $root | .process.terminal = false | .process.args = ["/bin/sleep", "100000"] |
		del(.process.rlimits) | .annotations = $annotations | .linux.cgroupsPath = $group |
		.linux.resources.cpu = $cpu | .linux.resources.memory = $memory |
		.hooks.createRuntime = [{path: $pinfold, args: ["pinfold", "oci-hook", "create", "--run-dir", $run, "--reserved", "0"]}] |
		.hooks.poststop = [{path: $pinfold, args: ["pinfold", "oci-hook", "remove", "--run-dir", $run, "--reserved", "0"]}]' \
		"$at/config.json" >"$at/config.new"
	mv "$at/config.new" "$at/config.json"
}
up() { # NAME
	runc --root "$dir/runc" --log "$dir/runc.log" run -d -b "$dir/$1" "$(basename "$dir")-$1" </dev/null >"$dir/$1.out" 2>&1
}
down() { runc --root "$dir/runc" delete -f "$(basename "$dir")-$1" >/dev/null 2>&1 || :; }
pid_of() { runc --root "$dir/runc" state "$(basename "$dir")-$1" | jq -r .pid; }
cpus_of() { awk '/^Cpus_allowed_list/ { print $2 }' "/proc/$(pid_of "$1")/status"; }
control() { # CONTROLLER FILE NAME
	cat "/sys/fs/cgroup/$1/$(basename "$dir")/$3/$2" 2>/dev/null || cat "/sys/fs/cgroup/$(basename "$dir")/$3/$2"
}
records() { find "$dir/run/oci" -name '*.json' 2>/dev/null | wc -l; }

agent_up() {
	process_start "$dir" agent "$pinfold" agent --reserved 0 --run-dir "$dir/run" --nri-socket "$dir/no-nri.sock" \
		--kubelet-state /nonexistent --reassert 2 --no-cluster
	wait_for 30 curl -sf --unix-socket "$dir/run/agent.sock" http://agent/healthz -o /dev/null || die "the agent does not answer"
}
agent_kill() {
	local pid
	read -r pid _ <"$dir/agent.pid"
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null || :
	rm -f "$dir/agent.pid"
}

# The same story whoever decides: the hook alone, or the agent.
test_story() {
	bundle plain "" "" ""
	bundle own "" '"quota":100000,"period":100000' '"limit":67108864'
	bundle second "" '"quota":100000,"period":100000' '"limit":67108864'
	bundle mgmt "$target,\"resources.workload.openshift.io/m\":\"{\\\"cpushares\\\":400}\"" "" ""
	up plain || die "plain: $(cat "$dir/plain.out")"
	is "shared" "$(cpus_of plain)" 1
	up own || die "own: $(cat "$dir/own.out")"
	is "a CPU of its own" "$(cpus_of own)" 1
	is "and no quota on it" "$(control cpu cpu.cfs_quota_us own)" -1
	is "who shares has made room" "$(cpus_of plain)" 0
	up mgmt || die "mgmt: $(cat "$dir/mgmt.out")"
	is "management" "$(cpus_of mgmt)" 0
	is "with its shares" "$(control cpu cpu.shares mgmt)" 400
	if up second; then die "one CPU twice"; fi
	grep -q "container refused: not enough cpus available to satisfy request: requested=1, available=0" "$dir/second.out" ||
		die "refusal without a reason: $(cat "$dir/second.out")"
	checks=$((checks + 1))
	down second
	is "records" "$(records)" 3
	down own
	is "given back" "$(cpus_of plain)" 1
	up second || die "second: $(cat "$dir/second.out")"
	is "the next one gets it" "$(cpus_of second)" 1
	is "management stays" "$(cpus_of mgmt)" 0
	for name in plain own second mgmt; do down "$name"; done
	is "nothing is left" "$(records)" 0
	is "in the ledger neither" "$(jq '.assignments | length' "$dir/run/ledger.json")" 0
}

# The agent goes and comes back; nobody loses a CPU, and nobody gets one that is taken.
test_absence() {
	agent_up
	up own || die "own: $(cat "$dir/own.out")"
	is "by the agent" "$(cpus_of own)" 1
	is "and in its status" "$("$pinfold" status -o json --run-dir "$dir/run" 2>/dev/null | jq -r '.containers[] | select(.exclusive) | .pool + " " + .cpus')" "guaranteed 1"
	agent_kill
	if up second; then die "one CPU twice, without the agent"; fi
	down second
	up mgmt || die "mgmt: $(cat "$dir/mgmt.out")"
	agent_up
	is "remembered" "$(curl -sf --unix-socket "$dir/run/agent.sock" http://agent/status | jq -r '[.containers[].cpus] | sort | join(" ")')" "0 1"
	if up second; then die "one CPU twice, after the restart"; fi
	down second
	# Somebody kills it and never runs its hook.
	kill -KILL "$(pid_of own)"
	wait_for 10 gone "$dir/own" || :
	rmdir "/sys/fs/cgroup/cpuset/$(basename "$dir")/own" "/sys/fs/cgroup/cpu/$(basename "$dir")/own" 2>/dev/null ||
		rmdir "/sys/fs/cgroup/$(basename "$dir")/own" 2>/dev/null || :
	wait_for 30 swept || die "the CPU of a container that vanished is lost"
	checks=$((checks + 1))
	down own
	down mgmt
	process_stop "$dir" agent
}
gone() { ! kill -0 "$(pid_of own)" 2>/dev/null; }
swept() { [ "$(curl -sf --unix-socket "$dir/run/agent.sock" http://agent/status | jq '[.containers[] | select(.exclusive)] | length')" = 0 ]; }

test_left_alone() {
	local state
	state="{\"ociVersion\":\"1.0.2\",\"id\":\"x\",\"status\":\"creating\",\"pid\":$$,\"bundle\":\"$dir/plain\"}"
	is "no pools, no agent" "$("$pinfold" oci-hook create --run-dir "$dir/nowhere" --pools-file "$dir/none" --marker-file "$dir/none" <<<"$state" 2>&1)" \
		"no agent runs here, and no pools are configured"
	[ ! -e "$dir/nowhere" ] || die "something was made"
}

pod_man() { podman --root "$dir/storage" --runroot "$dir/runroot" --hooks-dir "$dir/hooks" "$@"; }
test_podman() {
	local common
	command -v podman >/dev/null || "$here/components/host-packages" podman >/dev/null 2>&1 || :
	command -v podman >/dev/null || { echo "  podman cannot be installed here, left out" >&2; return; }
	mkdir -p "$dir/hooks"
	for name in create remove; do
		jq --arg pinfold "$pinfold" --arg run "$dir/run" '.hook.path = $pinfold | .hook.args += ["--run-dir", $run, "--reserved", "0"]' \
			"$here/../../deploy/oci-hook/pinfold-$name.json.in" >"$dir/hooks/$name.json"
	done
	common=(--network none --ulimit nofile=1024:1024 --ulimit nproc=1000:1000 --cgroup-parent "/$(basename "$dir")")
	pod_man run -d "${common[@]}" --name own --cpus 1 --memory 64m --rootfs "$dir/rootfs" /bin/sleep 100000 >/dev/null
	is "podman, a CPU of its own" "$(pod_man exec own grep Cpus_allowed_list /proc/self/status)" $'Cpus_allowed_list:\t1'
	pod_man run -d "${common[@]}" --name mgmt --annotation '"target.workload.openshift.io/management={""effect"":""PreferredDuringScheduling""}"' \
		--rootfs "$dir/rootfs" /bin/sleep 100000 >/dev/null
	is "podman, management" "$(pod_man exec mgmt grep Cpus_allowed_list /proc/self/status)" $'Cpus_allowed_list:\t0'
	if pod_man run -d "${common[@]}" --name second --cpus 1 --memory 64m --rootfs "$dir/rootfs" /bin/sleep 100000 >/dev/null 2>"$dir/podman.err"; then
		die "podman, one CPU twice"
	fi
	grep -q 'not enough cpus available' "$dir/podman.err" || die "podman does not say why: $(cat "$dir/podman.err")"
	pod_man rm -f -t 0 own mgmt >/dev/null
	pod_man rm -f -t 0 second >/dev/null 2>&1 || :
	is "podman, nothing is left" "$(records)" 0
}

clean() {
	for name in plain own second mgmt; do down "$name"; done
	if [ -d "$dir/storage" ]; then pod_man rm -f -t 0 -a >/dev/null 2>&1 || :; fi
	process_stop "$dir" agent
	find /sys/fs/cgroup -depth -type d -path "*/$(basename "$dir")/*" -exec rmdir {} + 2>/dev/null || :
	find /sys/fs/cgroup -maxdepth 3 -depth -type d -name "$(basename "$dir")" -exec rmdir {} + 2>/dev/null || :
}

[ "$(nproc)" -ge 2 ] || { echo "oci-hook.sh: needs two CPUs" >&2; exit 77; }
"$here/components/host-packages" runc busybox-static
dir=$(mktemp -d "/tmp/pinfold-oci-XXXXXX")
trap clean EXIT
mkdir -p "$dir"/rootfs/{bin,proc,sys,dev,tmp,etc}
cp "$(command -v busybox)" "$dir/rootfs/bin/busybox"
for applet in sh sleep grep; do ln -s busybox "$dir/rootfs/bin/$applet"; done

echo "oci-hook: without an agent" >&2
test_story
echo "oci-hook: with an agent" >&2
agent_up
test_story
process_stop "$dir" agent
for t in absence left_alone podman; do
	echo "oci-hook: $t" >&2
	"test_$t"
done
clean
trap - EXIT
rm -rf "$dir"
echo "oci-hook.sh: $checks checks passed"
