# shellcheck shell=bash
#
# Background processes with a pid file, waiting for a text, and free ports. Every other library sources it; it sources the
# counted checks (checks.sh).
#
# A pid file holds "PID STARTTIME", so that a pid that the kernel has reused is never signalled.

e2e_lib=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/e2e/lib/checks.sh
. "$e2e_lib/checks.sh"
# shellcheck disable=SC2034  # used by the scripts that source this
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

# process_start DIR NAME COMMAND...: log to DIR/logs/NAME.log, appended over restarts. With process_prefix=(setsid) it outlives the
# caller and its terminal.
process_prefix=()
process_start() {
	local dir=$1 name=$2
	shift 2
	mkdir -p "$dir/logs"
	"${process_prefix[@]}" "$@" </dev/null >>"$dir/logs/$name.log" 2>&1 &
	echo "$! $(process_starttime $!)" >"$dir/$name.pid"
}

process_alive() {
	local pid start
	[ -e "$1/$2.pid" ] || return 1
	read -r pid start <"$1/$2.pid" || return 1
	[ -n "$start" ] && [ "$(process_starttime "$pid")" = "$start" ]
}

process_gone() { ! process_alive "$@"; }

# process_stop DIR NAME: SIGTERM, and SIGKILL after 30 s. No such process is success.
process_stop() {
	local pid
	if process_alive "$1" "$2"; then
		read -r pid _ <"$1/$2.pid"
		kill "$pid" 2>/dev/null || : # it may end in the meantime
		if ! wait_for 30 process_gone "$1" "$2"; then
			e2e_say "$2 ($pid) did not stop, killing it"
			kill -KILL "$pid" 2>/dev/null || :
			wait_for 10 process_gone "$1" "$2"
		fi
		wait "$pid" 2>/dev/null || :
	fi
	rm -f "$1/$2.pid"
}

# stop_descendants PID: SIGTERM to all that PID has started; parents before their children, so that none starts another one.
stop_descendants() {
	local children child
	children=$(pgrep -P "$1") || :
	[ "$1" = $$ ] || kill "$1" 2>/dev/null || : # it may have ended
	for child in $children; do
		stop_descendants "$child"
	done
}

# wait_ready DIR NAME SECONDS COMMAND...: like wait_for, but fails at once if process NAME ends, and
# prints the end of its log when it fails.
wait_ready() {
	local dir=$1 name=$2 end=$((SECONDS + $3)) began=$SECONDS
	shift 3
	until "$@"; do
		if process_gone "$dir" "$name" || [ $SECONDS -ge $end ]; then
			e2e_say "$name is not ready: $*"
			tail -n 20 "$dir/logs/$name.log" >&2
			return 1
		fi
		if [ $((SECONDS - began)) -gt 1 ]; then sleep $((SECONDS - began)); else sleep 0.2; fi
		began=$SECONDS
	done
}

# soon WHAT WANT COMMAND...: waits until COMMAND succeeds and prints WANT, for $LIMIT seconds (20); reports how long it took.
soon() {
	local what=$1 want=$2 began
	shift 2
	began=$(date +%s%N)
	wait_for "${LIMIT:-20}" succeeds_with "$want" "$@" || die "$what: got '$("$@")', want '$want'"
	checks=$((checks + 1))
	echo "  $what: $((($(date +%s%N) - began) / 1000000)) ms" >&2
}
succeeds_with() {
	local got
	got=$("${@:2}" 2>/dev/null) && [ "$got" = "$1" ]
}

# A TCP port of 127.0.0.1 without a listener, below the range of outgoing connections.
free_port() {
	local port
	while :; do
		port=$((20000 + RANDOM % 12000))
		(: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
	done
	echo "$port"
}
