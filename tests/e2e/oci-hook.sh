#!/bin/bash
#
# The OCI hook with runc and with podman: containers run on their CPUs, with an agent and without one, and no CPU
# is assigned twice. Needs root, two CPUs or more, cgroup v1 or v2; podman is installed when it is missing, and its
# test is skipped when it cannot be. The first CPU is the management pool, all others can be assigned.
# oci-hook-guest.sh runs this on cgroup v2. TESTS="precreate crash" runs only those.

set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/e2e/lib/native-agent.sh
. "$here/lib/native-agent.sh"

read -r reserved < <("$pinfold" cpuset --format list "$(cat /sys/devices/system/cpu/online)" | cut -d, -f1)
rest=$("$pinfold" cpuset "$(cat /sys/devices/system/cpu/online) - $reserved")
n=$("$pinfold" cpuset --count "$rest")
every="\"quota\":${n}00000,\"period\":100000" # all CPUs that can be assigned
memory='"limit":67108864'

explain() { tail -n 15 "$dir/logs/agent.log" "$dir/runc.log" 2>/dev/null; }

# A bundle with the hooks under test. ANNOTATIONS, CPU and MEMORY are members of JSON objects.
bundle() { # NAME ANNOTATIONS CPU MEMORY
	local at=$dir/$1
	mkdir -p "$at"
	(cd "$at" && rm -f config.json && runc spec)
	jq --arg root "$dir/rootfs" --arg group "/$(basename "$dir")/$1" --arg pinfold "$pinfold" --arg run "$dir/run" \
		--arg reserved "$reserved" --argjson annotations "{$2}" --argjson cpu "{$3}" --argjson memory "{$4}" '
		.root.path = $root | .process.terminal = false | .process.args = ["/bin/sleep", "100000"] |
		del(.process.rlimits) | .annotations = $annotations | .linux.cgroupsPath = $group |
		.linux.resources.cpu = $cpu | .linux.resources.memory = $memory |
		.hooks.createRuntime = [{path: $pinfold, args: ["pinfold", "oci-hook", "create", "--run-dir", $run, "--management", $reserved]}] |
		.hooks.poststop = [{path: $pinfold, args: ["pinfold", "oci-hook", "remove", "--run-dir", $run, "--management", $reserved]}]' \
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
# Runtimes convert 400 shares to a weight of 16 or, since 2025, of 49.
shares_of() {
	if is_v2; then control cpu cpu.weight "$1" | sed -E 's/^(16|49)$/400/'; else control cpu cpu.shares "$1"; fi
}
records() { find "$dir/run/oci" -name '*.json' 2>/dev/null | wc -l; }
owned() { jq '.assignments | length' "$dir/run/ledger.json"; }
status() { "$pinfold" status -o json --run-dir "$dir/run" 2>/dev/null || :; }
hook() { "$pinfold" oci-hook "$@" --run-dir "$dir/run" --management "$reserved"; }

# There is no NRI socket, so the agent never becomes ready; it serves hooks all the same.
agent_serve() { # FLAG...
	agent_start "$@"
	wait_ready "$dir" agent 60 agent_serves || die "the agent does not serve"
}
agent_serves() { [[ $("$pinfold" status --run-dir "$dir/run" 2>/dev/null) == "not connected"* ]]; }

bundles() {
	bundle plain "" "" ""
	bundle own "" "$every" "$memory"
	bundle second "" "$every" "$memory"
	bundle mgmt "$target,\"resources.workload.openshift.io/m\":\"{\\\"cpushares\\\":400}\"" "" ""
}

# The life of four containers; the hook alone decides, or the agent.
test_lifecycle() {
	bundles
	up plain || die "plain: $(cat "$dir/plain.out")"
	is "CPUs of a shared container" "$(cpus_of plain)" "$rest"
	up own || die "own: $(cat "$dir/own.out")"
	is "exclusive CPUs" "$(cpus_of own)" "$rest"
	is "quota of a container with exclusive CPUs" "$(quota_of own)" -1
	is "the shared container is moved off the exclusive CPUs" "$(cpus_of plain)" "$reserved"
	up mgmt || die "mgmt: $(cat "$dir/mgmt.out")"
	is "CPUs of a management container" "$(cpus_of mgmt)" "$reserved"
	is "shares of a management container" "$(shares_of mgmt)" 400
	if up second; then die "one CPU was assigned twice"; fi
	grep -q "container refused: not enough cpus available to satisfy request: requested=$n, available=0" "$dir/second.out" ||
		die "refused without the reason: $(cat "$dir/second.out")"
	checks=$((checks + 1))
	down second
	is "records of three containers" "$(records)" 3
	down own
	is "CPUs of the shared container after the release" "$(cpus_of plain)" "$rest"
	up second || die "second: $(cat "$dir/second.out")"
	is "the next container gets the exclusive CPUs" "$(cpus_of second)" "$rest"
	is "the management container keeps its CPUs" "$(cpus_of mgmt)" "$reserved"
	for name in plain own second mgmt; do down "$name"; done
	is "records left" "$(records)" 0
	is "assignments left" "$(owned)" 0
}

# The precreate hook edits a configuration, and the container starts on those CPUs although no create hook runs.
# Then a bundle with all hooks: the create hook finds the same CPUs.
adjust() { # NAME [OPTION...]
	local at=$dir/$1
	hook precreate "${@:2}" <"$at/config.json" >"$at/config.new" 2>"$at.out" && mv "$at/config.new" "$at/config.json"
}
drop_create_hook() { jq 'del(.hooks.createRuntime)' "$dir/$1/config.json" >"$dir/$1/config.new" && mv "$dir/$1/config.new" "$dir/$1/config.json"; }
test_precreate() {
	local id name before
	bundles
	id=$(basename "$dir")-own
	before=$(jq -c 'del(.linux.resources.cpu)' "$dir/own/config.json")
	adjust own --id "$id" || die "precreate: $(cat "$dir/own.out")"
	is "CPU settings in the configuration" "$(jq -c .linux.resources.cpu "$dir/own/config.json")" \
		"{\"quota\":-1,\"period\":100000,\"shares\":$((n * 1024)),\"cpus\":\"$rest\"}"
	is "the rest of the configuration" "$(jq -c 'del(.linux.resources.cpu)' "$dir/own/config.json")" "$before"
	before=$(cat "$dir/own/config.json")
	is "a second precreate changes nothing" "$(hook --id "$id" <"$dir/own/config.json")" "$before"
	if adjust second; then die "promised CPUs are assigned again"; fi
	grep -q "container refused: not enough cpus available" "$dir/second.out" || die "refused without the reason: $(cat "$dir/second.out")"
	is "output of a refused precreate" "$(cat "$dir/second/config.new")" ""
	is "records after a refused precreate" "$(records)" 1
	drop_create_hook own
	up own || die "own: $(cat "$dir/own.out")"
	is "CPUs without a create hook" "$(cpus_of own)" "$rest"
	is "quota without a create hook" "$(quota_of own)" -1
	down own
	is "assignments and records after the removal" "$(owned) $(records)" "0 0"
	adjust second --id "$(basename "$dir")-second" || die "second: $(cat "$dir/second.out")"
	up second || die "second: $(cat "$dir/second.out")"
	is "CPUs with a create hook" "$(cpus_of second) $(owned) $(jq .quotaUs "$dir/run/oci/$(basename "$dir")-second.json")" "$rest 1 -1"
	adjust plain || die "plain: $(cat "$dir/plain.out")"
	adjust mgmt || die "mgmt: $(cat "$dir/mgmt.out")"
	drop_create_hook mgmt
	up mgmt || die "mgmt: $(cat "$dir/mgmt.out")"
	is "CPUs and shares of a management container" "$(cpus_of mgmt) $(shares_of mgmt)" "$reserved 400"
	down second
	# Without an id only containers that own no CPUs pass, and nothing is recorded.
	jq 'del(.linux.cgroupsPath)' "$dir/own/config.json" >"$dir/nameless.json"
	if hook <"$dir/nameless.json" >"$dir/nameless.out" 2>&1; then die "CPUs are assigned without an id"; fi
	is "error without an id" "$(cat "$dir/nameless.out")" \
		"container refused: exclusive CPUs need a container id, and linux.cgroupsPath has none: pass --id"
	is "CPU settings of a shared container without an id" "$(jq 'del(.linux.cgroupsPath, .linux.resources)' "$dir/plain/config.json" | hook | jq -c .linux.resources)" \
		"{\"cpu\":{\"cpus\":\"$rest\"}}"
	is "assignments and records without an id" "$(owned) $(find "$dir/run/oci" -name 'unnamed*')" "0 "
	# CPUs were promised to another id than runc's: the cgroup identifies the container.
	bundle own "" "$every" "$memory"
	adjust own || die "own: $(cat "$dir/own.out")"
	up own || die "own: $(cat "$dir/own.out")"
	is "CPUs of a container found by its cgroup" "$(cpus_of own) $(owned)" "$rest 1"
	for name in own mgmt; do down "$name"; done
	for name in plain mgmt; do hook remove <<<"{\"id\":\"$name\"}"; done
	is "assignments and records left" "$(owned) $(records)" "0 0"
}

# Runtimes that die between precreate and create: their CPUs stay promised, also over a restart of the agent, until a
# time limit. The test waits for the limit once; the other time it makes the record older.
test_crash() {
	local at
	bundles
	adjust own || die "own: $(cat "$dir/own.out")"
	if adjust second; then die "the hook assigns promised CPUs"; fi
	at=$(jq .precreatedAtS "$dir/run/oci/own.json")
	jq ".precreatedAtS = $((at - 60))" "$dir/run/oci/own.json" >"$dir/older" && mv "$dir/older" "$dir/run/oci/own.json"
	adjust second || die "the promise does not expire: $(cat "$dir/second.out")"
	is "assignments and records after the promise expired" "$(owned) $(records)" "1 1"
	hook remove <<<'{"id":"second"}'

	bundles
	adjust own || die "own: $(cat "$dir/own.out")"
	agent_serve
	if adjust second; then die "the agent assigns promised CPUs"; fi
	agent_kill
	agent_serve
	is "promised CPUs after a restart of the agent" "$(status | jq -r '[.containers[] | select(.exclusive).cpus] | join(" ")')" "$rest"
	if adjust second; then die "a restarted agent assigns promised CPUs"; fi
	wait_for 120 all_released || die "the promise does not expire in the agent"
	adjust second || die "second: $(cat "$dir/second.out")"
	is "assignments and records after the promise expired in the agent" "$(owned) $(records)" "1 1"
	hook remove <<<'{"id":"second"}'
	agent_down
	is "assignments and records left after both" "$(owned) $(records)" "0 0"
}

# On a machine with enough CPUs: two containers with exclusive CPUs beside a shared one.
test_several() {
	local name
	[ "$n" -ge 5 ] || { echo "  skipped: needs six CPUs" >&2; return; }
	bundle plain "" "" ""
	for name in own second; do bundle "$name" "" '"quota":200000,"period":100000' "$memory"; done
	up plain || die "plain: $(cat "$dir/plain.out")"
	adjust own --id "$(basename "$dir")-own" || die "own: $(cat "$dir/own.out")"
	for name in own second; do
		up "$name" || die "$name: $(cat "$dir/$name.out")"
		is "number of exclusive CPUs of $name" "$("$pinfold" cpuset --count "$(cpus_of "$name")")" 2
	done
	is "all CPUs are in use" "$("$pinfold" cpuset -- "$(cpus_of own) + $(cpus_of second) + $(cpus_of plain)")" "$rest"
	is "number of shared CPUs" "$("$pinfold" cpuset --count "$(cpus_of plain)")" $((n - 4))
	for name in plain own second; do down "$name"; done
}

# The agent is killed and started again: all containers keep their CPUs, and no CPU is assigned twice.
test_absence() {
	bundles
	agent_serve
	up own || die "own: $(cat "$dir/own.out")"
	is "exclusive CPUs assigned by the agent" "$(cpus_of own)" "$rest"
	is "the container in the status" "$(status | jq -r '.containers[] | select(.exclusive) | .pool + " " + .cpus')" "guaranteed $rest"
	agent_kill
	if up second; then die "one CPU was assigned twice without the agent"; fi
	down second
	up mgmt || die "mgmt: $(cat "$dir/mgmt.out")"
	agent_serve
	is "CPUs after a restart of the agent" "$(status | jq -r '[.containers[].cpus] | sort | join(" ")')" "$reserved $rest"
	if up second; then die "one CPU was assigned twice after the restart"; fi
	down second
	# A container is killed and its poststop hook never runs.
	kill -KILL "$(pid_of own)"
	wait_for 10 is_gone own || die "the container outlives SIGKILL"
	rmdir "/sys/fs/cgroup/cpuset/$(basename "$dir")/own" "/sys/fs/cgroup/cpu/$(basename "$dir")/own" 2>/dev/null ||
		rmdir "/sys/fs/cgroup/$(basename "$dir")/own" 2>/dev/null || :
	wait_for 30 all_released || die "the CPUs of a container that vanished are not released"
	checks=$((checks + 1))
	down own
	down mgmt
	agent_down
}
is_gone() { ! cpus_of "$1" >/dev/null 2>&1; }
all_released() { [ "$(status | jq '[.containers[] | select(.exclusive)] | length')" = 0 ]; }

# Where the kernel has isolated partitions, exclusive CPUs become one until the container is removed.
exclusive() { tr -d '\n' <"/sys/fs/cgroup/$(basename "$dir")/cpuset.cpus.exclusive"; }
is_isolated() { [ "$(control cpuset cpuset.cpus.partition own)" = isolated ]; }
test_isolated() {
	[ -e /sys/fs/cgroup/cpuset.cpus.isolated ] || { echo "  skipped: this kernel has no isolated partitions" >&2; return; }
	bundles
	agent_serve --isolated-partitions
	adjust own --id "$(basename "$dir")-own" || die "own: $(cat "$dir/own.out")"
	up own || die "own: $(cat "$dir/own.out")"
	wait_for 60 is_isolated || die "no partition: $(status | jq -c .isolation)"
	is "isolated and exclusive CPUs of the kernel" "$(cat /sys/fs/cgroup/cpuset.cpus.isolated) $(exclusive)" "$rest $rest"
	down own
	is "isolated and exclusive CPUs after the removal" "$(cat /sys/fs/cgroup/cpuset.cpus.isolated)$(exclusive)" ""
	agent_down
}

# attack: agent-port-starvation: a pod holds idle connections to the agent's port; then the socket is left by a killed agent.
# The hooks have no pools here: only the agent knows them.
without_pools() { # NAME
	jq '(.hooks[][] | .args) |= .[:-2] + ["--pools-file", "/nonexistent", "--marker-file", "/nonexistent"]' "$dir/$1/config.json" >"$dir/$1/config.new"
	mv "$dir/$1/config.new" "$dir/$1/config.json"
}
test_starved() {
	local port=$((20000 + RANDOM % 10000)) fds=() fd i began
	bundles
	without_pools plain
	agent_serve --listen "127.0.0.1:$port"
	for ((i = 0; i < 200; i++)); do
		exec {fd}<>"/dev/tcp/127.0.0.1/$port" || die "cannot connect to the port"
		fds+=("$fd")
	done
	is "health check among 200 idle connections" "$(curl -s -m 10 "http://127.0.0.1:$port/healthz")" ok
	is "pods are named over the port" "$(curl -s -m 10 -o /dev/null -w '%{http_code}' "http://127.0.0.1:$port/status")" 403
	up plain || die "plain: $(cat "$dir/plain.out")"
	is "CPUs of a container that starts meanwhile" "$(cpus_of plain)" "$rest"
	down plain
	for fd in "${fds[@]}"; do exec {fd}>&-; done
	agent_kill
	began=$SECONDS
	if up plain; then die "a container starts unpinned while the agent restarts"; fi
	grep -q "the agent does not respond" "$dir/plain.out" || die "refused without the reason: $(cat "$dir/plain.out")"
	[ $((SECONDS - began)) -ge 4 ] || die "the hook does not wait for the agent"
	down plain
	agent_serve
	up plain || die "plain: $(cat "$dir/plain.out")"
	is "CPUs after the restart" "$(cpus_of plain)" "$rest"
	down plain
	agent_down
}

test_not_configured() {
	local state
	bundles
	state="{\"ociVersion\":\"1.0.2\",\"id\":\"x\",\"status\":\"creating\",\"pid\":$$,\"bundle\":\"$dir/plain\"}"
	is "create without pools and agent" "$("$pinfold" oci-hook create --run-dir "$dir/nowhere" --pools-file "$dir/none" --marker-file "$dir/none" <<<"$state" 2>&1)" \
		"no agent is running and no pools are configured, container not placed"
	is "precreate without pools and agent" "$("$pinfold" oci-hook --run-dir "$dir/nowhere" --pools-file "$dir/none" --marker-file "$dir/none" \
		<"$dir/plain/config.json" 2>/dev/null)" "$(cat "$dir/plain/config.json")"
	[ ! -e "$dir/nowhere" ] || die "the run directory was created"
}

pod_man() { # HOOKS MANAGER ARGUMENT...
	podman --root "$dir/storage" --runroot "$dir/runroot" --tmpdir "$dir/podman" --hooks-dir "$dir/$1" --cgroup-manager "$2" "${@:3}"
}
hook_files() { # DIRECTORY STAGE...
	local name
	mkdir -p "$dir/$1"
	for name in "${@:2}"; do
		jq --arg pinfold "$pinfold" --arg run "$dir/run" --arg reserved "$reserved" \
			'.hook.path = $pinfold | .hook.args += ["--run-dir", $run, "--management", $reserved] | .hook.timeout = 120' \
			"$here/../../deploy/oci-hook/pinfold-$name.json.in" >"$dir/$1/$name.json"
	done
}
cpus_seen=(/bin/grep Cpus_allowed_list /proc/self/status)
test_podman() {
	command -v podman >/dev/null || "$here/components/host-packages" podman >/dev/null 2>&1 || :
	command -v podman >/dev/null || { echo "  skipped: podman cannot be installed" >&2; return; }
	hook_files hooks precreate create remove
	hook_files precreate precreate remove
	hook_files crash precreate remove
	# Hooks run in the order of their names: this one fails after the hook under test.
	jq -n '{version: "1.0.0", hook: {path: "/bin/false"}, when: {always: true}, stages: ["precreate"]}' >"$dir/crash/zz-die.json"
	podman_lifecycle cgroupfs --cgroup-parent "/$(basename "$dir")"
	if [ -d /run/systemd/system ]; then podman_lifecycle systemd; fi
	agent_serve
	podman_lifecycle cgroupfs --cgroup-parent "/$(basename "$dir")"
	agent_down
}
podman_lifecycle() { # MANAGER OPTION...
	local m=$1 common own
	common=(--network none --ulimit nofile=1024:1024 --ulimit nproc=1000:1000 "${@:2}")
	own=(--cpus "$n" --memory 64m)
	is "podman, $m: exclusive CPUs by precreate" "$(pod_man precreate "$m" run --rm "${common[@]}" "${own[@]}" --rootfs "$dir/rootfs" "${cpus_seen[@]}")" \
		$'Cpus_allowed_list:\t'"$rest"
	is "podman: shared CPUs by precreate" "$(pod_man precreate "$m" run --rm "${common[@]}" --rootfs "$dir/rootfs" "${cpus_seen[@]}")" \
		$'Cpus_allowed_list:\t'"$rest"
	is "podman: assignments and records after the removal" "$(owned) $(records)" "0 0"
	pod_man hooks "$m" run -d "${common[@]}" --name own "${own[@]}" --rootfs "$dir/rootfs" /bin/sleep 100000 >/dev/null
	is "podman: exclusive CPUs" "$(pod_man hooks "$m" exec own "${cpus_seen[@]}")" $'Cpus_allowed_list:\t'"$rest"
	is "podman: name of the record" "$(cd "$dir/run/oci" && echo *)" "$(pod_man hooks "$m" inspect -f '{{.Id}}' own).json"
	pod_man hooks "$m" run -d "${common[@]}" --name mgmt --annotation '"target.workload.openshift.io/management={""effect"":""PreferredDuringScheduling""}"' \
		--rootfs "$dir/rootfs" /bin/sleep 100000 >/dev/null
	is "podman: CPUs of a management container" "$(pod_man hooks "$m" exec mgmt "${cpus_seen[@]}")" $'Cpus_allowed_list:\t'"$reserved"
	if pod_man hooks "$m" run -d "${common[@]}" --name second "${own[@]}" --rootfs "$dir/rootfs" /bin/sleep 100000 >/dev/null 2>"$dir/podman.err"; then
		die "podman: one CPU was assigned twice"
	fi
	grep -q 'not enough cpus available' "$dir/podman.err" || die "podman: refused without the reason: $(cat "$dir/podman.err")"
	pod_man hooks "$m" rm -f -t 0 own mgmt >/dev/null
	pod_man hooks "$m" rm -f -t 0 second >/dev/null 2>&1 || :
	is "podman: assignments and records left" "$(owned) $(records)" "0 0"
	if pod_man crash "$m" run --rm "${common[@]}" "${own[@]}" --rootfs "$dir/rootfs" "${cpus_seen[@]}" >/dev/null 2>&1; then die "podman: a failing hook is ignored"; fi
	is "podman: CPUs are promised when it fails after precreate" "$(owned) $(jq '.precreatedAtS > 0' "$dir/run/oci/"*.json)" "1 true"
	hook remove <"$(echo "$dir/run/oci/"*.json)"
}

clean() {
	for name in plain own second mgmt; do down "$name"; done
	if [ -d "$dir/storage" ]; then pod_man hooks cgroupfs rm -f -t 0 -a >/dev/null 2>&1 || :; fi
	agent_down
	find /sys/fs/cgroup -depth -type d -path "*/$(basename "$dir")/*" -exec rmdir {} + 2>/dev/null || :
	find /sys/fs/cgroup -maxdepth 3 -depth -type d -name "$(basename "$dir")" -exec rmdir {} + 2>/dev/null || :
}

[ "$n" -ge 1 ] || { echo "oci-hook.sh: needs two CPUs" >&2; exit 77; }
command -v runc busybox jq >/dev/null || "$here/components/host-packages" runc busybox-static jq
dir=$(mktemp -d "/tmp/pinfold-oci-XXXXXX")
trap clean EXIT
agent_flags=(--management "$reserved" --nri-socket "$dir/no-nri.sock" --reconcile-interval 2 --no-cluster)
mkdir -p "$dir"/rootfs/{bin,proc,sys,dev,tmp,etc}
cp "$(command -v busybox)" "$dir/rootfs/bin/busybox"
for applet in sh sleep grep; do ln -s busybox "$dir/rootfs/bin/$applet"; done

wanted() { [[ " ${TESTS:-$1} " == *" $1 "* ]]; }
run_test() { # NAME [HOW]
	wanted "$1" || return 0
	echo "oci-hook: $1${2:+, $2}" >&2
	"test_$1"
}
for t in lifecycle precreate several; do run_test "$t" "without an agent"; done
agent_serve
for t in lifecycle precreate several; do run_test "$t" "with an agent"; done
agent_down
for t in absence crash starved isolated not_configured podman; do run_test "$t"; done
clean
trap - EXIT
rm -rf "$dir"
echo "oci-hook.sh: $checks checks passed"
