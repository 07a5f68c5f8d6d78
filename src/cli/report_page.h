#pragma once

/* The page of `pinfold report`, from a support bundle: the maps and findings of its nodes, the
 * state of the cluster, what happened when, checks, versions, and what is not known. */

#include <stddef.h>

#include "base/str.h"

struct arena;
struct err;
struct saved_bundle;

struct report {
	struct str page;
	size_t n_findings; /* of verify, of the cluster, and failed checks */
};

/* Parts that the bundle lacks are named in the page. `title` may be "". */
int report_make_page(const struct saved_bundle *b, struct str title, struct arena *a,
		     struct report *ret, struct err *err);
