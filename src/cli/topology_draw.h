#pragma once

/* A machine as a picture for a terminal: one box per NUMA node, in it the cores by L3
 * cache, in those the threads. Text only; the caller prints it. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "cpu/cpuset.h"

struct arena;
struct topology;

/* CPUs to mark: by colour, or by a letter behind the number where there is none. */
struct topology_pool {
	const char *name;
	char letter;
	const char *colour; /* SGR parameters: "32" */
	struct cpuset cpus;
};

struct topology_drawing {
	const struct topology_pool *pools;
	size_t n_pools;
	bool colour;
	size_t width; /* columns */
	bool letters; /* a letter per thread instead of its number: for very large machines */
};

struct str topology_draw(const struct topology *t, const struct topology_drawing *how,
			 struct arena *a);
