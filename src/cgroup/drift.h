#pragma once

/* Compares one cgroup with its CPU settings: which of CPUs, weight and quota differ. Pure. Writing
 * the difference is pin/enforce.h, reporting it is audit.h; both compare here. */

#include "cpu_settings.h"

/* What differs, as bits: the parts that cgroup_read() knows, and one more. */
enum {
	DRIFT_CPUS = CGROUP_CPUS,
	DRIFT_WEIGHT = CGROUP_WEIGHT,
	DRIFT_QUOTA = CGROUP_QUOTA,
	/* cpuset.cpus is correct, but an ancestor restricts the effective CPUs to fewer. A write
	 * here does not help. */
	DRIFT_FEWER = 8,
};

/* `now` must hold cpu_settings_parts(). Values that differ in form only are no drift: a container's
 * weight may come from the older or the newer conversion of its shares, and systemd rounds a quota
 * up (docs/reference/cgroups.md). */
unsigned drift_of(enum cgroup_version version, const struct cgroup_cpu *now,
		  const struct cpu_settings *settings);
