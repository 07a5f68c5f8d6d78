# shellcheck shell=bash
#
# The agent as a process of this machine, in the test's directory $dir. Source it last, then:
#
#	agent_start FLAG...      starts it, with the flags in the array agent_flags and these; does not wait
#	agent_up FLAG...         the same, and waits until it is ready
#	agent_ready              it is connected to the runtime and serves
#	agent_down               SIGTERM
#	agent_kill               SIGKILL
#	agent_status FILTER      its status as JSON through jq
#	agent_rss                its resident memory in kB
#	counter NAME             its metric pinfold_NAME_total
#	agent_kubeconfig FILE NODE  a kubeconfig with a token of the agent's ServiceAccount, bound to a node as that of its pod
#	                         is. Needs control-plane.sh, in the same directory
#
# $pinfold is the program ($PINFOLD, if that is set). $target is the annotation by which a pod opts in, as a member of a JSON
# object. The agent's socket and ledger are in $dir/run, the profile it keeps is in $dir/state.

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

agent_flags=()
agent_start() {
	process_start "$dir" agent "$pinfold" agent --run-dir "$dir/run" --state-dir "$dir/state" --kubelet-state /nonexistent "${agent_flags[@]}" "$@"
}
agent_up() {
	agent_start "$@"
	wait_ready "$dir" agent 60 agent_ready || die "the agent is not ready"
}
agent_ready() { curl -sf --unix-socket "$dir/run/agent.sock" http://agent/readyz >/dev/null; }
agent_down() { process_stop "$dir" agent; }
agent_kill() {
	local pid
	read -r pid _ <"$dir/agent.pid"
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null || :
	rm -f "$dir/agent.pid"
}
agent_status() { curl -sf --unix-socket "$dir/run/agent.sock" http://agent/status | jq -r "$1"; }
agent_rss() { awk '/VmRSS/ { print $2 }' "/proc/$(cut -d' ' -f1 "$dir/agent.pid")/status"; }
counter() {
	curl -sf --unix-socket "$dir/run/agent.sock" http://agent/metrics | awk -v name="pinfold_$1_total" '$1 == name { print $2 }'
}

agent_kubeconfig() {
	kubectl create token pinfold-agent -n pinfold-agent --bound-object-kind Node --bound-object-name "$2" >"$1.token"
	cat >"$1" <<-EOF
	apiVersion: v1
	kind: Config
	current-context: agent
	clusters:
	- name: test
	  cluster: {server: "https://127.0.0.1:$(cat "$dir/port")", certificate-authority: $dir/pki/ca.crt}
	users:
	- name: agent
	  user: {tokenFile: $1.token}
	contexts:
	- name: agent
	  context: {cluster: test, user: agent}
	EOF
}
