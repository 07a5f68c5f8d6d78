#pragma once

/* Compares snapshots of local containers with the plan: the checks of cgroup/audit.h, and whether
 * every container that should run does. Pure: container_cgroup_snapshots() reads the kernel. */

#include <stddef.h>

#include "cgroup/audit.h"
#include "local.h"

struct local_audit_input {
	enum local_mode mode;
	const struct local_container *containers;
	const struct cgroup_snapshot *snapshots; /* one per container */
	const enum local_state *states;
	size_t n;
	const struct processes *machine; /* searched for foreign processes; NULL: no search */
};

/* Adds the checks "not-running" and "failed". */
struct audit local_audit(const struct local_audit_input *in, struct arena *a);
