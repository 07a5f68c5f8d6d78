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
	OPERATOR_WATCHED, /* how many kinds are watched */

	/* Read on demand. */
	OPERATOR_NODE_PODS = OPERATOR_WATCHED, /* the pods of a node that is drained, by its name */
	OPERATOR_KIND__COUNT
};

struct operator_kind_info {
	const char *name; /* "Node" */
	struct watch_config watch;
	/* Puts the members to keep into `to`, except the resourceVersion. */
	void (*keep)(yyjson_val *object, yyjson_mut_doc *m, yyjson_mut_val *to);
};

extern const struct operator_kind_info operator_kinds[OPERATOR_KIND__COUNT];

/* "name" or "namespace/name". */
struct str operator_object_key(yyjson_val *object, struct arena *a);

/* The text that the store keeps. */
int operator_object_trim(enum operator_kind kind, yyjson_val *object, struct arena *a,
			 struct str *ret, struct err *err);
