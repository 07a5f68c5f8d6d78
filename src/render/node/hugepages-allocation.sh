#!/bin/sh
# Gets HUGEPAGES_COUNT pages of HUGEPAGES_SIZE kB on NUMA node NUMA_NODE. Memory that is in use at
# boot becomes free: tries for a minute.
set -eu
file=/sys/devices/system/node/node$NUMA_NODE/hugepages/hugepages-${HUGEPAGES_SIZE}kB/nr_hugepages
[ -e "$file" ] || { echo "no such huge pages: $file" >&2; exit 1; }
tries=60
while :; do
	echo "$HUGEPAGES_COUNT" >"$file"
	[ "$(cat "$file")" -ne "$HUGEPAGES_COUNT" ] || exit 0
	tries=$((tries - 1))
	[ "$tries" -gt 0 ] || break
	sleep 1
done
echo "got only $(cat "$file") of $HUGEPAGES_COUNT pages" >&2
exit 1
