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
struct cgroup_snapshot;

struct container_cgroup {
	enum local_mode mode;
	struct cgroup_fs fs; /* unless LOCAL_AFFINITY */
	int lock_fd;	     /* of our top cgroup; -1 when not locked */
	char name[LOCAL_NAME_MAX];
	char mark[PATH_MAX];   /* how the marks of our processes begin: the run directory and ":" */
	struct cpuset allowed; /* what containers can have at most; set by container_cgroup_make */
};

/* Looks at what the machine has; makes and changes nothing. `run_dir` tells two machines of one
 * name apart. */
int container_cgroup_open(struct container_cgroup *cgroup, const char *name, const char *run_dir,
			  struct err *err);
void container_cgroup_done(struct container_cgroup *cgroup);

/* No cgroups, even where there are any. */
void container_cgroup_use_affinity(struct container_cgroup *cgroup);

/* Makes and locks the top cgroup; where that is not allowed, goes on by affinity and says why in
 * `why`, which is left alone otherwise. -EBUSY when another process has it. */
int container_cgroup_make(struct container_cgroup *cgroup, struct err *why, struct err *err);

/* Makes room for a container: its cgroup, with CPUs, weight and quota, read back. May be called
 * again for a running one, to move it. `pod_shares` is the sum over its pod. */
int container_cgroup_apply(const struct container_cgroup *cgroup, const struct local_container *c,
			   uint64_t pod_shares, struct err *err);

/* Starts the container's command inside; what it prints goes to `output_fd`. */
int container_cgroup_start(const struct container_cgroup *cgroup, const struct local_container *c,
			   int output_fd, pid_t *ret, struct err *err);

/* Processes of a container. */
int container_cgroup_procs(const struct container_cgroup *cgroup, const struct local_container *c,
			   struct arena *a, pid_t **ret, size_t *ret_n, struct err *err);

/* What the kernel says of each container, one sight per container: its control files, where there
 * are any, and its threads. One that has no process is not there. */
int container_cgroup_look(const struct container_cgroup *cgroup,
			  const struct local_container *containers, size_t n, struct arena *a,
			  struct cgroup_snapshot **ret, struct err *err);

/* Kills every process of a container; returns when none is left. */
int container_cgroup_kill(const struct container_cgroup *cgroup, const struct local_container *c,
			  struct err *err);

/* Kills what is left of a container and removes its cgroup, and its pod's when that was the last.
 */
int container_cgroup_remove(const struct container_cgroup *cgroup, const struct local_container *c,
			    struct err *err);

/* Everything of ours that runs, or once ran, in this mode: for cleaning up. Names only. */
int container_cgroup_list(const struct container_cgroup *cgroup, struct arena *a,
			  struct local_container **ret, size_t *ret_n, struct err *err);

bool container_cgroup_is_made(const struct container_cgroup *cgroup);

/* Removes the top cgroup. Everything below must be gone. */
int container_cgroup_destroy(const struct container_cgroup *cgroup, struct err *err);
