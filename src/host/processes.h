#pragma once

/* Affinities of host processes. They are applied on hosts whose systemd cannot restrict units:
 * cgroup v1, or another init. They are recorded and restored on all. New processes inherit the
 * affinity of their parent, so little is left to do after the first time. Kernel threads, pods,
 * containers and virtual machines are left out (host_plan.h).
 */

#include <stddef.h>

#include "originals.h"

struct err;

struct processes_result {
	size_t n_moved;	  /* threads, by this call */
	size_t n_refused; /* threads that belong to one CPU, or of another user without permission
			   */
};

/* Records the affinity of process 1, and those that differ from it. Only the first time: what
 * starts later has inherited what was applied. `proc_fd` is /proc. */
int processes_record(int proc_fd, struct originals *o, struct err *err);

/* Moves threads that may run elsewhere to o->applied.services. */
int processes_apply(int proc_fd, const struct originals *o, bool is_changed,
		    struct processes_result *ret, struct err *err);

int processes_restore(int proc_fd, const struct originals *o, struct processes_result *ret,
		      struct err *err);
