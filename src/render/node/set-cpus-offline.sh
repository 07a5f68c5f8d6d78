#!/bin/sh
# Takes the CPUs in OFFLINE_CPUS (1,2,3) offline: all of them, or none.
set -eu
IFS=,
for cpu in $OFFLINE_CPUS; do
	if [ ! -e "/sys/devices/system/cpu/cpu$cpu/online" ]; then
		echo "CPU $cpu cannot be taken offline; nothing was changed" >&2
		exit 1
	fi
done
for cpu in $OFFLINE_CPUS; do
	echo 0 >"/sys/devices/system/cpu/cpu$cpu/online"
done
