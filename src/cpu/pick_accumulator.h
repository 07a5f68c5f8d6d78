#pragma once

/* The state of one pick (spec/cpumanager.md 4.2): what is still free, how much is still needed,
 * what was taken; and the orders in which elements are tried (4.3). Inside the pick code only.
 *
 * All work is linear in the machine: free CPUs are counted once per level and the counts follow
 * every take, so that no list ever needs a set to be built or measured. */

#include <stdbool.h>
#include <stdint.h>

#include "topology.h"

struct arena;

struct accumulator {
	const struct topology *t;
	unsigned need;
	unsigned n_free;
	uint64_t *free; /* t->n_words of them, as all sets in here */
	uint64_t *result;
	uint16_t *count[TOPOLOGY__LEVELS]; /* free CPUs per element; no dies */
	uint16_t *order;		   /* room for one list: as many as the machine has CPUs */
	uint16_t *rank[2];		   /* of parents and of children, while a list is made */
	uint16_t *spare;
};

/* Gets its memory once; start it for every pick. */
void accumulator_init(struct accumulator *acc, const struct topology *t, struct arena *a);

/* Forgets everything; the free CPUs are those of `available` that lie within `within`, which may
 * be NULL. Both are as long as the topology's sets. */
void accumulator_start(struct accumulator *acc, const uint64_t *available, const uint64_t *within,
		       unsigned need);

/* Which of the two is tried first, being the larger (4.2): NUMA nodes or sockets. */
bool accumulator_is_numa_first(const struct topology *t);

void accumulator_take_cpu(struct accumulator *acc, unsigned cpu);
void accumulator_take_element(struct accumulator *acc, enum topology_level level, unsigned element);

/* Elements that have free CPUs, in the order of 4.3; in acc->order. Returns how many. */
unsigned accumulator_order(struct accumulator *acc, enum topology_level level);

/* Free CPUs in the order of 4.3, at most `max`; in acc->order. */
unsigned accumulator_order_cpus(struct accumulator *acc, bool spread, unsigned max);

static inline bool accumulator_is_free(const struct accumulator *acc, unsigned cpu)
{
	return acc->free[cpu / 64] >> (cpu % 64) & 1;
}

/* All its CPUs are free: its real size counts, not the machine's average (4.9 Q3). */
static inline bool accumulator_is_whole(const struct accumulator *acc, enum topology_level level,
					unsigned element)
{
	return acc->count[level][element] == topology_size(acc->t, level, element);
}

/* Every free CPU, rising. */
#define ACCUMULATOR_EACH_FREE(acc, cpu)                                                            \
	for (unsigned cpu##_word = 0; cpu##_word < (acc)->t->n_words; cpu##_word++)                \
		for (uint64_t cpu##_rest = (acc)->free[cpu##_word], cpu = 0;                       \
		     cpu##_rest &&                                                                 \
		     (cpu = cpu##_word * 64U + (unsigned)__builtin_ctzll(cpu##_rest), true);       \
		     cpu##_rest &= cpu##_rest - 1)
