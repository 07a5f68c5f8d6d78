#pragma once

/* The kinds of objects that the operator follows: where they are, and which of their members it
 * keeps. Pure. A kind is a row in kinds.c. */

#include "base/str.h"
#include "cluster/watch.h"
#include "codec/doc.h"

struct arena;
struct err;

enum operator_kind {
	OPERATOR_PROFILES,
	OPERATOR_PARTITIONS,
	OPERATOR_NODES,
	OPERATOR_INFRASTRUCTURES, /* the cluster flag */
	OPERATOR_NAMESPACES,	  /* those that allow a workload type */
	OPERATOR_DIGEST,	  /* the ConfigMap with their names */
	OPERATOR_PARAMETERS,	  /* the ConfigMap that admission policies read */

	/* With --openshift only. */
	OPERATOR_MACHINE_POOLS,
	OPERATOR_MACHINE_CONFIGS,
	OPERATOR_KUBELET_CONFIGS,
	OPERATOR_TUNEDS,
	OPERATOR_RUNTIME_CLASSES,
	OPERATOR_WATCHED, /* how many kinds are watched */

	/* Read on demand. */
	OPERATOR_NODE_PODS = OPERATOR_WATCHED, /* the pods of a node that is drained, by its name */
	OPERATOR_KIND__COUNT
};

struct operator_kind_info {
	const char *name; /* "Node"; a label of metrics, so no two are alike */
	struct watch_config watch;
	/* Puts the members to keep into `to`, except the resourceVersion. */
	void (*keep)(yyjson_val *object, yyjson_mut_doc *m, yyjson_mut_val *to);
	/* Whether the object is stored at all; NULL: every one is. */
	bool (*is_wanted)(yyjson_val *object);
	bool is_openshift; /* watched with --openshift only */
};

extern const struct operator_kind_info operator_kinds[OPERATOR_KIND__COUNT];

/* Whether the operator itself applied the object. */
bool operator_object_is_own(yyjson_val *object);

/* "name" or "namespace/name". */
struct str operator_object_key(yyjson_val *object, struct arena *a);

/* Of a Node: the last heartbeat of its agent, Unix time; 0 for none and for other objects. */
int64_t operator_agent_seen_s(yyjson_val *object);

/* The text that the store keeps. */
int operator_object_trim(enum operator_kind kind, yyjson_val *object, struct arena *a,
			 struct str *ret, struct err *err);
