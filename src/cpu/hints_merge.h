#pragma once

/* Merging hints (docs/reference/topology-manager.md#merge): the steps of hints_decide(), separate
 * so that each can be tested. Private to the hints code. */

#include "hints.h"

/* What decides between two merged hints. */
struct hint_rule {
	const struct hint_nodes *nodes;
	bool prefer_closest;
	unsigned best_non_preferred; /* see hint_best_non_preferred */
};

/* All nodes: the default mask. */
uint64_t hint_nodes_mask(const struct hint_nodes *nodes);

/* Fewer nodes, or as many with the lower number. */
bool hint_mask_is_narrower(uint64_t a, uint64_t b);

/* The mean of all distances between nodes of the mask: both directions, and each to itself. */
double hint_average_distance(const struct hint_nodes *nodes, uint64_t mask);

/* Of two masks the one with fewer nodes, then the one whose nodes are closer to each other. */
uint64_t hint_closest_mask(const struct hint_nodes *nodes, uint64_t a, uint64_t b);

/* The number of nodes that a merged result needs: the maximum over all lists of the size of the
 * list's narrowest mask. */
unsigned hint_best_non_preferred(const struct hint_list *lists, size_t n);

/* True when the candidate replaces the current best; `current` is NULL at first. */
bool hint_is_better(const struct hint_rule *rule, const struct numa_hint *current,
		    const struct numa_hint *candidate);

/* Only preferred hints of at most one node. */
struct hint_list hint_list_single_numa(const struct hint_list *list, struct arena *a);

/* The best combination of one hint per list; the default mask, not preferred, when there is none.
 */
struct numa_hint hint_lists_merge(const struct hint_rule *rule, const struct hint_list *lists,
				  size_t n, struct arena *a);
