# shellcheck shell=bash
#
# record KUBERNETES RUNTIME TOPOLOGY WHAT RESULT SECONDS: adds a line to the file $RESULTS, if that is set, for scripts/compatibility. "-" is
# a Kubernetes or a topology that the test does not have.
record() {
	[ -z "${RESULTS:-}" ] || printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$(date +%F)" "$@" >>"$RESULTS"
}
