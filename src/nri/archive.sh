#!/bin/sh
# archive.sh OUTPUT MAP OBJECT...: a static library in which only the functions of the version script MAP are global, so
# that its helpers clash with nothing of the program it is linked into. LD, OBJCOPY and AR name the tools.
set -eu
output=$1 map=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$LD" -r -o "$work/nri.o" "$@"
# shellcheck disable=SC2046 # words, one per pattern
"$OBJCOPY" --wildcard $(sed -n 's/^[[:space:]]*\(nri_[a-z_*]*\);$/--keep-global-symbol=\1/p' "$map") "$work/nri.o"
rm -f "$output"
"$AR" rcsD "$output" "$work/nri.o"
