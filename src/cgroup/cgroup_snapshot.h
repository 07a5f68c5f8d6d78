#pragma once

/* What the kernel says of containers, and of everybody else on the machine: read and not judged,
 * that is truth.h. */

#include <stdbool.h>
#include <stddef.h>

#include "cgroup.h"
#include "proc.h"

struct arena;
struct err;

/* A living process and where its threads may run. */
struct process {
	pid_t pid;
	struct str name; /* only where everybody is listed */
	struct proc_place *places;
	size_t n_places;
};

struct processes {
	struct process *items;
	size_t n, cap;
};

/* One container. */
struct cgroup_snapshot {
	bool is_there;	 /* nothing else is set otherwise */
	bool has_cgroup; /* else it is held by the affinity of its processes alone */
	struct cgroup_cpu cgroup;
	struct processes processes;
};

/* A container that has a cgroup, with the processes in it and in those that it made below. One that
 * is not there any more is no error. */
int cgroup_snapshot_read_cgroup(const struct cgroup_fs *fs, int proc_fd, const char *path,
				struct arena *a, struct cgroup_snapshot *ret, struct err *err);

/* A container that is these processes. It is not there when all of them have ended. */
void cgroup_snapshot_read_processes(int proc_fd, const pid_t *pids, size_t n, struct arena *a,
				    struct cgroup_snapshot *ret);

/* Everybody but the kernel's own threads and the caller. */
int cgroup_snapshot_read_machine(int proc_fd, struct arena *a, struct processes *ret,
				 struct err *err);

/* Takes those off the list that have ended. Who looks at the machine, then at the containers, and
 * then calls this, takes nobody of a container for a stranger that was started or ended meanwhile.
 */
void cgroup_snapshot_drop_ended(int proc_fd, struct processes *list);

size_t cgroup_snapshot_threads(const struct cgroup_snapshot *s);
struct cpuset cgroup_snapshot_allowed(
	const struct cgroup_snapshot *s); /* CPUs that any of its threads may use */
