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

# The kubelet refuses to start when these were written under another policy or reservation. MicroK8s
# has its own root directory.
forget_kubelet_state() {
	for kubelet in "$root/var/lib/kubelet" "$root/var/snap/microk8s/common/var/lib/kubelet"; do
		for name in cpu_manager_state memory_manager_state; do
			if [ -e "$kubelet/$name" ]; then
				mkdir -p "$state/kubelet"
				mv "$kubelet/$name" "$state/kubelet/$name"
				echo "moved $kubelet/$name to $state/kubelet"
			fi
		done
	done
}

# Lines below append/ are added to files of the distribution, which change with its updates: they are
# not replaced, and the lines are removed again.
remove_lines() { # FILE LINES
	[ -e "$1" ] || return 0
	grep -vxF -f "$2" "$1" >"$1.pinfold-new" || [ $? -eq 1 ]
	cat "$1.pinfold-new" >"$1"
	rm "$1.pinfold-new"
}

add_lines() { # FILE LINES
	if [ ! -e "$1" ]; then
		echo "install.sh: $1 does not exist: is this the right distribution?" >&2
		status=1
		return
	fi
	remove_lines "$1" "$2"
	[ -z "$(tail -c 1 "$1")" ] || echo >>"$1"
	cat "$2" >>"$1"
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
	[ ! -e "$state/appended" ] || while read -r path; do
		remove_lines "$root/$path" "$state/append/$path"
	done <"$state/appended"
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
	: >"$state.new/appended"
	if [ -d "$here/append" ]; then
		cp -R "$here/append" "$state.new/append"
		(cd "$here/append" && find . -type f | sed 's|^\./||' | LC_ALL=C sort) >"$state.new/appended"
	fi
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
	while read -r path; do
		add_lines "$root/$path" "$state/append/$path"
	done <"$state/appended"
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

# The state before the reboot: what the files change is still as before.
checks() {
	program=$here/rootfs/usr/local/bin/pinfold
	[ -x "$program" ] || program=$(command -v pinfold) || {
		echo "not checked: pinfold is not installed on this machine"
		return 0
	}
	if [ -n "$root" ]; then
		set -- check --root "$root"
	else
		set -- check
	fi
	"$program" "$@" || echo "check found failures (see above): correct those that the reboot does not"
}
if [ "$action" = install ]; then
	checks
	[ -e "$here/rootfs/etc/systemd/system/pinfold-agent.service" ] ||
		echo "this bundle has no agent: deploy the DaemonSet, install the package, or render with --agent-program"
fi
echo "done; reboot for the kernel arguments, the slices and the kubelet to take effect"
