#pragma once

/* The rollout of changes that disturb a node (status.pending of its NodePartition): which node does
 * what next. The nodes of one profile are a pool; pools follow one another. In a pool at most
 * maxUnavailable nodes are cordoned or granted at a time, and none is added while as many are
 * unavailable for other reasons. Everything that is remembered is on the objects: the annotation on
 * a Node that was cordoned, and spec.granted of its NodePartition. Pure. */

#include <stdbool.h>
#include <stddef.h>

#include "drain.h"
#include "snapshot.h"
#include "writes.h"

struct rollout_settings {
	size_t max_unavailable;
	bool is_paused;
	bool operator_reboots;
	const char *invalid; /* the annotation with a value that is not understood; NULL: none */
};

/* `n_nodes`: how many the profile selects, for percentages. `p` NULL: the defaults. */
struct rollout_settings rollout_settings_of(const struct operator_profile *p, size_t n_nodes);

enum rollout_step {
	ROLLOUT_NOTHING,
	ROLLOUT_CHECK,	  /* what became of a write is not known: read again */
	ROLLOUT_WAITS,	  /* for its turn */
	ROLLOUT_CORDON,	  /* it is its turn */
	ROLLOUT_DRAIN,	  /* cordoned; pods have to leave */
	ROLLOUT_GRANT,	  /* nothing is in the way */
	ROLLOUT_APPLIES,  /* granted: the agent's turn */
	ROLLOUT_WITHDRAW, /* applied, or no longer wanted */
	ROLLOUT_UNCORDON,
	ROLLOUT_STEP__COUNT
};

struct rollout_node {
	const struct operator_node *node;
	const struct pending_change *change; /* to apply next with a grant; NULL: none */
	const struct pending_change *reboot; /* waits for a reboot by others; NULL: none */
	enum rollout_step step;
	bool is_active; /* cordoned by the operator, or granted, or that is unknown: it takes one of
			   the places */
	bool drains;	/* the change needs an empty node */
	struct drain_plan drain;
};

struct rollout {
	struct rollout_node *nodes; /* as in the snapshot */
	size_t n;
};

void rollout_plan(const struct operator_snapshot *s, struct arena *a, struct rollout *ret);

/* The requests of the steps. */
void rollout_write(const struct operator_snapshot *s, const struct rollout *r,
		   struct operator_writes *w);
