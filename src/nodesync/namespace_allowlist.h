#pragma once

/* The namespaces whose pods may run on the reserved CPUs, as the cluster says. Only those that may
 * are kept: a cluster has thousands of others. Where the objects come from is not known here. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "codec/doc.h"
#include "pin/classify.h"

struct allowed_namespace {
	char *namespace;
	uint32_t generation; /* of the list that last had it */
};

struct namespace_allowlist {
	struct allowed_namespace *items; /* sorted by name */
	size_t n, cap;
	uint32_t generation;
	bool is_legacy; /* the first document's label counts where there is no annotation */
	bool is_known;	/* a whole list was seen */
};

void namespace_allowlist_done(struct namespace_allowlist *p);

/* Objects are only looked at during the call. */
void namespace_allowlist_put(struct namespace_allowlist *p, yyjson_val *namespace);
void namespace_allowlist_remove(struct namespace_allowlist *p, yyjson_val *namespace);
void namespace_allowlist_begin_list(struct namespace_allowlist *p);
void namespace_allowlist_end_list(
	struct namespace_allowlist *p); /* what was not put since may no longer */

/* What was known when the connection was lost goes on to count: who is not permitted then stays
 * so, and reserved CPUs are safe. */
enum permission namespace_allowlist_check(const struct namespace_allowlist *p,
					  struct str namespace);
