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

# The emulator has no seccomp filters, no Landlock, its own view of /, and is slow and large: tests of these, and those with floods or a small
# limit of memory, skip themselves and say so. An agent takes long to start in it: fewer kills.
run_tests() {
	PINFOLD_KILLS=10 meson test -C "build-static-$arch" --no-rebuild --timeout-multiplier 3 --print-errorlogs "$@" >"$top/out" || {
		tail -n 80 "$top/out"
		return 1
	}
}
# The cases start the program by its name.
golden() {
	mkdir -p "$top/bin"
	ln -s "$PWD/tests/emulated" "$top/bin/pinfold"
	MESON_EXE_WRAPPER=qemu-$([ "$arch" = arm64 ] && echo aarch64 || echo x86_64) PINFOLD=$top/bin/pinfold \
		PINFOLD_PROGRAM=$PWD/build-static-$arch/root/usr/bin/pinfold tests/golden/run
}
# shellcheck disable=SC2086 # names of tests
if [ -n "${TESTS:-}" ]; then
	ok "$arch: $TESTS" run_tests $TESTS
else
	ok "$arch: unit and property tests pass" run_tests --suite unit --suite prop
	ok "$arch: the corpora of fuzz targets pass" run_tests --suite fuzz
	ok "$arch: thread tests pass" run_tests --suite threads
fi
ok "$arch: golden cases pass" golden
tap_end
