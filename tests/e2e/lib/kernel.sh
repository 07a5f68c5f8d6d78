# shellcheck shell=bash
#
# A kernel with one script as its init: boots in seconds, without systemd, disk and network. Source it, then:
#
#	kernel_run DIR SUITE SCRIPT FILE...   runs SCRIPT (busybox sh) as the only program of a machine with
#	                                      Debian SUITE's kernel, 8 CPUs (2 sockets, 2 cores, 2 threads), one
#	                                      NUMA node for each socket, and cgroup v2; its output, and its status
#
# FILEs are in /work there, with the libraries they link. DIR keeps console.log. With KERNEL_COUNTS=1 the
# machine's clock counts executed instructions, one per nanosecond: times measured in the guest do not depend on the
# host's load, and mean nothing for two CPUs at once.

# shellcheck source=tests/e2e/lib/process.sh
. "$(dirname "${BASH_SOURCE[0]}")/process.sh"

kernel_init() {
	cat <<-'EOF'
	#!/bin/busybox sh
	/bin/busybox --install -s /bin
	export PATH=/bin:/work LD_LIBRARY_PATH=/work
	mount -t proc proc /proc
	mount -t sysfs sys /sys
	mount -t devtmpfs dev /dev
	mount -t tmpfs tmp /tmp
	mount -t tmpfs run /run
	mount -t cgroup2 cgroup /sys/fs/cgroup
	echo "=== begins"
	sh /script 2>&1
	echo "=== status $?"
	poweroff -f
	EOF
}

# The initramfs.
kernel_archive() { # DIR SCRIPT FILE...
	local root=$1/root file library
	rm -rf "$root"
	mkdir -p "$root"/{bin,dev,proc,sys,tmp,run,work}
	cp "$(command -v busybox)" "$root/bin/busybox"
	cp "$2" "$root/script"
	kernel_init >"$root/init"
	chmod +x "$root/init"
	for file in "${@:3}"; do
		cp "$file" "$root/work/"
		ldd "$file" | grep -o '/[^ )]*' | while read -r library; do
			cp -L "$library" "$root/work/"
		done
		# The loader's name is in the program itself.
		mkdir -p "$root/lib64" && cp -L /lib64/ld-linux-x86-64.so.2 "$root/lib64/"
	done
	(cd "$root" && find . | cpio --quiet -o -H newc | gzip -1) >"$1/initrd"
	rm -rf "$root"
}

# Fails when the script did not start: qemu 7.2 can panic while the kernel patches itself. lib/guest.sh says so, and why the clock has no watchdog.
kernel_boot() { # DIR IMAGE
	local clock=(-accel "tcg,thread=multi")
	[ -z "${KERNEL_COUNTS:-}" ] || clock=(-accel "tcg,thread=single" -icount "shift=0,sleep=off")
	timeout 1500 qemu-system-x86_64 "${clock[@]}" -cpu max,vendor=GenuineIntel,cx16=off -m 768 \
		-smp 8,sockets=2,cores=2,threads=2 \
		-object memory-backend-ram,id=m0,size=384M -numa node,nodeid=0,cpus=0-3,memdev=m0 \
		-object memory-backend-ram,id=m1,size=384M -numa node,nodeid=1,cpus=4-7,memdev=m1 -kernel "$2/vmlinuz" -initrd "$1/initrd" \
		-append "console=ttyS0 quiet panic=-1 tsc=nowatchdog" -display none -monitor none -nic none -no-reboot \
		-serial "file:$1/console.log" </dev/null || :
	grep -q '=== begins' "$1/console.log"
}

kernel_run() {
	local dir=$1 suite=$2 image status
	command -v qemu-system-x86_64 >/dev/null && command -v busybox >/dev/null && command -v cpio >/dev/null ||
		"$e2e_lib/../components/host-packages" qemu-system-x86 busybox-static cpio || return
	image=$("$e2e_lib/../components/kernel" "$suite") || return
	mkdir -p "$dir"
	kernel_archive "$dir" "${@:3}" || return
	kernel_boot "$dir" "$image" || kernel_boot "$dir" "$image" || return
	tr -d '\r' <"$dir/console.log" | sed '0,/=== begins/d; /=== status/,$d'
	status=$(tr -d '\r' <"$dir/console.log" | sed -n 's/^=== status //p')
	return "${status:-99}"
}
