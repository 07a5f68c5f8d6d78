#!/usr/bin/env bash
# Runs every static check; fails when one of them failed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

cache=${XDG_CACHE_HOME:-$HOME/.cache}/pinfold
failed=()

# step NAME COMMAND...: the name before, because some take minutes, and the time after.
step() {
    local name=$1 began=$SECONDS
    shift
    echo "== $name"
    "$@" || failed+=("$name")
    [ $((SECONDS - began)) -lt 5 ] || echo "   $name: $((SECONDS - began)) s"
}

check_format() {
    local out
    out=$(find src tests -name '*.[ch]' -print0 |
        xargs -0 clang-format-14 --dry-run -Werror 2>&1) || {
        grep error: <<<"$out"
        echo "run 'make format'"
        return 1
    }
}

# It does not expand a macro within an argument of the same macro, as CEL expressions are written.
check_cppcheck() {
    local out
    mkdir -p "$cache/cppcheck"
    # In tests/proofs a variable without a value has any value.
    out=$(cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr \
        --suppress=missingIncludeSystem --suppress=unknownMacro:src/policy/* \
        --error-exitcode=1 --cppcheck-build-dir="$cache/cppcheck" -j "$(nproc)" \
        -i tests/proofs \
        -D_GNU_SOURCE -I src -I tests/unit src tests 2>&1) && [ -z "$out" ] && return
    echo "$out" # findings across files do not set the exit status
    return 1
}

check_shell() {
    { find packaging scripts src tests -name '*.sh'; grep -rlE --exclude=stdout '^#!.*\b(ba)?sh$' .ci scripts tests; } |
        sort -u | xargs shellcheck
}

step build ninja -C build # clang-tidy needs the generated sources
step clang-format check_format
step include-order scripts/check-includes
step citations scripts/check-citations
step words scripts/check-words
step names scripts/check-names
step cleanup scripts/check-cleanup
step attacks scripts/attacks
step docs scripts/check-docs
step preflight scripts/check-preflight
step chart scripts/chart --check
step compatibility scripts/compatibility --check
step troubleshooting scripts/check-troubleshooting
step map-image scripts/map-image build/pinfold --check
step shellcheck check_shell
step cppcheck check_cppcheck
step clang-tidy scripts/tidy.py build
scripts/report-size

[ ${#failed[@]} = 0 ] || { echo "lint failed: ${failed[*]}"; exit 1; }
echo "lint: clean"
