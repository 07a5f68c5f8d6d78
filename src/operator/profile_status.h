#pragma once

/* The status of a PerformanceProfile: what the nodes that it selects report, as node counts and
 * conditions. Computed anew every time, so nothing stays that is no longer true; a disturbance has
 * to last before a condition turns bad. Pure. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "partition/node_partition.h"
#include "rollout.h"
#include "snapshot.h"
#include "writes.h"

enum profile_condition {
	PROFILE_AVAILABLE,
	PROFILE_PROGRESSING,
	PROFILE_DEGRADED,
	PROFILE_UPGRADEABLE,
	PROFILE_CONDITION__COUNT
};

const char *profile_condition_name(enum profile_condition c); /* "Available" */

struct profile_nodes {
	size_t selected;    /* by the labels */
	size_t ready;	    /* partitioned as this generation says */
	size_t pending;	    /* something waits, or this generation is not applied yet */
	size_t conflicting; /* selected by another profile, too */
};

struct profile_status {
	int64_t observed_generation; /* 0: none */
	struct profile_nodes nodes;
	struct condition conditions[PROFILE_CONDITION__COUNT]; /* `since` only of a stored one */
};

/* Texts live in the snapshot's arena. */
void profile_status_compute(const struct operator_snapshot *s, const struct rollout *r,
			    const struct operator_profile *p, struct profile_status *ret);

/* What the object says. */
void profile_status_read(const struct operator_profile *p, struct profile_status *ret);

#define PROFILE_SETTLE_MS 15000

/* Since when a condition is worse than what was written; 0: it is not. */
struct profile_settling {
	uint64_t since_ms[PROFILE_CONDITION__COUNT];
};

/* Keeps a good condition of `old` until the worse one of `now` has lasted for PROFILE_SETTLE_MS. A
 * new generation of the profile is reported at once. */
void profile_status_settle(struct profile_status *now, const struct profile_status *old,
			   struct profile_settling *settling, uint64_t now_ms);

/* Adds a write when `now` differs from `old`, the status in the object. */
void profile_status_write(const struct operator_snapshot *s, const struct operator_profile *p,
			  const struct profile_status *old, const struct profile_status *now,
			  struct operator_writes *w);
