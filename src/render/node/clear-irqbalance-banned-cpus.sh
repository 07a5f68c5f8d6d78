#!/bin/sh
# Forgets the CPUs that the runtime kept from interrupts before this boot.
set -eu
conf=${1:-/etc/sysconfig/irqbalance}
saved=${2:-/etc/sysconfig/orig_irq_banned_cpus}
mask=${OVS_DPDK_CPUS:-0}
[ -e "$conf" ] || exit 0
sed -i '/^[[:space:]]*IRQBALANCE_BANNED_CPUS=/d' "$conf"
echo "IRQBALANCE_BANNED_CPUS=$mask" >>"$conf"
if [ -e "$saved" ]; then
	echo "$mask" >"$saved"
fi
