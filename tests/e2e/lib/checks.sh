# shellcheck shell=sh
#
# Checks that are counted. Also for busybox sh in a bare guest.
#
#	is WHAT GOT WANT
#	die WORDS          ends the test; whoever sources this may say more in an explain() of his own

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
