#pragma once

/* The machines of nodes: their CPUs and pools from a profile, from a NodePartition, or none, and
 * the Node objects that the agent and the kubelet would publish for them. Pure. */

#include "sim.h"

struct node_partition;
struct topology;

/* Where the pools of a node may come from. */
struct sim_pools_source {
	yyjson_val *const *profiles; /* of the cluster */
	size_t n_profiles;
	const struct node_partition *partition; /* of the node; NULL: none */
	/* Replaces the topology policy of every profile. */
	bool has_policy;
	enum hint_policy policy;
};

/* The machine of a node with these labels: a profile that selects it wins over its NodePartition.
 * -EINVAL for conflicting profiles, and for one that does not fit the machine. *ret_note is "" or
 * says why the node is not partitioned. */
int sim_machine_of(const struct sim_pools_source *from, const struct topology *t,
		   yyjson_val *labels, struct arena *a, struct sim_machine *ret,
		   struct str *ret_note, struct err *err);

/* CPUs without caches and SMT, for a Node about which nothing else is known: those of the
 * NodePartition's NUMA nodes, or `n_cpus` in one. */
int sim_topology_guess(const struct node_partition *partition, size_t n_cpus, struct arena *a,
		       struct topology *ret, struct err *err);

struct sim_node_amounts {
	int64_t memory_bytes, max_pods;
};

/* The Node object of such a machine, with the role `pool`. */
yyjson_val *sim_node_make(struct str pool, const struct sim_machine *m,
			  const struct sim_node_amounts *amounts, struct arena *a);

/* A Node object as it would be on this machine: the resources of the pools are replaced, and CPU
 * that leaves or joins the management pool is taken from or added to what is allocatable.
 * `reserved` is the present number of management CPUs. */
yyjson_val *sim_node_adjust(yyjson_val *node, const struct sim_machine *m, int reserved,
			    struct arena *a);

/* The roles of a node as kubectl lists them: "worker", "ran,worker"; "worker" when it has none. */
struct str sim_node_roles(yyjson_val *node, struct arena *a);
