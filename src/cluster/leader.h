#pragma once

/* Leader election with a Lease object (lease.h decides), as long as leadership is wanted. The
 * leader acts until on_change reports the loss. A leader that no longer wants the lease releases
 * it, so that the next one need not wait for it to expire.
 *
 * A leader that could not renew the Lease in time stops acting and is late. When it renews the
 * Lease then, no other replica has held it in between, and what the leader knows is still all that
 * leaders have written. */

#include <stdbool.h>
#include <stdint.h>

#include "api.h"
#include "backoff.h"
#include "base/arena.h"
#include "lease.h"
#include "net/loop.h"

struct leader;
typedef void (*leader_fn)(struct leader *l);

struct leader_config {
	const char *namespace, *name;				     /* of the Lease */
	const char *identity;					     /* unique for every process */
	leader_fn on_change;					     /* of the state */
	void (*on_failure)(struct leader *l, const struct err *err); /* may be NULL */
};

enum leader_state {
	LEADER_NOT,  /* another replica may hold the Lease, or may have held it */
	LEADER_LATE, /* may not act; no other replica has held the Lease, as far as is known */
	LEADER_ACTS,
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
	struct lease known;  /* as last written by this process; !exists: it must be read first */
	struct arena arena;  /* of the texts in it */
	enum leader_state state; /* as last reported */
	bool is_wanted, is_busy, is_releasing;
};

void leader_init(struct leader *l, struct api *api, const struct leader_config *config);
void leader_close(struct leader *l);
void leader_done(struct leader *l); /* after the loop is done */

void leader_want(struct leader *l, bool is_wanted);
enum leader_state leader_state(const struct leader *l);
bool leader_is(const struct leader *l); /* LEADER_ACTS: may act now */

/* Unique among all processes: the pod's name, otherwise host, process and a random number. */
const char *leader_identity(struct arena *a);
