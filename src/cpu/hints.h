#pragma once

/* NUMA hints: which NUMA nodes a container's resources could come from, merged into the one set of
 * nodes all of them agree on, the way the kubelet's topology manager does it (spec/cpumanager.md
 * 5). Pure; nothing is stored. Allocating what a hint promises is src/pool's business, and so is
 * the walk over a pod's containers; the scope only says which request the hints are made for. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "cpuset.h"

struct arena;
struct err;
struct topology;

#define HINTS_MAX_NODES 16 /* the number of masks doubles with each node */

/* A set of NUMA node ids and whether it is as good as it gets. Without a mask: any nodes. */
struct numa_hint {
	uint64_t mask; /* bit = node id */
	bool has_mask;
	bool preferred;
};

/* What one resource of one provider asks for. `any` is "don't care"; no items and not `any` is
 * "cannot be satisfied". */
struct hint_list {
	bool any;
	const struct numa_hint *items;
	size_t n;
};

/* A hint provider's answer, resource by resource; none at all is "don't care". */
struct hint_provider {
	const struct hint_list *resources;
	size_t n;
};

enum hint_policy {
	HINT_POLICY_NONE,
	HINT_POLICY_BEST_EFFORT,
	HINT_POLICY_RESTRICTED,
	HINT_POLICY_SINGLE_NUMA_NODE,
};
enum hint_scope { HINT_SCOPE_CONTAINER, HINT_SCOPE_POD };

struct hint_config {
	enum hint_policy policy;
	enum hint_scope scope;
	bool prefer_closest;
	unsigned max_nodes; /* 0 means 8, the kubelet's default */
};

/* The NUMA nodes hints are merged over, and their distances; see hint_nodes_of. */
struct hint_nodes {
	unsigned n;
	const uint32_t *ids;	   /* rising */
	const uint32_t *distances; /* n x n, row by row; NULL when unknown */
};

struct hint_decision {
	struct numa_hint hint;
	bool admit;
};

/* What a rejected pod is told (5.6). */
#define HINTS_REJECT_REASON "TopologyAffinityError"
#define HINTS_REJECT_MESSAGE "Resources cannot be allocated with Topology locality"

int hint_policy_parse(struct str name, enum hint_policy *ret, struct err *err);
int hint_scope_parse(struct str name, enum hint_scope *ret, struct err *err);

/* prefer-closest-numa-nodes, max-allowable-numa-nodes. */
int hint_config_set(struct hint_config *c, struct str name, struct str value, struct err *err);

/* Refuses machines the configuration cannot work on: too many nodes, unknown distances. */
int hint_config_check(const struct hint_config *c, const struct topology *t, struct err *err);

/* All nodes of a machine, those without CPUs included. */
struct hint_nodes hint_nodes_of(const struct topology *t);

/* Merges what the providers answered and says whether the policy admits the result. */
struct hint_decision hints_decide(const struct hint_config *c, const struct hint_nodes *nodes,
				  const struct hint_provider *providers, size_t n, struct arena *a);

/* A request for CPUs. In container scope `n_cpus` is the container's and `allocated` the set it
 * already holds. In pod scope `n_cpus` is the pod's total (3.5): give the union of what its
 * containers hold as `allocated` when it is complete, and as part of `reusable` when it is not. */
struct cpu_hint_request {
	unsigned n_cpus;
	const struct cpuset *available; /* free for exclusive use */
	const struct cpuset
		*reusable; /* also usable, and must be used: init containers'; or NULL */
	const struct cpuset *capacity;	/* the pool (7.4); NULL: all CPUs, as upstream (Q4) */
	const struct cpuset *allocated; /* held already; NULL when nothing is */
	bool align_by_socket;
};

/* The CPU manager's hints, in the order of masks: fewer nodes first, then lower ids. `any` for a
 * request of 0; no items when it cannot be satisfied. -E2BIG with more than HINTS_MAX_NODES nodes
 * or node ids from 64 on: such a machine can only be used without hints (7.10). */
int hints_for_cpus(const struct topology *t, const struct cpu_hint_request *request,
		   struct arena *a, struct hint_list *ret, struct err *err);

/* Binary, most significant node first, padded to an even number of digits with the kubelet's own
 * exceptions: "01", "10", "100", "0101" (5.1). For logs. */
struct str hint_mask_format(uint64_t mask, struct arena *a);
