#pragma once

/* Enforces the CPU settings of local containers: by cgroups below one top cgroup, or by CPU
 * affinity where no hierarchy is writable. Applies a plan and reads the kernel's state; decides
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
	int lock_fd;	     /* of the top cgroup; -1 when not locked */
	char name[LOCAL_NAME_MAX];
	char mark[PATH_MAX];   /* prefix of the marks of its processes: run directory and ":" */
	struct cpuset allowed; /* CPUs that containers can have; set by container_cgroup_make() */
};

/* Detects the hierarchy; creates nothing. `run_dir` distinguishes processes of two machines with
 * the same name. */
int container_cgroup_open(struct container_cgroup *cgroup, const char *name, const char *run_dir,
			  struct err *err);

/* Marks the processes of `run_dir`. Without symbolic links, so that two spellings of one directory
 * give one mark; a directory that does not exist yet is taken as it is written. */
int container_cgroup_set_mark(struct container_cgroup *cgroup, const char *run_dir,
			      struct err *err);
void container_cgroup_done(struct container_cgroup *cgroup);

/* Uses affinity even where cgroups are available. */
void container_cgroup_use_affinity(struct container_cgroup *cgroup);

/* Creates and locks the top cgroup; where that is not permitted, falls back to affinity and sets
 * `why`. -EBUSY when another process holds the lock. */
int container_cgroup_make(struct container_cgroup *cgroup, struct err *why, struct err *err);

/* Creates the container's cgroup and writes its CPU settings, each read back. For a running
 * container it changes them. `pod_shares` is the sum over the pod. */
int container_cgroup_apply(const struct container_cgroup *cgroup, const struct local_container *c,
			   uint64_t pod_shares, struct err *err);

/* Starts the container's command in its cgroup, with output to `output_fd`. */
int container_cgroup_start(const struct container_cgroup *cgroup, const struct local_container *c,
			   int output_fd, pid_t *ret, struct err *err);

int container_cgroup_procs(const struct container_cgroup *cgroup, const struct local_container *c,
			   struct arena *a, pid_t **ret, size_t *ret_n, struct err *err);

/* One snapshot per container. A container without a process is not there, even if its cgroup is. */
int container_cgroup_snapshots(const struct container_cgroup *cgroup,
			       const struct local_container *containers, size_t n, struct arena *a,
			       struct cgroup_snapshot **ret, struct err *err);

/* Kills all processes of a container; returns when none is left. */
int container_cgroup_kill(const struct container_cgroup *cgroup, const struct local_container *c,
			  struct err *err);

/* Kills the container and removes its cgroup, and the pod's cgroup with the last container. */
int container_cgroup_remove(const struct container_cgroup *cgroup, const struct local_container *c,
			    struct err *err);

/* All containers of this machine that have a cgroup or, in affinity mode, a process. Only their
 * names are set. */
int container_cgroup_list(const struct container_cgroup *cgroup, struct arena *a,
			  struct local_container **ret, size_t *ret_n, struct err *err);

bool container_cgroup_is_made(const struct container_cgroup *cgroup);

/* Removes the top cgroup, which must be empty. */
int container_cgroup_destroy(const struct container_cgroup *cgroup, struct err *err);
