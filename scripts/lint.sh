#!/usr/bin/env bash
# Every static check. Runs them all, then fails when one did.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

cache=${XDG_CACHE_HOME:-$HOME/.cache}/pinfold
failed=()

step() {
    local name=$1
    shift
    "$@" || failed+=("$name")
}

check_format() {
    local said
    said=$(find src tests -name '*.[ch]' -print0 |
        xargs -0 clang-format-14 --dry-run -Werror 2>&1) || {
        grep error: <<<"$said"
        echo "run 'make format'"
        return 1
    }
}

check_cppcheck() {
    local said
    mkdir -p "$cache/cppcheck"
    said=$(cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr \
        --suppress=missingIncludeSystem \
        --error-exitcode=1 --cppcheck-build-dir="$cache/cppcheck" -j "$(nproc)" \
        -D_GNU_SOURCE -I src -I tests/unit src tests 2>&1) && [ -z "$said" ] && return
    echo "$said" # findings across files do not set the exit status
    return 1
}

check_shell() {
    { find scripts src tests -name '*.sh'; grep -rlE '^#!.*\b(ba)?sh$' .ci scripts tests; } |
        sort -u | xargs shellcheck
}

ninja -C build --quiet # generated sources have to be there
step clang-format check_format
step include-order scripts/check-includes
step citations scripts/check-citations
step shellcheck check_shell
step cppcheck check_cppcheck
step clang-tidy scripts/tidy.py build
scripts/report-size

[ ${#failed[@]} = 0 ] || { echo "lint failed: ${failed[*]}"; exit 1; }
echo "lint: clean"
