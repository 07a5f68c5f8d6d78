#!/usr/bin/env bash
# Runs every test in the release build and with the address and undefined-behaviour sanitizers, and those that start
# threads also with the thread sanitizer. The last line has the numbers.
set -euo pipefail
cd "$(dirname "$0")/.."

failed=0
flavours=()

test_flavour() {
    local dir=$1
    shift
    flavours+=("$dir")
    rm -f "$dir/meson-logs/testlog.json"
    echo "== $dir"
    # Not the default target: it has the benchmarks, which need more packages.
    ninja -C "$dir" --quiet product meson-test-prereq && meson test -C "$dir" --no-rebuild --print-errorlogs "$@" || failed=1
}

test_flavour build
test_flavour build-asan
if meson test -C build --no-rebuild --list --suite threads 2>/dev/null | grep -q .; then
    make --no-print-directory build-tsan/build.ninja || failed=1
    test_flavour build-tsan --suite threads
fi

scripts/summarise-tests.py "${flavours[@]}" || failed=1
exit $failed
