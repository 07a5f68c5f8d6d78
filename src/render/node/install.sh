#!/bin/sh
# Applies what stands below rootfs/ to this machine and keeps what was there; --uninstall puts it
# back. install.sh [--uninstall] [--root DIR]; with --root, files only: no service is touched.
set -eu

here=$(cd -- "$(dirname -- "$0")" && pwd)
root='' action=install

usage() {
	echo "usage: install.sh [--uninstall] [--root DIR]" >&2
	exit 2
}

while [ $# -gt 0 ]; do
	case $1 in
	--uninstall) action=uninstall ;;
	--root)
		[ $# -gt 1 ] || usage
		root=${2%/}
		shift
		;;
	*) usage ;;
	esac
	shift
done

state=$root/var/lib/pinfold/install
kubelet=$root/var/lib/kubelet
args=$root/usr/local/sbin/pinfold-kernel-args
status=0

# Whatever ends the script early leaves a machine that is partly configured: say so.
complete=''
on_exit() {
	result=$?
	[ -n "$complete" ] || [ "$result" -eq 0 ] ||
		echo "install.sh: stopped before the end; run it again, or with --uninstall" >&2
	exit "$result"
}
trap on_exit EXIT

have() { command -v "$1" >/dev/null 2>&1; }

# Runs a command on the machine itself; with --root no system is running that it could change.
on_host() {
	[ -z "$root" ] || return 0
	"$@" || { echo "install.sh: failed: $*" >&2; status=1; }
}

# The modes that render gives, whatever the umask was where the bundle was unpacked.
mode_of() { # FROM
	case $1 in
	*/etc/kubernetes/openshift-workload-pinning) echo 600 ;;
	*) if [ -x "$1" ]; then echo 755; else echo 644; fi ;;
	esac
}

put() { # FROM TO
	mkdir -p "$(dirname "$2")"
	cp "$1" "$2.pinfold-new"
	chmod "$(mode_of "$1")" "$2.pinfold-new"
	mv "$2.pinfold-new" "$2"
}

# The kubelet refuses to start when these were written under another policy or reservation.
forget_kubelet_state() {
	for name in cpu_manager_state memory_manager_state; do
		if [ -e "$kubelet/$name" ]; then
			mkdir -p "$state/kubelet"
			mv "$kubelet/$name" "$state/kubelet/$name"
			echo "moved $kubelet/$name to $state/kubelet"
		fi
	done
}

kernel_args() { # add|remove
	[ -e "$args" ] || return 0
	PINFOLD_ROOT=$root "$args" "$1" || { echo "install.sh: failed: $args $1" >&2; status=1; }
}

restore() {
	while read -r unit; do
		on_host systemctl disable "$unit"
	done <"$state/units"
	kernel_args remove
	while read -r path; do
		if [ -e "$state/backup/$path" ]; then
			cp -p "$state/backup/$path" "$root/$path.pinfold-new"
			mv "$root/$path.pinfold-new" "$root/$path"
		else
			rm -f "$root/$path"
		fi
	done <"$state/files"
	rm -rf "$state"
}

# What was there is kept before anything changes, so that an interrupted run can be undone.
keep() {
	rm -rf "$state.new"
	mkdir -p "$state.new/backup"
	(cd "$here/rootfs" && find . -type f | sed 's|^\./||' | LC_ALL=C sort) >"$state.new/files"
	sed -n 's|^etc/systemd/system/\([^/@]*\.service\)$|\1|p' "$state.new/files" >"$state.new/units"
	while read -r path; do
		if [ -e "$root/$path" ]; then
			mkdir -p "$(dirname "$state.new/backup/$path")"
			cp -p "$root/$path" "$state.new/backup/$path"
		fi
	done <"$state.new/files"
	mv "$state.new" "$state"
}

if [ "$action" = uninstall ]; then
	[ -e "$state" ] || { complete=yes; echo "install.sh: nothing is installed" >&2; exit 1; }
	forget_kubelet_state
	restore
else
	[ ! -e "$state" ] || restore
	keep
	while read -r path; do
		put "$here/rootfs/$path" "$root/$path"
	done <"$state/files"
	forget_kubelet_state
	kernel_args add
fi

on_host systemctl daemon-reload
if [ "$action" = install ]; then
	while read -r unit; do
		on_host systemctl enable "$unit"
	done <"$state/units"
	if [ -d "$root/etc/tuned/pinfold" ] && have tuned-adm; then
		on_host tuned-adm profile pinfold
	fi
fi
complete=yes
if [ "$status" -ne 0 ]; then
	echo "install.sh: the files are in place, but a command failed (see above): correct that and run it again" >&2
	exit "$status"
fi
echo "done; reboot for the kernel arguments, the slices and the kubelet to take effect"
