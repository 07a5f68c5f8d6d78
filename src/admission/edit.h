#pragma once

/* Turns what a pod shall look like into the fewest patch operations: annotations of ours that are
 * set, kept or dropped, and amounts in the resource lists of containers. Whatever is not ours is
 * never named in an operation. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "kube/patch.h"
#include "kube/pod.h"

struct arena;

enum own_kind {
	OWN_TARGET,	/* target.workload.openshift.io/... */
	OWN_RESOURCES,	/* resources.workload.openshift.io/... */
	OWN_STAMP,	/* the CPU facts for the node */
	OWN_LEGACY_CPU, /* the first document's per-container annotation */
	OWN_WARNING,	/* stays unless set anew */
};

struct own_annotation {
	struct str key;
	struct str name; /* what follows the prefix */
	struct str value;
	enum own_kind kind;
	bool is_settled; /* set again, so not to be removed */
};

struct annotation_set {
	struct str key, value;
};

/* The annotations of ours that a pod has, and those it shall have. */
struct annotations {
	struct arena *a;
	yyjson_val *map; /* all of them; not an object when there are none */
	struct own_annotation *own;
	size_t n_own;
	struct annotation_set *sets;
	size_t n_sets, cap_sets;
	bool failed; /* memory ran out */
};

/* With `legacy`, the first document's annotations are ours as well. */
void annotations_scan(struct annotations *ann, yyjson_val *map, bool legacy, struct arena *a);
struct own_annotation *annotations_find(const struct annotations *ann, struct str key);

/* Keeps what is there as it is. */
void annotations_keep(struct own_annotation *own);
void annotations_set(struct annotations *ann, struct str key, struct str value);

/* Operations for everything set; annotations of ours that were neither set nor kept are removed,
 * all but the warning. `meta` is the pod's metadata. */
void annotations_flush(struct annotations *ann, yyjson_val *meta, struct patch *p);

/* The resource lists of one container. */
struct resource_edit {
	struct patch *p;
	const struct container *c;
	struct str base;     /* pointer to its "resources" */
	struct str lists[2]; /* to its requests and limits */
	bool has_resources, has_requests, has_limits;
};

struct resource_edit resource_edit(struct patch *p, const struct container *c);
void resource_drop(struct resource_edit *e, bool of_limit, struct str name);

/* Nothing happens where the amount is there already, however it is spelled. */
void resource_set(struct resource_edit *e, bool of_limit, struct str name,
		  const struct quantity *value);
