#!/usr/bin/env bash
# release.sh: completes a release in dist, which has the image and the packages already: archives of the programs and of the
# source, the chart, SBOMs, the krew manifest, SHA256SUMS, and with PINFOLD_RELEASE_KEY (a file with an Ed25519 key in PEM)
# SHA256SUMS.sig. The same source gives the same bytes (D40).
#	--check        only whether the key can be used, before the long build
#	RELEASE_URL    where the files will be published, for the krew manifest
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=packaging/version.sh
. packaging/version.sh

if [ -n "${PINFOLD_RELEASE_KEY:-}" ] && ! openssl pkey -in "$PINFOLD_RELEASE_KEY" -passin pass: -noout 2>/dev/null; then
    echo "release: PINFOLD_RELEASE_KEY=$PINFOLD_RELEASE_KEY: want a private key in PEM without a passphrase" >&2
    exit 2
fi
[ "${1:-}" != --check ] || exit 0

out=$PWD/dist
url=${RELEASE_URL:-https://pinfold.io/releases/v$version}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# pack FILE DIR NAME...: with nothing of this machine in it.
pack() {
    local file=$1 dir=$2
    shift 2
    tar --sort=name --format=ustar --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u+rw,go=rX -C "$dir" -cf - "$@" |
        gzip -9n >"$file"
}

# The program with its man pages and completions, as it is copied to a machine or installed by krew.
program_archive() {
    local arch=$1 name=pinfold-$version-linux-$1
    local dir=$work/$name root=build-static-$1/root
    mkdir -p "$dir"
    cp "$root/usr/bin/pinfold" LICENSE README.md CHANGELOG.md "$dir"
    cp "build/deps/sysroot-$arch/licenses" "$dir/third-party-licenses"
    cp -r "$root/usr/share/man" "$dir/man"
    rm -rf "$dir/man/man3" "$dir/man/man1/nri-replay.1" "$dir/man/man1/kubectl-pinfold.1"
    mkdir "$dir/completions"
    cp "$root/usr/share/bash-completion/completions/pinfold" "$dir/completions/pinfold.bash"
    cp "$root/usr/share/zsh/site-functions/_pinfold" "$root/usr/share/fish/vendor_completions.d/pinfold.fish" "$dir/completions"
    pack "$out/$name.tar.gz" "$work" "$name"
    packaging/sbom.py --version "$version" --architecture "$arch" --program "$root/usr/bin/pinfold" \
        --map "build-static-$arch/pinfold.map" --sysroot "build/deps/sysroot-$arch" >"$out/$name.spdx.json"
}
krew_platform() {
    local name=pinfold-$version-linux-$1
    cat <<EOF
  - selector: {matchLabels: {os: linux, arch: $1}}
    uri: $url/$name.tar.gz
    sha256: $(sha256sum <"$out/$name.tar.gz" | cut -d' ' -f1)
    files: [{from: $name/pinfold, to: .}, {from: $name/LICENSE, to: .}]
    bin: pinfold
EOF
}

# What git has, or everything that a build does not make. Never the key.
source_archive() {
    local dir=$work/pinfold-$version key=${PINFOLD_RELEASE_KEY:-}
    mkdir "$dir"
    { git ls-files 2>/dev/null || find . -type f ! -path './build*' ! -path './dist/*' ! -path './.git/*' ! -path '*/__pycache__/*' \
        ${key:+! -samefile "$key"}; } |
        tar -cf - -T - | tar -C "$dir" -xf -
    pack "$out/pinfold-$version.tar.gz" "$work" "pinfold-$version"
}
chart_archive() {
    [ -e deploy/chart/Chart.yaml ] || return 0
    cp -r deploy/chart "$work/pinfold"
    pack "$out/pinfold-$version-chart.tgz" "$work" pinfold
}

sign() {
    if [ -z "${PINFOLD_RELEASE_KEY:-}" ]; then
        echo "release: not signed; PINFOLD_RELEASE_KEY names no key"
        return
    fi
    openssl pkey -in "$PINFOLD_RELEASE_KEY" -pubout -out "$out/pinfold-release.pub"
    openssl pkeyutl -sign -rawin -inkey "$PINFOLD_RELEASE_KEY" -in "$out/SHA256SUMS" -out "$out/SHA256SUMS.sig"
}

rm -f "$out"/SHA256SUMS* "$out/pinfold-release.pub"
sed "s/@VERSION@/$version/" packaging/krew.yaml.in >"$work/krew.yaml"
for arch in ${ARCHITECTURES:-amd64 arm64}; do
    program_archive "$arch"
    krew_platform "$arch" >>"$work/krew.yaml"
done
cp "$work/krew.yaml" "$out/pinfold.yaml"
source_archive
chart_archive
(cd "$out" && find . -type f ! -name 'SHA256SUMS*' ! -name '*.pub' -printf '%P\n' | LC_ALL=C sort | xargs sha256sum) >"$work/SHA256SUMS"
mv "$work/SHA256SUMS" "$out/SHA256SUMS"
sign
echo "release $version in dist: $(wc -l <"$out/SHA256SUMS") files"
