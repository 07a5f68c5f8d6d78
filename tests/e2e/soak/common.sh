# shellcheck shell=bash
#
# What soak.sh and soak-nodes.sh have in common: duration and seed from the environment (DURATION or HOURS, SEED), chance, and counts. Source
# it, then:
#
#	draw N                      sets drawn to a number below N, from the seed
#	count ACTION                one more of this action was done
#	counts                      all of them, for the summary
#	ledger_entries              the number of assignments in the ledger on standard input
#	leaked FDS RSS BASE_FDS BASE_RSS PODS   says what an agent has more than it had before it saw PODS pods; nothing when that is in order
#
# The signal USR1 ends it before its time: no more actions, the last checks, and the statistics of the time it ran.

duration=${DURATION:-${HOURS:+$((HOURS * 3600))}}
duration=${duration:-120}
trap 'duration=0' USR1
seed=${SEED:-$((RANDOM * 32768 + RANDOM))}
actions=0
declare -A done_of=()

chance=$seed
draw() {
	chance=$(((chance * 1103515245 + 12345) & 0x7fffffff))
	# shellcheck disable=SC2034  # the callers read it
	drawn=$((chance / 65536 % $1))
}

count() { actions=$((actions + 1)) done_of[$1]=$((${done_of[$1]:-0} + 1)); }
counts() {
	local name
	for name in "${!done_of[@]}"; do printf '%s %s, ' "${done_of[$name]}" "$name"; done
}

ledger_entries() { jq '[.. | objects | select(has("pod"))] | length'; }

# Descriptors are exact; memory may grow by a megabyte, and by two kB for each pod.
leaked() {
	[ "$1" -le "$3" ] || echo "it had $3 descriptors and has $1, after $5 pods"
	[ "$2" -le $(($4 + 1024 + 2 * $5)) ] || echo "it had $4 kB and has $2 kB, after $5 pods"
}
