#pragma once

/* Chooses the NUMA nodes of a distributed request (docs/reference/cpu-manager.md#distributed): of
 * all combinations of k nodes that can give equal shares, the one that leaves the nodes most evenly
 * filled. It works on counts of free CPUs, not on CPUs. Private to the pick code.
 *
 * The kubelet tries every combination, and for each every subset that could give the remainder:
 * 3^nodes. Equal nodes give equal results, so only the first of them is tried, and combinations
 * that cannot reach the sum are skipped. The result is exact for up to ten nodes with any number of
 * free CPUs; beyond that the search stops after DISTRIBUTE_BUDGET results with the best so far. */

#include <stdbool.h>
#include <stdint.h>

#define DISTRIBUTE_MAX_NODES 64 /* with more nodes the caller packs */
#define DISTRIBUTE_BUDGET (1U << 17)

struct distribute_request {
	unsigned n; /* CPUs, a multiple of group */
	unsigned group;
	bool align_by_socket;
	unsigned n_nodes; /* nodes with free CPUs, in their order */
	unsigned free[DISTRIBUTE_MAX_NODES];
	uint16_t socket[DISTRIBUTE_MAX_NODES]; /* the socket of each node */
};

#define DISTRIBUTE_MANY_SOCKETS UINT16_MAX /* a node that spans several sockets */

/* Indices into the request's nodes. */
struct distribute_plan {
	unsigned share; /* CPUs from each of `nodes` */
	unsigned n_nodes;
	unsigned n_remainder; /* nodes that give a further group each, in rounds */
	uint8_t nodes[DISTRIBUTE_MAX_NODES];
	uint8_t remainder[DISTRIBUTE_MAX_NODES];
};

/* False when no combination of k nodes can hold the request. */
bool distribute_over(const struct distribute_request *request, unsigned k,
		     struct distribute_plan *ret);
