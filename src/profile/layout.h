#pragma once

/* Manifests resolved to CPU sets: whether the cluster is partitioned, which machine config pools
 * there are, and for every profile the CPU sets of its pool's machines. Renderers and `plan` start
 * here. Pure: manifests in, a layout and a list of problems out. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "install_config.h"
#include "manifests.h"
#include "profile.h"
#include "user_configs.h"

struct arena;
struct problem_list;
struct topology;

/* A MachineConfigPool, given or implied (master and worker always exist). */
struct machine_pool {
	struct manifest at; /* doc is NULL when implied */
	struct str name;
	yyjson_val *labels;
	yyjson_val *node_selector; /* a selector; NULL selects nothing */
};

/* One profile on one pool. The sets are disjoint and not larger than the machine. */
struct partition {
	const struct profile *profile;
	const struct machine_pool *pool;
	struct cpuset cpus[PROFILE_SET__COUNT];
	struct str text[PROFILE_SET__COUNT]; /* a list as it was written; else the canonical form */
	const struct topology *topology;     /* NULL when none was given */
};

struct layout {
	struct install_config install;
	struct user_configs user_configs;
	bool pinned;	/* the cluster is partitioned: AllNodes, or an older single node */
	bool is_legacy; /* ...and only a MachineConfig of a single node says so (D3) */
	bool makes_infrastructure; /* the Infrastructure object is ours to write */
	struct str control_plane_topology, infrastructure_topology;
	struct machine_pool *pools; /* implied ones first, then as given */
	size_t n_pools;
	struct str *bootstrap; /* names of pools that get the whole CPU set to begin with */
	size_t n_bootstrap;
	struct profile *profiles;
	struct partition *partitions; /* in the order the profiles were read */
	size_t n_partitions;
};

/* The hardware of a pool's machines, or, without a name, of all that have none of their own. */
struct pool_topology {
	struct str pool;
	const struct topology *topology;
};

struct layout_options {
	const struct pool_topology *topologies;
	size_t n_topologies;
	bool plain_hosts; /* without OpenShift: a profile's role is its pool, and a profile alone
			   * is enough to partition its machines */
	bool without_kubelet;	/* any number of reserved CPUs is enough */
	bool allow_split_cores; /* SMT siblings in different sets are then only a warning */
};

/* *ret is complete when no error was added to `p`. */
void layout_resolve(const struct manifests *ms, const struct layout_options *options,
		    struct arena *a, struct layout *ret, struct problem_list *p);

/* The partition of a pool; NULL when no profile is for it. */
const struct partition *layout_find(const struct layout *layout, struct str pool);

/* The pool of a node (docs/reference/openshift-render.md#node-pools); NULL when none selects it. */
const struct machine_pool *layout_pool_of_node(const struct layout *layout, yyjson_val *labels);
