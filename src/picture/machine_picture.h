#pragma once

/* A machine as an SVG picture: a box for each NUMA node, in it the cores by L3 cache, in those the
 * CPUs with their number, their pool and who owns them. Pools differ by colour, by pattern and by a
 * letter. Pure: structs in, text out. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "cpu/cpuset.h"

struct arena;
struct topology;

/* How the CPUs of a pool look. */
enum picture_look {
	PICTURE_MANAGEMENT,
	PICTURE_SHARED,
	PICTURE_IN_USE, /* assigned to a container */
	PICTURE_FREE,
	PICTURE_NO_POOL,
	PICTURE_LOOK__COUNT
};

struct picture_pool {
	const char *name; /* "management" */
	enum picture_look look;
	struct cpuset cpus;
};

/* A container with exclusive CPUs. */
struct picture_owner {
	struct str pod, container; /* "ran/vdu-0", "l1" */
	struct cpuset cpus;
};

/* The first pool that has a CPU decides, and so does the first owner. */
struct machine_picture {
	struct str heading; /* "" : none */
	const struct topology *topology;
	const struct picture_pool *pools;
	size_t n_pools;
	const struct picture_owner *owners;
	size_t n_owners;
	struct cpuset changed; /* marked: they change their pool */
};

/* "A" to "Z", "AA" and so on: the key of owner `i`, as it stands in its CPUs. */
struct str picture_key(size_t i, struct arena *a);

/* "2 sockets, 2 NUMA nodes, 16 cores, 32 CPUs" */
struct str picture_summary(const struct topology *t, struct arena *a);

/* A whole SVG document of one or several machines, one below the other, with a legend. */
struct str picture_svg(struct str title, const struct machine_picture *machines, size_t n,
		       struct arena *a);

/* For a page (html_page.h): a figure with one small SVG for each NUMA node, which a narrow window
 * puts one below the other. `number` makes ids unique on the page. */
void picture_figure(struct strbuf *b, const struct machine_picture *m, unsigned number);

/* The legend as a list of the page. */
void picture_legend(struct strbuf *b, const struct machine_picture *m);
