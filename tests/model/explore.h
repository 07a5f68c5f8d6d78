#pragma once

/* An explicit-state model checker: visits every state that can be reached from the first one,
 * breadth first, so that a counterexample is as short as possible. A state is rebuilt by executing
 * its path again, because the program under test has pointers and cannot be copied; states are
 * compared by a hash of 64 bits. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/str.h"
#include "node.h"
#include "test.h"

struct explore_node {
	uint32_t parent;
	struct node_step step;
	uint8_t depth;
};

#define EXPLORE_MAX_DEPTH 64
#define EXPLORE_MAX_STEPS 512 /* of one state */

struct explore {
	struct explore_node *nodes;
	size_t n, cap;
	uint64_t *seen; /* open addressing, 0: free */
	size_t seen_cap;
	uint64_t n_transitions;
	unsigned max_depth;
};

static inline void explore_init(struct explore *e)
{
	*e = (struct explore){ .seen_cap = 1 << 16 };
	e->seen = calloc(e->seen_cap, sizeof(*e->seen));
	CHECK(e->seen);
}

static inline void explore_done(struct explore *e)
{
	free(e->nodes);
	free(e->seen);
}

static inline bool explore_insert(uint64_t *seen, size_t cap, uint64_t hash)
{
	size_t i = hash & (cap - 1);

	while (seen[i] && seen[i] != hash)
		i = (i + 1) & (cap - 1);
	if (seen[i])
		return false;
	seen[i] = hash;
	return true;
}

static inline void explore_grow(struct explore *e)
{
	const size_t cap = e->seen_cap * 2;
	uint64_t *seen = calloc(cap, sizeof(*seen));

	CHECK(seen);
	for (size_t i = 0; i < e->seen_cap; i++)
		if (e->seen[i])
			(void)explore_insert(seen, cap, e->seen[i]);
	free(e->seen);
	e->seen = seen;
	e->seen_cap = cap;
}

/* Adds the state that `step` leads to from node `parent`; false when it is known. */
static inline bool explore_add(struct explore *e, uint32_t parent, struct node_step step,
			       uint64_t hash)
{
	if (!explore_insert(e->seen, e->seen_cap, hash ? hash : 1))
		return false;
	if (e->n == e->cap) {
		e->cap = e->cap ? e->cap * 2 : 1024;
		e->nodes = realloc(e->nodes, e->cap * sizeof(*e->nodes));
		CHECK(e->nodes);
	}
	e->nodes[e->n] = (struct explore_node){ parent, step, 0 };
	if (e->n > 0)
		e->nodes[e->n].depth = (uint8_t)(e->nodes[parent].depth + 1);
	CHECK(e->nodes[e->n].depth < EXPLORE_MAX_DEPTH);
	if (e->nodes[e->n].depth > e->max_depth)
		e->max_depth = e->nodes[e->n].depth;
	e->n++;
	if (e->n * 2 > e->seen_cap)
		explore_grow(e);
	return true;
}

/* The steps from the first state to this one; returns their number. */
static inline size_t explore_path(const struct explore *e, size_t node,
				  struct node_step ret[EXPLORE_MAX_DEPTH])
{
	const size_t n = e->nodes[node].depth;

	for (size_t i = n; i > 0; i--) {
		ret[i - 1] = e->nodes[node].step;
		node = e->nodes[node].parent;
	}
	return n;
}
