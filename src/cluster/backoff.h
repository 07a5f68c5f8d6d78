#pragma once

/* How long to wait before trying again: twice as long each time, up to a bound, and never exactly,
 * so that replicas which lost the same server do not come back as one. Pure. */

#include <stdint.h>

#define BACKOFF_FIRST_MS 100
#define BACKOFF_MAX_MS 10000 /* a server that is back is found within that */

/* Rights that we lack: sure after so many failures in a row, for a server that has just started
 * refuses before it knows them. Then asked for rarely: somebody has to change them. */
#define BACKOFF_SURE_FAILURES 8
#define BACKOFF_FORBIDDEN_MS 120000

struct backoff {
	unsigned n; /* failures in a row */
};

/* Counts a failure; between half of the step and all of it, by `random`. */
uint64_t backoff_next(struct backoff *b, uint32_t random);
void backoff_reset(struct backoff *b);

/* Between half of `ms` and all of it. */
uint64_t backoff_jitter(uint64_t ms, uint32_t random);

uint32_t backoff_random(void); /* good enough for this, and for nothing else */
