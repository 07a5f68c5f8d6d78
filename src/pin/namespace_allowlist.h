#pragma once

/* The namespaces whose pods may use a workload type, as the cluster says. Only those that allow any
 * are stored: a cluster may have thousands of others. nodesync/namespace_watch.h fills the list. It
 * is also a file in the run directory, so that the last known permissions are in effect while the
 * API server is unreachable, also after a restart of the agent and for OCI hooks (D15). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "codec/doc.h"
#include "permission.h"

struct arena;
struct err;

#define ALLOWLIST_FILE "namespaces.json"

struct allowed_namespace {
	char *namespace;
	char *types;	     /* "management,other" */
	uint32_t generation; /* of the last list that had it */
};

struct namespace_allowlist {
	struct allowed_namespace *items; /* sorted by name */
	size_t n, cap;
	uint32_t generation;
	bool is_legacy;	 /* a label counts where there is no annotation */
	bool is_known;	 /* one list was complete, or was read from the file */
	bool is_changed; /* since the file was written; the owner clears it */
};

void namespace_allowlist_done(struct namespace_allowlist *list);

/* Adds a type to those of a namespace, which is added if necessary. -ENOSPC when the types of one
 * namespace are longer than a list keeps. */
int namespace_allowlist_add(struct namespace_allowlist *list, struct str namespace, struct str type,
			    struct err *err);

/* Whether both allow the same. Types that are not valid names count for nothing: no node has them.
 */
bool namespace_allowlist_allows_same(const struct namespace_allowlist *a,
				     const struct namespace_allowlist *b);

/* Takes over what `from` allows, as a complete list, and leaves `from` empty. is_changed is set
 * only if that is something else. */
void namespace_allowlist_take(struct namespace_allowlist *list, struct namespace_allowlist *from);

/* Objects are read only during the call. */
void namespace_allowlist_put(struct namespace_allowlist *list, yyjson_val *namespace);
void namespace_allowlist_remove(struct namespace_allowlist *list, yyjson_val *namespace);
void namespace_allowlist_begin_list(struct namespace_allowlist *list);
/* Removes the namespaces that were not put since namespace_allowlist_begin_list(). */
void namespace_allowlist_end_list(struct namespace_allowlist *list);

/* Unknown until a list was complete. The last known list stays in effect while the API server is
 * unreachable. */
enum permission namespace_allowlist_check(const struct namespace_allowlist *list,
					  struct str namespace, struct str type);

/* How many namespaces allow the type. */
size_t namespace_allowlist_count(const struct namespace_allowlist *list, struct str type);

/* The file, {"version":1,"server":"https://...","namespaces":{"openshift-dns":"management"}}.
 * `server` is the API server that the list is from. A file of another one is refused (-ESTALE):
 * its namespaces are not those of this cluster. "" accepts every server. -EINVAL for a damaged
 * file. On failure the list is unchanged. */
int namespace_allowlist_write(const struct namespace_allowlist *list, int dir_fd, struct str server,
			      struct err *err);
int namespace_allowlist_read(struct namespace_allowlist *list, int dir_fd, struct str server,
			     struct err *err);
