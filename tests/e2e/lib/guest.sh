# shellcheck shell=bash
#
# A virtual machine with systemd, cgroup v2 and a real topology: 2 sockets (each a NUMA node) of 2 cores
# of 2 threads, or GUEST_TOPOLOGY="SOCKETS CORES THREADS". Emulated in software: slow, but it runs everywhere (/dev/kvm may exist and not work).
# Source it, then:
#
#	guest_start DIR [PAYLOAD]         boots; PAYLOAD, a directory, appears there as /payload, read-only
#	guest_run DIR COMMAND...          one shell command line as root; stdin, stdout, status as with ssh
#	guest_put DIR FILE... TARGETDIR   copies in
#	guest_get DIR FILE... TARGETDIR   copies out
#	guest_reboot DIR                  same disk, so what was written stays
#	guest_stop DIR                    powers off
#	guest_save DIR TARGET             stops it, and keeps memory, devices and disks in the directory TARGET
#	guest_restore DIR TARGET          continues there, as often as wanted; what changes on the disk is kept in DIR only
#
# DIR keeps logs/qemu.log and console.log. The disk's changes are lost when the guest ends, unless
# GUEST_DISK names a file to keep the disk in, for the next guest, or GUEST_OVERLAY a file for its differences to the image, which
# guest_save needs. GUEST_APPEND adds to the kernel's
# command line (isolcpus=...), GUEST_MEMORY_MB is 4096 by default. Guests with the same GUEST_SEGMENT, a UDP port of the
# host's loopback, have a second interface, eth1, on one common network.

# shellcheck source=tests/e2e/lib/process.sh
. "$(dirname "${BASH_SOURCE[0]}")/process.sh"

guest_ssh_options() {
	printf '%s\n' -i "$1/id" -p "$(cat "$1/ssh-port")" -o "ControlPath=$(cat "$1/ssh-control")/s" -o BatchMode=yes \
		-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR \
		-o ConnectTimeout=20 -o ServerAliveInterval=30 -o ServerAliveCountMax=10
}

guest_run() {
	local options
	mapfile -t options < <(guest_ssh_options "$1")
	shift
	# shellcheck disable=SC2029  # the caller quotes for the guest's shell, as with ssh itself
	ssh "${options[@]}" root@127.0.0.1 "$@"
}

# tar, because it copies directories, keeps modes, and needs no scp in the guest.
guest_put() {
	local dir=$1 target=${*: -1} file members=()
	for file in "${@:2:$#-2}"; do
		members+=(-C "$(realpath "$(dirname "$file")")" "$(basename "$file")")
	done
	tar -cf - "${members[@]}" |
		guest_run "$dir" "mkdir -p '$target' && tar -C '$target' -xf - --no-same-owner"
}

guest_get() {
	local dir=$1 target=${*: -1} file
	for file in "${@:2:$#-2}"; do
		guest_run "$dir" "cat '$file'" >"$target/$(basename "$file")" || return
	done
}

guest_is_up() { guest_run "$1" true 2>/dev/null; }

# The kernel patches its own code at the first packet filter, CPU quota or cpuset. qemu 7.2 can execute half of such a
# patch while other CPUs run that code: an unexpected int3, and a panic. So create one of each now, while the guest is
# idle, and keep them. From here on a panic is a failure: the guest stops there.
guest_patch_kernel() {
	guest_run "$1" "$(cat <<-'EOF'
	set -e
	echo 0 | tee /proc/sys/kernel/panic /proc/sys/kernel/panic_on_rcu_stall >/dev/null
	for hook in prerouting input forward output postrouting; do
		echo "add table inet early; add chain inet early $hook { type filter hook $hook priority 0; }"
	done | nft -f -
	systemctl -q is-active early ||
		systemd-run -q --unit=early -p CPUQuota=50% -p AllowedCPUs=0-1 sleep infinity
	EOF
	)"
}

# The first connection is kept as the ssh master: a handshake takes a second of emulated CPU.
guest_master() {
	local options
	mapfile -t options < <(guest_ssh_options "$1")
	ssh -f -N -M "${options[@]}" root@127.0.0.1 </dev/null >>"$1/logs/ssh.log" 2>&1
}
# qemu 7.2 can also lose the timer of a CPU, or stop at the first PCI devices: nothing goes on then, and nothing is printed. Such a guest is
# reset. A boot that goes on prints within a minute, or in three on a busy machine.
guest_silence_s=300
guest_resets=3
# guest_booted DIR COMMAND...: COMMAND, once; a silent guest is reset. Sets resets, the caller's.
guest_booted() {
	local dir=$1 printed
	shift
	! "$@" || return 0
	printed=$(stat -c %Y "$dir/console.log") || return
	if [ "$resets" -lt $guest_resets ] && [ $(($(date +%s) - printed)) -ge $guest_silence_s ]; then
		resets=$((resets + 1))
		e2e_say "the guest has printed nothing for $guest_silence_s s, resetting it; the last line: $(tail -n 1 "$dir/console.log")"
		touch "$dir/console.log"
		"$e2e_lib/monitor.py" "$(cat "$dir/ssh-control")/qmp" reset
	fi
	return 1
}
# guest_wait DIR COMMAND...: until COMMAND succeeds; for a boot that may be slow.
guest_wait() {
	local resets=0
	touch "$1/console.log" # silence counts from now: a guest that reboots may have printed nothing for hours
	wait_ready "$1" qemu 2400 guest_booted "$@" && return
	tail -n 20 "$1/console.log" >&2
	e2e_say "the guest did not boot: $(process_alive "$1" qemu && echo "no answer after $resets resets" || echo "qemu has ended")"
	return 1
}
guest_wait_up() {
	guest_wait "$1" guest_is_up "$1" || return
	guest_master "$1" || return
	guest_patch_kernel "$1" || return
	guest_run "$1" '[ ! -b /dev/vdb ] || mountpoint -q /payload || mount -o ro /dev/vdb /payload'
}

