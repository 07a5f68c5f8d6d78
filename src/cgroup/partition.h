#pragma once

/* Isolated partitions: cgroup v2 cpusets whose CPUs the kernel removes from all other cgroups and
 * does not balance load onto, without a reboot. From Linux 6.7 on any cgroup can be one (a "remote"
 * partition) when all its ancestors list its CPUs in cpuset.cpus.exclusive; before, only a child of
 * another partition can, which the cgroups of pods are not. Everything written is read back, and
 * the kernel's reason is the error. */

#include "base/err.h"
#include "base/str.h"
#include "cpu/cpuset.h"

struct cgroup_fs;

enum partition_state {
	PARTITION_MEMBER, /* an ordinary cgroup */
	PARTITION_ISOLATED,
	PARTITION_INVALID, /* requested, but refused or invalidated by the kernel */
	PARTITION_OTHER,   /* "root": not set by Pinfold */
};

struct partition_status {
	enum partition_state state;
	char reason[128]; /* of PARTITION_INVALID, as the kernel reports it; may be "" */
};

/* "isolated invalid (Parent is not a partition root)". Pure. */
void partition_parse(struct str text, struct partition_status *ret);

int partition_read(const struct cgroup_fs *fs, const char *path, struct partition_status *ret,
		   struct err *err);

/* Makes the cgroup an isolated partition of `cpus`, which its cpuset.cpus must contain already.
 * Returns 1, or 0 when it is one already. A failure leaves everything as it was. */
int partition_enter(const struct cgroup_fs *fs, const char *path, const struct cpuset *cpus,
		    struct err *err);

/* Makes it an ordinary cgroup again and removes `cpus` from cpuset.cpus.exclusive of its ancestors,
 * whether it still exists or not. The caller leaves out CPUs of other partitions below them. */
int partition_leave(const struct cgroup_fs *fs, const char *path, const struct cpuset *cpus,
		    struct err *err);
