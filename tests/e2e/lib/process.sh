# shellcheck shell=bash
#
# Background processes with a pid file, waiting for a state, and free ports. Sourced by the others; brings
# the counted checks with it (checks.sh).
#
# A pid file holds "PID STARTTIME": a number that the kernel has given to somebody else since then is
# never signalled.

e2e_lib=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/e2e/lib/checks.sh
. "$e2e_lib/checks.sh"
# shellcheck disable=SC2034  # for those who source us
e2e_build=$e2e_lib/../components/build

e2e_say() { echo "e2e: $*" >&2; }

# PID's start time, or nothing if it is gone or a zombie. The name in parentheses may hold blanks.
process_starttime() {
	local stat
	stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
	# shellcheck disable=SC2086  # splitting is the point
	set -- ${stat##*) }
	[ "$1" = Z ] || echo "${20}"
}

# process_start DIR NAME COMMAND...: log to DIR/logs/NAME.log, appended over restarts.
process_start() {
	local dir=$1 name=$2
	shift 2
	mkdir -p "$dir/logs"
	"$@" </dev/null >>"$dir/logs/$name.log" 2>&1 &
	echo "$! $(process_starttime $!)" >"$dir/$name.pid"
}

process_alive() {
	local pid start
	[ -e "$1/$2.pid" ] || return 1
	read -r pid start <"$1/$2.pid" || return 1
	[ -n "$start" ] && [ "$(process_starttime "$pid")" = "$start" ]
}

process_gone() { ! process_alive "$@"; }

# process_stop DIR NAME: asks, waits, and insists after 30 s. Nothing to do is success.
process_stop() {
	local pid
	if process_alive "$1" "$2"; then
		read -r pid _ <"$1/$2.pid"
		kill "$pid" 2>/dev/null || : # it may end by itself at this moment
		if ! wait_for 30 process_gone "$1" "$2"; then
			e2e_say "$2 ($pid) did not stop, killing it"
			kill -KILL "$pid" 2>/dev/null || :
			wait_for 10 process_gone "$1" "$2"
		fi
		wait "$pid" 2>/dev/null || :
	fi
	rm -f "$1/$2.pid"
}

# wait_for SECONDS COMMAND...: until COMMAND succeeds; fails when the time is over. The time is only
# a limit, so make it generous.
wait_for() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.2
	done
}

# wait_ready DIR NAME SECONDS COMMAND...: like wait_for, but gives up at once if process NAME ends,
# and shows the end of its log whenever it gives up.
wait_ready() {
	local dir=$1 name=$2 end=$((SECONDS + $3))
	shift 3
	until "$@"; do
		if process_gone "$dir" "$name" || [ $SECONDS -ge $end ]; then
			e2e_say "$name did not get ready: $*"
			tail -n 20 "$dir/logs/$name.log" >&2
			return 1
		fi
		sleep 0.2
	done
}

# A TCP port of 127.0.0.1 that nobody listens on, below the range of outgoing connections.
free_port() {
	local port
	while :; do
		port=$((20000 + RANDOM % 12000))
		(: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
	done
	echo "$port"
}
