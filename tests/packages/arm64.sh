#!/usr/bin/env bash
# The unit, thread, property and golden tests of the build for another architecture, and the corpora of the fuzz targets, in qemu's
# user emulation. TAP.
#	ARCHITECTURE=arm64   TESTS="cpuset ledger"   only these
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/tap.sh
. tests/e2e/lib/tap.sh

arch=${ARCHITECTURE:-arm64}
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
make -s static ARCHITECTURES="$arch" >&2
ninja -C "build-static-$arch" meson-test-prereq >"$top/log" || { tail -n 30 "$top/log" >&2; exit 1; }

# shellcheck disable=SC2086 # names of tests
unit() { meson test -C "build-static-$arch" --no-rebuild --suite unit --suite threads --suite prop --suite fuzz --timeout-multiplier 10 --print-errorlogs ${TESTS:-} >"$top/out" || { tail -n 80 "$top/out"; return 1; }; }
# The shell starts the program by its name: a script that calls qemu.
golden() {
	mkdir -p "$top/bin"
	printf '#!/bin/sh\nexec qemu-%s %s "$@"\n' "$([ "$arch" = arm64 ] && echo aarch64 || echo x86_64)" "$PWD/build-static-$arch/root/usr/bin/pinfold" >"$top/bin/pinfold"
	chmod +x "$top/bin/pinfold"
	PINFOLD=$top/bin/pinfold tests/golden/run
}
ok "$arch: unit, thread, property and fuzz tests pass" unit
ok "$arch: golden cases pass" golden
tap_end
