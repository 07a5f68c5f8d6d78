#!/bin/sh
# Gives the poll threads of Open vSwitch a cgroup with their own CPUs, OVS_DPDK_CPUS, inside that of ovs-vswitchd,
# which moves them there. OVS_DPDK_PARTITION is member, or isolated: without load balancing.
set -eu
root=${CGROUP_ROOT:-/sys/fs/cgroup}
slice=$root/ovs.slice
service=$slice/ovs-vswitchd.service
threads=$service/ovsdpdk.slice

if [ ! -e "$root/cgroup.controllers" ]; then
	echo "no cgroup v2: the poll threads of Open vSwitch stay in its own cgroup" >&2
	exit 0
fi
if [ ! -d "$service" ]; then
	echo "ovs-vswitchd does not run in ovs.slice" >&2
	exit 1
fi
# From the top: a cgroup can pass on only what it has. The threaded cgroup comes before the controllers of its
# parent, which has processes and could not enable them otherwise.
echo '+cpuset +cpu' >"$slice/cgroup.subtree_control"
mkdir -p "$threads"
echo threaded >"$threads/cgroup.type"
echo '+cpuset +cpu' >"$service/cgroup.subtree_control"
for group in "$slice" "$service" "$threads"; do
	# Linux 6.7 and later; older kernels have no partitions below cgroups that are none themselves.
	[ ! -e "$group/cpuset.cpus.exclusive" ] || echo "$OVS_DPDK_CPUS" >"$group/cpuset.cpus.exclusive"
done
echo "$OVS_DPDK_CPUS" >"$threads/cpuset.cpus"
echo "$OVS_DPDK_PARTITION" >"$threads/cpuset.cpus.partition"
state=$(cat "$threads/cpuset.cpus.partition")
if [ "$state" != "$OVS_DPDK_PARTITION" ]; then
	echo "CPUs $OVS_DPDK_CPUS are not $OVS_DPDK_PARTITION: $state" >&2
	exit 1
fi