# guest_packages: installs what guests need on this machine.
guest_packages() {
	type -P qemu-system-x86_64 qemu-img ssh >/dev/null || # fails when one of them is missing
		"$e2e_lib/../components/host-packages" qemu-system-x86 qemu-utils openssh-client e2fsprogs
}

# guest_prepare DIR: sets image, the caller's, and writes what the functions above need to DIR.
guest_prepare() {
	guest_packages || return
	image=$("$e2e_lib/../components/guest-image") || return
	mkdir -p "$1/logs"
	cp "$image/id" "$1/id"
	free_port >"$1/ssh-port"
	# A short path: a socket's name has at most 107 characters, and DIR may be longer.
	mktemp -d /tmp/pinfold-ssh-XXXXXX >"$1/ssh-control"
}

# guest_overlay FILE BASE FORMAT
guest_overlay() {
	qemu-img create -q -f qcow2 -b "$2" -F "$3" "$1"
}

guest_start() {
	local dir=$1 payload=${2:-} image disks
	guest_prepare "$dir" || return
	disks=(-drive "if=virtio,format=raw,snapshot=on,file=$image/disk.img")
	if [ -n "${GUEST_DISK:-}" ]; then
		[ -e "$GUEST_DISK" ] || cp --sparse=always "$image/disk.img" "$GUEST_DISK" || return
		disks=(-drive "if=virtio,format=raw,file=$GUEST_DISK")
	elif [ -n "${GUEST_OVERLAY:-}" ]; then
		guest_overlay "$GUEST_OVERLAY" "$image/disk.img" raw || return
		disks=(-drive "if=virtio,format=qcow2,cache=unsafe,file=$GUEST_OVERLAY")
	fi
	if [ -n "$payload" ]; then
		guest_payload "$payload" "$dir/payload.img" || return
		disks+=(-drive "if=virtio,format=raw,readonly=on,file=$dir/payload.img")
	fi
	guest_qemu "$dir" "${disks[@]}"
	guest_wait_up "$dir"
}

# guest_qemu DIR OPTION...: the machine, with disks and what else the caller wants.
guest_qemu() {
	local dir=$1 append machine memory=${GUEST_MEMORY_MB:-4096}
	shift
	append="console=ttyS0 net.ifnames=0 systemd.unified_cgroup_hierarchy=1 systemd.show_status=0"
	# A boot that dies of what guest_patch_kernel() describes is repeated; the guest is not in use yet.
	append+=" panic=1"
	# So is one whose first CPU lost its timer, which has been seen at the start of systemd: nothing goes on then. One stall may be that of a
	# busy machine.
	append+=" sysctl.kernel.panic_on_rcu_stall=1 sysctl.kernel.max_rcu_stall_to_panic=2"
	# On a busy machine the guest is slower than systemd's default time-outs allow.
	append+=" systemd.default_timeout_start_sec=600 systemd.default_device_timeout_sec=600"
	# Page table isolation makes every system call flush the emulated TLB, and khugepaged copies pages all the time.
	append+=" mitigations=off transparent_hugepage=never"
	# On a busy machine the kernel's watchdog sees a skew between TSC and HPET. It would give up the TSC: that patches the running kernel, see
	# guest_patch_kernel(), and every look at the clock would be a device access.
	append+=" tsc=nowatchdog"
	# shellcheck disable=SC2086  # three numbers
	mapfile -t machine < <(guest_machine ${GUEST_TOPOLOGY:-2 2 2})
	if [ -n "${GUEST_SEGMENT:-}" ]; then
		# An address for the life of the guest, also where it is restored with another port.
		[ -e "$dir/mac" ] || printf '52:54:00:77:%02x:%02x\n' $(($(cat "$dir/ssh-port") / 256)) $(($(cat "$dir/ssh-port") % 256)) >"$dir/mac"
		machine+=(-netdev "socket,id=segment,mcast=230.0.0.1:$GUEST_SEGMENT,localaddr=127.0.0.1"
			-device "virtio-net-pci,netdev=segment,mac=$(cat "$dir/mac")")
	fi
	# vendor: with qemu's own vendor the guest sees no hyperthreads. cx16: with it Debian 13's
	# kernel crashed on qemu 7.2 at a cmpxchg16b; without it it never has. erms: with it the kernel copies and clears pages
	# byte by byte, which is slow under emulation.
	process_start "$dir" qemu qemu-system-x86_64 -accel tcg,thread=multi \
		-cpu max,vendor=GenuineIntel,cx16=off,erms=off -m "$memory" "${machine[@]}" \
		-kernel "$image/vmlinuz" -initrd "$image/initrd" \
		-append "$append ${GUEST_APPEND:-}" \
		"$@" -display none -monitor none -serial "file:$dir/console.log" \
		-qmp "unix:$(cat "$dir/ssh-control")/qmp,server=on,wait=off" \
		-device virtio-rng-pci \
		-nic "user,model=virtio-net-pci,hostfwd=tcp:127.0.0.1:$(cat "$dir/ssh-port")-:22"
}

