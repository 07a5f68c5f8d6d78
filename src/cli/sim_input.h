#pragma once

/* What `pinfold sim` reads: nodes, pods and profiles from manifests and options, and one run of the
 * simulation over them. Reading is separate from running, because --compare runs twice. */

#include "base/options.h"
#include "cluster_options.h"
#include "cpu/hints.h"
#include "sim/sim.h"
#include "sim/sim_report.h"

struct arena;
struct err;
struct topology;

struct sim_options {
	struct cluster_options cluster;
	struct option_list files;
	struct option_list nodes;
	struct option_list topologies;
	const char *memory;
	unsigned max_pods;
	const char *workload;
	unsigned pods, churn, seed;
	const char *policy;
	struct option_list compare;
	bool print_manifests;
	const char *output;
};

/* Something by name, in a sorted list. */
struct sim_name {
	struct str name;
	yyjson_val *object;
	uint32_t number; /* in the order of the input */
	const struct topology *topology;
};

void sim_names_sort(struct sim_name *names, size_t n);
/* The first of this name; NULL when there is none. */
const struct sim_name *sim_names_find(const struct sim_name *names, size_t n, struct str name);

bool sim_has_kind(yyjson_val *object, const char *kind);

#define SIM_COUNT_MAX 1000000 /* nodes, pods: what 32-bit numbers and a patient user allow */

/* A value of --nodes. */
struct sim_node_option {
	struct str pool;
	uint32_t count;
	const struct topology *topology;
};

struct sim_input {
	const struct sim_options *o;
	struct arena *a;
	struct manifest_list list;
	struct sim_node_option *shapes;
	size_t n_shapes;
	const struct topology **topologies; /* of Node objects */
	size_t n_topologies;
	yyjson_val **profiles;
	size_t n_profiles;
	struct sim_name *partitions; /* NodePartitions, by name */
	size_t n_partitions;
	struct sim_name *machines; /* nodes whose topology a bundle has */
	size_t n_machines, cap_machines;
	bool has_stored_pods; /* of a cluster that runs */
};

int sim_input_read(struct sim_input *in, const struct sim_options *o, struct arena *a,
		   struct err *err);

/* The same input with another profile or policy. */
struct sim_variant {
	struct str name; /* "" for the first run */
	yyjson_val **profiles;
	size_t n_profiles;
	bool has_policy;
	enum hint_policy policy;
};

struct sim_variant sim_input_variant(const struct sim_input *in);
/* A value of --compare: "topology-policy=restricted", or manifests with profiles. */
int sim_input_compare(const struct sim_input *in, const char *text, struct sim_variant *ret,
		      struct err *err);

/* Nodes with the same CPUs and pools share a machine. */
struct sim_known_machine {
	const struct topology *topology;
	yyjson_val *profile;
	uint64_t partition; /* a hash of its lists; 0: none */
	struct sim_machine machine;
	struct str note;
	size_t n_nodes;
};

struct sim_run {
	struct str name;
	struct sim sim;
	struct sim_report report;
	struct sim_known_machine **machines;
	size_t n_machines;
};

/* `quiet`: no notes on standard error. */
int sim_run(struct sim_run *run, const struct sim_input *in, const struct sim_variant *v,
	    bool quiet, struct err *err);
void sim_run_done(struct sim_run *run);
