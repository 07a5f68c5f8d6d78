# shellcheck shell=bash
#
# Container images without a registry: docker-archive files with one layer, for `ctr images import` and
# `skopeo copy docker-archive:`.
#
#	image_make ROOT NAME:TAG FILE COMMAND...   an image of the directory ROOT
#	image_busybox FILE                         localhost/busybox:1
#	image_pause FILE                           localhost/pause:1, the sandbox image
#	image_pinfold PROGRAM FILE [NAME:TAG]      localhost/pinfold:1 by default, the program with the libraries it needs

# Entries are sorted and undated, so that the same content gives the same image.
image_make() {
	local root=$1 name=$2 file=$3 work layer config command
	shift 3
	command=$(printf ',"%s"' "$@")
	work=$(mktemp -d) || return
	tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$root" -cf "$work/layer.tar" .
	layer=$(sha256sum <"$work/layer.tar" | cut -d' ' -f1)
	cat >"$work/config.json" <<-EOF
	{"architecture":"amd64","os":"linux","created":"1970-01-01T00:00:00Z",
	 "config":{"Entrypoint":[${command#,}],"Env":["PATH=/bin:/usr/bin:/sbin"]},
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
	local root applet
	root=$(mktemp -d) || return
	mkdir "$root"/{bin,tmp,etc,proc,sys,dev}
	cp "$(command -v busybox)" "$root/bin/busybox"
	for applet in $("$root/bin/busybox" --list); do
		[ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"
	done
	image_make "$root" localhost/busybox:1 "$1" /bin/sh
	rm -rf "$root"
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
	image_make "$root" localhost/pause:1 "$1" /pause
	rm -rf "$root"
}

image_pinfold() {
	local root library
	root=$(mktemp -d) || return
	mkdir -p "$root/usr/local/bin" "$root"/{lib,lib64,tmp}
	cp "$1" "$root/usr/local/bin/pinfold"
	! ldd "$1" | grep 'not found' >&2 || return
	# All libraries go into one directory that the loader always searches.
	for library in $(ldd "$1" | grep -o '/[^ ]*'); do
		cp -L "$library" "$root/lib/$(basename "$library")"
	done
	mv "$root"/lib/ld-linux-* "$root/lib64/"
	image_make "$root" "${3:-localhost/pinfold:1}" "$2" /usr/local/bin/pinfold
	rm -rf "$root"
}
