#pragma once

/* What the Node should say now, from the state of the manager. Keeps the little history that the
 * condition and the taint need; writes nothing. */

#include <stdbool.h>
#include <stdint.h>

#include "node_plan.h"

struct arena;
struct manager;

struct node_desired_source {
	const struct manager *manager;
	bool taints_unready;
	uint64_t unready_since_ms; /* 0: ready */
	uint64_t write_failures;   /* of cgroups, when last read... */
	uint64_t write_failed_ms;  /* ...and when that number last changed; 0: never */
};

/* The message lives in the arena. The heartbeat is the caller's to set. */
struct node_desired node_desired_read(struct node_desired_source *s, uint64_t now_ms,
				      bool is_leaving, struct arena *a);
