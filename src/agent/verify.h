#pragma once

/* Intent against the kernel, for people: every container's CPUs, weight, quota and threads, every
 * pod's own cgroup, and whoever else may run on CPUs that somebody owns. Reads only. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "codec/doc.h"

struct arena;
struct cgroup_fs;
struct err;

struct finding {
	struct str namespace, pod,
		container; /* container: "" for the pod itself; all "" for the node */
	/* "cpus", "weight", "quota", "thread", "pause", "monitor"; of the node "crio-cpus",
	 * "crio-cgroup-manager" */
	const char *what;
	struct str want, got;
};

struct stranger {
	int pid;
	struct str name;
	struct str cpus;  /* exclusive ones it may run on */
	struct str owner; /* whose they are: "namespace/pod/container" of the first */
};

struct verify_result {
	size_t n_containers; /* looked at */
	size_t n_gone;	     /* listed, but without a cgroup: ended meanwhile */
	struct finding *findings;
	size_t n_findings;
	struct stranger *strangers;
	size_t n_strangers;
};

struct verify_source {
	const struct cgroup_fs *cgroups;
	int proc_fd; /* "/proc" */
};

/* `status` is the agent's document (report.h). */
int verify(const struct verify_source *source, yyjson_val *status, struct arena *a,
	   struct verify_result *ret, struct err *err);
