#!/bin/sh
# Sets the steering mask of every receive queue of a network device.
set -eu
device=$1 mask=$2
for queue in "/sys/class/net/$device/queues/rx-"*; do
	[ ! -e "$queue/rps_cpus" ] || echo "$mask" >"$queue/rps_cpus"
done
