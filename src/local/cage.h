#pragma once

/* Where containers are held: cgroups below one of our own, or CPU affinity where no hierarchy can
 * be written. It applies what a plan says and reads back what the kernel made of it; it decides
 * nothing. */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "cgroup/cgroup.h"
#include "local.h"

struct arena;
struct err;
struct sight;

struct cage {
	enum local_mode mode;
	struct cgroup_fs fs; /* unless LOCAL_AFFINITY */
	int lock_fd;	     /* of our top cgroup; -1 when not locked */
	char name[LOCAL_NAME_MAX];
	char mark[PATH_MAX];   /* how the marks of our processes begin: the run directory and ":" */
	struct cpuset allowed; /* what containers can have at most; set by cage_make */
};

/* Looks at what the machine has; makes and changes nothing. `run_dir` tells two machines of one
 * name apart. */
int cage_open(struct cage *cage, const char *name, const char *run_dir, struct err *err);
void cage_done(struct cage *cage);

/* No cgroups, even where there are any. */
void cage_use_affinity(struct cage *cage);

/* Makes and locks the top cgroup; where that is not allowed, goes on by affinity and says why in
 * `why`, which is left alone otherwise. -EBUSY when another process has it. */
int cage_make(struct cage *cage, struct err *why, struct err *err);

/* Makes room for a container: its cgroup, with CPUs, weight and quota, read back. May be called
 * again for a running one, to move it. `pod_shares` is the sum over its pod. */
int cage_apply(const struct cage *cage, const struct local_container *c, uint64_t pod_shares,
	       struct err *err);

/* Starts the container's command inside; what it prints goes to `output_fd`. */
int cage_start(const struct cage *cage, const struct local_container *c, int output_fd, pid_t *ret,
	       struct err *err);

/* Processes of a container. */
int cage_procs(const struct cage *cage, const struct local_container *c, struct arena *a,
	       pid_t **ret, size_t *ret_n, struct err *err);

/* What the kernel says of each container, one sight per container: its control files, where there
 * are any, and its threads. One that has no process is not there. */
int cage_look(const struct cage *cage, const struct local_container *containers, size_t n,
	      struct arena *a, struct sight **ret, struct err *err);

/* Kills every process of a container; returns when none is left. */
int cage_kill(const struct cage *cage, const struct local_container *c, struct err *err);

/* Kills what is left of a container and removes its cgroup, and its pod's when that was the last.
 */
int cage_remove(const struct cage *cage, const struct local_container *c, struct err *err);

/* Everything of ours that runs, or once ran, in this mode: for cleaning up. Names only. */
int cage_list(const struct cage *cage, struct arena *a, struct local_container **ret, size_t *ret_n,
	      struct err *err);

bool cage_is_made(const struct cage *cage);

/* Removes the top cgroup. Everything below must be gone. */
int cage_destroy(const struct cage *cage, struct err *err);
