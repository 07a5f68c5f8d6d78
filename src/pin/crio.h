#pragma once

/* CRI-O's own configuration, read from its files: whether it pins management containers itself.
 * Where its drop-in and our pools agree, our answers change nothing and the kernel is only checked;
 * where they do not, somebody must be told, because one of the two is wrong. */

#include <stdbool.h>

#include "base/str.h"

struct arena;
struct cpuset;
struct err;
struct workloads;

#define CRIO_RUNTIME_NAME "cri-o" /* as it introduces itself */

enum crio_state {
	CRIO_NO_WORKLOAD, /* it leaves management containers to us */
	CRIO_AGREES,
	CRIO_DIFFERS,	   /* it puts them elsewhere */
	CRIO_CANNOT_START, /* cgroup_manager is cgroupfs: no pod of a workload with CPUs starts
			      (spec/real-cluster.md, CRI-O) */
};

struct crio_config {
	enum crio_state state;
	struct str cpus; /* of its management workload */
};

const char *crio_state_name(enum crio_state state);

/* `dir` is "/etc/crio": crio.conf, then crio.conf.d in the order of names. Missing files are empty
 * ones. Strings live in `a`. */
int crio_config_read(const char *dir, const struct cpuset *reserved, struct arena *a,
		     struct crio_config *ret, struct err *err);

/* The decision alone. */
struct crio_config crio_config_compare(const struct workloads *w, const struct cpuset *reserved);
