#pragma once

/* Foreign processes (audit.h) in groups that have one remedy: the processes of a systemd slice,
 * container shims, container monitors. Pure. */

#include <stddef.h>

#include "audit.h"

struct foreign_group {
	struct str name;   /* "system.slice", "container shims" */
	struct str names;  /* of its processes, the first few */
	struct str remedy; /* what the administrator can do */
	struct cpuset cpus;
	size_t n;
};

/* Where host processes belong, for the remedy. */
struct foreign_host {
	struct str management;	     /* CPUs; "" when unknown */
	enum cgroup_version version; /* of systemd's hierarchy */
};

/* In the order of their first process. */
void foreign_groups(const struct audit *t, const struct foreign_host *host, struct arena *a,
		    struct foreign_group **ret, size_t *ret_n);
