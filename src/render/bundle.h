#pragma once

/* The forms in which one machine's configuration is handed out: a tree below rootfs/, install.sh,
 * Ignition 3.4, cloud-config. They all say the same; only the packing differs. */

#include "base/str.h"

struct arena;
struct err;
struct file_set;
struct kernel_args;
struct node_config;

/* Adds `dir`/rootfs/..., `dir`/install.sh and `dir`/boot/... */
void bundle_add_tree(struct file_set *files, struct str dir, const struct node_config *config,
		     const struct kernel_args *args);

int bundle_add_ignition(struct file_set *files, struct str dir, const struct node_config *config,
			const struct kernel_args *args, struct err *err);

int bundle_add_cloud_config(struct file_set *files, struct str dir,
			    const struct node_config *config, struct err *err);
