#!/usr/bin/env bash
# oci-hook.sh in a guest with 8 CPUs, systemd and cgroup v2, where podman can use its systemd cgroup manager. runc
# and conmon are the guest's own; podman, jq and busybox come from this machine, with the libraries that the guest
# lacks.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/guest.sh
. tests/e2e/lib/guest.sh

pinfold=${PINFOLD:-build/pinfold}
dir=$(mktemp -d /tmp/pinfold-oci-guest-XXXXXX)
trap 'guest_stop "$dir"; rm -rf "$dir"' EXIT

copy_program() { # DIR PROGRAM
    local program
    program=$(command -v "$2") || return 0
    cp -L "$program" "$1/bin/"
    { ldd "$program" 2>/dev/null || :; } | awk '$2 == "=>" { print $3 }' | xargs -r cp -Lt "$1/lib/"
}

payload() {
    local program
    command -v podman >/dev/null || tests/e2e/components/host-packages podman || :
    command -v jq busybox >/dev/null || tests/e2e/components/host-packages jq busybox-static
    mkdir -p "$1"/{bin,lib,pinfold/deploy,pinfold/tests/e2e}
    cp "$pinfold" "$1/bin/pinfold"
    cp -r deploy/oci-hook "$1/pinfold/deploy/"
    cp -r tests/e2e/oci-hook.sh tests/e2e/lib "$1/pinfold/tests/e2e/"
    for program in podman jq busybox; do copy_program "$1" "$program"; done
}

# The guest's own libraries are not replaced: its programs use them.
install_libraries() {
    guest_run "$dir" 'ldconfig -p >/tmp/known
        for library in /payload/lib/*; do
            grep -q "^[[:space:]]*${library##*/} " /tmp/known || cp "$library" /usr/local/lib/
        done
        ldconfig'
}

payload "$dir/payload"
guest_start "$dir" "$dir/payload"
install_libraries
echo "oci-hook-guest.sh: $(guest_run "$dir" 'uname -r; stat -fc %T /sys/fs/cgroup; nproc; runc --version | head -1' | tr '\n' ' ')" >&2
guest_run "$dir" "TESTS='${TESTS:-}' PATH=/payload/bin:\$PATH PINFOLD=/payload/bin/pinfold /payload/pinfold/tests/e2e/oci-hook.sh"
