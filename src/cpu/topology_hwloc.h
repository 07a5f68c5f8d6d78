#pragma once

/* This machine by hwloc, and what only the kernel's files say. Inside the topology readers only. */

#include "cpuset.h"

struct arena;
struct err;
struct topology;

/* What hwloc does not know: isolated CPUs; and the kinds of cores, which it has only from x86's
 * own instructions. Empty sets mean that nothing is known. */
struct topology_extra {
	struct cpuset isolated;
	struct cpuset performance;
	struct cpuset efficiency;
};

/* From the files below /sys/devices/system; what is not there stays empty. */
int topology_sysfs_extra(int system_fd, struct topology_extra *ret, struct err *err);

int topology_hwloc_host(const struct topology_extra *extra, struct arena *a, struct topology *ret,
			struct err *err);
