#pragma once

/* A profile as it is stored in a cluster, before its machines are known: every check of a layout
 * that needs neither a topology nor a machine config pool. The agent of each node resolves the
 * profile for its own machine. Pure. */

#include <stdbool.h>

#include "layout.h"

struct profile_alone {
	struct profile profile;
	struct machine_pool pool;   /* of the partition: has a name only */
	struct partition partition; /* without a topology */
	bool is_resolved; /* the partition is complete: all sets are lists without faults */
};

/* `is_partitioned` is the cluster flag. All problems are added to `p`. *ret must not move. */
void profile_alone_read(struct manifest m, bool is_partitioned, struct arena *a,
			struct profile_alone *ret, struct problem_list *p);
