#pragma once

/* Processes of local containers: starts them, finds them again and sets the CPU affinity of their
 * threads. Every process has its container's id in its environment (PINFOLD_CONTAINER, the "mark"),
 * so that the next supervisor finds it after a crash, with cgroups or without. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/str.h"
#include "cpu/cpuset.h"

struct arena;
struct err;
struct local_container;

#define PROCESS_MARK "PINFOLD_CONTAINER"

/* Called in the child before exec: enters the cgroup or sets the affinity. Returns 0 or -errno. */
typedef int (*process_enter_fn)(const void *data);

struct process_settings {
	struct str mark; /* "/run/pinfold/local:namespace/pod/container" */
	process_enter_fn enter;
	const void *data;
	int output_fd; /* standard output and error; standard input is /dev/null */
};

/* Starts the command. When the child cannot enter its cgroup or execute the command, fails with the
 * child's error and leaves no process. */
int process_start(const struct local_container *c, const struct process_settings *s, pid_t *ret,
		  struct err *err);

/* A descriptor of /proc, for cgroup/proc.h and cgroup/cgroup_snapshot.h. */
int process_open_proc(struct err *err);

/* A process with a mark, and the text of the mark after the prefix. */
struct process_mark {
	pid_t pid;
	struct str id;
};

/* All processes whose mark begins with `prefix`, except zombies. A process that has cleared its
 * environment is not found. */
int process_list(struct str prefix, struct arena *a, struct process_mark **ret, size_t *ret_n,
		 struct err *err);

/* The first process of a container: the one whose parent is not in the list. 0: none. */
pid_t process_root(const pid_t *pids, size_t n);

/* Sets the affinity of all threads of a process. Returns 1 when a thread had another one, so that
 * the caller repeats it: threads may have been created in between. -ESRCH when the process has
 * ended. */
int process_pin(pid_t pid, const struct cpuset *cpus, struct arena *a, struct err *err);

/* The calling process. Returns 0 or -errno. */
int process_pin_self(const struct cpuset *cpus);

/* Removes the affinity mask of the calling process, so that its cgroup alone decides. Since
 * Linux 6.2 the kernel remembers a mask and would apply it to CPUs that the cgroup gets later. */
int process_free_affinity(void);

/* CPUs that the cpuset of the calling process allows. */
int process_allowed_cpus(struct cpuset *ret, struct err *err);
