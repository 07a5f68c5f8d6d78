#pragma once

/* Kernel truth against the plan. The containers are judged by cgroup/truth.h, as those of a node
 * are; to that comes who should run and does not. Pure: looking is container_cgroup_look(). */

#include <stddef.h>

#include "cgroup/audit.h"
#include "local.h"

struct local_audit_input {
	enum local_mode mode;
	const struct local_container *containers;
	const struct cgroup_snapshot *snapshots; /* one per container */
	const enum local_state *states;
	size_t n;
	const struct processes *machine; /* where foreign_processes are looked for; NULL: nowhere */
};

/* Adds "not-running" and "failed" to what there is to find. */
struct audit local_audit(const struct local_audit_input *in, struct arena *a);
