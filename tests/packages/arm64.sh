#!/usr/bin/env bash
# The unit, thread, property and golden tests of the build for another architecture, and the corpora of the fuzz targets, in qemu's
# user emulation. TAP.
#	ARCHITECTURE=arm64   TESTS="cpuset ledger"   only these, and the golden cases
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/tap.sh
. tests/e2e/lib/tap.sh

arch=${ARCHITECTURE:-arm64}
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
make -s static ARCHITECTURES="$arch" >&2
ninja -C "build-static-$arch" meson-test-prereq >"$top/log" || { tail -n 30 "$top/log" >&2; exit 1; }

# The emulator has no seccomp filters, no Landlock, and its own view of /: tests of these skip themselves, and say so. An agent takes long
# to start in it: fewer kills.
run_tests() {
	PINFOLD_KILLS=10 meson test -C "build-static-$arch" --no-rebuild --timeout-multiplier 3 --print-errorlogs "$@" >"$top/out" || {
		tail -n 80 "$top/out"
		return 1
	}
}
# Its floods have to be over in seconds, and the memory that it measures is that of the emulator, too: the first flood of 32 MiB is not
# decrypted before the test's limit, and all of it takes more than 6 minutes.
slow="webhook_attacks"
# tests_without NAMES SUITE: the tests of a suite without these.
tests_without() {
	meson test -C "build-static-$arch" --list --suite "$2" 2>/dev/null | sed -n "s|^pinfold:$2 / ||p" | grep -vxF "${1// /$'\n'}"
}
# The cases start the program by its name.
golden() {
	mkdir -p "$top/bin"
	ln -s "$PWD/tests/emulated" "$top/bin/pinfold"
	MESON_EXE_WRAPPER=qemu-$([ "$arch" = arm64 ] && echo aarch64 || echo x86_64) PINFOLD=$top/bin/pinfold \
		PINFOLD_PROGRAM=$PWD/build-static-$arch/root/usr/bin/pinfold tests/golden/run
}
# shellcheck disable=SC2046,SC2086 # names of tests
if [ -n "${TESTS:-}" ]; then
	ok "$arch: $TESTS" run_tests $TESTS
else
	ok "$arch: unit and property tests pass" run_tests --suite unit --suite prop
	ok "$arch: the corpora of fuzz targets pass" run_tests --suite fuzz
	ok "$arch: thread tests pass, without $slow" run_tests --suite threads $(tests_without "$slow" threads)
fi
ok "$arch: golden cases pass" golden
tap_end
