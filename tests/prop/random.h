#pragma once

/* splitmix64: tiny, passes the usual batteries, and any seed is a good one. */

#include <stdint.h>

static inline uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* A number in [0, n); n is not 0. The bias of the remainder does not matter for tests. */
static inline unsigned random_below(uint64_t *state, unsigned n)
{
	return (unsigned)(random_next(state) % n);
}