# guest_machine SOCKETS CORES THREADS: qemu's options, one a line.
guest_machine() {
	local per=$(($2 * $3)) node
	printf '%s\n' -smp "$(($1 * per)),sockets=$1,cores=$2,threads=$3"
	for ((node = 0; node < $1; node++)); do
		printf '%s\n' -object "memory-backend-ram,id=m$node,size=$((memory / $1))M" \
			-numa "node,nodeid=$node,cpus=$((node * per))-$((node * per + per - 1)),memdev=m$node"
	done
}

# A file system of the size of the payload; links are followed because they may point into the cache.
guest_payload() {
	local size_mb
	size_mb=$(($(du -smL "$1" | cut -f1) * 11 / 10 + 32))
	rm -rf "$2" "$2.d"
	cp -rL "$1" "$2.d" && mkfs.ext4 -q -F -d "$2.d" "$2" "${size_mb}M" >/dev/null && rm -rf "$2.d"
}

guest_bootid() { guest_run "$1" cat /proc/sys/kernel/random/boot_id 2>/dev/null; }
guest_rebooted() { local id; id=$(guest_bootid "$1") && [ "$id" != "$2" ]; }

guest_reboot() {
	local id
	id=$(guest_bootid "$1") || return
	guest_run "$1" systemctl reboot || : # the connection may break first
	guest_disconnect "$1"
	guest_wait "$1" guest_rebooted "$1" "$id" && guest_wait_up "$1"
}

guest_disconnect() {
	local options
	mapfile -t options < <(guest_ssh_options "$1")
	ssh -O exit "${options[@]}" root@127.0.0.1 2>/dev/null || : # there may be no master
}

guest_stop() {
	if process_alive "$1" qemu; then
		guest_run "$1" systemctl poweroff 2>/dev/null || :
		guest_disconnect "$1"
		wait_for 120 process_gone "$1" qemu || e2e_say "the guest did not power off"
	fi
	process_stop "$1" qemu
	rm -rf "$1/payload.img" "$(cat "$1/ssh-control")"
}

# The disk is moved when nothing writes to it any more.
guest_save() {
	local dir=$1 target=$2
	guest_run "$dir" sync && guest_disconnect "$dir"
	mkdir -p "$target" || return
	"$e2e_lib/monitor.py" "$(cat "$dir/ssh-control")/qmp" save "$target/memory" || return
	wait_for 60 process_gone "$dir" qemu || process_stop "$dir" qemu
	mv "$GUEST_OVERLAY" "$target/disk.qcow2" && cp "$dir/mac" "$target/" || return
	ln "$dir/payload.img" "$target/" 2>/dev/null || cp "$dir/payload.img" "$target/" || return
	rm -rf "$(cat "$dir/ssh-control")" "$dir/qemu.pid" "$dir/payload.img"
}

# The guest's clock continues where it was; its connections to the host are gone, and their programs open them again.
guest_restore() {
	local dir=$1 target=$2 image
	guest_prepare "$dir" || return
	cp "$target/mac" "$dir/"
	ln -f "$target/payload.img" "$dir/" 2>/dev/null || cp "$target/payload.img" "$dir/" || return
	guest_overlay "$GUEST_OVERLAY" "$target/disk.qcow2" qcow2 || return
	guest_qemu "$dir" -drive "if=virtio,format=qcow2,cache=unsafe,file=$GUEST_OVERLAY" \
		-drive "if=virtio,format=raw,readonly=on,file=$dir/payload.img" -incoming "exec:cat '$target/memory'"
	wait_ready "$dir" qemu 60 test -S "$(cat "$dir/ssh-control")/qmp" || return
	"$e2e_lib/monitor.py" "$(cat "$dir/ssh-control")/qmp" resume || return
	wait_ready "$dir" qemu 1200 guest_is_up "$dir" || return
	# Connections that the host no longer knows are closed now, not when their programs find out.
	guest_master "$dir" && guest_run "$dir" "date -s @$(date +%s); ss -K 'dst 10.0.2.2 and sport != :22' || :" >/dev/null 2>&1
}
