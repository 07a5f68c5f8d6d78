#pragma once

/* This machine by hwloc alone; topology_read_host adds what hwloc does not know. */

struct arena;
struct cpuset;
struct err;
struct topology;

int topology_hwloc_host(const struct cpuset *isolated, struct arena *a, struct topology *ret,
			struct err *err);
