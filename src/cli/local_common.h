#pragma once

/* What the local commands share: where a named machine keeps its state, and how its containers are
 * shown. */

#include "base/options.h"
#include "base/str.h"
#include "local/cage.h"
#include "local/intent.h"
#include "map_draw.h"

struct arena;
struct err;
struct topology;

struct local_options {
	const char *name;
	const char *run_dir;
	const char *topology;
	const char *output;
	bool detach, affinity_only, watch, strict;
};

#define LOCAL_NAME_OPTIONS(type)                                                                   \
	{ OPT_STR,                                                                                 \
	  0,                                                                                       \
	  "name",                                                                                  \
	  "NAME",                                                                                  \
	  "which local machine, of several (default: local)",                                      \
	  NULL,                                                                                    \
	  offsetof(type, name) },                                                                  \
	{                                                                                          \
		OPT_STR, 0, "run-dir", "DIR",                                                      \
			"its state (default: /run/pinfold/NAME, or below XDG_RUNTIME_DIR)", NULL,  \
			offsetof(type, run_dir)                                                    \
	}

/* Fills in the defaults. */
void local_options_fill(struct local_options *o, struct arena *a);

/* The machine as it is now: its intent, and what the kernel says of every container. */
struct local_view {
	struct intent intent;
	struct cage cage;
	struct topology *topology;
	struct sight *sights; /* one per container */
};

/* -ENOENT with a sentence when nothing of this name runs. */
int local_view_open(struct local_view *v, const struct local_options *o, struct arena *a,
		    struct err *err);
void local_view_done(struct local_view *v);

/* A table of containers; `sights` may be NULL for those that are only planned. */
struct str local_table(const struct local_container *containers, const struct sight *sights,
		       const enum local_state *states, size_t n, struct arena *a);

/* Who runs where on it, for map_draw. */
struct local_machine {
	const struct topology *topology;
	const struct pool_config *config;
	const struct local_container *containers;
	size_t n;
};
struct map local_map(const struct local_machine *machine, struct arena *a);

/* The containers as a document: for -o json and yaml. */
yyjson_mut_val *local_to_doc(yyjson_mut_doc *m, const struct local_container *containers,
			     const struct sight *sights, const enum local_state *states, size_t n,
			     struct arena *a);
