#pragma once

/* What a new rendering changes for machines that run with an old one: which files, what has to be
 * restarted or rebooted for them and why, which CPU sets move, and what that means for pods. Both
 * sides are sets of files; nothing is read or written here. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "cpu/cpuset.h"
#include "profile/profile.h"

struct arena;
struct file_set;
struct layout;
struct manifests;
struct partition;
struct rendered_file;

enum plan_change { PLAN_ADD, PLAN_REPLACE, PLAN_REMOVE };

/* From what costs least to what costs most. */
enum plan_effect { PLAN_NOTHING, PLAN_RESTART, PLAN_REBOOT };

const char *plan_change_name(enum plan_change change); /* "add", "change", "remove" */
/* What a change of a rendered file costs, and what it concerns: "kubelet". Host files as in a
 * bundle:
 * "/rootfs/etc/...". */
enum plan_effect plan_effect_of(struct str path, const char **ret_why);

const char *plan_effect_name(enum plan_effect effect); /* "nothing", "restart", "reboot" */

struct plan_file {
	enum plan_change change;
	struct str path;
	struct str pool; /* "" when it belongs to none */
	const struct rendered_file *before, *after;
	enum plan_effect effect;
	const char *why;
};

/* A set that a pool's machines have now and will have. */
struct plan_sets {
	struct cpuset before[PROFILE_SET__COUNT];
	bool is_known[PROFILE_SET__COUNT]; /* the old files contain the set */
};

struct plan_pod {
	struct str namespace, name, node;
	const char *class; /* "management", "shared", "guaranteed" */
	bool fits;
	struct str why;
};

struct plan_pool {
	const struct partition *part; /* of the new layout */
	struct plan_sets sets;
	enum plan_effect effect; /* the costliest of its files */
	struct plan_pod *pods;	 /* only pods that move or no longer fit */
	size_t n_pods;
};

struct plan {
	struct plan_file *files;
	size_t n_files;
	struct plan_pool *pools;
	size_t n_pools;
	bool has_unfit_pods;
};

/* `ms` holds the pods and nodes of the cluster, if any. */
void plan_make(const struct file_set *before, const struct file_set *after,
	       const struct layout *layout, const struct manifests *ms, struct arena *a,
	       struct plan *ret);

/* True when a set of a pool changes as far as is known. */
bool plan_moves(const struct plan_pool *pool, enum profile_set_id id);

/* The second half of plan_make: fills pods. */
void plan_pods(const struct layout *layout, const struct manifests *ms, struct arena *a,
	       struct plan *plan);

/* A rendered file for a diff: data URLs are replaced by the text that they encode. */
struct str plan_readable(struct str bytes, struct arena *a);

/* The kubelet's drop-in that was rendered for a pool of plain hosts; NULL when there is none. */
yyjson_val *plan_kubelet_config(const struct file_set *files, const struct partition *part,
				struct arena *a);

/* A file of the kubelet's state as it lies on a node. */
struct plan_state {
	const char *file; /* "cpu_manager_state", "memory_manager_state" */
	struct str text;
};

/* Why the kubelet would not start with this state under the new rendering; "" when it would. */
struct str plan_state_blocks(const struct plan_state *state, const struct partition *part,
			     const struct file_set *after, struct arena *a);
