#pragma once

/* Which container is on which CPU, as text or as a document: the machine with its
 * pools, and the containers of each pool. Used by `pinfold map` for a node and by `pinfold local
 * map` for one machine; both fill a struct map from their own source. */

#include <stdbool.h>
#include <stddef.h>
#include <yyjson.h>

#include "base/options.h"
#include "base/str.h"
#include "picture/machine_picture.h"
#include "pool/config.h"

struct arena;
struct err;
struct topology;

struct map_container {
	struct str namespace, pod, container;
	enum pool pool;
	struct str type; /* of a management container; "" is management */
	bool is_exclusive;
	struct cpuset cpus;
};

struct map {
	const struct topology *topology;
	struct cpuset pools[POOL__COUNT];	/* as configured, including CPUs in use */
	const struct map_container *containers; /* containers of one pod are adjacent */
	size_t n;
	bool colour;
	size_t width; /* columns of the text */
};

bool map_is_wanted(const struct map_container *c, const struct option_list *patterns,
		   struct arena *a);

/* Keeps the containers of pods that match a pattern of the shell, "vdu-*" or "ran/vdu-*", and marks
 * only their CPUs. Without patterns all are kept. -ENOENT when none matches. */
int map_filter(struct map *map, const struct option_list *patterns, struct arena *a,
	       struct err *err);

struct str map_draw(const struct map *map, struct arena *a);

/* The same as a picture, and the containers as a table of a page. */
struct machine_picture map_picture(const struct map *map, struct str heading, struct arena *a);
void map_page_table(const struct map *map, struct strbuf *b);

/* Every CPU: [{"cpu":6,"core":3,"uncore":0,"numa":0,"socket":0,"pool":"guaranteed",
 * "owner":{"namespace":"ran","pod":"vdu-0","container":"l1"}}]; no owner unless exclusive. */
yyjson_mut_val *map_cpus_to_doc(const struct map *map, yyjson_mut_doc *m);

#define MAP_WATCH_OPTION(type)                                                                     \
	{                                                                                          \
		OPT_FLAG, 'w', "watch", NULL, "refresh every second until interrupted", NULL,      \
			offsetof(type, watch)                                                      \
	}

/* Reads the current state and prints it once. */
typedef int (*map_print_fn)(void *data, struct arena *a, struct err *err);

/* Calls `print` once, or with `watch` every second until it fails. */
int map_show(map_print_fn print, void *data, bool watch, struct arena *a, struct err *err);

/* `text` with the terminal sequences that overwrite what was printed before. */
struct str map_redraw(struct str text, struct arena *a);
