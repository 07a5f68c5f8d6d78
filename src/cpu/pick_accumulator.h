#pragma once

/* The state of one pick (docs/reference/cpu-manager.md#accumulator): the free CPUs, how many are
 * still needed, the CPUs taken; and the orders in which elements are tried
 * (docs/reference/cpu-manager.md#order). Private to the pick code.
 *
 * All work is linear in the size of the machine: free CPUs are counted once per level, and taking a
 * CPU updates the counts, so that no list needs a set to be built or counted. */

#include <stdbool.h>
#include <stdint.h>

#include "topology.h"

struct arena;

struct accumulator {
	const struct topology *t;
	unsigned need;
	unsigned n_free;
	uint64_t *free; /* t->n_words long, like `result` */
	uint64_t *result;
	uint16_t *count[TOPOLOGY__LEVELS]; /* free CPUs per element; no dies */
	uint16_t *order;		   /* the current list; t->n_cpus long, like the next two */
	uint16_t *rank[2];		   /* of parents and of children, while a list is made */
	uint16_t *spare;
};

/* Allocates once; call accumulator_start() for every pick. */
void accumulator_init(struct accumulator *acc, const struct topology *t, struct arena *a);

/* Resets the state. Free CPUs are those in `available` and, unless it is NULL, in `within`. Both
 * have t->n_words words. */
void accumulator_start(struct accumulator *acc, const uint64_t *available, const uint64_t *within,
		       unsigned need);

/* True when NUMA nodes are tried before sockets, as the larger elements. */
bool accumulator_is_numa_first(const struct topology *t);

void accumulator_take_cpu(struct accumulator *acc, unsigned cpu);
void accumulator_take_element(struct accumulator *acc, enum topology_level level, unsigned element);

/* Stores the elements that have free CPUs in acc->order, best candidate first. Returns how many. */
unsigned accumulator_order(struct accumulator *acc, enum topology_level level);

/* The same for free CPUs, at most `max`. */
unsigned accumulator_order_cpus(struct accumulator *acc, bool spread, unsigned max);

static inline bool accumulator_is_free(const struct accumulator *acc, unsigned cpu)
{
	return acc->free[cpu / 64] >> (cpu % 64) & 1;
}

/* All CPUs of the element are free. Compares with its real size; the kubelet uses the machine's
 * average (docs/reference/cpu-manager.md#average-sizes). */
static inline bool accumulator_is_whole(const struct accumulator *acc, enum topology_level level,
					unsigned element)
{
	return acc->count[level][element] == topology_size(acc->t, level, element);
}

/* Every free CPU, in ascending order. */
#define ACCUMULATOR_EACH_FREE(acc, cpu)                                                            \
	for (unsigned cpu##_word = 0; cpu##_word < (acc)->t->n_words; cpu##_word++)                \
		for (uint64_t cpu##_rest = (acc)->free[cpu##_word], cpu = 0;                       \
		     cpu##_rest &&                                                                 \
		     (cpu = cpu##_word * 64U + (unsigned)__builtin_ctzll(cpu##_rest), true);       \
		     cpu##_rest &= cpu##_rest - 1)
