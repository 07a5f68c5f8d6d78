#pragma once

/* A bundle of files for machines of any distribution: one directory per pool, with the tree to be
 * laid over the root, a script that does so and undoes it, and the same as an Ignition file, a
 * cloud-config and kubeadm patches. */

#include <stdbool.h>

#include "base/str.h"
#include "kernel_args.h"
#include "kubelet_config.h"
#include "machine_config.h"

struct arena;
struct distro;
struct err;
struct file_set;
struct layout;
struct partition;
struct problem_list;

struct host_options {
	bool quota_keys;
	const struct distro *distro; /* whose paths are used; kubeadm leaves the runtime open */
	struct str program;	     /* of the agent, to be installed as a unit; "": no agent */
	struct kubelet_options kubelet;
};

/* What one machine of a partition is given. */
struct host_machine {
	struct node_config config; /* its files and units, without those of the agent */
	struct file_set lines;	   /* lines to be added to files of the distribution */
	struct kernel_args args;   /* what it boots with */
	yyjson_mut_val *kubelet;   /* its KubeletConfiguration */
};

/* `pinned`: the cluster is partitioned. For Talos only `args` and `kubelet` are set. */
int host_machine_build(const struct partition *part, bool pinned,
		       const struct host_options *options, struct arena *a,
		       struct host_machine *ret, struct problem_list *p, struct err *err);

int host_render(const struct layout *layout, const struct host_options *options,
		struct file_set *files, struct problem_list *p, struct err *err);
