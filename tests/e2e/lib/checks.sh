# shellcheck shell=sh disable=SC3043  # busybox sh and bash have local
#
# Counted checks and waiting. POSIX sh: busybox runs it in a bare guest, too.
#
#	is WHAT GOT WANT               two strings are equal
#	prints WHAT WANT COMMAND...    COMMAND succeeds and prints WANT. Where WANT is empty or 0, use this and not
#	                               `is`: a command that fails inside $(...) prints nothing, too
#	wait_for SECONDS COMMAND...    until COMMAND succeeds; fails when the time is over. COMMAND is called again and
#	                               again, so hand over a function, not the output of one. SECONDS is only a limit:
#	                               make it generous. Where COMMAND takes seconds, the pauses are as long: to ask
#	                               all the time would slow down what is waited for
#	die TEXT                       ends the test with status 1, after explain(), which a test may redefine

checks=0

explain() { :; }

die() {
	echo "FAIL: $*" >&2
	explain >&2 || :
	exit 1
}

is() {
	[ "$2" = "$3" ] || die "$1: got '$2', want '$3'"
	checks=$((checks + 1))
}

prints() {
	local what="$1" want="$2" got
	shift 2
	got=$("$@") || die "$what: failed: $*"
	is "$what" "$got" "$want"
}

wait_for() {
	local began end now
	began=$(date +%s) end=$((began + $1))
	shift
	until "$@"; do
		now=$(date +%s)
		[ "$now" -lt "$end" ] || return 1
		if [ $((now - began)) -gt 1 ]; then sleep $((now - began)); else sleep 0.2; fi
		began=$(date +%s)
	done
}
