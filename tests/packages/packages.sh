#!/usr/bin/env bash
# The packages: lintian and rpmlint find nothing; install, upgrade and removal in root directories, with apt and with rpm;
# what they install works. As root. TAP.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/tap.sh
. tests/e2e/lib/tap.sh
# shellcheck source=tests/packages/lib/root.sh
. tests/packages/lib/root.sh
tests/e2e/components/host-packages debootstrap

version=$(sed -n "s/^  version: '\(.*\)',/\1/p" meson.build)
arch=$(dpkg --print-architecture)
archs=${ARCHITECTURES:-amd64 arm64}
top=$(mktemp -d)
trap 'umount -R "$top/root/proc" 2>/dev/null || :; rm -rf "$top"' EXIT

ARCHITECTURES=$archs OUT=$top/new make -s packages >&2
# The same files as an older version, to upgrade from.
older() { PINFOLD_VERSION=0.1.9 ARCHITECTURES=$arch OUT=$top/old packaging/packages.sh; }
older >&2

lintian_is_quiet() {
	local out
	out=$(lintian --allow-root --no-cfg --fail-on error,warning --tag-display-limit 0 "$top"/new/*.deb) || { echo "$out"; return 1; }
	[ -z "$out" ] || { echo "$out"; return 1; }
}
rpmlint_is_quiet() {
	local out
	out=$(rpmlint -c packaging/rpm/rpmlint.toml "$top"/new/*.rpm 2>&1) || { echo "$out"; return 1; }
	grep -q ' 0 errors, 0 warnings' <<<"$out" || { echo "$out"; return 1; }
}

# --- Debian ---

in_root() { chroot "$top/root" env DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
debs_of() { # DIR: the packages of this architecture, as paths in the root
	cp "$1"/*_"$arch".deb "$1"/*_all.deb "$top/root/tmp" && (cd "$top/root" && printf '/%s\n' tmp/*.deb)
}
apt_install() {
	rm -f "$top"/root/tmp/*.deb
	debs_of "$1" >"$top/debs"
	# shellcheck disable=SC2046 # paths without blanks
	in_root apt-get install -qq -y --no-install-recommends $(cat "$top/debs")
}
says_version() { [ "$(in_root pinfold --version)" = "pinfold $version" ] && [ "$(in_root kubectl-pinfold --version)" = "pinfold $version" ]; }
package_version() { in_root dpkg-query -W -f '${Version}' pinfold-agent; }
unit_is_valid() { in_root systemd-analyze verify --man=no pinfold-agent.service; }
unit_is_disabled() { [ "$(in_root systemctl is-enabled pinfold-agent.service)" = disabled ]; }
tmpfiles_ran() { [ -f "$top/root/var/lib/kubelet/device-plugins/pinfold" ]; }
configuration_is_kept() { grep -qx 'PINFOLD_AGENT_FLAGS=--management 0' "$top/root/etc/default/pinfold-agent"; }
library_is_found() { in_root ldconfig -p | grep 'libnri.so.0 '; }
# Nothing of the packages stays, except for what others may have put into shared directories.
is_gone() {
	local left
	left=$(find "$top"/root/{etc,usr,lib} \( -name '*pinfold*' -o -name '*libnri*' \) ! -path '*/dpkg/*')
	[ -z "$left" ] || { echo "$left"; return 1; }
}
remove_all() { in_root apt-get purge -qq -y pinfold pinfold-agent libnri0 libnri-dev; }

ok "lintian finds nothing" lintian_is_quiet
ok "rpmlint finds nothing" rpmlint_is_quiet

mkdir "$top/root"
root_copy bookworm "$top/root" systemd,dbus
mount -t proc proc "$top/root/proc"
ok "apt installs the packages of an older version" apt_install "$top/old"
ok "the unit is not enabled" unit_is_disabled
in_root systemctl enable pinfold-agent.service >/dev/null 2>&1
echo 'PINFOLD_AGENT_FLAGS=--management 0' >"$top/root/etc/default/pinfold-agent"
ok "apt upgrades them" apt_install "$top/new"
equals "the new version is installed" "$version" package_version
ok "pinfold and kubectl-pinfold run" says_version
ok "the administrator's configuration is kept" configuration_is_kept
equals "the unit stays enabled" enabled in_root systemctl is-enabled pinfold-agent.service
ok "systemd accepts the unit, without procps" unit_is_valid
ok "the file for the kubelet exists" tmpfiles_ran
ok "the library is found" library_is_found
ok "apt removes them" remove_all
ok "nothing is left" is_gone

# --- RPM, in the same root: its database is its own ---

rpm_in() { rpm --root "$top/root" --dbpath /var/lib/rpm "$@"; }
cpu=$([ "$arch" = arm64 ] && echo aarch64 || echo x86_64)
rpms_of() { ls "$1"/*."$cpu".rpm "$1"/*.noarch.rpm; }
rpm_install() {
	# shellcheck disable=SC2046 # paths without blanks
	rpm_in -U --nodeps --ignorearch $(rpms_of "$1")
}
rpm_version() { rpm_in -q --qf '%{VERSION}' pinfold-agent; }
rpm_remove() { rpm_in -e --nodeps pinfold pinfold-agent libnri0 libnri-devel; }
# The static program needs nothing; rpm checks that itself.
needs_nothing() { ! rpm -qp --requires "$top/new/pinfold-$version-1.$cpu.rpm" | grep -v '^rpmlib('; }

ok "the package of the program requires nothing" needs_nothing
ok "rpm installs the packages of an older version" rpm_install "$top/old"
echo 'PINFOLD_AGENT_FLAGS=--management 0' >"$top/root/etc/default/pinfold-agent"
ok "rpm upgrades them" rpm_install "$top/new"
equals "the new version is installed by rpm" "$version" rpm_version
ok "pinfold and kubectl-pinfold run from rpm" says_version
ok "rpm keeps the administrator's configuration" configuration_is_kept
ok "files are what the package says" rpm_in -V --nodeps pinfold libnri0 libnri-devel
rm -f "$top/root/etc/default/pinfold-agent"
ok "rpm removes them" rpm_remove
ok "nothing is left by rpm" is_gone
tap_end
