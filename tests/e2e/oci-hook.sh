#!/bin/bash
#
# The OCI hook with a real runc, driven by hand, and with podman: containers on the right CPUs as
# /proc tells, with an agent and without one, and no exclusive CPU twice. Needs root and two CPUs or
# more, cgroup v1 or v2; podman is installed when it is missing, and left out when it cannot be. The
# first CPU is reserved, all others belong to whoever takes them. oci-hook-guest.sh runs this on v2.
# TESTS="born crash" runs only those.

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/e2e/lib/native-agent.sh
. "$here/lib/native-agent.sh"

read -r reserved < <("$pinfold" cpuset --format list "$(cat /sys/devices/system/cpu/online)" | cut -d, -f1)
rest=$("$pinfold" cpuset "$(cat /sys/devices/system/cpu/online) - $reserved")
n=$("$pinfold" cpuset --count "$rest")
every="\"quota\":${n}00000,\"period\":100000" # as many CPUs as there are for owners
memory='"limit":67108864'

explain() { tail -n 15 "$dir/logs/agent.log" "$dir/runc.log" 2>/dev/null; }

# A bundle whose hooks are ours. ANNOTATIONS and CPU, MEMORY are the insides of JSON objects.
bundle() { # NAME ANNOTATIONS CPU MEMORY
	local at=$dir/$1
	mkdir -p "$at"
	(cd "$at" && rm -f config.json && runc spec)
	jq --arg root "$dir/rootfs" --arg group "/$(basename "$dir")/$1" --arg pinfold "$pinfold" --arg run "$dir/run" \
		--arg reserved "$reserved" --argjson annotations "{$2}" --argjson cpu "{$3}" --argjson memory "{$4}" '
		.root.path = $root | .process.terminal = false | .process.args = ["/bin/sleep", "100000"] |
		del(.process.rlimits) | .annotations = $annotations | .linux.cgroupsPath = $group |
		.linux.resources.cpu = $cpu | .linux.resources.memory = $memory |
		.hooks.createRuntime = [{path: $pinfold, args: ["pinfold", "oci-hook", "create", "--run-dir", $run, "--reserved", $reserved]}] |
		.hooks.poststop = [{path: $pinfold, args: ["pinfold", "oci-hook", "remove", "--run-dir", $run, "--reserved", $reserved]}]' \
		"$at/config.json" >"$at/config.new"
	mv "$at/config.new" "$at/config.json"
}
up() { # NAME
	runc --root "$dir/runc" --log "$dir/runc.log" run -d -b "$dir/$1" "$(basename "$dir")-$1" </dev/null >"$dir/$1.out" 2>&1
}
down() { runc --root "$dir/runc" delete -f "$(basename "$dir")-$1" >/dev/null 2>&1 || :; }
pid_of() { runc --root "$dir/runc" state "$(basename "$dir")-$1" | jq -r .pid; }
cpus_of() { awk '/^Cpus_allowed_list/ { print $2 }' "/proc/$(pid_of "$1")/status"; }
is_v2() { [ -e /sys/fs/cgroup/cgroup.controllers ]; }
control() { # CONTROLLER FILE NAME
	if is_v2; then cat "/sys/fs/cgroup/$(basename "$dir")/$3/$2"; else cat "/sys/fs/cgroup/$1/$(basename "$dir")/$3/$2"; fi
}
quota_of() {
	if is_v2; then control cpu cpu.max "$1" | sed 's/^max .*/-1/'; else control cpu cpu.cfs_quota_us "$1"; fi
}
# Of 400 shares runtimes make a weight of 16 or, since 2025, of 49.
shares_of() {
	if is_v2; then control cpu cpu.weight "$1" | sed -E 's/^(16|49)$/400/'; else control cpu cpu.shares "$1"; fi
}
records() { find "$dir/run/oci" -name '*.json' 2>/dev/null | wc -l; }
owned() { jq '.assignments | length' "$dir/run/ledger.json"; }
status() { "$pinfold" status -o json --run-dir "$dir/run" 2>/dev/null || :; }
hook() { "$pinfold" oci-hook "$@" --run-dir "$dir/run" --reserved "$reserved"; }

