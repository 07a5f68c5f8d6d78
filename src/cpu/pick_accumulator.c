/* Counts of free CPUs per element and the sorted lists made from them. Elements and CPUs are 16-bit
 * indices, which keeps the memory that a pick touches small (D22). */

#include "pick_accumulator.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

/* Levels whose free CPUs are counted; the pick order does not use dies. */
static const enum topology_level counted[] = {
	TOPOLOGY_CORE,
	TOPOLOGY_SOCKET,
	TOPOLOGY_NUMA,
	TOPOLOGY_UNCORE,
};
#define N_COUNTED (sizeof(counted) / sizeof(counted[0]))

void accumulator_init(struct accumulator *acc, const struct topology *t, struct arena *a)
{
	*acc = (struct accumulator){ .t = t };
	acc->free = arena_array(a, uint64_t, t->n_words);
	acc->result = arena_array(a, uint64_t, t->n_words);
	acc->order = arena_array(a, uint16_t, t->n_cpus);
	acc->spare = arena_array(a, uint16_t, t->n_cpus);
	for (int i = 0; i < 2; i++)
		acc->rank[i] = arena_array(a, uint16_t, t->n_cpus);
	for (size_t i = 0; i < N_COUNTED; i++)
		acc->count[counted[i]] = arena_array(a, uint16_t, t->level[counted[i]].n);
}

void accumulator_start(struct accumulator *acc, const uint64_t *available, const uint64_t *within,
		       unsigned need)
{
	const struct topology *t = acc->t;

	acc->need = need;
	acc->n_free = 0;
	for (size_t i = 0; i < N_COUNTED; i++)
		memset(acc->count[counted[i]], 0, t->level[counted[i]].n * sizeof(uint16_t));
	for (unsigned i = 0; i < t->n_words; i++) {
		/* An offline CPU has no index in the topology, so it must never count as free. */
		acc->free[i] = available[i] & t->online.w[i] & (within ? within[i] : UINT64_MAX);
		acc->result[i] = 0;
	}
	ACCUMULATOR_EACH_FREE(acc, cpu)
	{
		acc->n_free++;
		acc->count[TOPOLOGY_CORE][t->index[TOPOLOGY_CORE][cpu]]++;
		acc->count[TOPOLOGY_SOCKET][t->index[TOPOLOGY_SOCKET][cpu]]++;
		acc->count[TOPOLOGY_NUMA][t->index[TOPOLOGY_NUMA][cpu]]++;
		acc->count[TOPOLOGY_UNCORE][t->index[TOPOLOGY_UNCORE][cpu]]++;
	}
}

void accumulator_take_cpu(struct accumulator *acc, unsigned cpu)
{
	const uint64_t bit = UINT64_C(1) << (cpu % 64);

	acc->free[cpu / 64] &= ~bit;
	acc->result[cpu / 64] |= bit;
	acc->n_free--;
	acc->need--;
	for (size_t i = 0; i < N_COUNTED; i++)
		acc->count[counted[i]][acc->t->index[counted[i]][cpu]]--;
}

void accumulator_take_element(struct accumulator *acc, enum topology_level level, unsigned element)
{
	const struct topology_elements *e = &acc->t->level[level];

	for (unsigned i = e->first[element]; i < e->first[element + 1]; i++)
		accumulator_take_cpu(acc, e->cpus[i]);
}

/* One pass of a radix sort: stable, by eight bits of key[item].
 * Radix and not qsort(): it is stable without comparing ids, and a list of thousands of CPUs costs
 * two linear passes. */
static void sort_pass(struct accumulator *acc, unsigned n, const uint16_t *key, unsigned shift)
{
	uint16_t start[257] = { 0 };

	for (unsigned i = 0; i < n; i++)
		start[(key[acc->order[i]] >> shift & 255) + 1]++;
	if (start[(key[acc->order[0]] >> shift & 255) + 1] == n)
		return; /* all keys are equal */
	for (unsigned i = 0; i < 256; i++)
		start[i + 1] = (uint16_t)(start[i + 1] + start[i]);
	for (unsigned i = 0; i < n; i++)
		acc->spare[start[key[acc->order[i]] >> shift & 255]++] = acc->order[i];
	memcpy(acc->order, acc->spare, n * sizeof(*acc->order));
}

