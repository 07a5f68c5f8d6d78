#pragma once

/* This machine as read by hwloc, plus what only sysfs has. Private to the topology readers. */

#include "cpuset.h"

struct arena;
struct err;
struct topology;

/* What hwloc does not provide: isolated CPUs, and core types, which it only gets from CPUID. Empty
 * sets mean unknown. */
struct topology_extra {
	struct cpuset isolated;
	struct cpuset performance;
	struct cpuset efficiency;
	struct cpuset memory_nodes; /* NUMA nodes that have memory; empty: unknown */
};

/* From the files below /sys/devices/system; sets without a file stay empty. */
int topology_sysfs_extra(int system_fd, struct topology_extra *ret, struct err *err);

int topology_hwloc_host(const struct topology_extra *extra, struct arena *a, struct topology *ret,
			struct err *err);
