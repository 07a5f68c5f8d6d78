#!/usr/bin/env bash
# `pinfold local` and the demo in a guest with 8 CPUs, systemd and cgroup v2: all of tests/local, with LOCAL_ROUNDS
# (100) rounds of kill -9, and the demo with all three kinds of pods, on all CPUs and on three of them. Prints TAP;
# DEMO_KEEP=DIR keeps the output of the demo.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/guest.sh
. tests/e2e/lib/guest.sh
# shellcheck source=tests/e2e/lib/tap.sh
. tests/e2e/lib/tap.sh

dir=$(mktemp -d /tmp/pinfold-local-XXXXXX)
rounds=${LOCAL_ROUNDS:-100}
TAP_CONTINUE=1
trap 'guest_stop "$dir"; rm -rf "$dir"' EXIT

in_guest() { guest_run "$dir" "export PATH=/payload/python:\$PATH PYTHONHOME=/payload/python; cd /payload/pinfold; $*"; }

# The demo needs Python, which the guest lacks; the interpreter and the standard library's sources are enough.
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
    in_guest "LOCAL_ROUNDS=$rounds LOCAL_ROUNDS_UNPRIVILEGED=10 tests/local/run" | tee "$dir/run.tap" | sed 's/^/# /'
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
ok "the demo passes at 80 and 120 columns, with and without colour" \
    in_guest 'mkdir -p /tmp/screens; DEMO_KEEP=/tmp/screens tests/local/demo | sed "s/^/# /"; exit ${PIPESTATUS[0]}'
mkdir -p "$dir/screens"
guest_get "$dir" /tmp/screens/{80-plain,80-colour,120-plain,120-colour,pipe} "$dir/screens"
[ -z "${DEMO_KEEP-}" ] || cp "$dir"/screens/* "$DEMO_KEEP"
ok "the demo shows management, shared and guaranteed pods" demo_has_three_kinds "$dir/screens/pipe"
in_guest 'taskset -c 0,3,5 scripts/demo.sh' >"$dir/three" || :
ok "the demo shows all three kinds of pods on three CPUs" demo_has_three_kinds "$dir/three"
ok "all checks of the demo pass on three CPUs" grep -q 'All [0-9]* checks passed' "$dir/three"
ok "all of tests/local passes, with $rounds kills at random times" local_tests
ok "no cgroup and no file is left" nothing_is_left
tap_end
