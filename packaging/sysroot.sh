#!/usr/bin/env bash
# sysroot.sh ARCHITECTURE DIR: static libraries for amd64 or arm64 in DIR, for `meson setup -Dsysroot=DIR` (D39):
#	include/ lib/     libraries and their headers, cmocka for the tests
#	libc/             the static C library and its start files
#	ca-certificates.crt
#	licenses          of what is linked
#	packages          one line for each package: NAME VERSION binary|source SHA256 linked|not-linked|data
#	cross.ini         the machine file for meson
# The packages are Debian 12's with its security updates, whatever the machine runs. hwloc is compiled here because Debian's
# needs libudev, yyjson because Debian has no static one. They are fetched again when they are older than a week.
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/lib/apt.sh
. "$top/scripts/lib/apt.sh"

arch=$1 dir=$2
case $arch in
amd64) triplet=x86_64-linux-gnu cpu=x86_64 branch=-fcf-protection ;;
arm64) triplet=aarch64-linux-gnu cpu=aarch64 branch=-mbranch-protection=standard ;;
*)
    echo "sysroot: $arch: want amd64 or arm64" >&2
    exit 2
    ;;
esac
# Linked into the program; used by tests; data.
linked="libc6-dev libssl-dev libuv1-dev libyaml-dev libnghttp2-dev libseccomp-dev"
others="libcmocka-dev libcmocka0 ca-certificates"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/pinfold/sysroot-$arch
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

download() {
    apt_open "$work/apt" bookworm "$arch" && apt_open "$work/apt-next" trixie "$arch" || return
    # shellcheck disable=SC2086 # names of packages
    (cd "$1" && apt_download "$work/apt" $linked $others && apt_download_source "$work/apt" hwloc &&
        apt_download_source "$work/apt-next" yyjson)
}

# The cache is replaced when everything is there.
fetch() {
    local new=$work/fetched
    mkdir -p "${cache%/*}" "$new"
    echo "sysroot: fetching Debian packages for $arch"
    download "$new" || {
        echo "sysroot: cannot fetch them from the Debian mirror of this machine's apt configuration" >&2
        [ ! -e "$cache" ] || echo "sysroot: to use those in $cache, which are older than a week: touch $cache" >&2
        exit 1
    }
    rm -rf "$cache"
    mv -T "$new" "$cache"
}

