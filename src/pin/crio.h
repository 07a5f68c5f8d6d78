#pragma once

/* CRI-O's own configuration: whether it pins the containers of workload types itself. Where its
 * drop-in agrees with the pools, the agent's replies change nothing; where it does not, the status
 * and verify report it, because one of the two is wrong. Reads only. */

#include <stdbool.h>

#include "base/str.h"

struct arena;
struct cpuset;
struct err;
struct pool_config;
struct workloads;

#define CRIO_RUNTIME_NAME "cri-o" /* in its NRI Configure call */

enum crio_state {
	CRIO_NO_WORKLOAD, /* it pins no container of a workload type */
	CRIO_AGREES,
	CRIO_DIFFERS, /* its drop-in names other CPUs */
	/* cgroup_manager is cgroupfs: no pod of a workload with a cpuset starts
	 * (docs/reference/crio-workloads.md#cgroupfs-manager) */
	CRIO_CANNOT_START,
};

struct crio_config {
	enum crio_state state;
	struct str type; /* the workload type that the state is about */
	struct str cpus; /* of its workload */
};

const char *crio_state_name(enum crio_state state);

/* What the configuration is compared with. */
struct crio_pools {
	const struct pool_config *pools;
	const struct cpuset *management; /* the present CPUs of the management pool */
	bool is_legacy;			 /* the members of 2021 count (D2) */
};

/* `dir` is "/etc/crio": crio.conf, then crio.conf.d in the order of names. A missing file counts as
 * empty. Strings live in `a`. */
int crio_config_read(const char *dir, const struct crio_pools *with, struct arena *a,
		     struct crio_config *ret, struct err *err);

/* The comparison alone: of several types the worst state. Pure. */
struct crio_config crio_config_compare(const struct workloads *w, const struct crio_pools *with);
