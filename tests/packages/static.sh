#!/usr/bin/env bash
# The static program: one file that starts where nothing else is, on other distributions, and behaves as the ordinary build
# does. As root. TAP.
#	ROOTS="bullseye trixie"   Debian releases to try it on
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/tap.sh
. tests/e2e/lib/tap.sh
# shellcheck source=tests/packages/lib/root.sh
. tests/packages/lib/root.sh
tests/e2e/components/host-packages debootstrap iproute2 openssl busybox-static

arch=$(dpkg --print-architecture)
make -s static ARCHITECTURES="$arch" >&2
program=$PWD/build-static-$arch/root/usr/bin/pinfold
version="pinfold $(sed -n "s/^  version: '\(.*\)',/\1/p" meson.build)"
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT

is_small() {
	local size
	size=$(stat -c %s "$program")
	echo "$size bytes"
	[ "$size" -le $((8 << 20)) ]
}
is_static() { ! readelf -Wl "$program" | grep INTERP && ! readelf -Wd "$program" | grep NEEDED; }
is_hardened() {
	readelf -Wd "$program" | grep -q 'FLAGS_1.*NOW PIE' || { echo "no PIE, or lazy binding"; return 1; }
	readelf -Wl "$program" | grep -q GNU_RELRO || { echo "no RELRO"; return 1; }
	readelf -Wl "$program" | grep -q 'GNU_STACK.* RW ' || { echo "executable stack"; return 1; }
	! readelf -Wl "$program" | grep 'LOAD.* RWE '
}
is_stripped() { [ "$(nm "$program" 2>&1)" = "nm: $program: no symbols" ]; }

# starts_in DIR [NAME]: a copy of the program there prints the version and reads a machine's XML, which needs hwloc's own reader.
starts_in() {
	cp "$program" "$1/pinfold"
	cp tests/machines/virtual-2-cpus.xml "$1/machine.xml"
	[ "$(chroot "$1" /pinfold --version)" = "$version" ] && chroot "$1" /pinfold topology --from /machine.xml
	rm -f "$1/pinfold" "$1/machine.xml"
}
starts_in_release() {
	local root
	root=$(root_of "$1") || return
	mkdir -p "$root/mnt/pinfold"
	cp "$program" tests/machines/virtual-2-cpus.xml "$root/mnt/pinfold"
	chroot "$root" sh -c '. /etc/os-release; echo "$PRETTY_NAME: $(/mnt/pinfold/pinfold --version)"; ldd --version | head -n 1
		/mnt/pinfold/pinfold topology --from /mnt/pinfold/virtual-2-cpus.xml' | tee "$top/out"
	rm -rf "$root/mnt/pinfold"
	grep -q ": $version" "$top/out"
}
# A userland without glibc: the C library of Alpine, a program that needs it, and a static shell.
make_musl_root() {
	mkdir -p "$1"/{bin,tmp} "$top/debs"
	(cd "$top/debs" && apt-get -qq download musl musl-dev musl-tools >/dev/null)
	for deb in "$top/debs"/*.deb; do dpkg-deb -x "$deb" "$top/musl"; done
	cp -a "$top/musl/lib" "$1"
	cp "$(command -v busybox)" "$1/bin/busybox"
	ln -s busybox "$1/bin/sh"
}
starts_in_musl() {
	make_musl_root "$top/root-musl" && cp "$program" "$top/root-musl/bin"
	chroot "$top/root-musl" /bin/sh -c '/lib/ld-musl-*.so.1 2>&1 | /bin/busybox head -n 1; pinfold --version'
}

make_client_root() {
	mkdir -p "$1/etc/ssl/certs"
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$1/key" -out "$1/etc/ssl/certs/ca-certificates.crt" \
		-days 2 -subj /CN=api.example.test -addext subjectAltName=DNS:api.example.test 2>/dev/null
	cat "$1/key" "$1/etc/ssl/certs/ca-certificates.crt" >"$1/server.pem"
	echo 'nameserver 127.0.0.1' >"$1/etc/resolv.conf"
	# As on many machines: modules that are not there, or belong to another C library.
	echo 'hosts: mymachines resolve [!UNAVAIL=return] myhostname' >"$1/etc/nsswitch.conf"
	cat >"$1/kubeconfig" <<-EOF
	apiVersion: v1
	kind: Config
	clusters: [{name: c, cluster: {server: "https://api.example.test:6443"}}]
	contexts: [{name: c, context: {cluster: c, user: u}}]
	current-context: c
	users: [{name: u, user: {token: secret}}]
	EOF
	cp "$program" "$1/pinfold"
}
# Confined, as the daemons are by default: getaddrinfo(), TLS and libuv within the filter.
reaches_the_api_server() {
	make_client_root "$top/client"
	timeout 120 unshare -n python3 tests/packages/lib/lookup.py "$top/client" /pinfold webhook --listen 127.0.0.1:0 --kubeconfig /kubeconfig
}
golden() { PINFOLD=$program tests/golden/run; }

ok "the program has at most 8 MiB" is_small
ok "it is stripped" is_stripped
ok "it needs no shared library" is_static
ok "it is position-independent, with full RELRO and no executable stack" is_hardened
mkdir "$top/empty"
ok "it starts in an empty root directory" starts_in "$top/empty"
for suite in ${ROOTS:-bullseye trixie}; do
	ok "it starts in Debian $suite" starts_in_release "$suite"
done
says "it starts next to musl" "$version" starts_in_musl
says "it finds a name by DNS and trusts the root's certificates, whatever nsswitch.conf says" "PRI * HTTP/2.0" reaches_the_api_server
ok "the golden cases pass" golden
tap_end
