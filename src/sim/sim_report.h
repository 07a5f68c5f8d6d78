#pragma once

/* What a simulation shows: totals, one entry for each pool of nodes, where free CPUs cannot be
 * used, and why pods are left over. Pure: values from a struct sim, printed by the command. */

#include "sim.h"

struct sim_pool {
	struct str name;
	struct str profile; /* of its nodes; "": none, "several": not the same on all of them */
	size_t n_nodes, n_pods;
	size_t fewest_pods, most_pods; /* on one node */
	int64_t n_cpus;		       /* online */
	struct sim_amounts allocatable, used;
	/* The management pool. CPUs are those of the node with the fewest. */
	unsigned management_cpus;
	int64_t peak_milli;	  /* requested for it on one node, at most */
	unsigned sufficient_cpus; /* whole cores that hold this */
	size_t n_over;		  /* nodes on which more was requested than the pool has */
	/* Exclusive CPUs, over all nodes. */
	unsigned guaranteed_cpus, assigned_cpus, free_cpus;
	unsigned broken_cpus;	  /* free, on a core of which another thread is assigned */
	unsigned largest_in_numa; /* free CPUs of one NUMA node, at most */
	unsigned largest_in_node; /* free CPUs of one node, at most */
};

/* Room for further pods with this many exclusive CPUs, by the ledgers alone. */
struct sim_room {
	unsigned n_cpus;
	size_t by_count;     /* as many as the free CPUs of each node hold */
	size_t in_numa_node; /* with all CPUs of a pod in one NUMA node */
};

#define SIM_HISTOGRAM 10

struct sim_report {
	size_t n_pods, n_running, n_pending, n_refused, n_denied, n_left;
	size_t by_admission[SIM_ADMISSION__COUNT];
	struct sim_pool *pools;
	size_t n_pools;
	struct sim_room *rooms; /* rising by CPUs */
	size_t n_rooms;
	/* Nodes by the share of their allocatable CPU that is requested: below 10 %, 20 %... */
	size_t histogram[SIM_HISTOGRAM];
	/* Running pods of class i in pool j: placed[i * n_pools + j]. */
	size_t *placed;
};

void sim_report_make(const struct sim *s, struct arena *a, struct sim_report *ret);
