#pragma once

/* Isolated cpuset partitions of cgroup v2: CPUs that the kernel takes from everybody else and does
 * not balance load onto, without a reboot. From Linux 6.7 on any cgroup can have one (a "remote"
 * partition), when its CPUs are announced as exclusive all the way down to it; before, only a child
 * of another partition can, which the cgroups of pods are not. Everything written is read back,
 * and what the kernel says against it is the error. */

#include "base/err.h"
#include "base/str.h"
#include "cpu/cpuset.h"

struct cgroup_fs;

enum partition_state {
	PARTITION_MEMBER, /* an ordinary cgroup */
	PARTITION_ISOLATED,
	PARTITION_INVALID, /* asked for and not given, or no longer */
	PARTITION_OTHER,   /* "root": not ours */
};

struct partition_status {
	enum partition_state state;
	char reason[128]; /* of PARTITION_INVALID, in the kernel's words; may be "" */
};

/* "isolated invalid (Parent is not a partition root)". Pure. */
void partition_parse(struct str text, struct partition_status *ret);

int partition_read(const struct cgroup_fs *fs, const char *path, struct partition_status *ret,
		   struct err *err);

/* Makes the cgroup an isolated partition of `cpus`, which its cpuset.cpus must hold already.
 * Returns 1, or 0 when it is one. A failure leaves everything as it was, and says why. */
int partition_enter(const struct cgroup_fs *fs, const char *path, const struct cpuset *cpus,
		    struct err *err);

/* An ordinary cgroup again. `cpus` are no longer announced on the way down to it, whether it is
 * still there or not: leave out those that another partition below the same parents has. */
int partition_leave(const struct cgroup_fs *fs, const char *path, const struct cpuset *cpus,
		    struct err *err);
