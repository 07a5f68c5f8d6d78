#pragma once

/* What a decision has to know of the cluster: the Infrastructure object, which namespaces opted in,
 * what the nodes advertise, and which features are on. Decisions only ask; whoever owns the facts
 * (manifests here, the webhook's cache elsewhere) answers through two functions that allocate
 * nothing. The facts are small: no object is kept. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "codec/doc.h"
#include "namespaces.h"

struct arena;
struct err;

struct infrastructure_status {
	bool is_present;
	bool has_status;	 /* false: a bootstrap race, everything is refused */
	bool has_topology;	 /* one of the two topologies is set */
	bool is_single;		 /* the control plane is SingleReplica */
	bool is_partitioned;	 /* cpuPartitioning is AllNodes */
	struct str partitioning; /* as written, for messages */
};

/* Sums over all nodes, kept up to date by the owner. */
struct node_totals {
	size_t n;
	size_t n_reporting;	     /* say anything about their resources */
	size_t n_schedulable;	     /* not cordoned */
	size_t n_schedulable_shared; /* of those, advertise the shared pool */
	struct str missing_shared;   /* the name of one that does not */
};

enum node_mode { NODE_MODE_REFUSE, NODE_MODE_TAINT };

struct admission_settings {
	bool pools;	      /* feature gate GuaranteedCPUPool */
	bool legacy;	      /* the legacy-2021 dialect is understood */
	bool requires_agent;  /* partitioned pods say that they need it on their node */
	enum node_mode nodes; /* what happens to a node that joins without the resource */
};

struct admission_state {
	struct admission_settings settings;
	struct infrastructure_status infrastructure;
	struct node_totals nodes;
	bool is_synced; /* false until the owner has seen the cluster once */
	const void *owner;
	bool (*find_namespace)(const void *owner, struct str name,
			       struct namespace_permission *ret);
	bool (*has_cores)(const void *owner,
			  struct str type); /* some node allocates type's cores */
};

/* Facts of one object, for owners. Texts point into the object. */
struct infrastructure_status infrastructure_status_of(yyjson_val *object);
bool node_has_resource(yyjson_val *resources, struct str part); /* a key that contains `part` */

/* CPU lists of a profile, for those who explain where a pod would run. */
struct profile_cpus {
	struct str name, reserved, isolated, shared;
};

/* A state made of manifests. Objects are given in any order; of two with the same name the later
 * one counts. */
struct state_manifests {
	struct admission_state state; /* valid after state_manifests_seal() */
	struct arena *arena;
	struct namespace_table namespaces;
	yyjson_val **nodes;
	size_t n_nodes, cap_nodes;
	struct profile_cpus profile;
	size_t n_objects; /* of the kinds that matter */
};

void state_manifests_init(struct state_manifests *m, struct arena *a);

/* Returns 1 when the object is of a kind that matters, 0 when it is not. The object has to outlive
 * the state. */
int state_manifests_add(struct state_manifests *m, yyjson_val *object, struct err *err);
void state_manifests_seal(struct state_manifests *m);

/* "GuaranteedCPUPool=true,..." of --feature-gates. */
int settings_parse_gates(struct str text, struct admission_settings *s, struct err *err);
