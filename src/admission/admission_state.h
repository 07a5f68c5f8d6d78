#pragma once

/* The state of the cluster that decisions use: the Infrastructure object, the permissions of
 * namespaces, what the nodes advertise, and which features are on. The owner of the state
 * (manifests here, the webhook's cache in cluster/cache.h) provides two lookup functions, which
 * allocate nothing. No object is kept; node_facts.h reads one Node. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "codec/doc.h"
#include "namespaces.h"
#include "node_facts.h"

struct arena;
struct err;

struct infrastructure_status {
	bool is_present;
	bool has_status; /* false while the cluster is installed: every pod that opted in is refused
			  */
	bool is_single;	 /* the control plane is SingleReplica */
	bool is_partitioned;	 /* cpuPartitioning is AllNodes */
	struct str partitioning; /* as written, for messages */
};

/* Nodes with the same taints. */
struct node_group {
	struct str taints; /* as in struct node_facts */
	struct str name;   /* of one of them */
};

#define NODE_GROUPS_MAX 16 /* further sets of taints are left out */

/* Totals over all nodes. Available ones could take a pod now (struct node_facts). */
struct node_totals {
	size_t n;
	size_t n_reporting; /* have capacity or allocatable */
	size_t n_available;
	size_t n_shared; /* advertise the shared pool, available or not */
	/* Available nodes that do not advertise it. */
	const struct node_group *missing_shared;
	size_t n_missing_shared;
};

/* Nodes that have allocatable cores of one workload type. */
struct cores_count {
	size_t n, n_available;
};

/* A profile of the cluster, as far as other profiles are concerned. */
struct profile_ref {
	struct str name;
	struct str selector; /* "key=value", as labels_format() writes it; "" selects no node */
};

enum node_mode { NODE_MODE_REFUSE, NODE_MODE_TAINT };

struct admission_settings {
	bool pools;	      /* feature gate GuaranteedCPUPool */
	bool legacy;	      /* the names of 2021 are accepted (D2) */
	bool requires_agent;  /* partitioned pods require the agent on their node */
	enum node_mode nodes; /* for a node that joins without the resource (D7) */
	/* Namespaces whose pods are left alone, besides those of the shipped manifests (D18). */
	const char *const *exempt;
	size_t n_exempt;
};

struct admission_state {
	struct admission_settings settings;
	struct infrastructure_status infrastructure;
	struct node_totals nodes;
	const struct profile_ref *profiles;
	size_t n_profiles;
	bool has_profiles; /* false while the profiles of the cluster are not known */
	bool is_synced;	   /* false until the owner has read the whole cluster once */
	const void *owner;
	bool (*find_namespace)(const void *owner, struct str name,
			       struct namespace_permission *ret);
	struct cores_count (*count_cores)(const void *owner, struct str type);
};

/* The webhook's and the agent's own namespaces, and those in the settings (D18). */
bool namespace_is_exempt(const struct admission_settings *s, struct str namespace);

/* The name is a part of the object, the selector is in the arena. */
struct profile_ref profile_ref_of(yyjson_val *object, struct arena *a);

/* Strings point into the object. */
struct infrastructure_status infrastructure_status_of(yyjson_val *object);

/* Adds an available node without the shared pool to the groups, of which there are *n so far. Texts
 * are not copied. */
void node_groups_add(struct node_group groups[NODE_GROUPS_MAX], size_t *n, struct str name,
		     struct str taints);

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
	struct node_facts *facts; /* of the nodes, once sealed */
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
