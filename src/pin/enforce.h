#pragma once

/* Brings a pod's own cgroup and the processes beside its containers in line with their CPU
 * settings. Containers need only cpu_settings_enforce(), whose results these functions have. Does
 * not decide, count or log. */

#include <stdbool.h>
#include <stdint.h>

#include "cgroup/cgroup.h"
#include "registry.h"

/* A pod's cgroup: the weight from the sum of its containers' shares (D13), and no quota when one of
 * its containers has exclusive CPUs. */
int enforce_pod(const struct cgroup_fs *fs, const struct pod_entry *pod, struct err *err);

/* The pause container: its cgroup, or its process where the cgroup is not known. */
int enforce_pause(const struct cgroup_fs *fs, const struct pod_entry *pod,
		  const struct cpuset *cpus, struct err *err);

/* All threads of the calling process. */
int enforce_own_threads(const struct cpuset *cpus, struct err *err);

/* The monitor (conmon) of a container or pause process, which CRI-O leaves on all CPUs
 * (docs/reference/crio-workloads.md#processes-left-on-all-cpus): the parent of `pid`, when it is a
 * conmon. Returns 1 when it was moved, 0 when there is none. */
int enforce_monitor(uint32_t pid, const struct cpuset *cpus, struct err *err);
