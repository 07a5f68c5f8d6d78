#pragma once

/* What the operator knows at one moment, as values: every decision is a function of a snapshot. It
 * is built for one reconcile from the texts in the stores, and freed as a whole after it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "codec/doc.h"
#include "kinds.h"
#include "object_store.h"
#include "partition/node_partition.h"

struct arena;
struct cluster_findings;
struct openshift_objects;

struct operator_profile {
	struct str name, uid, version;
	int64_t generation;
	bool is_deleting;
	yyjson_val *object; /* without managedFields */
	yyjson_val *annotations, *status;
};

struct operator_node {
	struct str name, uid, version;
	yyjson_val *object; /* the members that kinds.c keeps */
	yyjson_val *labels, *annotations;
	bool is_ready, is_unschedulable;
	bool is_silent; /* its agent has not reported for so long that it counts as dead */
	const struct node_partition *partition; /* NULL: none, or one that cannot be read */
	const size_t *profiles; /* indexes of the profiles that select it; more than one conflict */
	size_t n_profiles;
	const struct operator_profile *profile; /* the only one; NULL: none or several */
	/* Until when a write with an unknown outcome may still change the Node or its partition; it
	 * is read again then. 0: none. */
	uint64_t node_doubt_ms, partition_doubt_ms;
	yyjson_val *pods; /* of a node that is drained, as drain.h keeps them; NULL: not read */
};

struct operator_snapshot {
	struct arena *arena;
	int64_t now_s;				 /* wall clock */
	uint64_t now_ms;			 /* monotonic */
	const struct operator_profile *profiles; /* by name, like the nodes */
	size_t n_profiles;
	const struct operator_node *nodes;
	size_t n_nodes;
	const struct object_store *stores; /* of every kind */
	/* Whether the watch of the namespaces is established: only then the digest is confirmed. */
	bool has_current_namespaces;
	const struct cluster_findings *scanned; /* of namespace_scan.h; NULL: not yet */
	bool has_current_profiles;
	bool counts_pools;			   /* feature gate GuaranteedCPUPool */
	const struct openshift_objects *openshift; /* NULL: without --openshift */
};

/* `stores` has OPERATOR_KIND__COUNT elements and must outlive it, like the arena. */
void operator_snapshot_build(const struct object_store *stores, int64_t now_s, uint64_t now_ms,
			     struct arena *a, struct operator_snapshot *ret);

/* A stored object as a document; NULL when it cannot be read. */
yyjson_val *operator_stored_object(const struct stored_object *o, struct arena *a);

/* Whether the profile is one of those that select the node. */
bool operator_profile_selects(const struct operator_snapshot *s, const struct operator_profile *p,
			      const struct operator_node *node);

/* The text of an annotation; "" when there is none. */
struct str operator_annotation(yyjson_val *annotations, const char *name);
