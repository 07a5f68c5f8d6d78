# shellcheck shell=bash
#
# The agent on this machine, in a directory $dir of the test's own. Source it last, then:
#
#	agent_start FLAG...      as a process; whether it serves is the caller's to wait for
#	agent_ready              it is connected to the runtime, and serves
#	agent_kill               kill -9
#	counter NAME             of its metrics, pinfold_NAME_total
#
# $pinfold is the program, $PINFOLD another one. $target is the annotation that asks for the reserved CPUs, the inside of a JSON
# object. The agent's socket and ledger are in $dir/run.

# shellcheck source=tests/e2e/lib/process.sh
. "$(dirname "${BASH_SOURCE[0]}")/process.sh"

# shellcheck disable=SC2154  # e2e_lib is of process.sh
pinfold=$(realpath "${PINFOLD:-$e2e_lib/../../../build/pinfold}")
# shellcheck disable=SC2034  # read by tests
target='"target.workload.openshift.io/management":"{\"effect\":\"PreferredDuringScheduling\"}"'

explain() {
	tail -n 15 "$dir/logs/agent.log"
	if ! process_alive "$dir" agent && [ -e "$dir/agent.pid" ]; then
		wait "$(cut -d' ' -f1 "$dir/agent.pid")" || echo "the agent ended with status $?"
	fi
}

agent_start() {
	process_start "$dir" agent "$pinfold" agent --run-dir "$dir/run" --kubelet-state /nonexistent "$@"
}
agent_ready() { curl -sf --unix-socket "$dir/run/agent.sock" http://agent/readyz >/dev/null; }
agent_kill() {
	local pid
	read -r pid _ <"$dir/agent.pid"
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null || :
	rm -f "$dir/agent.pid"
}
counter() {
	curl -sf --unix-socket "$dir/run/agent.sock" http://agent/metrics | awk -v name="pinfold_$1_total" '$1 == name { print $2 }'
}
