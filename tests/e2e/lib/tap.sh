# shellcheck shell=bash
#
# Checks that print TAP.
#
#	ok SENTENCE COMMAND...            COMMAND succeeds
#	says SENTENCE TEXT COMMAND...     COMMAND succeeds, and its output contains TEXT
#	equals SENTENCE TEXT COMMAND...   COMMAND succeeds, and TEXT is its whole output
#	refused SENTENCE TEXT COMMAND...  COMMAND fails, and its output contains TEXT
#	tap_result STATUS SENTENCE [OUTPUT]  for what none of these covers
#	tap_end                           prints the plan; fails when a check failed or none was made
#
# The first failure ends the test, because what follows usually builds on it. With TAP_CONTINUE=1 the test goes on, and
# tap_end reports the failure.

tap_passed=0 tap_failed=0

tap_result() {
    if [ "$1" = 0 ]; then
        tap_passed=$((tap_passed + 1))
        echo "ok $((tap_passed + tap_failed)) - $2"
        return
    fi
    tap_failed=$((tap_failed + 1))
    echo "not ok $((tap_passed + tap_failed)) - $2"
    [ -z "${3:-}" ] || echo "# ${3//$'\n'/$'\n# '}"
    [ -n "${TAP_CONTINUE:-}" ] || exit 1
}

tap_end() {
    echo "1..$((tap_passed + tap_failed))"
    [ $tap_failed = 0 ] && [ $tap_passed -gt 0 ]
}

ok() {
    local sentence=$1 out status=0
    shift
    out=$("$@" 2>&1) || status=$?
    tap_result $status "$sentence" "$out"
}

says() {
    local sentence=$1 text=$2 out status=0
    shift 2
    out=$("$@" 2>&1) || status=$?
    [[ $out == *"$text"* ]] || status=1
    tap_result $status "$sentence" "want: $text
got:  $out"
}

equals() {
    local sentence=$1 text=$2 out status=0
    shift 2
    out=$("$@" 2>&1) || status=$?
    [ "$out" = "$text" ] || status=1
    tap_result $status "$sentence" "want: $text
got:  $out"
}

refused() {
    local sentence=$1 text=$2 out status=1
    shift 2
    out=$("$@" 2>&1) || status=0
    [[ $out == *"$text"* ]] || status=1
    tap_result $status "$sentence" "want a refusal: $text
got: $out"
}
