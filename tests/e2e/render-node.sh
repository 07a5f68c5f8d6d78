#!/usr/bin/env bash
# The output of `pinfold render --target host` on a machine: install.sh, a boot with the kernel arguments it wrote,
# kernel and PID 1 as the profile says; then install.sh --uninstall, and a boot into the former state.
# (render-validate shows that a kubelet accepts the drop-in.) Prints TAP.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/guest.sh
. tests/e2e/lib/guest.sh
# shellcheck source=tests/e2e/lib/tap.sh
. tests/e2e/lib/tap.sh

dir=$(mktemp -d /tmp/pinfold-render-XXXXXX)
guest=$dir/before
TAP_CONTINUE=1
trap 'guest_stop "$guest"; rm -rf "$dir"' EXIT
# shellcheck disable=SC2034 # read by guest.sh
GUEST_DISK=$dir/disk.img GUEST_MEMORY_MB=1024

in_guest() { guest_run "$guest" "$@"; }

guest_prints() { equals "$1" "$2" in_guest "${@:3}"; } # SENTENCE WANT COMMAND...

cpu=/sys/devices/system/cpu
affinity="sed -n 's/^Cpus_allowed_list:\t//p'"
unchanged() { # WHEN
    guest_prints "$1 no CPU is isolated" '' cat $cpu/isolated
    guest_prints "$1 no CPU has nohz_full" '' "cat $cpu/nohz_full | tr -d ' ()nul'" # "  (null)" when none is
    guest_prints "$1 PID 1 may run everywhere" 0-7 "$affinity /proc/1/status"
    guest_prints "$1 the boot loader's kernel arguments are unchanged" 'rw quiet' "$loader_line"
    guest_prints "$1 every file in /etc and /usr/local is unchanged" '' "$list_files | diff /root/listing -"
}
# The kernel arguments in systemd-boot's entry, which kernel-install writes.
loader_line="sed -n 's/^options *//p' /boot/loader/entries/*.conf | sed 's/systemd.machine_id=[^ ]* *//; s/ *$//'"
list_files='find /etc /usr/local -type f -print0 | sort -z | xargs -0 md5sum'

payload=$dir/payload
mkdir -p "$payload/input"
cp build/pinfold "$("$e2e_lib/../components/guest-image")/vmlinuz" "$payload/"
cat >"$payload/input/profile.yaml" <<'END'
apiVersion: performance.openshift.io/v2
kind: PerformanceProfile
metadata: {name: edge}
spec:
  cpu: {reserved: "0-1", shared: "2-3", isolated: "4-7", balanceIsolated: false}
  nodeSelector: {node-role.kubernetes.io/worker: ""}
END

guest_start "$guest" "$payload"
# systemd-boot with the guest's kernel; the next boot uses the arguments of its entry.
in_guest 'mkdir -p /etc/kernel /boot/loader && cd /etc/kernel && echo rw quiet >cmdline && echo pinfold >entry-token &&
    printf "layout=bls\nBOOT_ROOT=/boot\n" >install.conf && cp /payload/vmlinuz "/boot/vmlinuz-$(uname -r)" &&
    kernel-install add "$(uname -r)" "/boot/vmlinuz-$(uname -r)"' >&2
in_guest "$list_files >/root/listing"
unchanged "before install.sh"
in_guest '/payload/pinfold render --target host --asset-input-dir /payload/input --asset-output-dir /root/rendered &&
    /root/rendered/worker/install.sh && sync' >&2
in_guest "$loader_line" >"$dir/cmdline"
echo "# kernel arguments: $(cat "$dir/cmdline")"
guest_stop "$guest"

# The same disk, with the kernel arguments of the boot loader.
guest=$dir/after
# shellcheck disable=SC2034 # read by guest.sh
GUEST_APPEND=$(cat "$dir/cmdline")
guest_start "$guest" "$payload"
guest_prints "the isolated CPUs are isolated" 4-7 cat $cpu/isolated
guest_prints "the isolated CPUs have nohz_full" 4-7 cat $cpu/nohz_full
guest_prints "interrupts go to the other CPUs" 0f cat /proc/irq/default_smp_affinity
guest_prints "PID 1 runs on the management CPUs" 0-1 "$affinity /proc/1/status"
guest_prints "services run on the management CPUs" 0-1 "$affinity /proc/\$(systemctl show -P MainPID systemd-journald)/status"
guest_prints "system.slice is limited to the management CPUs" 0-1 cat /sys/fs/cgroup/system.slice/cpuset.cpus.effective
guest_prints "user.slice is limited to the management CPUs" 0-1 'cat /sys/fs/cgroup/user.slice/cpuset.cpus'
guest_prints "unbound kernel work stays off the isolated CPUs" 0f 'cat /sys/devices/virtual/workqueue/cpumask'
guest_prints "the pools file is installed" '{"reserved":"0-1","shared":"2-3","guaranteed":"4-7"}' cat /etc/kubernetes/openshift-cpu-pools
in_guest '/root/rendered/worker/install.sh --uninstall && sync' >&2
in_guest "$loader_line" >"$dir/cmdline"
guest_stop "$guest"

guest=$dir/last
# shellcheck disable=SC2034 # read by guest.sh
GUEST_APPEND=$(cat "$dir/cmdline")
guest_start "$guest" "$payload"
unchanged "after --uninstall"
tap_end
