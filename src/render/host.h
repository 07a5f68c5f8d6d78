#pragma once

/* A bundle of files for machines of any distribution: one directory per pool, with the tree to be
 * laid over the root, a script that does so and undoes it, and the same as an Ignition file, a
 * cloud-config and kubeadm patches. */

#include <stdbool.h>

#include "base/str.h"
#include "kubelet_config.h"

struct arena;
struct distro;
struct err;
struct file_set;
struct layout;
struct node_config;
struct partition;
struct problem_list;

struct host_options {
	bool quota_keys;
	const struct distro *distro; /* whose paths are used; kubeadm leaves the runtime open */
	struct str program;	     /* of the agent, to be installed as a unit; "": no agent */
	struct kubelet_options kubelet;
};

int host_render(const struct layout *layout, const struct host_options *options,
		struct file_set *files, struct problem_list *p, struct err *err);
