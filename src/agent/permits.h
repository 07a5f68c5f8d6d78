#pragma once

/* The namespaces whose pods may run on the reserved CPUs, as the cluster says. Only those that may
 * are kept: a cluster has thousands of others. Where the objects come from is not known here. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "claim.h"
#include "codec/doc.h"

struct permit {
	char *namespace;
	uint32_t generation; /* of the list that last had it */
};

struct permits {
	struct permit *items; /* sorted by name */
	size_t n, cap;
	uint32_t generation;
	bool is_legacy; /* the first document's label counts where there is no annotation */
	bool is_known;	/* a whole list was seen */
};

void permits_done(struct permits *p);

/* Objects are only looked at during the call. */
void permits_put(struct permits *p, yyjson_val *namespace);
void permits_remove(struct permits *p, yyjson_val *namespace);
void permits_begin_list(struct permits *p);
void permits_end_list(struct permits *p); /* what was not put since may no longer */

/* What was known when the connection was lost goes on to count: who is not permitted then stays
 * so, and reserved CPUs are safe. */
enum permission permits_ask(const struct permits *p, struct str namespace);
