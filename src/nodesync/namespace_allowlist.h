#pragma once

/* The namespaces whose pods may run on the management CPUs. Only allowed ones are stored: a cluster
 * may have thousands of others. namespace_watch.h fills it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "codec/doc.h"
#include "pin/classify.h"

struct allowed_namespace {
	char *namespace;
	uint32_t generation; /* of the last list that had it */
};

struct namespace_allowlist {
	struct allowed_namespace *items; /* sorted by name */
	size_t n, cap;
	uint32_t generation;
	bool is_legacy; /* a label counts where there is no annotation */
	bool is_known;	/* one list was complete */
};

void namespace_allowlist_done(struct namespace_allowlist *list);

/* Objects are read only during the call. */
void namespace_allowlist_put(struct namespace_allowlist *list, yyjson_val *namespace);
void namespace_allowlist_remove(struct namespace_allowlist *list, yyjson_val *namespace);
void namespace_allowlist_begin_list(struct namespace_allowlist *list);
/* Removes the namespaces that were not put since namespace_allowlist_begin_list(). */
void namespace_allowlist_end_list(struct namespace_allowlist *list);

/* The last known list stays in effect while the API server is unreachable: a namespace that was not
 * allowed stays so, and the management CPUs are protected. */
enum permission namespace_allowlist_check(const struct namespace_allowlist *list,
					  struct str namespace);
