#pragma once

/* Compares the agent's status document with the kernel: the checks of cgroup/audit.h for
 * containers, and what only a node has: cgroups of pods, pause containers, monitors, partitions and
 * CRI-O's workload. Writes nothing. */

#include <stdbool.h>

#include "codec/doc.h"

struct arena;
struct cgroup_fs;
struct err;
struct audit;

struct node_audit_source {
	const struct cgroup_fs *cgroups;
	int proc_fd;	 /* "/proc" */
	bool agent_runs; /* otherwise the document is its last status file */
};

/* `status` is the agent's status document (status.h). Adds the checks "agent", "runtime",
 * "partition", "monitor", "pause", "crio-cpus" and "crio-cgroup-manager". */
int node_audit(const struct node_audit_source *source, yyjson_val *status, struct arena *a,
	       struct audit *ret, struct err *err);
