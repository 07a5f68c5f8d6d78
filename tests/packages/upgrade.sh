#!/usr/bin/env bash
# State files of 0.1.0, written by that program itself, and read by this one: the agent's ledger, records and exclusive CPUs of
# the OCI hook, containers of `pinfold local` that run through the upgrade; and back again. As root, with git history. TAP.
#	PINFOLD=FILE   the new program; build/pinfold by default
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/tap.sh
. tests/e2e/lib/tap.sh
# shellcheck source=tests/packages/lib/old-program.sh
. tests/packages/lib/old-program.sh

new=${PINFOLD:-$PWD/build/pinfold}
top=$(mktemp -d)
pids=()
cleanup() {
	"$new" local down --name "upgrade-$$" --run-dir "$top/local" >/dev/null 2>&1 || :
	for pid in ${pids[@]+"${pids[@]}"}; do kill "$pid" 2>/dev/null || :; done
	rm -rf "$top"
}
trap cleanup EXIT

cache=$(old_program) || { echo "1..0 # SKIP no history of git"; exit 0; }
ninja -C build --quiet pinfold tests/bench/nri_runtime >&2

eventually() {
	local i
	for ((i = 0; i < 600; i++)); do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.1
	done
	return 1
}

# --- the agent ---

mkdir -p "$top/cgroup"
echo 'cpuset cpu' >"$top/cgroup/cgroup.controllers"
echo 0-15 >"$top/cgroup/cpuset.cpus.effective"

# agent_run PROGRAM LOG: a runtime with 3 containers that own CPUs, until it has made its calls.
agent_run() {
	local program=$1 log=$2 agent runtime
	rm -f "$top/nri.sock"
	build/tests/bench/nri_runtime "$top/nri.sock" 3 2 100 >"$top/runtime.out" 2>&1 &
	runtime=$!
	pids+=("$runtime")
	eventually test -S "$top/nri.sock"
	LD_LIBRARY_PATH=$cache "$program" agent --management 0 --topology 'pack:1 core:8 pu:2' --run-dir "$top/agent" --nri-socket "$top/nri.sock" \
		--kubelet-state /nonexistent --cgroup-root "$top/cgroup" >"$log" 2>&1 &
	agent=$!
	pids+=("$agent")
	eventually grep create "$top/runtime.out" || { cat "$log"; return 1; }
	kill "$agent"
	wait "$agent"
	kill "$runtime" 2>/dev/null || :
}
assignments() { jq -c '[.assignments[] | {name, cpus}]' "$top/agent/ledger.json"; }
outcome() { sed -n 's/.*msg="ledger opened" outcome="\([a-z]*\)" assignments=\([0-9]*\).*/\1 \2/p' "$1"; }

ok "0.1.0 assigns CPUs" agent_run "$cache/pinfold" "$top/old.log"
before=$(assignments)
equals "three containers own two CPUs each" 3 jq '.assignments | length' "$top/agent/ledger.json"
ok "the new agent runs with the state of 0.1.0" agent_run "$new" "$top/new.log"
equals "it restores the ledger" "restored 3" outcome "$top/new.log"
equals "every container keeps its CPUs" "$before" assignments
ok "0.1.0 runs with the state of the new agent" agent_run "$cache/pinfold" "$top/back.log"
equals "a downgrade restores the ledger, too" "restored 3" outcome "$top/back.log"

# --- the OCI hook ---

hook() { local program=$1; shift; LD_LIBRARY_PATH=$cache "$program" oci-hook --run-dir "$top/hook" --cgroup-root "$top/cgroup" --topology 'pack:1 core:4 pu:2' --management 0-1 --shared 2-3 --guaranteed 4-7 "$@"; }
hook "$cache/pinfold" <tests/golden/oci-hook-precreate/own.json >"$top/adjusted.json"
record=$(find "$top/hook/oci" -name '*.json' | head -n 1)
given=$(jq -r .linux.resources.cpu.cpus "$top/adjusted.json")
same_again() { hook "$new" precreate <"$top/adjusted.json" | jq -r .linux.resources.cpu.cpus; }

ok "0.1.0 wrote a record" test -s "$record"
equals "a container of 0.1.0 keeps its CPUs in the new hook" "$given" same_again

# --- pods on this machine ---

mkdir "$top/pods"
cp examples/local/*.yaml "$top/pods"
local_() { local program=$1 command=$2; shift 2; LD_LIBRARY_PATH=$cache "$program" local "$command" --name "upgrade-$$" --run-dir "$top/local" "$@"; }
processes() { { grep -lzs "^PINFOLD_CONTAINER=$top/local:" /proc/[0-9]*/environ || :; } | sort; }
all_run() { local_ "$cache/pinfold" verify; }
LD_LIBRARY_PATH=$cache "$cache/pinfold" local up --name "upgrade-$$" --run-dir "$top/local" "$top/pods" >"$top/up.log" 2>&1 &
pids+=($!)
ok "0.1.0 runs pods" eventually all_run
running=$(processes)
ok "the new program verifies them" local_ "$new" verify
ok "no process was restarted" test "$running" = "$(processes)"
ok "the new program stops them" local_ "$new" down
equals "no process is left" "" processes
tap_end
