#!/usr/bin/env bash
# install.sh install|uninstall BUILD PREFIX: installs the target "product" of a build directory to a prefix below DESTDIR, or
# removes what it installed there. A build directory that was configured for another prefix is configured again.
set -euo pipefail

mode=$1 build=$2 prefix=$3

option() { meson introspect "$build" --buildoptions | python3 -c 'import json, sys; print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == sys.argv[1]))' "$1"; }
installed() { meson introspect "$build" --installed | python3 -c 'import json, sys; print(*json.load(sys.stdin).values(), sep="\n")'; }

# meson installs from a plan that it writes when it configures; ninja renews it after a change of the options.
[ "$(option prefix)" = "$prefix" ] || meson configure "$build" -Dprefix="$prefix"
ninja -C "$build" --quiet product

case $mode in
install)
    meson install -C "$build" --no-rebuild --quiet
    echo "installed to ${DESTDIR-}$prefix; next: ${DESTDIR-}$prefix/bin/pinfold --help"
    ;;
uninstall)
    while read -r path; do
        path=${DESTDIR-}$path
        dir=${path%/*} name=${path##*/}
        rm -f "$path"
        # Links are not in the list: kubectl-pinfold, and those to a library with a version.
        find "$dir" -maxdepth 1 -type l -lname "$name" -delete 2>/dev/null || :
        case $name in
        *.so.*) find "$dir" -maxdepth 1 -type l -name "${name%%.so.*}.so*" -delete 2>/dev/null || : ;;
        esac
        case ${dir##*/} in
        pinfold | nri) rmdir --ignore-fail-on-non-empty "$dir" 2>/dev/null || : ;;
        esac
    done < <(installed)
    echo "removed from ${DESTDIR-}$prefix"
    ;;
*)
    echo "usage: install.sh install|uninstall BUILD PREFIX" >&2
    exit 2
    ;;
esac
