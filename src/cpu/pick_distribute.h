#pragma once

/* Over which NUMA nodes a request is dealt out (spec/cpumanager.md 4.6): of all combinations of k
 * nodes that can carry equal shares, the one that leaves the nodes most evenly filled. Numbers
 * only: it knows free counts, no CPUs. Inside the pick code only.
 *
 * The kubelet tries every combination, and for each every subset that could carry the remainder:
 * 3^nodes. Nodes that are alike give like results, so only the first of each kind is tried, and
 * combinations that cannot reach the sum are never entered. What is left is exact up to ten nodes
 * of any fill; beyond, the search stops after DISTRIBUTE_BUDGET results with the best so far. */

#include <stdbool.h>
#include <stdint.h>

#define DISTRIBUTE_MAX_NODES 64 /* above, the caller packs */
#define DISTRIBUTE_BUDGET (1U << 17)

struct distribute_request {
	unsigned n; /* CPUs, a multiple of group */
	unsigned group;
	bool align_by_socket;
	unsigned n_nodes; /* nodes with free CPUs, in their order */
	unsigned free[DISTRIBUTE_MAX_NODES];
	uint16_t socket[DISTRIBUTE_MAX_NODES]; /* the socket a node lies in */
};

#define DISTRIBUTE_MANY_SOCKETS UINT16_MAX /* a node that lies in several */

/* Indices into the request's nodes. */
struct distribute_plan {
	unsigned share; /* CPUs from each of `nodes` */
	unsigned n_nodes;
	unsigned n_remainder; /* nodes that give a further group each, in rounds */
	uint8_t nodes[DISTRIBUTE_MAX_NODES];
	uint8_t remainder[DISTRIBUTE_MAX_NODES];
};

/* False when no k nodes can carry the request. */
bool distribute_over(const struct distribute_request *request, unsigned k,
		     struct distribute_plan *ret);
