#pragma once

/* A sound partition for a machine: whole cores, the first one of the machine among the reserved,
 * spread over or packed into NUMA nodes; and the reasons as sentences. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "cpu/cpuset.h"

struct arena;
struct err;
struct topology;

struct suggest_options {
	unsigned reserved; /* threads for the platform, at least */
	unsigned shared;   /* threads for ordinary pods, at least; 0: no shared set */
	bool packed; /* fill one NUMA node before the next; otherwise alternate between them */
};

struct suggestion {
	struct cpuset reserved, shared, isolated;
	struct str reasons[8];
	size_t n_reasons;
};

/* -ERANGE when the machine is too small for the request. */
int suggest(const struct topology *t, const struct suggest_options *o, struct arena *a,
	    struct suggestion *ret, struct err *err);
