#pragma once

/* The CPU settings of one cgroup: the cpuset with its memory nodes, shares, quota and period that
 * it is to have, from the decision to the write. What the kernel reports is struct cgroup_cpu
 * (cgroup.h); what a runtime sends and receives is struct nri_cpu (nri/nri.h). A value that Pinfold
 * does not set is empty, 0 or not `has_quota`. Pure, except cpu_settings_enforce(). */

#include <stdbool.h>
#include <stdint.h>

#include "cgroup.h"
#include "codec/doc.h"
#include "cpu/cpuset.h"

struct arena;
struct err;

struct cpu_settings {
	struct cpuset cpus;
	uint64_t mems; /* NUMA nodes of its memory, as a mask */
	uint64_t shares;
	bool has_linear_weight; /* a pod's own cgroup: the kubelet converts its shares linearly */
	bool has_quota;
	int64_t quota_us;   /* negative: unlimited */
	uint64_t period_us; /* 0: any period */
};

bool cpu_settings_eq(const struct cpu_settings *a, const struct cpu_settings *b);

/* The parts (CGROUP_CPUS, ...) that are set: those to read before a comparison. */
unsigned cpu_settings_parts(const struct cpu_settings *s);

/* The value of cpu.weight (v2) or cpu.shares (v1) for `shares`. */
uint64_t cpu_settings_weight(const struct cpu_settings *s, enum cgroup_version version);

/* What differs, as bits: the parts that cgroup_read() knows, and one more. */
enum {
	DRIFT_CPUS = CGROUP_CPUS,
	DRIFT_WEIGHT = CGROUP_WEIGHT,
	DRIFT_QUOTA = CGROUP_QUOTA,
	DRIFT_MEMS = CGROUP_MEMS,
	/* cpuset.cpus is correct, but an ancestor restricts the effective CPUs to fewer. A write
	 * here does not help. */
	DRIFT_FEWER = 16,
};

/* Compares one cgroup with its settings. `now` must hold cpu_settings_parts(). Values that differ
 * in form only are no drift: a container's weight may come from the older or the newer conversion
 * of its shares, and systemd rounds a quota up (docs/reference/cgroups.md). */
unsigned cpu_settings_drift(const struct cpu_settings *s, enum cgroup_version version,
			    const struct cgroup_cpu *now);

/* Reads a cgroup and writes what differs. Returns the bits of it, or a negative errno; -ENOENT when
 * there is no such cgroup. */
int cpu_settings_enforce(const struct cpu_settings *s, const struct cgroup_fs *fs, const char *path,
			 struct err *err);

/* The members "cpus" and, where set, "mems", "shares", "quotaUs" and "periodUs" of a JSON object.
 */
void cpu_settings_put(const struct cpu_settings *s, yyjson_mut_doc *doc, yyjson_mut_val *object,
		      struct arena *a);
int cpu_settings_get(yyjson_val *object, struct cpu_settings *ret, struct err *err);