agent_up() { # OPTION...
	agent_start --reserved "$reserved" --nri-socket "$dir/no-nri.sock" --reassert 2 --no-cluster "$@"
	wait_ready "$dir" agent 60 agent_answers || die "the agent does not answer"
}
agent_answers() { [[ $("$pinfold" status --run-dir "$dir/run" 2>/dev/null) == "not connected"* ]]; }

bundles() {
	bundle plain "" "" ""
	bundle own "" "$every" "$memory"
	bundle second "" "$every" "$memory"
	bundle mgmt "$target,\"resources.workload.openshift.io/m\":\"{\\\"cpushares\\\":400}\"" "" ""
}

# The same story whoever decides: the hook alone, or the agent.
test_story() {
	bundles
	up plain || die "plain: $(cat "$dir/plain.out")"
	is "shared" "$(cpus_of plain)" "$rest"
	up own || die "own: $(cat "$dir/own.out")"
	is "CPUs of its own" "$(cpus_of own)" "$rest"
	is "and no quota on them" "$(quota_of own)" -1
	is "who shares has made room" "$(cpus_of plain)" "$reserved"
	up mgmt || die "mgmt: $(cat "$dir/mgmt.out")"
	is "management" "$(cpus_of mgmt)" "$reserved"
	is "with its shares" "$(shares_of mgmt)" 400
	if up second; then die "one CPU twice"; fi
	grep -q "container refused: not enough cpus available to satisfy request: requested=$n, available=0" "$dir/second.out" ||
		die "refusal without a reason: $(cat "$dir/second.out")"
	checks=$((checks + 1))
	down second
	is "records" "$(records)" 3
	down own
	is "given back" "$(cpus_of plain)" "$rest"
	up second || die "second: $(cat "$dir/second.out")"
	is "the next one gets it" "$(cpus_of second)" "$rest"
	is "management stays" "$(cpus_of mgmt)" "$reserved"
	for name in plain own second mgmt; do down "$name"; done
	is "nothing is left" "$(records)" 0
	is "in the ledger neither" "$(owned)" 0
}

# A configuration goes through precreate; the container is born where it says, though no hook runs
# when it is created. Then a bundle with all hooks: create finds the same CPUs.
adjust() { # NAME [OPTION...]
	local at=$dir/$1
	hook precreate "${@:2}" <"$at/config.json" >"$at/config.new" 2>"$at.out" && mv "$at/config.new" "$at/config.json"
}
forget_hook() { jq 'del(.hooks.createRuntime)' "$dir/$1/config.json" >"$dir/$1/config.new" && mv "$dir/$1/config.new" "$dir/$1/config.json"; }
test_born() {
	local id name before
	bundles
	id=$(basename "$dir")-own
	before=$(jq -c 'del(.linux.resources.cpu)' "$dir/own/config.json")
	adjust own --id "$id" || die "precreate: $(cat "$dir/own.out")"
	is "in the configuration" "$(jq -c .linux.resources.cpu "$dir/own/config.json")" \
		"{\"quota\":-1,\"period\":100000,\"shares\":$((n * 1024)),\"cpus\":\"$rest\"}"
	is "and nothing else" "$(jq -c 'del(.linux.resources.cpu)' "$dir/own/config.json")" "$before"
	before=$(cat "$dir/own/config.json")
	is "twice is once" "$(hook --id "$id" <"$dir/own/config.json")" "$before"
	if adjust second; then die "CPUs that are promised are given away"; fi
	grep -q "container refused: not enough cpus available" "$dir/second.out" || die "no reason: $(cat "$dir/second.out")"
	is "a refusal prints nothing" "$(cat "$dir/second/config.new")" ""
	is "and keeps nothing" "$(records)" 1
	forget_hook own
	up own || die "own: $(cat "$dir/own.out")"
	is "born there" "$(cpus_of own)" "$rest"
	is "without a quota" "$(quota_of own)" -1
	down own
	is "and gone" "$(owned) $(records)" "0 0"
	adjust second --id "$(basename "$dir")-second" || die "second: $(cat "$dir/second.out")"
	up second || die "second: $(cat "$dir/second.out")"
	is "with a create hook, too" "$(cpus_of second) $(owned) $(jq .quotaUs "$dir/run/oci/$(basename "$dir")-second.json")" "$rest 1 -1"
	adjust plain || die "plain: $(cat "$dir/plain.out")"
	adjust mgmt || die "mgmt: $(cat "$dir/mgmt.out")"
	forget_hook mgmt
	up mgmt || die "mgmt: $(cat "$dir/mgmt.out")"
	is "management is born, too" "$(cpus_of mgmt) $(shares_of mgmt)" "$reserved 400"
	down second
	# Nobody's id: who owns nothing passes, and leaves nothing.
	jq 'del(.linux.cgroupsPath)' "$dir/own/config.json" >"$dir/nameless.json"
	if hook <"$dir/nameless.json" >"$dir/nameless.out" 2>&1; then die "CPUs for nobody"; fi
	is "no id, no CPUs" "$(cat "$dir/nameless.out")" \
		"container refused: it wants CPUs of its own, and its id cannot be told from linux.cgroupsPath: name it with --id"
	is "no id, shared" "$(jq 'del(.linux.cgroupsPath, .linux.resources)' "$dir/plain/config.json" | hook | jq -c .linux.resources)" \
		"{\"cpu\":{\"cpus\":\"$rest\"}}"
	is "and no trace" "$(owned) $(find "$dir/run/oci" -name 'unnamed*')" "0 "
	# Its promise was to another id than runc's: who comes in its cgroup is the same.
	bundle own "" "$every" "$memory"
	adjust own || die "own: $(cat "$dir/own.out")"
	up own || die "own: $(cat "$dir/own.out")"
	is "by its cgroup" "$(cpus_of own) $(owned)" "$rest 1"
	for name in own mgmt; do down "$name"; done
	for name in plain mgmt; do hook remove <<<"{\"id\":\"$name\"}"; done
	is "nothing is left of them" "$(owned) $(records)" "0 0"
}

