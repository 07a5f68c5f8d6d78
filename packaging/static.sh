#!/usr/bin/env bash
# static.sh ARCHITECTURE...: for each of amd64 and arm64, a build whose program needs no shared library, in
# build-static-ARCHITECTURE, and what `make install PREFIX=/usr` installs of it, stripped, in its directory root (D39).
set -euo pipefail
cd "$(dirname "$0")/.."

for arch; do
    build=build-static-$arch
    sysroot=$PWD/build/deps/sysroot-$arch
    packaging/sysroot.sh "$arch" "$sysroot"
    # A build directory of other libraries is of no use.
    [ ! "$sysroot/packages" -nt "$build/build.ninja" ] || rm -rf "$build"
    [ -e "$build/build.ninja" ] || meson setup "$build" -Ddebug=false --cross-file "$sysroot/cross.ini" -Dsysroot="$sysroot" \
        -Dprefix=/usr -Dwerror="${WERROR:-false}" >/dev/null || {
        cat "$build/meson-logs/meson-log.txt" >&2
        exit 1
    }
    # The linker warns that name lookup loads modules of nsswitch.conf. The program has its own: src/cli/main.c.
    ninja -C "$build" product >"$build/ninja.log" || {
        tail -n 40 "$build/ninja.log" >&2
        exit 1
    }
    rm -rf "$build/root"
    meson install -C "$build" --no-rebuild --quiet --strip --destdir root >"$build/install.log"
    echo "built $build/root/usr/bin/pinfold, $(stat -c %s "$build/root/usr/bin/pinfold") bytes"
done
