#pragma once

/* What the `pinfold local` commands share: options, the run directory of a named machine, and the
 * table, map and document of its containers. */

#include "base/options.h"
#include "base/str.h"
#include "local/container_cgroup.h"
#include "local/state_file.h"
#include "map_draw.h"
#include "output.h"

struct arena;
struct err;
struct topology;
struct cgroup_snapshot;
struct invocation;

struct local_options {
	const char *name;
	const char *run_dir;
	const char *topology;
	const char *output;
	bool detach, affinity_only, watch, strict;
	struct option_list files; /* -f */
	struct option_list pods;  /* operands of map */
};

#define LOCAL_ROW(kind, key, word, value, help, field)                                             \
	{                                                                                          \
		kind, key, word, value, help, NULL, offsetof(struct local_options, field)          \
	}
#define LOCAL_NAME                                                                                 \
	LOCAL_ROW(OPT_STR, 0, "name", "NAME", "name of the local machine (default: local)", name), \
		LOCAL_ROW(OPT_STR, 0, "run-dir", "DIR",                                            \
			  "directory of its state (default: /run/pinfold/NAME, or below "          \
			  "XDG_RUNTIME_DIR)",                                                      \
			  run_dir)
#define LOCAL_DETACH                                                                               \
	LOCAL_ROW(OPT_FLAG, 'd', "detach", NULL,                                                   \
		  "continue in the background when everything is started", detach)
#define LOCAL_AFFINITY_ONLY                                                                        \
	LOCAL_ROW(OPT_FLAG, 0, "affinity-only", NULL,                                              \
		  "set CPU affinity only, even where cgroups are writable", affinity_only)
#define LOCAL_TOPOLOGY                                                                             \
	LOCAL_ROW(OPT_STR, 0, "topology", "FROM",                                                  \
		  "the machine: host (default), a file, or a synthetic string "                    \
		  "(pack:2 numa:1 core:16 pu:2)",                                                  \
		  topology)
#define LOCAL_FILES                                                                                \
	LOCAL_ROW(OPT_STRS, 'f', "file", "DIR", "the directory of manifests, like the operand",    \
		  files)
#define LOCAL_OUTPUT OUTPUT_OPTION(struct local_options, output)

#define LOCAL_OPTIONS(...)                                                                         \
	.options = (const struct option_desc[]){ __VA_ARGS__, { 0 } },                             \
	.options_size = sizeof(struct local_options)

/* The directory of manifests: the operand or -f. NULL without an error when there is none and it is
 * optional. */
int local_directory(const struct invocation *inv, bool is_optional, const char **ret,
		    struct err *err);

/* Fills in the defaults. */
void local_options_fill(struct local_options *o, struct arena *a);

/* A local machine with its containers, planned or running. */
struct local_machine {
	const struct topology *topology;
	const struct pool_config *config;
	const struct local_container *containers;
	const struct cgroup_snapshot *snapshots; /* one per container; NULL: only planned */
	const enum local_state *states;		 /* likewise */
	size_t n;
};

/* The state file of a machine that runs, and a snapshot of every container in it. */
struct local_view {
	struct local_state_file file;
	struct container_cgroup cgroup;
	struct local_machine machine; /* points into `file` and the arena of the call */
};

/* -ENOENT when no machine of this name runs. */
int local_view_open(struct local_view *v, const struct local_options *o, struct arena *a,
		    struct err *err);
void local_view_done(struct local_view *v);

struct str local_table(const struct local_machine *machine, struct arena *a);
struct map local_map(const struct local_machine *machine, struct arena *a);

/* For -o json and yaml: {"mode":...,"pools":{...},"containers":[...]} with the keys of the agent's
 * status document (agent/status.h). */
yyjson_mut_val *local_describe(const struct local_machine *machine, yyjson_mut_doc *m,
			       struct arena *a);
