#pragma once

/* What the kernel reports about containers, and about all other processes of the machine. Reads
 * only; comparing is audit.h. */

#include <stdbool.h>
#include <stddef.h>

#include "cgroup.h"
#include "proc.h"

struct arena;
struct err;

/* A process and the CPUs its threads may use. */
struct process {
	pid_t pid;
	struct str name, cgroup; /* only of a list of the whole machine */
	struct proc_affinity *affinities;
	size_t n_affinities;
};

struct processes {
	struct process *items;
	size_t n, cap;
};

/* One container. */
struct cgroup_snapshot {
	bool is_there;	 /* otherwise nothing else is set */
	bool has_cgroup; /* otherwise only the affinity of its processes pins it */
	struct cgroup_cpu cgroup;
	struct processes processes;
};

/* A container with a cgroup: its processes are those of the cgroup and of the cgroups below it. A
 * cgroup that is gone is no error. */
int cgroup_snapshot_read_cgroup(const struct cgroup_fs *fs, int proc_fd, const char *path,
				struct arena *a, struct cgroup_snapshot *ret, struct err *err);

/* A container without a cgroup: these processes. It is not there when all of them have ended. */
void cgroup_snapshot_read_processes(int proc_fd, const pid_t *pids, size_t n, struct arena *a,
				    struct cgroup_snapshot *ret);

/* All processes except kernel threads and the caller. */
int cgroup_snapshot_read_machine(int proc_fd, struct arena *a, struct processes *ret,
				 struct err *err);

/* Removes the processes that have ended. A caller that lists the machine, then the containers, and
 * then calls this, never takes a process of a container that started or ended meanwhile for a
 * foreign process. */
void cgroup_snapshot_drop_ended(int proc_fd, struct processes *list);

size_t cgroup_snapshot_threads(const struct cgroup_snapshot *s);
struct cpuset cgroup_snapshot_allowed(
	const struct cgroup_snapshot *s); /* CPUs that any of its threads may use */
