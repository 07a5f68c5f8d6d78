#pragma once

/* The CPUs of a machine as groups of cores that share socket, NUMA node and L3 cache: small enough
 * for an object of the API server, and all that a map needs. Pure. */

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct arena;
struct err;
struct topology;

struct machine_group {
	int64_t socket, numa, cache;
	struct str cores; /* the CPU list of each core, separated by blanks: "0,32 1,33" */
};

#define MACHINE_GROUPS_MAX 256

/* In the order of sockets, NUMA nodes and caches. -E2BIG beyond MACHINE_GROUPS_MAX. */
int machine_groups_of(const struct topology *t, struct arena *a, struct machine_group **ret,
		      size_t *ret_n, struct err *err);

/* A topology with these groups; cores and dies are numbered in their order. */
int machine_groups_build(const struct machine_group *groups, size_t n, struct arena *a,
			 struct topology *ret, struct err *err);
