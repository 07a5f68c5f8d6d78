#pragma once

/* Intent against the kernel on a node: the containers of the agent's document are judged by
 * cgroup/truth.h, and to that comes what only a node has: pods' own cgroups, pause containers,
 * monitors, partitions, CRI-O's workload. Reads only. */

#include "codec/doc.h"

struct arena;
struct cgroup_fs;
struct err;
struct audit;

struct node_audit_source {
	const struct cgroup_fs *cgroups;
	int proc_fd; /* "/proc" */
};

/* `status` is the agent's document (report.h). Adds "partition", "monitor", "pause", "crio-cpus"
 * and "crio-cgroup-manager" to what there is to find. */
int node_audit(const struct node_audit_source *source, yyjson_val *status, struct arena *a,
	       struct audit *ret, struct err *err);
