#pragma once

/* Takes part in an election, over and over, as long as it is wanted. Who wins may act until told
 * otherwise; who wants no more gives the lease back, so that nobody has to wait for it to run out.
 */

#include <stdbool.h>
#include <stdint.h>

#include "api.h"
#include "backoff.h"
#include "net/loop.h"

struct leader;
typedef void (*leader_fn)(struct leader *l);

struct leader_config {
	const char *namespace, *name; /* of the Lease */
	const char *identity;	      /* ours: different for every process */
	leader_fn on_change;	      /* leader_is() changed */
	void (*on_trouble)(struct leader *l, const struct err *err); /* may be NULL */
};

struct leader {
	struct api *api;
	const struct leader_config *config;
	struct timer timer;
	struct api_call call;
	struct backoff backoff;
	char record[512];    /* the lease as last seen: holder and time */
	uint64_t changed_ms; /* when that last changed */
	uint64_t asked_ms;   /* when the write under way began */
	uint64_t renewed_ms; /* when the last one that succeeded began; 0: not ours */
	bool is_wanted, is_leader, is_busy, is_releasing;
};

void leader_init(struct leader *l, struct api *api, const struct leader_config *config);
void leader_close(struct leader *l);

void leader_want(struct leader *l, bool is_wanted);
bool leader_is(const struct leader *l); /* may act at this moment */
