#!/usr/bin/env bash
# The image: small, reproducible, only the program and certificates, not root, and other tools read it. TAP.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/tap.sh
. tests/e2e/lib/tap.sh
tests/e2e/components/host-packages skopeo jq

version=$(sed -n "s/^  version: '\(.*\)',/\1/p" meson.build)
archs=${ARCHITECTURES:-amd64 arm64}
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT

build() { SOURCE_DATE_EPOCH=1700000000 OUT=$1 ARCHITECTURES=$archs make -s image; }
build "$top/a" >&2
archive=$top/a/pinfold-$version-image.tar layout=$top/a/pinfold-$version-image

blob() { cat "$layout/blobs/sha256/${1#sha256:}"; }
index() { blob "$(jq -r '.manifests[0].digest' "$layout/index.json")"; }
manifest_of() { blob "$(index | jq -r --arg arch "$1" '.manifests[] | select(.platform.architecture == $arch).digest')"; }
config_of() { blob "$(manifest_of "$1" | jq -r .config.digest)"; }
is_same_again() { build "$top/b" && diff -r "$top/a" "$top/b"; }
unpack() {
	mkdir -p "$top/root-$1"
	blob "$(manifest_of "$1" | jq -r '.layers[0].digest')" | tar -C "$top/root-$1" -xz
}
unpacked_size() { du -sb --apparent-size "$top/root-$1" | cut -f1; }
compressed_size() { manifest_of "$1" | jq '.layers[0].size + .config.size'; }
is_at_most() { echo "$1 bytes" && [ "$1" -le "$2" ]; }
# Every blob is what its name says.
digests_are_right() { (cd "$layout/blobs/sha256" && sha256sum -- * | awk '$1 != $2 { print; wrong = 1 } END { exit wrong }'); }
diff_id_is_right() {
	[ "$(blob "$(manifest_of "$1" | jq -r '.layers[0].digest')" | gzip -dc | sha256sum | cut -d' ' -f1)" = \
		"$(config_of "$1" | jq -r '.rootfs.diff_ids[0] | ltrimstr("sha256:")')" ]
}
copies() {
	echo '{"default":[{"type":"insecureAcceptAnything"}]}' >"$top/policy.json"
	skopeo --policy "$top/policy.json" copy -q --override-arch "$1" "oci-archive:$archive" "dir:$top/copy-$1" &&
		[ "$(jq -r .config.digest "$top/copy-$1/manifest.json")" = "$(manifest_of "$1" | jq -r .config.digest)" ]
}
starts() { [ "$(chroot --userspec=65532:65532 "$top/root-$1" /usr/local/bin/pinfold --version)" = "pinfold $version" ]; }

ok "the same input gives the same bytes" is_same_again
ok "digests are right" digests_are_right
equals "the name is the one of the manifests" "$(sed -n 's/^ *newName: //p' deploy/base/kustomization.yaml):$version" \
	jq -r '.manifests[0].annotations["io.containerd.image.name"]' "$layout/index.json"
for arch in $archs; do
	unpack "$arch"
	equals "$arch: files" "etc/group etc/passwd etc/ssl/certs/ca-certificates.crt usr/local/bin/pinfold" \
		bash -c "cd '$top/root-$arch' && find . -type f -printf '%P\n' | sort | paste -sd' '"
	equals "$arch: user" 65532:65532 jq -r .config.User <(config_of "$arch")
	ok "$arch: at most 10 MiB unpacked" is_at_most "$(unpacked_size "$arch")" $((10 << 20))
	ok "$arch: at most 5 MiB compressed" is_at_most "$(compressed_size "$arch")" $((5 << 20))
	ok "$arch: the configuration names the layer" diff_id_is_right "$arch"
	ok "$arch: skopeo reads the archive" copies "$arch"
	[ "$arch" != "$(dpkg --print-architecture)" ] || ok "$arch: the program starts as that user" starts "$arch"
done
tap_end
