#pragma once

/* A sound partition for a machine: whole cores, the first one of the machine among the reserved,
 * spread over or packed into NUMA nodes; and the reasons as sentences. Only the threads of a
 * machine with one core are divided. */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "cpu/cpuset.h"

struct arena;
struct err;
struct topology;

/* Four CPUs, the budget of a RAN site, but at most half of a small machine. */
#define SUGGEST_BY_SIZE UINT_MAX

struct suggest_options {
	unsigned reserved; /* threads for the platform, at least; or SUGGEST_BY_SIZE */
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
