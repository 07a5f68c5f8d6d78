#pragma once

/* What the local commands share: where a named machine keeps its state, and how its containers are
 * shown. */

#include "base/options.h"
#include "base/str.h"
#include "local/container_cgroup.h"
#include "local/state_file.h"
#include "map_draw.h"
#include "output.h"

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

/* The rows of their option tables, each once. */
#define LOCAL_ROW(kind, key, word, value, help, field)                                             \
	{                                                                                          \
		kind, key, word, value, help, NULL, offsetof(struct local_options, field)          \
	}
#define LOCAL_NAME                                                                                 \
	LOCAL_ROW(OPT_STR, 0, "name", "NAME", "which local machine, of several (default: local)",  \
		  name),                                                                           \
		LOCAL_ROW(OPT_STR, 0, "run-dir", "DIR",                                            \
			  "its state (default: /run/pinfold/NAME, or below XDG_RUNTIME_DIR)",      \
			  run_dir)
#define LOCAL_DETACH                                                                               \
	LOCAL_ROW(OPT_FLAG, 'd', "detach", NULL,                                                   \
		  "go on in the background once everything is started", detach)
#define LOCAL_AFFINITY_ONLY                                                                        \
	LOCAL_ROW(OPT_FLAG, 0, "affinity-only", NULL,                                              \
		  "do not use cgroups, even where that is possible", affinity_only)
#define LOCAL_TOPOLOGY                                                                             \
	LOCAL_ROW(OPT_STR, 0, "topology", "FROM",                                                  \
		  "the machine: host (default), a file, or a synthetic string (pack:2 core:16 "    \
		  "pu:2)",                                                                         \
		  topology)
#define LOCAL_OUTPUT OUTPUT_OPTION(struct local_options, output)

/* What a struct command of theirs says of its options. */
#define LOCAL_OPTIONS(...)                                                                         \
	.options = (const struct option_desc[]){ __VA_ARGS__, { 0 } },                             \
	.options_size = sizeof(struct local_options)

/* Fills in the defaults. */
void local_options_fill(struct local_options *o, struct arena *a);

/* The machine as it is now: its intent, and what the kernel says of every container. */
struct local_view {
	struct local_state_file intent;
	struct container_cgroup cgroup;
	struct topology *topology;
	struct cgroup_snapshot *snapshots; /* one per container */
};

/* -ENOENT with a sentence when nothing of this name runs. */
int local_view_open(struct local_view *v, const struct local_options *o, struct arena *a,
		    struct err *err);
void local_view_done(struct local_view *v);

/* A table of containers; `sights` may be NULL for those that are only planned. */
struct str local_table(const struct local_container *containers,
		       const struct cgroup_snapshot *snapshots, const enum local_state *states,
		       size_t n, struct arena *a);

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
			     const struct cgroup_snapshot *snapshots,
			     const enum local_state *states, size_t n, struct arena *a);
