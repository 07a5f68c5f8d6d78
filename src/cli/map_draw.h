#pragma once

/* Which pod is on which CPU, as a picture of 80 columns or as a document: the machine with its
 * pools, and below it who runs where. For a node (`pinfold map`) and for one machine without a
 * cluster (`pinfold local map`) alike. Where the facts come from is the callers' business. */

#include <stdbool.h>
#include <stddef.h>
#include <yyjson.h>

#include "base/str.h"
#include "pool/config.h"

struct arena;
struct err;
struct topology;

/* A container on its CPUs. */
struct map_tenant {
	struct str namespace, pod, container;
	enum pool pool;
	bool is_exclusive;
	struct cpuset cpus;
};

struct map {
	const struct topology *topology;
	struct cpuset
		pools[POOL__COUNT]; /* as configured; exclusive CPUs are told by the tenants */
	const struct map_tenant *tenants; /* those of a pod next to each other */
	size_t n;
	bool colour;
};

struct str map_draw(const struct map *map, struct arena *a);

/* Every CPU: [{"cpu":6,"core":3,"uncore":0,"numa":0,"socket":0,"pool":"guaranteed",
 * "owner":{"namespace":"ran","pod":"vdu-0","container":"l1"}}]; no owner when nobody is alone. */
yyjson_mut_val *map_cpus_to_doc(const struct map *map, yyjson_mut_doc *m);

#define MAP_WATCH_OPTION(type)                                                                     \
	{                                                                                          \
		OPT_FLAG, 'w', "watch", NULL, "draw again every second until interrupted", NULL,   \
			offsetof(type, watch)                                                      \
	}

/* Prints one picture of what is now: its own reading, its own format. */
typedef int (*map_print_fn)(void *data, struct arena *a, struct err *err);

/* Once, or every second for as long as that succeeds. */
int map_show(map_print_fn print, void *data, bool watch, struct arena *a, struct err *err);

/* A picture to be drawn over the last one. */
struct str map_over_the_last(struct str text, struct arena *a);
