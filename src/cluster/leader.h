#pragma once

/* Leader election with a Lease object (lease.h decides), as long as leadership is wanted. The
 * leader acts until on_change reports the loss. A leader that no longer wants the lease releases
 * it, so that the next one need not wait for it to expire. */

#include <stdbool.h>
#include <stdint.h>

#include "api.h"
#include "backoff.h"
#include "net/loop.h"

struct arena;
struct leader;
typedef void (*leader_fn)(struct leader *l);

struct leader_config {
	const char *namespace, *name;				     /* of the Lease */
	const char *identity;					     /* unique for every process */
	leader_fn on_change;					     /* leader_is() changed */
	void (*on_failure)(struct leader *l, const struct err *err); /* may be NULL */
};

struct leader {
	struct api *api;
	const struct leader_config *config;
	struct timer timer;
	struct timer expiry; /* the Lease is no longer held */
	struct api_call call;
	struct backoff backoff;
	char record[512];    /* the lease when last read: holder and renew time */
	uint64_t changed_ms; /* when that last changed */
	uint64_t write_ms;   /* when the present write began */
	uint64_t renewed_ms; /* when the last successful write began; 0: not held */
	bool is_wanted, is_leader, is_busy, is_releasing;
};

void leader_init(struct leader *l, struct api *api, const struct leader_config *config);
void leader_close(struct leader *l);

void leader_want(struct leader *l, bool is_wanted);
bool leader_is(const struct leader *l); /* may act now */

/* Unique among all processes: the pod's name, otherwise host, process and a random number. */
const char *leader_identity(struct arena *a);
