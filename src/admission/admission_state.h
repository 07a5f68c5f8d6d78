#pragma once

/* The state of the cluster that decisions use: the Infrastructure object, the permissions of
 * namespaces, what the nodes advertise, and which features are on. The owner of the state
 * (manifests here, the webhook's cache in cluster/cache.h) provides two lookup functions, which
 * allocate nothing. No object is kept. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "codec/doc.h"
#include "namespaces.h"

struct arena;
struct err;

struct infrastructure_status {
	bool is_present;
	bool has_status; /* false while the cluster is installed: every pod that opted in is refused
			  */
	bool has_topology;	 /* one of the two topologies is set */
	bool is_single;		 /* the control plane is SingleReplica */
	bool is_partitioned;	 /* cpuPartitioning is AllNodes */
	struct str partitioning; /* as written, for messages */
};

/* Totals over all nodes. */
struct node_totals {
	size_t n;
	size_t n_reporting;	     /* have capacity or allocatable */
	size_t n_schedulable;	     /* not cordoned */
	size_t n_schedulable_shared; /* of those, advertise the shared pool */
	struct str missing_shared;   /* the name of one that does not advertise it */
};

enum node_mode { NODE_MODE_REFUSE, NODE_MODE_TAINT };

struct admission_settings {
	bool pools;	      /* feature gate GuaranteedCPUPool */
	bool legacy;	      /* the names of 2021 are accepted (D2) */
	bool requires_agent;  /* partitioned pods require the agent on their node */
	enum node_mode nodes; /* for a node that joins without the resource (D7) */
};

struct admission_state {
	struct admission_settings settings;
	struct infrastructure_status infrastructure;
	struct node_totals nodes;
	bool is_synced; /* false until the owner has read the whole cluster once */
	const void *owner;
	bool (*find_namespace)(const void *owner, struct str name,
			       struct namespace_permission *ret);
	bool (*has_cores)(const void *owner,
			  struct str type); /* a node has allocatable cores of `type` */
};

/* Strings point into the object. */
struct infrastructure_status infrastructure_status_of(yyjson_val *object);
bool node_has_resource(yyjson_val *resources, struct str part); /* has a key that contains `part` */

/* CPU lists of a PerformanceProfile, for `pinfold explain`. */
struct profile_cpus {
	struct str name, reserved, isolated, shared;
	yyjson_val *node_selector; /* labels of its nodes */
};

/* A state from manifests. Objects are added in any order; of two with the same name the last one
 * counts. */
struct state_manifests {
	struct admission_state state; /* valid after state_manifests_seal() */
	struct arena *arena;
	struct namespace_table namespaces;
	yyjson_val **nodes;
	size_t n_nodes, cap_nodes;
	struct profile_cpus *profiles;
	size_t n_profiles, cap_profiles;
	size_t n_objects; /* of the kinds that are used */
};

void state_manifests_init(struct state_manifests *m, struct arena *a);

/* Returns 1 when the object is of a kind that is used, 0 when it is ignored. The object has to
 * outlive the state. */
int state_manifests_add(struct state_manifests *m, yyjson_val *object, struct err *err);
void state_manifests_seal(struct state_manifests *m);

/* Whether a FeatureGate object turns GuaranteedCPUPool on, by a preview feature set or by name. */
bool feature_gate_has_pools(yyjson_val *object);

/* The value of --feature-gates: "GuaranteedCPUPool=true". */
int settings_parse_gates(struct str text, struct admission_settings *s, struct err *err);
