#!/usr/bin/env bash
# What `pinfold render --target host` says, done to a machine: install.sh, a boot with the kernel
# arguments it wrote, the kernel and PID 1 as the profile has them; then install.sh --uninstall, and a boot
# into what was there before. (That a kubelet takes the drop-in is shown by render-validate.) Prints TAP.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/e2e/lib/guest.sh
. tests/e2e/lib/guest.sh

dir=$(mktemp -d /tmp/pinfold-render-XXXXXX)
guest=$dir/before
n=0 failed=0
trap 'guest_stop "$guest"; rm -rf "$dir"' EXIT
# shellcheck disable=SC2034 # read by guest.sh
GUEST_DISK=$dir/disk.img GUEST_MEMORY_MB=1024

in_guest() { guest_run "$guest" "$@"; }

is() { # SENTENCE WANT COMMAND...: what the command prints in the guest
    local got
    got=$(in_guest "${@:3}" 2>&1) || :
    n=$((n + 1))
    if [ "$got" = "$2" ]; then
        echo "ok $n - $1"
    else
        printf 'not ok %d - %s\n# got:  %s\n# want: %s\n' "$n" "$1" "$got" "$2"
        failed=1
    fi
}

cpu=/sys/devices/system/cpu
affinity="sed -n 's/^Cpus_allowed_list:\t//p'"
untouched() { # WHEN
    is "$1 no CPU is isolated" '' cat $cpu/isolated
    is "$1 no CPU is without a tick" '' "cat $cpu/nohz_full | tr -d ' ()nul'" # "  (null)" when none is
    is "$1 PID 1 may run everywhere" 0-7 "$affinity /proc/1/status"
    is "$1 the boot loader's line is what it was" 'rw quiet' "$loader_line"
    is "$1 every file in /etc and /usr/local is what it was" '' "$list_files | diff /root/listing -"
}
# What systemd-boot would hand to the kernel: kernel-install wrote it.
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
# A boot loader: systemd's, with the kernel that we boot; we read its line for the next boot.
in_guest 'mkdir -p /etc/kernel /boot/loader && cd /etc/kernel && echo rw quiet >cmdline && echo pinfold >entry-token &&
    printf "layout=bls\nBOOT_ROOT=/boot\n" >install.conf && cp /payload/vmlinuz "/boot/vmlinuz-$(uname -r)" &&
    kernel-install add "$(uname -r)" "/boot/vmlinuz-$(uname -r)"' >&2
in_guest "$list_files >/root/listing"
untouched "before it"
in_guest '/payload/pinfold render --target host --asset-input-dir /payload/input --asset-output-dir /root/rendered &&
    /root/rendered/worker/install.sh && sync' >&2
in_guest "$loader_line" >"$dir/cmdline"
echo "# kernel arguments: $(cat "$dir/cmdline")"
guest_stop "$guest"

# The same disk, with what the loader would hand to the kernel.
guest=$dir/after
# shellcheck disable=SC2034 # read by guest.sh
GUEST_APPEND=$(cat "$dir/cmdline")
guest_start "$guest" "$payload"
is "the isolated CPUs are isolated" 4-7 cat $cpu/isolated
is "and without a tick" 4-7 cat $cpu/nohz_full
is "interrupts go to the others" 0f cat /proc/irq/default_smp_affinity
is "PID 1 runs on the reserved CPUs" 0-1 "$affinity /proc/1/status"
is "and so do the services" 0-1 "$affinity /proc/\$(systemctl show -P MainPID systemd-journald)/status"
is "system.slice may not leave them" 0-1 cat /sys/fs/cgroup/system.slice/cpuset.cpus.effective
is "nor user.slice" 0-1 'cat /sys/fs/cgroup/user.slice/cpuset.cpus'
is "unbound kernel work stays off the isolated CPUs" 0f 'cat /sys/devices/virtual/workqueue/cpumask'
is "the pools are on the machine" '{"reserved":"0-1","shared":"2-3","guaranteed":"4-7"}' cat /etc/kubernetes/openshift-cpu-pools
in_guest '/root/rendered/worker/install.sh --uninstall && sync' >&2
in_guest "$loader_line" >"$dir/cmdline"
guest_stop "$guest"

guest=$dir/last
# shellcheck disable=SC2034 # read by guest.sh
GUEST_APPEND=$(cat "$dir/cmdline")
guest_start "$guest" "$payload"
untouched "after --uninstall"
echo "1..$n"
exit $failed
