#pragma once

/* What is wrong with a node, from facts about it. Pure. The facts are read by machine_read.h,
 * from this machine or from a tree with the files of another one. */

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "cpu/topology.h"
#include "distro/distro.h"
#include "pool/config.h"
#include "preflight.h"

enum fact { FACT_UNKNOWN, FACT_NO, FACT_YES };

struct socket_fact {
	const char *path;
	bool exists;
	enum fact accepts; /* unknown in a tree: nothing can listen there */
	int error;	   /* errno of the attempt to connect */
};

/* What configuration files of a runtime say about NRI. */
struct nri_setting {
	enum fact is_enabled, accepts_connections;
	struct str file; /* that says so */
};

struct kubelet_fact {
	struct str policy, state_policy;      /* of its configuration, of cpu_manager_state */
	struct str reserved_cpus;	      /* reservedSystemCPUs */
	struct str topology_policy;	      /* topologyManagerPolicy */
	struct str config_file, config_error; /* the last file that was read; what is wrong */
};

struct machine_facts {
	struct distro_detection distro;
	enum fact etc_is_read_only;
	struct str kernel;			     /* "6.1.0-18-amd64" */
	unsigned cgroup_version;		     /* 0: no hierarchy found */
	struct str controllers;			     /* of cgroup v2 */
	uint64_t inotify_instances, inotify_watches; /* 0: unknown */
	enum fact landlock, seccomp;

	bool has_topology;
	struct topology topology;
	bool has_isolcpus, has_irqaffinity, has_irq_default;
	struct cpuset isolcpus, irqaffinity, irq_default;
	struct cpuset irq_cpus; /* where interrupts are delivered */

	bool has_pools;
	struct pool_config pools;
	const char *pools_from;
	struct err pools_error; /* of pools that are not valid; code 0: none */

	struct socket_fact cri, nri;
	struct str runtime, runtime_version; /* as the CRI socket says; "": unknown */
	struct nri_setting nri_setting;
	struct kubelet_fact kubelet;

	enum fact agent_runs, agent_connected;
	struct str agent_error; /* why its status cannot be read */
};

void preflight_node(const struct machine_facts *f, struct preflight_report *r);

/* Parts of it, for each group of checks. */
void preflight_kernel(const struct machine_facts *f, struct preflight_report *r);
void preflight_cpus(const struct machine_facts *f, struct preflight_report *r);
void preflight_runtime(const struct machine_facts *f, struct preflight_report *r);

/* What a runtime of this version does without configuration, for nodes of a cluster, too. */
struct runtime_support {
	enum preflight_level level;
	enum fact nri_is_on; /* by default */
	const char *why, *remedy;
};

struct runtime_support preflight_runtime_support(struct str name, struct str version);