# Runtimes that die between precreate and create: their CPUs wait, over a restart of the agent, but
# not for ever. The time is real once; the other time the record is made older.
is_free() { adjust second; }
test_crash() {
	local at
	bundles
	adjust own || die "own: $(cat "$dir/own.out")"
	if adjust second; then die "no hook waits"; fi
	at=$(jq .promisedAtS "$dir/run/oci/own.json")
	jq ".promisedAtS = $((at - 60))" "$dir/run/oci/own.json" >"$dir/older" && mv "$dir/older" "$dir/run/oci/own.json"
	adjust second || die "the next hook waits for ever: $(cat "$dir/second.out")"
	is "one at a time" "$(owned) $(records)" "1 1"
	hook remove <<<'{"id":"second"}'

	bundles
	adjust own || die "own: $(cat "$dir/own.out")"
	agent_up
	if adjust second; then die "the agent does not wait"; fi
	agent_kill
	agent_up
	is "promised, over a restart" "$(status | jq -r '[.containers[] | select(.exclusive).cpus] | join(" ")')" "$rest"
	if adjust second; then die "a new agent does not wait"; fi
	wait_for 120 swept || die "the agent waits for ever"
	adjust second || die "second: $(cat "$dir/second.out")"
	is "one at a time, with an agent" "$(owned) $(records)" "1 1"
	hook remove <<<'{"id":"second"}'
	process_stop "$dir" agent
	is "nothing is left of either" "$(owned) $(records)" "0 0"
}

# On a machine that is large enough: two owners beside those who share.
test_several() {
	local name
	[ "$n" -ge 5 ] || { echo "  needs six CPUs, left out" >&2; return; }
	bundle plain "" "" ""
	for name in own second; do bundle "$name" "" '"quota":200000,"period":100000' "$memory"; done
	up plain || die "plain: $(cat "$dir/plain.out")"
	adjust own --id "$(basename "$dir")-own" || die "own: $(cat "$dir/own.out")"
	for name in own second; do
		up "$name" || die "$name: $(cat "$dir/$name.out")"
		is "$name has two" "$("$pinfold" cpuset --count "$(cpus_of "$name")")" 2
	done
	is "all have their own" "$("$pinfold" cpuset -- "$(cpus_of own) + $(cpus_of second) + $(cpus_of plain)")" "$rest"
	is "and nobody another's" "$("$pinfold" cpuset --count "$(cpus_of plain)")" $((n - 4))
	for name in plain own second; do down "$name"; done
}

