# shellcheck shell=bash
# The version of the project, from meson.build (PINFOLD_VERSION: another one, to test upgrades of packages), and the time of all
# files in artefacts: SOURCE_DATE_EPOCH, or the time of the last commit. Sourced in the top directory.
# shellcheck disable=SC2034 # read by those who source this file
version=${PINFOLD_VERSION:-$(sed -n "s/^  version: '\(.*\)',/\1/p" meson.build)}
[ -n "$version" ] || { echo "meson.build: no version" >&2; exit 1; }
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
