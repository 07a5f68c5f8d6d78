#pragma once

/* The installer's install-config, as far as CPU partitioning goes: the mode, the replicas that
 * give the topologies, and workloadSettings of the 2021 design with its per-node variants. All
 * other fields are the installer's and are ignored. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "cpu/cpuset.h"
#include "manifests.h"

struct arena;
struct problem_list;

enum partitioning_mode { PARTITIONING_UNSET, PARTITIONING_NONE, PARTITIONING_ALL_NODES };

/* One entry of workloadSettings: a workload type and its CPUs. */
struct workload_setting {
	struct str type;
	struct cpuset cpus;
	struct str text;   /* the CPU list as it was written */
	struct str *nodes; /* only on these; none means everywhere */
	size_t n_nodes;
	yyjson_val *value; /* the entry, for messages */
};

struct install_config {
	struct manifest at; /* doc is NULL when none was given */
	struct str cluster_name, base_domain;
	enum partitioning_mode mode;
	const char *control_plane_topology, *infrastructure_topology;
	int64_t n_workers;
	struct workload_setting *settings;
	size_t n_settings;
};

/* Faults are added to `p`; *ret is complete in any case. */
void install_config_read(struct manifest m, struct arena *a, struct install_config *ret,
			 struct problem_list *p);

/* The effective mode: an entry of workloadSettings also turns partitioning on
 * (docs/reference/openshift-render.md#workload-settings). */
bool install_config_wants_partitioning(const struct install_config *c);

/* Topologies from replica counts (docs/reference/openshift-render.md#topologies). */
const char *control_plane_topology(int64_t replicas, int64_t arbiters);
const char *infrastructure_topology(int64_t workers, const char *control_plane);
