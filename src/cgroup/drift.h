#pragma once

/* One cgroup against what it should be: which of its CPUs, weight and quota differ. Pure. Putting
 * it right is agent/enforce.h, event_in_flight people is truth.h; both ask here. */

#include <stdbool.h>
#include <stdint.h>

#include "cgroup.h"

/* What a cgroup should say. */
struct cgroup_want {
	struct cpuset cpus; /* empty: not ours to set */
	uint64_t shares;    /* 0: likewise */
	bool is_pod;	    /* a pod's own cgroup: kubelets weigh those linearly */
	bool has_quota;
	int64_t quota_us;   /* negative: none */
	uint64_t period_us; /* 0: any */
};

/* What differs, as bits: the parts that cgroup_read() knows, and one more. */
enum {
	DRIFT_CPUS = CGROUP_CPUS,
	DRIFT_WEIGHT = CGROUP_WEIGHT,
	DRIFT_QUOTA = CGROUP_QUOTA,
	/* Its CPUs are right, but its parents leave it only some of them: writing does not help. */
	DRIFT_FEWER = 8,
};

/* What has to be read before drift_of(): the parts that are ours to set. */
unsigned drift_parts(const struct cgroup_want *want);

/* A container's weight may be the older or the newer conversion of its shares, a quota may be
 * rounded up as systemd does (spec/runtime.md 5.1, 5.5). */
unsigned drift_of(enum cgroup_version version, const struct cgroup_cpu *now,
		  const struct cgroup_want *want);

/* The weight (v2) or shares (v1) to write. */
uint64_t drift_weight(enum cgroup_version version, const struct cgroup_want *want);
