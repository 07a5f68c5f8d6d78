#pragma once

/* The CPU sets that a machine config pool has now, from the files that were rendered for it: either
 * OpenShift's objects or the files of a host. */

struct arena;
struct file_set;
struct partition;
struct plan_sets;

/* A set that the files do not determine stays unknown. */
void plan_sets_read(const struct file_set *files, const struct partition *part, struct arena *a,
		    struct plan_sets *ret);
