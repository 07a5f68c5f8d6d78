#pragma once

/* Random input for properties. A property is a TEST() that loops:
 *
 *	PROP_LOOP(&r) {
 *		uint64_t n = prop_below(&r, 100);
 *		...
 *	}
 *
 * Every run draws a new seed and prints it; PINFOLD_SEED repeats one, PINFOLD_PROP_RUNS sets how
 * often a loop goes round. A failing check names the seed and the round. */

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "random.h"
#include "test.h"

#define PROP_RUNS 1000

struct prop {
	uint64_t state;
	uint64_t seed;
	unsigned round;
	unsigned runs;
};

static inline uint64_t prop_next(struct prop *p)
{
	return random_next(&p->state);
}

/* A number in [0, n); n is not 0. The bias of the remainder does not matter for tests. */
static inline uint64_t prop_below(struct prop *p, uint64_t n)
{
	return prop_next(p) % n;
}

/* A number in [low, high], ends included. */
static inline uint64_t prop_between(struct prop *p, uint64_t low, uint64_t high)
{
	return low + prop_below(p, high - low + 1);
}

/* True once in n times. */
static inline bool prop_one_in(struct prop *p, uint64_t n)
{
	return prop_below(p, n) == 0;
}

#define prop_pick(p, array) ((array)[prop_below((p), sizeof(array) / sizeof((array)[0]))])

static inline struct prop prop_start(void)
{
	const char *seed = getenv("PINFOLD_SEED"), *runs = getenv("PINFOLD_PROP_RUNS");
	struct prop p = { .runs = PROP_RUNS };
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	p.seed = seed ? strtoull(seed, NULL, 0) :
			(uint64_t)now.tv_sec << 20 ^ (uint64_t)now.tv_nsec;
	if (runs)
		p.runs = (unsigned)strtoul(runs, NULL, 0);
	p.state = p.seed;
	TEST_NOTE("PINFOLD_SEED=%" PRIu64 ", %u runs", p.seed, p.runs);
	return p;
}

static inline bool prop_go_on(struct prop *p)
{
	if (p->round >= p->runs)
		return false;
	TEST_ROW("PINFOLD_SEED=%" PRIu64 " round %u", p->seed, p->round);
	p->round++;
	return true;
}

#define PROP_LOOP(p) for (*(p) = prop_start(); prop_go_on(p);)
