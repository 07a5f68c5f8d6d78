#pragma once

/* Manifests: Kubernetes objects in YAML or JSON text, with the document each one stands in, for
 * messages. A file may hold several documents, and a List stands for its items. Bytes come in,
 * views come out: nothing here does I/O (bundle/manifest_load.h does) or interprets what an object
 * says.
 */

#include <stddef.h>

#include "base/str.h"
#include "codec/doc.h"

struct arena;
struct err;

/* A dump of a large cluster is larger than anything a person writes. Aliases keep the default limit
 * of doc.h, so a small file cannot expand to these sizes. */
#define MANIFEST_MAX_BYTES ((size_t)256 << 20)
#define MANIFEST_MAX_NODES 20000000
#define MANIFEST_MAX_TREE_BYTES                                                                    \
	((size_t)2 << 30) /* `kubectl get pods` of 15,000 pods takes 0.7 GB */
#define MANIFEST_MAX_DOCUMENTS 1000000

struct manifest {
	const struct doc *doc; /* NULL: there is none */
	yyjson_val *object;
};

struct manifest_list {
	struct manifest *items;
	size_t n, cap;
};

void manifest_list_add(struct manifest_list *list, struct arena *a, struct manifest m);

/* Adds every object of the documents; the items of a List, not the List. */
void manifest_list_add_docs(struct manifest_list *list, struct arena *a,
			    const struct doc_list *docs);

/* Parses one file and requires that every object is a mapping. `name` stands in front of every
 * error: "name:line:column: what". The text must outlive the result. */
int manifest_parse(struct str text, struct str name, struct arena *a, struct doc_list *ret,
		   struct err *err);

/* "file:line:column" of an object. */
struct str manifest_position(const struct manifest *m, struct arena *a);
