# shellcheck shell=bash
#
# Container images without a registry, for `ctr images import` and `skopeo copy`: docker-archive files with one layer, and for
# pinfold the OCI archive that `make image` writes.
#
#	image_make ROOT NAME:TAG FILE [COMMAND...] [-- ARG...]   an image of the directory ROOT; ARG... are arguments that a pod may replace
#	image_busybox FILE [NAME:TAG]              localhost/busybox:1 by default
#	image_pause FILE [NAME:TAG]                localhost/pause:1 by default, the sandbox image
#	image_pinfold FILE [NAME:TAG]              localhost/pinfold:1 by default, for the architecture of this machine
#	image_program FILE NAME:TAG PROGRAM        a program as /usr/local/bin/pinfold, with the shared libraries that it has here
#	image_transport FILE                       docker-archive or oci-archive
#	image_name FILE                            NAME:TAG of an archive

# Entries are sorted and undated, so that the same content gives the same image.
image_make() {
	local root=$1 name=$2 file=$3 work layer config list=command command='' args=''
	shift 3
	while [ $# -gt 0 ]; do
		if [ "$1" = -- ]; then list=args; else declare "$list=${!list},\"$1\""; fi
		shift
	done
	work=$(mktemp -d) || return
	tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$root" -cf "$work/layer.tar" .
	layer=$(sha256sum <"$work/layer.tar" | cut -d' ' -f1)
	cat >"$work/config.json" <<-EOF
	{"architecture":"amd64","os":"linux","created":"1970-01-01T00:00:00Z",
	 "config":{"Entrypoint":[${command#,}],"Cmd":[${args#,}],"Env":["PATH=/bin:/usr/bin:/sbin"]},
	 "rootfs":{"type":"layers","diff_ids":["sha256:$layer"]}}
	EOF
	config=$(sha256sum <"$work/config.json" | cut -d' ' -f1)
	mv "$work/config.json" "$work/$config.json"
	echo "[{\"Config\":\"$config.json\",\"RepoTags\":[\"$name\"],\"Layers\":[\"layer.tar\"]}]" \
		>"$work/manifest.json"
	tar -C "$work" -cf "$file" manifest.json "$config.json" layer.tar
	rm -rf "$work"
}

# The entry point is sh, so that a pod's args are a shell's: ["-c", "..."].
image_busybox() {
	local root
	root=$(mktemp -d) || return
	image_busybox_root "$root"
	image_make "$root" "${2:-localhost/busybox:1}" "$1" /bin/sh
	rm -rf "$root"
}

# image_busybox_root ROOT: its files.
image_busybox_root() {
	local applet
	mkdir "$1"/{bin,tmp,etc,proc,sys,dev}
	cp "$(command -v busybox)" "$1/bin/busybox"
	for applet in $("$1/bin/busybox" --list); do
		[ "$applet" = busybox ] || ln -s busybox "$1/bin/$applet"
	done
}

# Sleeps, reaps orphans, and ends at SIGTERM.
image_pause() {
	local root
	root=$(mktemp -d) || return
	gcc -O2 -s -static -o "$root/pause" -x c - <<-'EOF' || return
	#include <signal.h>
	#include <stdlib.h>
	#include <sys/wait.h>
	#include <unistd.h>
	static void on_child(int s) { (void)s; while (waitpid(-1, NULL, WNOHANG) > 0); }
	static void on_term(int s) { (void)s; _exit(0); }
	int main(void)
	{
		signal(SIGCHLD, on_child);
		signal(SIGTERM, on_term);
		signal(SIGINT, on_term);
		for (;;)
			pause();
	}
	EOF
	image_make "$root" "${2:-localhost/pause:1}" "$1" /pause
	rm -rf "$root"
}

image_pinfold() {
	local top name=${2:-localhost/pinfold:1} arch out
	top=$(dirname "${BASH_SOURCE[0]}")/../../..
	arch=$(dpkg --print-architecture)
	out=$(mktemp -d) || return
	make -s -C "$top" image ARCHITECTURES="$arch" NAME="${name%:*}" TAG="${name##*:}" OUT="$out" >&2 || return
	mv "$out"/*.tar "$1"
	rm -rf "$out"
}

image_program() {
	local root library
	root=$(mktemp -d) || return
	mkdir -p "$root"/{usr/local/bin,lib64,lib,tmp}
	cp "$3" "$root/usr/local/bin/pinfold" || return
	# The loader by its path, the others where it looks.
	{ ldd "$3" 2>/dev/null || :; } | grep -o '/[^ ]*' | while read -r library; do
		case $library in
		/lib64/*) cp -L "$library" "$root/lib64/" ;;
		*) cp -L "$library" "$root/lib/" ;;
		esac
	done
	image_make "$root" "$2" "$1" /usr/local/bin/pinfold
	rm -rf "$root"
}

image_transport() { tar -tf "$1" index.json >/dev/null 2>&1 && echo oci-archive || echo docker-archive; }
image_name() {
	tar -xOf "$1" index.json 2>/dev/null | sed -n 's/.*"io.containerd.image.name":"\([^"]*\)".*/\1/p' | grep . ||
		tar -xOf "$1" manifest.json | sed 's/.*"RepoTags":\["\([^"]*\)".*/\1/'
}
