#pragma once

/* A support bundle that was read: its files by path, its index, and what commands look for in it.
 * docs/bundle.md describes the layout. Pure: bundle_load.h reads it from a file or directory. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "codec/doc.h"

struct arena;
struct err;

#define BUNDLE_KIND "SupportBundle"
#define BUNDLE_API "pinfold.io/v1alpha1"
#define BUNDLE_FORMAT 1
#define BUNDLE_MAX_BYTES ((size_t)256 << 20)
#define BUNDLE_MAX_FILE ((size_t)16 << 20)

/* Paths in a bundle. Those of a node are below nodes/NAME/. */
#define BUNDLE_INDEX "index.json"
#define BUNDLE_OBJECTS "objects/"
#define BUNDLE_LOGS "logs/"
#define BUNDLE_NODES "nodes/"
#define BUNDLE_CHECK "check.json"
#define BUNDLE_VERSIONS "versions.json"
#define BUNDLE_NODE_STATUS "status.json"     /* the agent's status document */
#define BUNDLE_NODE_TOPOLOGY "topology.json" /* as `pinfold topology -o json` */
#define BUNDLE_NODE_VERIFY "verify.json"     /* as `pinfold verify -o json` */
#define BUNDLE_NODE_CHECK "check.json"	     /* as `pinfold check -o json` */
#define BUNDLE_NODE_HOST "host.json"
#define BUNDLE_NODE_LEDGER "ledger.json"
#define BUNDLE_NODE_POOLS "pools.json"
#define BUNDLE_NODE_PROFILE "profile.json"

struct bundle_file {
	struct str path, bytes;
};

struct saved_bundle {
	struct str name;		 /* of the file or directory, for messages */
	const struct bundle_file *files; /* by path */
	size_t n;
	struct doc index;
	struct str created; /* RFC 3339 */
	struct str version; /* of the Pinfold that wrote it */
};

/* Whether the bytes of an index.json are those of a bundle. */
bool saved_bundle_is_index(struct str text, struct arena *a);

/* Sorts `files`. A directory that all of them are in is removed from their paths. Refuses unsafe
 * and duplicate paths, and a set of files without the index of a bundle. */
int saved_bundle_open(struct bundle_file *files, size_t n, struct str name, struct arena *a,
		      struct saved_bundle *ret, struct err *err);

/* An archive (tar.h). */
int saved_bundle_parse(struct str bytes, struct str name, struct arena *a, struct saved_bundle *ret,
		       struct err *err);

/* NULL when there is none. */
const struct bundle_file *saved_bundle_find(const struct saved_bundle *b, struct str path);

/* Parses a JSON file; -ENOENT when there is none. */
int saved_bundle_doc(const struct saved_bundle *b, struct str path, struct arena *a,
		     struct doc *ret, struct err *err);

/* "BUNDLE:PATH", for messages. */
struct str saved_bundle_position(const struct saved_bundle *b, struct str path, struct arena *a);

/* Calls `visit` with every object of the cluster. A negative result ends it. */
typedef int (*bundle_object_fn)(void *context, yyjson_val *object, struct err *err);
int saved_bundle_each_object(const struct saved_bundle *b, struct arena *a, bundle_object_fn visit,
			     void *context, struct err *err);

/* The names of the nodes that have files of their own. */
void saved_bundle_nodes(const struct saved_bundle *b, struct arena *a, struct str **ret,
			size_t *ret_n);

/* The node `wanted`, or with NULL the only one. -ENOENT when there is none, -EINVAL when there are
 * several. */
int saved_bundle_node(const struct saved_bundle *b, const char *wanted, struct arena *a,
		      struct str *ret, struct err *err);

/* "nodes/NAME/FILE" */
struct str saved_bundle_node_path(struct str node, const char *file, struct arena *a);
