/* Delays for everything that is retried against the API server. */

#include "backoff.h"

#include <sys/random.h>

uint64_t backoff_jitter(uint64_t ms, uint32_t random)
{
	/* The product fits into 64 bits for every delay below 2^33 ms. */
	return ms - (ms / 2) * random / UINT32_MAX;
}

uint64_t backoff_spread(uint64_t ms, uint32_t random)
{
	return ms * random / UINT32_MAX;
}

uint64_t backoff_next(struct backoff *b, uint32_t random)
{
	uint64_t step = BACKOFF_MAX_MS;

	/* The count grows without limit, a shift by 64 or more is undefined. */
	if (b->n < 16 && (uint64_t)BACKOFF_FIRST_MS << b->n < BACKOFF_MAX_MS)
		step = (uint64_t)BACKOFF_FIRST_MS << b->n;
	b->n++;
	return backoff_jitter(step, random);
}

void backoff_reset(struct backoff *b)
{
	b->n = 0;
}

bool backoff_refused(unsigned *n, bool is_refusal)
{
	*n = is_refusal ? *n + 1 : 0;
	return *n > BACKOFF_SURE_FAILURES;
}

uint32_t backoff_random(void)
{
	uint32_t n = 0;

	if (getrandom(&n, sizeof(n), GRND_NONBLOCK) < 0)
		return 0; /* early in the boot: neither jitter nor spread */
	return n;
}
