#pragma once

/* Exponential backoff with jitter: the delay doubles up to a limit, and is randomized so that
 * replicas which lost the same server do not reconnect at the same time. */

#include <stdbool.h>
#include <stdint.h>

#define BACKOFF_FIRST_MS 100
#define BACKOFF_MAX_MS 10000 /* a server that is back is noticed within this time */

/* A starting API server responds 403 until it has loaded the RBAC rules, so only this many failures
 * in a row count as forbidden. Then retries are rare: an administrator has to change the rules. */
#define BACKOFF_SURE_FAILURES 8
#define BACKOFF_FORBIDDEN_MS 120000

struct backoff {
	unsigned n; /* failures in a row */
};

/* Counts a failure; returns between half of the step and all of it, by `random`. */
uint64_t backoff_next(struct backoff *b, uint32_t random);
void backoff_reset(struct backoff *b);

/* Counts the refusals (403) in a row in `n`; every other outcome starts over, so that an outage
 * before the first one does not count. Returns true when there were enough of them to be sure. */
bool backoff_refused(unsigned *n, bool is_refusal);

/* Between half of `ms` and all of it. */
uint64_t backoff_jitter(uint64_t ms, uint32_t random);

/* Between 0 and `ms`: many clients that start at the same time spread their requests. */
uint64_t backoff_spread(uint64_t ms, uint32_t random);

uint32_t backoff_random(void); /* for jitter only */
