#!/usr/bin/env bash
# packages.sh: Debian and RPM packages of the static builds for ARCHITECTURES (packaging/static.sh) in OUT (dist). The same
# input gives the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=packaging/version.sh
. packaging/version.sh

mkdir -p "${OUT:-dist}"
out=$(cd "${OUT:-dist}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The newest version of the C library's symbols that the files of libnri use.
glibc_of() {
    readelf -W --dyn-syms "$1/usr/lib/libnri.so" "$1/usr/bin/nri-replay" | grep -o '@GLIBC_[0-9.]*' | sed 's/.*_//' | sort -Vu | tail -n 1
}

# Files that packages have beside those of `make install`.
stage() {
    cp -a "build-static-$1/root" "$2"
    mkdir "$2.files"
    cp README.md LICENSE CHANGELOG.md deploy/agent/pinfold-agent.default "$2.files"
    cp "build/deps/sysroot-$1/licenses" "$2.files/third-party-licenses"
}

deb_changelog() {
    printf 'pinfold (%s) unstable; urgency=medium\n\n  * Release %s; the notes are in NEWS.gz or CHANGELOG.md.\n\n -- %s  %s\n' "$version" "$version" \
        'Pinfold maintainers <maintainers@pinfold.io>' "$(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")"
}

# The package of the agent has no architecture: it is made with the first one.
debs() {
    local arch=$1 what=$2 dir=$work/deb-$1/pinfold
    mkdir -p "$dir"
    cp -a "$work/$arch" "$dir/root"
    cp -a packaging/debian "$dir"
    cp deploy/agent/pinfold-agent.default "$dir"
    cp "$work/$arch.files/third-party-licenses" CHANGELOG.md "$dir"
    printf '%s\n' README.md third-party-licenses >"$dir/debian/pinfold.docs"
    cp README.md "$dir"
    deb_changelog >"$dir/debian/changelog"
    (cd "$dir" && GLIBC=$(glibc_of root) dpkg-buildpackage --host-arch "$arch" --build="$what" -us -uc -d >../log 2>&1) || {
        tail -n 30 "$dir/../log" >&2
        return 1
    }
    mv "$dir"/../*.deb "$out"
}

rpms() {
    local arch=$1 cpu dir=$work/rpm-$1
    cpu=$([ "$arch" = arm64 ] && echo aarch64 || echo x86_64)
    mkdir -p "$dir"
    rpmbuild -bb --quiet --target "$cpu-linux" --define "_topdir $dir" --define "_rpmdir $dir/out" --define "_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm" \
        --define "pinfold_version $version" --define "staged $work/$arch" --define "glibc $(glibc_of "$work/$arch")" \
        --define "changelog_date $(LC_ALL=C date -u -d "@$SOURCE_DATE_EPOCH" '+%a %b %d %Y')" \
        --define '_libdir /usr/lib64' --define '_buildhost reproducible' --define 'use_source_date_epoch_as_buildtime 1' \
        --define 'clamp_mtime_to_source_date_epoch 1' --define 'source_date_epoch_from_changelog 0' --define '_binary_payload w9.gzdio' \
        packaging/rpm/pinfold.spec >"$dir/log" 2>&1 || {
        tail -n 30 "$dir/log" >&2
        return 1
    }
    mv "$dir"/out/*.rpm "$out"
}

what=binary
for arch in ${ARCHITECTURES:-amd64 arm64}; do
    stage "$arch" "$work/$arch"
    debs "$arch" $what
    rpms "$arch"
    what=any
done
for file in "$out"/*.deb "$out"/*.rpm; do
    echo "built $file, $(stat -c %s "$file") bytes"
done
