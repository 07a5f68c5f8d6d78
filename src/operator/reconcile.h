#pragma once

/* One turn of the operator: everything that should be written now, from a snapshot. No I/O; a new
 * duty of the operator is a step in reconcile.c. */

#include <stddef.h>
#include <stdint.h>

#include "findings.h"
#include "profile_status.h"
#include "snapshot.h"
#include "writes.h"

struct profile_memory {
	char *name;
	struct profile_settling settling;
	struct profile_status status; /* of the last reconcile, without its texts: for metrics */
	bool is_seen;
};

/* What lasts from one reconcile to the next. Losing it only delays: it holds since when something
 * is seen, so that short disturbances are not reported. */
struct reconcile_memory {
	struct profile_memory *profiles;
	size_t n_profiles;
};
void reconcile_memory_done(struct reconcile_memory *m);

/* For the metrics. */
struct reconcile_figures {
	size_t steps[ROLLOUT_STEP__COUNT]; /* nodes at each step */
	size_t n_reboot;		   /* nodes that wait for a reboot by others */
	size_t namespaces_allowed;	   /* in the digest of permissions */
	bool is_digest_too_large;
	size_t findings[CLUSTER_CHECK__COUNT];
};

struct reconcile_result {
	struct operator_writes writes;
	struct reconcile_figures figures;
	struct str *drained; /* nodes whose pods matter */
	size_t n_drained;
};

/* Texts live in the snapshot's arena. */
void operator_reconcile(const struct operator_snapshot *s, struct reconcile_memory *m,
			struct reconcile_result *ret);