static void sort_by(struct accumulator *acc, unsigned n, const uint16_t *key, unsigned max_key)
{
	if (n < 2)
		return;
	sort_pass(acc, n, key, 0);
	/* Keys are counts or ranks; below 256 the upper byte is zero for all and its pass can be
	 * left out. */
	if (max_key > 255)
		sort_pass(acc, n, key, 8);
}

bool accumulator_is_numa_first(const struct topology *t)
{
	return t->level[TOPOLOGY_SOCKET].n >= t->level[TOPOLOGY_NUMA].n;
}

/* The larger of NUMA nodes and sockets is the outer level and has no parent. Which one is larger
 * depends on the machine: a socket may have several nodes, or a node several sockets. */
static bool parent_of(const struct topology *t, enum topology_level level, enum topology_level *ret)
{
	const bool numa_first = accumulator_is_numa_first(t);

	switch (level) {
	case TOPOLOGY_NUMA:
		*ret = TOPOLOGY_SOCKET;
		return !numa_first;
	case TOPOLOGY_SOCKET:
		*ret = TOPOLOGY_NUMA;
		return numa_first;
	case TOPOLOGY_CORE:
		*ret = numa_first ? TOPOLOGY_SOCKET : TOPOLOGY_NUMA;
		return true;
	default:
		*ret = TOPOLOGY_NUMA;
		return true;
	}
}

/* Ranks elements by the first of their parents in which they have a free CPU, in the order of the
 * parents. The kubelet would list an element with two parents twice; here the first occurrence
 * counts (docs/reference/cpu-manager.md#order). */
static unsigned rank_by_parent(struct accumulator *acc, enum topology_level level,
			       enum topology_level parent)
{
	const uint16_t *child_of = acc->t->index[level], *parent_index = acc->t->index[parent];
	uint16_t *parent_rank = acc->rank[0], *rank = acc->rank[1];
	const unsigned n = accumulator_order(acc, parent);

	for (unsigned i = 0; i < n; i++)
		parent_rank[acc->order[i]] = (uint16_t)i;
	/* Elements without a free CPU keep the highest rank; they are not in the list. */
	memset(rank, 0xff, acc->t->level[level].n * sizeof(*rank));
	ACCUMULATOR_EACH_FREE(acc, cpu)
	{
		const uint16_t r = parent_rank[parent_index[cpu]];

		if (r < rank[child_of[cpu]])
			rank[child_of[cpu]] = r;
	}
	return n;
}

/* Fewest free CPUs first, then the lower id, within each parent. Radix sort is stable, so sorting
 * by count and then by parent rank gives exactly that. */
unsigned accumulator_order(struct accumulator *acc, enum topology_level level)
{
	const struct topology_elements *e = &acc->t->level[level];
	enum topology_level parent;
	unsigned n = 0, n_parents = 0;

	if (parent_of(acc->t, level, &parent))
		n_parents = rank_by_parent(acc, level, parent);
	for (unsigned i = 0; i < e->n; i++)
		if (acc->count[level][i])
			acc->order[n++] = (uint16_t)i;
	sort_by(acc, n, acc->count[level], e->max_size);
	if (n_parents > 1)
		sort_by(acc, n, acc->rank[1], n_parents - 1);
	return n;
}

/* Replaces the elements in acc->order by their free CPUs, at most `max`. */
static unsigned expand(struct accumulator *acc, enum topology_level level, unsigned n, unsigned max)
{
	const struct topology_elements *e = &acc->t->level[level];
	unsigned n_cpus = 0;

	for (unsigned i = 0; i < n && n_cpus < max; i++) {
		const unsigned element = acc->order[i];

		for (unsigned j = e->first[element]; j < e->first[element + 1] && n_cpus < max; j++)
			if (accumulator_is_free(acc, e->cpus[j]))
				acc->spare[n_cpus++] = e->cpus[j];
	}
	memcpy(acc->order, acc->spare, n_cpus * sizeof(*acc->order));
	return n_cpus;
}

unsigned accumulator_order_cpus(struct accumulator *acc, bool spread, unsigned max)
{
	const enum topology_level level = spread ? TOPOLOGY_SOCKET : TOPOLOGY_CORE;

	return expand(acc, level, accumulator_order(acc, level), max);
}
