#!/usr/bin/env bash
# image.sh: the OCI image of the static programs for ARCHITECTURES (packaging/static.sh), as a layout and as an archive in OUT
# (dist). NAME is its name without a tag (localhost/pinfold), TAG its tag (the version).
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=packaging/version.sh
. packaging/version.sh

out=${OUT:-dist}
programs=()
for arch in ${ARCHITECTURES:-amd64 arm64}; do
    programs+=("$arch=build-static-$arch/root/usr/bin/pinfold")
done
mkdir -p "$out"
packaging/image.py --name "${NAME:-localhost/pinfold}:${TAG:-$version}" --version "$version" \
    --certificates "build/deps/sysroot-$arch/ca-certificates.crt" \
    --layout "$out/pinfold-$version-image" --archive "$out/pinfold-$version-image.tar" "${programs[@]}"