unpack() {
    local deb
    for deb in "$cache"/*.deb; do
        dpkg-deb -x "$deb" "$work/root"
    done
    mkdir -p "$work/new"/{lib,libc}
    local libs=$work/root/usr/lib/$triplet
    cp -a "$work/root/usr/include" "$work/new/include"
    # The C library's headers are the compiler's own.
    dpkg-deb --fsys-tarfile "$cache"/libc6-dev_*.deb | tar -t | sed -n 's|^\./usr/include/\(.*[^/]\)$|\1|p' |
        (cd "$work/new/include" && xargs rm -f && find . -type d -empty -delete)
    # Headers for one architecture.
    cp -a "$work/new/include/$triplet/." "$work/new/include"
    rm -rf "${work:?}/new/include/$triplet"
    cp "$libs"/{libssl,libcrypto,libuv_a,libyaml,libnghttp2,libseccomp}.a "$work/new/lib"
    cp -a "$libs"/libcmocka.so* "$work/new/lib"
    cp "$libs"/{libc,libm,libpthread,libdl,librt,libutil,libresolv,libanl}.a "$libs"/*crt*.o "$work/new/libc"
    [ "$arch" != amd64 ] || cp "$libs"/libm-2.*.a "$libs"/libmvec.a "$work/new/libc"
    find "$work/root/usr/share/ca-certificates" -name '*.crt' | LC_ALL=C sort | xargs cat >"$work/new/ca-certificates.crt"
    # libm.a is a script that names files.
    sed -i "s|/usr/lib/$triplet/||g" "$work/new/libc/libm.a"
}

cc=$triplet-gcc
cflags="-O2 -g0 -fPIE -fstack-protector-strong -fstack-clash-protection -D_FORTIFY_SOURCE=2 $branch -ffile-prefix-map=$work=/usr/src"

compile_yyjson() {
    mkdir "$work/yyjson"
    tar -C "$work/yyjson" --strip-components=1 -xf "$cache"/yyjson_*.orig.tar.*
    # shellcheck disable=SC2086 # flags
    $cc $cflags -c -o "$work/yyjson.o" "$work/yyjson/src/yyjson.c"
    "$triplet-ar" rcsD "$work/new/lib/libyyjson.a" "$work/yyjson.o"
    cp "$work/yyjson/src/yyjson.h" "$work/new/include"
}
compile_hwloc() {
    mkdir "$work/hwloc"
    tar -C "$work/hwloc" --strip-components=1 -xf "$cache"/hwloc_*.orig.tar.*
    (
        cd "$work/hwloc"
        ./configure --host=$triplet --prefix=/usr --enable-static --disable-shared --disable-libudev --disable-libxml2 \
            --disable-cairo --disable-io --disable-pci --disable-plugins CC="$cc" CFLAGS="$cflags"
        make -C hwloc -j"$(nproc)" && make -C include DESTDIR="$work/installed" install &&
            make -C hwloc DESTDIR="$work/installed" install
    ) >"$work/hwloc.log" 2>&1 || {
        tail -n 20 "$work/hwloc.log" >&2
        return 1
    }
    cp "$work/installed/usr/lib/libhwloc.a" "$work/new/lib"
    cp -r "$work/installed/usr/include/." "$work/new/include"
}

list_packages() {
    local name file use version
    for name in $linked $others; do
        file=$(echo "$cache/$name"_*.deb)
        use=linked
        [[ " $linked " == *" $name "* ]] || use=not-linked
        [ "$name" != ca-certificates ] || use=data
        echo "$name $(dpkg-deb -f "$file" Version) binary $(sha256sum <"$file" | cut -d' ' -f1) $use"
    done
    for name in hwloc yyjson; do
        file=$(echo "$cache/$name"_*.orig.tar.*)
        version=${file##*/"$name"_}
        echo "$name ${version%.orig.tar.*} source $(sha256sum <"$file" | cut -d' ' -f1) linked"
    done
}

licenses() {
    local name
    for name in $linked; do
        printf '=== %s ===\n\n' "$name"
        cat "$work/root/usr/share/doc/$name/copyright"
    done
    printf '=== hwloc ===\n\n'
    cat "$work/hwloc/COPYING"
    printf '=== yyjson ===\n\n'
    cat "$work/yyjson/LICENSE"
}

# The tests of another architecture run in qemu's user emulation.
machine_file() {
    cat <<EOF
[binaries]
c = '$cc'
ar = '$triplet-ar'
ld = '$triplet-ld'
objcopy = '$triplet-objcopy'
strip = '$triplet-strip'
exe_wrapper = ['qemu-$cpu', '-L', '/usr/$triplet', '-E', 'LD_LIBRARY_PATH=$dir/lib']
[properties]
needs_exe_wrapper = $([ "$(uname -m)" = $cpu ] && echo false || echo true)
[host_machine]
system = 'linux'
cpu_family = '$cpu'
cpu = '$cpu'
endian = 'little'
EOF
}

case $dir in /*) ;; *) dir=$PWD/$dir ;; esac
[ -n "$(find "$cache" -maxdepth 0 -mtime -7 2>/dev/null)" ] || fetch
[ ! "$dir/packages" -nt "$cache" ] || exit 0
unpack
compile_yyjson
compile_hwloc
licenses >"$work/new/licenses"
list_packages >"$work/new/packages"
machine_file >"$work/new/cross.ini"
rm -rf "$dir"
mkdir -p "$(dirname "$dir")"
mv "$work/new" "$dir"
