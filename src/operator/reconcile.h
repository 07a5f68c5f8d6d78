#pragma once

/* One turn of the operator: everything that should be written now, from a snapshot. Pure; a new
 * duty of the operator is a step in reconcile.c. */

#include <stddef.h>
#include <stdint.h>

#include "snapshot.h"
#include "writes.h"

/* What lasts from one reconcile to the next. Losing it only delays: it holds since when something
 * is seen, so that short disturbances are not reported. */
struct reconcile_memory {
	int unused;
};
void reconcile_memory_done(struct reconcile_memory *m);

/* For the metrics. */
struct reconcile_figures {
	size_t nodes_granted, nodes_draining, nodes_waiting_for_reboot;
	size_t namespaces_allowed; /* in the digest of permissions */
	bool is_digest_too_large;
};

void operator_reconcile(const struct operator_snapshot *s, struct reconcile_memory *m,
			struct operator_writes *w, struct reconcile_figures *ret_figures);
