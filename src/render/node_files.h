#pragma once

/* The files of a partition for one machine, without the kubelet's and the kernel's configuration:
 * runtime drop-ins, pinning files, scripts and units. OpenShift wraps them into a MachineConfig. */

#include <stdbool.h>

#include "machine_config.h"

struct arena;
struct default_files;
struct partition;

struct node_files_options {
	bool pinned;	 /* the cluster is partitioned */
	bool quota_keys; /* cpuquota and cpuperiod in CRI-O's drop-in
			    (docs/reference/crio-workloads.md#quota-keys) */
	bool plain_host; /* leave out what only OpenShift's machines have */
	bool no_crio;	 /* the machine cannot have CRI-O */
};

void node_files_build(const struct partition *part, const struct node_files_options *options,
		      struct arena *a, struct node_config *ret);

/* The two files every member of a partitioned cluster has before any profile: all CPUs. */
void node_files_bootstrap(const struct default_files *files, bool quota_keys, struct arena *a,
			  struct node_config *ret);
