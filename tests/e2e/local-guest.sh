#!/usr/bin/env bash
# `pinfold local` and the demo on a machine with 8 CPUs, systemd and cgroup v2: everything that
# tests/local does, with LOCAL_ROUNDS (100) kill -9 rounds, and the demo with all three kinds of pods,
# on all CPUs and on three of them. Prints TAP of its own; DEMO_KEEP=DIR keeps what was on the screen.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/guest.sh
. tests/e2e/lib/guest.sh

dir=$(mktemp -d /tmp/pinfold-local-XXXXXX)
rounds=${LOCAL_ROUNDS:-100}
passed=0 failed=0
trap 'guest_stop "$dir"; rm -rf "$dir"' EXIT

in_guest() { guest_run "$dir" "export PATH=/payload/python:\$PATH PYTHONHOME=/payload/python; cd /payload/pinfold; $*"; }

check() { # SENTENCE COMMAND...
    local sentence=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
        echo "ok $((passed + failed)) - $sentence"
    else
        failed=$((failed + 1))
        echo "not ok $((passed + failed)) - $sentence"
    fi
}

# The demo checks a plan with Python; the guest has none. Its standard library in text is enough.
python() {
    local program=$1/python library
    mkdir -p "$program/lib"
    cp "$(readlink -f /usr/bin/python3)" "$program/python3"
    library=$(/usr/bin/python3 -c 'import os; print(os.path.dirname(os.__file__))')
    cp -r "$library" "$program/lib/"
    find "$program" \( -name __pycache__ -o -name 'config-*' -o -name test \) -prune -exec rm -rf {} +
}

payload() {
    mkdir -p "$1/pinfold/build" "$1/pinfold/tests"
    cp build/pinfold "$1/pinfold/build/"
    cp -r examples scripts "$1/pinfold/"
    cp -r tests/local "$1/pinfold/tests/"
    python "$1"
}

local_tests() {
    in_guest "LOCAL_ROUNDS=$rounds LOCAL_ROUNDS_NOBODY=10 tests/local/run" | tee "$dir/run.tap" | sed 's/^/# /'
    grep -q '^ok .*up starts a directory of pods (cgroup v2)' "$dir/run.tap" && ! grep -q '^not ok' "$dir/run.tap" &&
        grep -q "^1\.\.[0-9]" "$dir/run.tap"
}

demo_has_three_kinds() { # FILE
    local pool
    for pool in '^management .*dns' '^shared .*web' '^shop/du  *l1 on [0-9]*$' ', cgroup v2'; do
        grep -q "$pool" "$1" || { cat "$1"; return 1; }
    done
}

nothing_is_left() { [ -z "$(in_guest 'ls -d /sys/fs/cgroup/*pinfold* /run/pinfold* 2>/dev/null')" ]; }

payload "$dir/payload"
guest_start "$dir" "$dir/payload"
echo "# $(in_guest 'uname -r; stat -fc %T /sys/fs/cgroup; nproc' | tr '\n' ' ')"
check "the demo holds at 80 and 120 columns, with and without colour" \
    in_guest 'mkdir -p /tmp/screens; DEMO_KEEP=/tmp/screens tests/local/demo | sed "s/^/# /"; exit ${PIPESTATUS[0]}'
mkdir -p "$dir/screens"
guest_get "$dir" /tmp/screens/{80-plain,80-colour,120-plain,120-colour,pipe} "$dir/screens"
[ -z "${DEMO_KEEP-}" ] || cp "$dir"/screens/* "$DEMO_KEEP"
check "with management, shared and guaranteed pods" demo_has_three_kinds "$dir/screens/pipe"
in_guest 'taskset -c 0,3,5 scripts/demo.sh' >"$dir/three" || :
check "on three CPUs as well" demo_has_three_kinds "$dir/three"
check "and there all of its checks hold" grep -q 'All [0-9]* checks held' "$dir/three"
check "every test of tests/local passes, $rounds kills at random moments among them" local_tests
check "nothing is left behind" nothing_is_left
echo "1..$((passed + failed))"
[ $failed = 0 ]
