#pragma once

/* Intent against the kernel: reads a cgroup, says what differs, and writes just that. */

#include <stdbool.h>
#include <stdint.h>

#include "cgroup/cgroup.h"
#include "registry.h"

/* Returns the bits (cgroup/drift.h) that differed and were put right, or a negative errno; -ENOENT
 * when the cgroup is gone. */
int enforce_container(const struct cgroup_fs *fs, const char *path,
		      const struct cpu_settings *settings, struct err *err);

/* A pod's cgroup: weight from the sum of its shares (linear, as kubelets weigh pods), and no quota
 * when a container of it owns CPUs. */
int enforce_pod(const struct cgroup_fs *fs, const struct pod_entry *pod, struct err *err);

/* The pause container: its cgroup, or where that is not known its process. */
int enforce_pause(const struct cgroup_fs *fs, const struct pod_entry *pod, const char *cpus,
		  struct err *err);

/* The monitor of a container (conmon), which CRI-O leaves on all CPUs: the parent of `pid`, when it
 * is one. Returns 1 when it was moved, 0 when there is none. */
int enforce_monitor(uint32_t pid, const char *cpus, struct err *err);
