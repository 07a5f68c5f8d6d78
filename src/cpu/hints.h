#pragma once

/* NUMA hints: the NUMA nodes from which a container's resources can come, merged into one set of
 * nodes as in the kubelet's topology manager (docs/reference/topology-manager.md). Pure functions
 * without state. Allocating CPUs on the hinted nodes and iterating over a pod's containers is in
 * src/pool; the scope only says for which request the hints are made. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "cpuset.h"

struct arena;
struct err;
struct topology;

#define HINTS_MAX_NODES 16	  /* the number of masks doubles with each node */
#define HINTS_DEFAULT_MAX_NODES 8 /* the kubelet's limit without max-allowable-numa-nodes */

/* A set of NUMA node ids; preferred: no smaller set can hold the request. Without a mask: any. */
struct numa_hint {
	uint64_t mask; /* bit = node id */
	bool has_mask;
	bool preferred;
};

/* The hints for one resource of one provider. `any` is "don't care"; no items and not `any` is
 * "cannot be satisfied". */
struct hint_list {
	bool any;
	const struct numa_hint *items;
	size_t n;
};

/* The hints of one provider, a list per resource; no list is "don't care". */
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
	unsigned max_nodes; /* 0: HINTS_DEFAULT_MAX_NODES */
};

/* The NUMA nodes of the machine and their distances; see hint_nodes_of. */
struct hint_nodes {
	unsigned n;
	const uint32_t *ids;	   /* rising */
	const uint32_t *distances; /* n x n, row by row; NULL when unknown */
};

struct hint_decision {
	struct numa_hint hint;
	bool admit;
};

/* Reason and message for a rejected pod, as the kubelet's
 * (docs/reference/topology-manager.md#rejection). */
#define HINTS_REJECT_REASON "TopologyAffinityError"
#define HINTS_REJECT_MESSAGE "Resources cannot be allocated with Topology locality"

int hint_policy_parse(struct str name, enum hint_policy *ret, struct err *err);
int hint_scope_parse(struct str name, enum hint_scope *ret, struct err *err);
const char *hint_policy_name(enum hint_policy policy); /* "best-effort" */
const char *hint_scope_name(enum hint_scope scope);    /* "container" */

/* prefer-closest-numa-nodes, max-allowable-numa-nodes. */
int hint_config_set(struct hint_config *c, struct str name, struct str value, struct err *err);

/* Refuses machines that the configuration does not support: too many nodes, unknown distances. */
int hint_config_check(const struct hint_config *c, const struct topology *t, struct err *err);

/* At most HINTS_DEFAULT_MAX_NODES nodes have CPUs, and each fits a mask. Unlike in the kubelet,
 * nodes without CPUs do not count: accelerators add many of them, and they are in no mask for CPUs.
 */
bool hints_are_supported(const struct topology *t);

/* All nodes of a machine, including those without CPUs. */
struct hint_nodes hint_nodes_of(const struct topology *t);

/* Merges the providers' hints and decides whether the policy admits the result. */
struct hint_decision hints_decide(const struct hint_config *c, const struct hint_nodes *nodes,
				  const struct hint_provider *providers, size_t n, struct arena *a);

/* A request for CPUs. In container scope `n_cpus` is the container's request and `allocated` the
 * set it already owns. In pod scope `n_cpus` is the pod's total
 * (docs/reference/cpu-manager.md#pod-total): pass the union of its containers' CPUs as `allocated`
 * when all of them have theirs, otherwise as part of `reusable`. */
struct cpu_hint_request {
	unsigned n_cpus;
	const struct cpuset *available; /* free for exclusive use */
	const struct cpuset *reusable;	/* of init containers: must be used first; or NULL */
	const struct cpuset *capacity;	/* the pool; NULL: all CPUs, as upstream (D14) */
	const struct cpuset *allocated; /* already owned; NULL when nothing is */
	bool align_by_socket;
};

/* The CPU manager's hints, in the order of masks: fewer nodes first, then lower ids. `any` for a
 * request of 0; no items when it cannot be satisfied. -E2BIG with more than HINTS_MAX_NODES nodes
 * or node ids from 64 on: such a machine is used without hints
 * (docs/reference/pools.md#many-numa-nodes). */
int hints_for_cpus(const struct topology *t, const struct cpu_hint_request *request,
		   struct arena *a, struct hint_list *ret, struct err *err);

/* The hints of a resource other than CPUs that the container already has, such as a device: every
 * mask of its nodes and any nodes with CPUs, in the order of hints_for_cpus(). Preferred is the
 * mask of exactly its nodes. `any` without a node. The machine has at most HINTS_MAX_NODES nodes
 * with CPUs. */
struct hint_list hints_for_nodes(const struct topology *t, uint64_t nodes, struct arena *a);
