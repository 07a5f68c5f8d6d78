#!/usr/bin/env bash
# A release, made twice on a fresh Debian 12 that has make and nothing else of what is needed: two builds in two directories have the
# same bytes; checksums, signature, SBOM and krew manifest fit the files. As root. TAP.
#	ARCHITECTURES="amd64 arm64"
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/tap.sh
. tests/e2e/lib/tap.sh
# shellcheck source=tests/packages/lib/root.sh
. tests/packages/lib/root.sh
tests/e2e/components/host-packages debootstrap openssl jq

version=$(sed -n "s/^  version: '\(.*\)',/\1/p" meson.build)
archs=${ARCHITECTURES:-amd64 arm64}
top=$(mktemp -d)
root=$top/root
trap 'umount -R "$root/proc" 2>/dev/null || :; rm -rf "$top"' EXIT
openssl genpkey -algorithm ed25519 -out "$top/key.pem" 2>/dev/null

# A root directory of its own, with this machine's mirror.
make_root() {
	mkdir "$root"
	root_copy bookworm "$root" make
	cp -a /etc/apt/sources.list* /etc/apt/apt.conf.d "$root/etc/apt/"
	cp -L /etc/resolv.conf "$root/etc/"
	mount -t proc proc "$root/proc"
}
# copy_to DIR: the tree without what is built, and without git.
copy_to() {
	mkdir -p "$root/$1"
	git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -a -t "$root/$1"
	cp "$top/key.pem" "$root/$1/release.key"
}
# release_in DIR [OPTION of chroot]
release_in() {
	chroot "${@:2}" "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin SOURCE_DATE_EPOCH=1700000000 PINFOLD_RELEASE_KEY=release.key \
		ARCHITECTURES="$archs" make -s -C "/$1" release
}
make_root
# Of different length, each with libraries and objects of its own.
one=one two=a-much-longer-name/two
copy_to $one
copy_to $two
dist=$root/$one/dist

checksums_fit() { (cd "$1" && sha256sum --quiet --check SHA256SUMS); }
covers_everything() { diff <(cd "$dist" && find . -type f ! -name 'SHA256SUMS*' ! -name '*.pub' -printf '%P\n' | sort) <(awk '{ print $2 }' "$dist/SHA256SUMS" | sort); }
signature_fits() { openssl pkeyutl -verify -pubin -inkey <(openssl pkey -in "$top/key.pem" -pubout) -rawin -in "$1" -sigfile "$dist/SHA256SUMS.sig"; }
source_has() { tar -tzf "$dist/pinfold-$version.tar.gz" "pinfold-$version/$1" 2>/dev/null; }
key_is_secret() { source_has meson.build && ! source_has release.key; }
changed_file() {
	cp -r "$dist" "$top/changed"
	echo >>"$top/changed/pinfold.yaml"
	checksums_fit "$top/changed"
}
changed_sums() {
	sed 's/^./f/' "$dist/SHA256SUMS" >"$top/sums"
	signature_fits "$top/sums"
}
sbom_of() { echo "$dist/pinfold-$version-linux-$1.spdx.json"; }
program_of() { tar -xzOf "$dist/pinfold-$version-linux-$1.tar.gz" "pinfold-$version-linux-$1/pinfold"; }
# The versions that are in the libraries themselves.
sbom_names_what_is_linked() {
	local name said texts
	texts=$(program_of "$1" | strings)
	for name in libssl-dev libyaml-dev hwloc; do
		said=$(jq -r --arg name $name '.packages[] | select(.name == $name).versionInfo' "$(sbom_of "$1")" | cut -d- -f1)
		grep -qxF -- "$said" <<<"$texts" || { echo "$name $said is not in the program"; return 1; }
	done
	[ "$(jq -r '[.relationships[] | select(.relationshipType == "STATIC_LINK")] | length' "$(sbom_of "$1")")" -ge 9 ]
}
sbom_has_the_program() { [ "$(jq -r '.packages[0].checksums[0].checksumValue' "$(sbom_of "$1")")" = "$(program_of "$1" | sha256sum | cut -d' ' -f1)" ]; }
krew_fits() { grep -q "sha256: $(sha256sum <"$dist/pinfold-$version-linux-$1.tar.gz" | cut -d' ' -f1)" "$dist/pinfold.yaml"; }
image_has_the_program() {
	local layer
	for layer in "$dist/pinfold-$version-image"/blobs/sha256/*; do
		[ "$(tar -xzOf "$layer" usr/local/bin/pinfold 2>/dev/null | sha256sum)" != "$(program_of "$1" | sha256sum)" ] || return 0
	done
	return 1
}
program_starts() { chroot "$root" "/$one/build-static-$(dpkg --print-architecture)/root/usr/bin/pinfold" --version; }
deb_has_the_program() { [ "$(dpkg-deb --fsys-tarfile "$dist/pinfold_${version}_$1.deb" | tar -xO ./usr/bin/pinfold | sha256sum)" = "$(program_of "$1" | sha256sum)" ]; }

refused "a user who is not root is told what is missing" "deps: missing: gcc " release_in $one --userspec=65534:65534
ok "make release installs what it needs" release_in $one
equals "the program starts" "pinfold $version" program_starts
ok "make release works in another directory" release_in $two
ok "two builds in two directories are the same" diff -r "$dist" "$root/$two/dist"
ok "the checksums are right" checksums_fit "$dist"
ok "the checksums cover everything" covers_everything
ok "the signature is right" signature_fits "$dist/SHA256SUMS"
ok "the source has no key" key_is_secret
refused "a changed file is found" pinfold.yaml changed_file
refused "changed checksums are found" "" changed_sums
for arch in $archs; do
	ok "$arch: the SBOM names what is linked" sbom_names_what_is_linked "$arch"
	ok "$arch: the SBOM has the program's checksum" sbom_has_the_program "$arch"
	ok "$arch: krew's manifest has the archive's checksum" krew_fits "$arch"
	ok "$arch: image and package have the same program" eval "image_has_the_program $arch && deb_has_the_program $arch"
done
tap_end