# The agent goes and comes back; nobody loses a CPU, and nobody gets one that is taken.
test_absence() {
	bundles
	agent_up
	up own || die "own: $(cat "$dir/own.out")"
	is "by the agent" "$(cpus_of own)" "$rest"
	is "and in its status" "$(status | jq -r '.containers[] | select(.exclusive) | .pool + " " + .cpus')" "guaranteed $rest"
	agent_kill
	if up second; then die "one CPU twice, without the agent"; fi
	down second
	up mgmt || die "mgmt: $(cat "$dir/mgmt.out")"
	agent_up
	is "remembered" "$(status | jq -r '[.containers[].cpus] | sort | join(" ")')" "$reserved $rest"
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
swept() { [ "$(status | jq '[.containers[] | select(.exclusive)] | length')" = 0 ]; }

# Where the kernel has isolated partitions, an owner's CPUs become one, and are free again after it.
exclusive() { tr -d '\n' <"/sys/fs/cgroup/$(basename "$dir")/cpuset.cpus.exclusive"; }
is_isolated() { [ "$(control cpuset cpuset.cpus.partition own)" = isolated ]; }
test_isolated() {
	[ -e /sys/fs/cgroup/cpuset.cpus.isolated ] || { echo "  this kernel has no isolated partitions, left out" >&2; return; }
	bundles
	agent_up --isolated-partitions
	adjust own --id "$(basename "$dir")-own" || die "own: $(cat "$dir/own.out")"
	up own || die "own: $(cat "$dir/own.out")"
	wait_for 60 is_isolated || die "no partition: $(status | jq -c .isolation)"
	is "isolated" "$(cat /sys/fs/cgroup/cpuset.cpus.isolated) $(exclusive)" "$rest $rest"
	down own
	is "given back to the kernel, too" "$(cat /sys/fs/cgroup/cpuset.cpus.isolated)$(exclusive)" ""
	process_stop "$dir" agent
}

test_left_alone() {
	local state
	bundles
	state="{\"ociVersion\":\"1.0.2\",\"id\":\"x\",\"status\":\"creating\",\"pid\":$$,\"bundle\":\"$dir/plain\"}"
	is "no pools, no agent" "$("$pinfold" oci-hook create --run-dir "$dir/nowhere" --pools-file "$dir/none" --marker-file "$dir/none" <<<"$state" 2>&1)" \
		"no agent runs here, and no pools are configured"
	is "nor at precreate" "$("$pinfold" oci-hook --run-dir "$dir/nowhere" --pools-file "$dir/none" --marker-file "$dir/none" \
		<"$dir/plain/config.json" 2>/dev/null)" "$(cat "$dir/plain/config.json")"
	[ ! -e "$dir/nowhere" ] || die "something was made"
}

pod_man() { # HOOKS MANAGER ARGUMENT...
	podman --root "$dir/storage" --runroot "$dir/runroot" --tmpdir "$dir/podman" --hooks-dir "$dir/$1" --cgroup-manager "$2" "${@:3}"
}
hook_files() { # DIRECTORY STAGE...
	local name
	mkdir -p "$dir/$1"
	for name in "${@:2}"; do
		jq --arg pinfold "$pinfold" --arg run "$dir/run" --arg reserved "$reserved" \
			'.hook.path = $pinfold | .hook.args += ["--run-dir", $run, "--reserved", $reserved] | .hook.timeout = 120' \
			"$here/../../deploy/oci-hook/pinfold-$name.json.in" >"$dir/$1/$name.json"
	done
}
cpus_seen=(/bin/grep Cpus_allowed_list /proc/self/status)
test_podman() {
	command -v podman >/dev/null || "$here/components/host-packages" podman >/dev/null 2>&1 || :
	command -v podman >/dev/null || { echo "  podman cannot be installed here, left out" >&2; return; }
	hook_files hooks precreate create remove
	hook_files born precreate remove
	hook_files crash precreate remove
	# Hooks go by name: ours has answered when this one fails.
	jq -n '{version: "1.0.0", hook: {path: "/bin/false"}, when: {always: true}, stages: ["precreate"]}' >"$dir/crash/zz-die.json"
	podman_story cgroupfs --cgroup-parent "/$(basename "$dir")"
	if [ -d /run/systemd/system ]; then podman_story systemd; fi
	agent_up
	podman_story cgroupfs --cgroup-parent "/$(basename "$dir")"
	process_stop "$dir" agent
}
podman_story() { # MANAGER OPTION...
	local m=$1 common own
	common=(--network none --ulimit nofile=1024:1024 --ulimit nproc=1000:1000 "${@:2}")
	own=(--cpus "$n" --memory 64m)
	is "podman, $m, born on CPUs of its own" "$(pod_man born "$m" run --rm "${common[@]}" "${own[@]}" --rootfs "$dir/rootfs" "${cpus_seen[@]}")" \
		$'Cpus_allowed_list:\t'"$rest"
	is "podman, born among others" "$(pod_man born "$m" run --rm "${common[@]}" --rootfs "$dir/rootfs" "${cpus_seen[@]}")" \
		$'Cpus_allowed_list:\t'"$rest"
	is "podman, given back" "$(owned) $(records)" "0 0"
	pod_man hooks "$m" run -d "${common[@]}" --name own "${own[@]}" --rootfs "$dir/rootfs" /bin/sleep 100000 >/dev/null
	is "podman, CPUs of its own" "$(pod_man hooks "$m" exec own "${cpus_seen[@]}")" $'Cpus_allowed_list:\t'"$rest"
	is "podman, known by its id" "$(cd "$dir/run/oci" && echo *)" "$(pod_man hooks "$m" inspect -f '{{.Id}}' own).json"
	pod_man hooks "$m" run -d "${common[@]}" --name mgmt --annotation '"target.workload.openshift.io/management={""effect"":""PreferredDuringScheduling""}"' \
		--rootfs "$dir/rootfs" /bin/sleep 100000 >/dev/null
	is "podman, management" "$(pod_man hooks "$m" exec mgmt "${cpus_seen[@]}")" $'Cpus_allowed_list:\t'"$reserved"
	if pod_man hooks "$m" run -d "${common[@]}" --name second "${own[@]}" --rootfs "$dir/rootfs" /bin/sleep 100000 >/dev/null 2>"$dir/podman.err"; then
		die "podman, one CPU twice"
	fi
	grep -q 'not enough cpus available' "$dir/podman.err" || die "podman does not say why: $(cat "$dir/podman.err")"
	pod_man hooks "$m" rm -f -t 0 own mgmt >/dev/null
	pod_man hooks "$m" rm -f -t 0 second >/dev/null 2>&1 || :
	is "podman, nothing is left" "$(owned) $(records)" "0 0"
	if pod_man crash "$m" run --rm "${common[@]}" "${own[@]}" --rootfs "$dir/rootfs" "${cpus_seen[@]}" >/dev/null 2>&1; then die "it has not died"; fi
	is "podman, died after precreate: promised" "$(owned) $(jq '.promisedAtS > 0' "$dir/run/oci/"*.json)" "1 true"
	hook remove <"$(echo "$dir/run/oci/"*.json)"
}

clean() {
	for name in plain own second mgmt; do down "$name"; done
	if [ -d "$dir/storage" ]; then pod_man hooks cgroupfs rm -f -t 0 -a >/dev/null 2>&1 || :; fi
	process_stop "$dir" agent
	find /sys/fs/cgroup -depth -type d -path "*/$(basename "$dir")/*" -exec rmdir {} + 2>/dev/null || :
	find /sys/fs/cgroup -maxdepth 3 -depth -type d -name "$(basename "$dir")" -exec rmdir {} + 2>/dev/null || :
}

[ "$n" -ge 1 ] || { echo "oci-hook.sh: needs two CPUs" >&2; exit 77; }
command -v runc busybox jq >/dev/null || "$here/components/host-packages" runc busybox-static jq
dir=$(mktemp -d "/tmp/pinfold-oci-XXXXXX")
trap clean EXIT
mkdir -p "$dir"/rootfs/{bin,proc,sys,dev,tmp,etc}
cp "$(command -v busybox)" "$dir/rootfs/bin/busybox"
for applet in sh sleep grep; do ln -s busybox "$dir/rootfs/bin/$applet"; done

wanted() { [[ " ${TESTS:-$1} " == *" $1 "* ]]; }
run_test() { # NAME [HOW]
	wanted "$1" || return 0
	echo "oci-hook: $1${2:+, $2}" >&2
	"test_$1"
}
for t in story born several; do run_test "$t" "without an agent"; done
agent_up
for t in story born several; do run_test "$t" "with an agent"; done
process_stop "$dir" agent
for t in absence crash isolated left_alone podman; do run_test "$t"; done
clean
trap - EXIT
rm -rf "$dir"
echo "oci-hook.sh: $checks checks passed"
