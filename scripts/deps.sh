#!/usr/bin/env bash
# Installs the missing packages of the given groups: deps.sh [build] [test] [lint] [bench] [static] [package] [proofs]
# [cross-amd64|cross-arm64].
# Fast when nothing is missing. Without root it prints the missing packages and exits 2.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib/apt.sh
. scripts/lib/apt.sh

groups=("${@:-build}")

# Group, package, and how to find out whether it is installed: a command, a pkg-config module or a file.
packages="
build gcc                 cmd  gcc
build libc6-dev           file /usr/include/stdlib.h
build meson               cmd  meson
build ninja-build         cmd  ninja
build pkg-config          cmd  pkg-config
build python3             cmd  python3
build libyaml-dev         pc   yaml-0.1
build libuv1-dev          pc   libuv
build libnghttp2-dev      pc   libnghttp2
build libhwloc-dev        pc   hwloc
build libseccomp-dev      pc   libseccomp
build libssl-dev          pc   openssl
build libcmocka-dev       pc   cmocka
test  mandoc              cmd  mandoc
test  procps              cmd  pgrep
test  patch               cmd  patch
test  zsh                 cmd  zsh
test  python3-yaml        file /usr/lib/python3/dist-packages/yaml/__init__.py
lint  clang-14            cmd  clang-14
lint  libclang-rt-14-dev  file /usr/lib/llvm-14/lib/clang/14.0.6/lib/linux
lint  clang-format-14     cmd  clang-format-14
lint  clang-tidy-14       cmd  clang-tidy-14
lint  cppcheck            cmd  cppcheck
lint  shellcheck          cmd  shellcheck
lint  libjansson-dev      pc   jansson
bench libjansson-dev      pc   jansson
bench valgrind            cmd  valgrind
bench time                file /usr/bin/time
bench wrk                 cmd  wrk
static make               cmd  make
static dpkg-dev           cmd  dpkg-architecture
static bzip2              cmd  bzip2
static xz-utils           cmd  xz
cross-amd64 gcc-x86-64-linux-gnu   cmd  x86_64-linux-gnu-gcc
cross-amd64 libc6-dev-amd64-cross  file /usr/x86_64-linux-gnu/lib/libc.a
cross-amd64 qemu-user              cmd  qemu-x86_64
cross-arm64 gcc-aarch64-linux-gnu  cmd  aarch64-linux-gnu-gcc
cross-arm64 libc6-dev-arm64-cross  file /usr/aarch64-linux-gnu/lib/libc.a
cross-arm64 qemu-user              cmd  qemu-aarch64
package debhelper         cmd  dh_builddeb
package lintian           cmd  lintian
package rpm               cmd  rpmbuild
package rpmlint           cmd  rpmlint
package openssl           cmd  openssl"

# yyjson is not in Debian 12. There, two packages of the next release, which need only libc, are
# unpacked here; meson.build looks here when pkg-config does not know yyjson.
yyjson_dir=build/deps
yyjson_suite=trixie
cache=${XDG_CACHE_HOME:-$HOME/.cache}/pinfold/yyjson-$yyjson_suite

# CBMC, likewise, with the libraries of its release, into the cache; only tests/proofs uses it.
cbmc_dir=${XDG_CACHE_HOME:-$HOME/.cache}/pinfold/cbmc
cbmc_packages=(cbmc minisat libc6 libstdc++6 libgcc-s1 zlib1g)

is_installed() {
    case $1 in
    cmd) command -v "$2" >/dev/null ;;
    pc) pkg-config --exists "$2" 2>/dev/null ;;
    file) [ -e "$2" ] ;;
    esac
}

missing_in() {
    local group package how what
    while read -r group package how what; do
        [[ " $* " != *" $group "* ]] || is_installed "$how" "$what" || echo "$package"
    done <<<"$packages"
}

has_yyjson() {
    is_installed pc yyjson || is_installed file $yyjson_dir/lib/libyyjson.so
}

fail_missing() {
    echo "deps: missing: $*" >&2
    echo "deps: install them, or run 'scripts/deps.sh ${groups[*]}' as root on Debian" >&2
    exit 2
}

install_packages() {
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        fail_missing "$@"
    fi
    export DEBIAN_FRONTEND=noninteractive
    local install=(apt-get install -qq -y --no-install-recommends)
    echo "deps: installing $*"
    "${install[@]}" "$@" >/dev/null 2>&1 || {
        apt-get update -qq
        "${install[@]}" "$@" >/dev/null
    }
}

# fetch_next_release DIR PACKAGE...: packages of the next release, into DIR.
fetch_next_release() {
    local to=$1 here
    shift
    here=$(mktemp -d)
    # shellcheck disable=SC2064 # `here` is local: expand it now
    trap "rm -rf '$here'" EXIT
    apt_open "$here/apt" "$yyjson_suite" "$(dpkg --print-architecture)" || fail_missing "$@"
    mkdir -p "$to"
    (cd "$here" && apt_download "$here/apt" "$@")
    mv "$here"/*.deb "$to"
}

# A program with the loader and the libraries of its own release.
unpack_cbmc() {
    local deb root=$cbmc_dir/root
    for deb in "$cbmc_dir"/*.deb; do
        dpkg -x "$deb" "$root"
    done
    cat >"$cbmc_dir/cbmc.new" <<END
#!/bin/sh
exec "$root"/usr/lib64/ld-linux-x86-64.so.2 --library-path "$root/usr/lib/x86_64-linux-gnu:$root/usr/lib" "$root/usr/bin/cbmc" "\$@"
END
    chmod +x "$cbmc_dir/cbmc.new"
    mv "$cbmc_dir/cbmc.new" "$cbmc_dir/cbmc"
}

unpack_yyjson() {
    local deb here=$yyjson_dir.$$
    mkdir -p "$here/lib"
    for deb in "$cache"/*.deb; do
        dpkg -x "$deb" "$here/root"
    done
    mv "$here/root/usr/include" "$here/include"
    cp -L "$here"/root/usr/lib/*/libyyjson.so.0 "$here/lib/"
    ln -s libyyjson.so.0 "$here/lib/libyyjson.so"
    mkdir -p $yyjson_dir
    rm -rf ${yyjson_dir:?}/{include,lib}
    mv "$here"/{include,lib} $yyjson_dir
    rm -rf "$here"
}

mapfile -t missing < <(missing_in "${groups[@]}")
[ ${#missing[@]} = 0 ] || install_packages "${missing[@]}"

if [[ " ${groups[*]} " == *" build "* ]] && ! has_yyjson; then
    command -v apt-get >/dev/null || fail_missing yyjson
    if [ "$(id -u)" = 0 ] && apt-cache show libyyjson-dev >/dev/null 2>&1; then
        install_packages libyyjson-dev
    else
        echo "deps: taking yyjson from Debian $yyjson_suite into $yyjson_dir"
        compgen -G "$cache/libyyjson-dev*.deb" >/dev/null || fetch_next_release "$cache" libyyjson0 libyyjson-dev
        unpack_yyjson
    fi
fi

if [[ " ${groups[*]} " == *" proofs "* ]] && [ ! -x "$cbmc_dir/cbmc" ]; then
    { [ "$(uname -m)" = x86_64 ] && command -v apt-get >/dev/null; } || fail_missing cbmc
    echo "deps: taking CBMC from Debian $yyjson_suite into $cbmc_dir"
    fetch_next_release "$cbmc_dir" "${cbmc_packages[@]}"
    unpack_cbmc
fi
