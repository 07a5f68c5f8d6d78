#pragma once

/* Intent against the kernel: reads a cgroup, says what differs, and writes just that. */

#include <stdbool.h>
#include <stdint.h>

#include "cgroup/cgroup.h"
#include "registry.h"

/* What differs, as bits. */
enum {
	DRIFT_CPUS = 1,
	DRIFT_WEIGHT = 2,
	DRIFT_QUOTA = 4,
};

/* Compares what was read with the intent. A weight may be the older or the newer conversion of
 * the shares, a quota may be rounded up as systemd does (spec/runtime.md 5.1, 5.5). Pure. */
unsigned enforce_compare(enum cgroup_version version, const struct cgroup_cpu *now,
			 const struct intent *intent);

/* Returns the bits that differed and were put right, or a negative errno; -ENOENT when the cgroup
 * is gone. */
int enforce_container(const struct cgroup_fs *fs, const char *path, const struct intent *intent,
		      struct err *err);

/* A pod's cgroup: weight from the sum of its shares (linear, as kubelets weigh pods), and no quota
 * when a container of it owns CPUs. */
int enforce_pod(const struct cgroup_fs *fs, const struct pod_entry *pod, struct err *err);

/* The weight or shares a pod's cgroup shall have. */
uint64_t enforce_pod_weight(const struct cgroup_fs *fs, uint64_t shares);

/* The pause container: its cgroup, or where that is not known its process. */
int enforce_pause(const struct cgroup_fs *fs, const struct pod_entry *pod, const char *cpus,
		  struct err *err);

/* The monitor of a container (conmon), which CRI-O leaves on all CPUs: the parent of `pid`, when it
 * is one. Returns 1 when it was moved, 0 when there is none. */
int enforce_monitor(uint32_t pid, const char *cpus, struct err *err);
