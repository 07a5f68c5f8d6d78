#pragma once

/* Processes of containers: starting one inside its cage, finding those that run, and putting their
 * threads on CPUs. Every process carries its container's id in its environment (PINFOLD_CONTAINER),
 * so that it is found again after a crash of the supervisor, with cgroups or without. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/str.h"
#include "cpu/cpuset.h"

struct arena;
struct err;
struct local_container;

#define PROCESS_MARK "PINFOLD_CONTAINER"

/* Called in the child before exec: puts the process where it belongs. Returns 0 or -errno. */
typedef int (*process_enter_fn)(const void *data);

struct process_settings {
	struct str mark; /* "/run/pinfold/local:namespace/pod/container" */
	process_enter_fn enter;
	const void *data;
	int output_fd; /* what it prints goes here; it reads from /dev/null */
};

/* Starts the command. Fails when the child could not enter its cage or the command could not be
 * executed, with the child's own reason; then no process is left. */
int process_start(const struct local_container *c, const struct process_settings *s, pid_t *ret,
		  struct err *err);

/* A handle of /proc, for what cgroup/proc.h and cgroup/sight.h read there. */
int process_open_proc(struct err *err);

/* A living process that carries a mark, and what the mark says behind the prefix. */
struct process_mark {
	pid_t pid;
	struct str id;
};

/* Every process of this machine whose mark begins with `prefix`. A command that clears its
 * environment is not among them. */
int process_list(struct str prefix, struct arena *a, struct process_mark **ret, size_t *ret_n,
		 struct err *err);

/* The process the others descend from: its parent is not one of them. 0 when there is none. */
pid_t process_root(const pid_t *pids, size_t n);

/* Sets the affinity of every thread of a process that has another one; 1 when there was any, so
 * that the caller looks again: a thread may have been made meanwhile. -ESRCH when it is gone. */
int process_pin(pid_t pid, const struct cpuset *cpus, struct arena *a, struct err *err);

/* For this process alone. Returns 0 or -errno. */
int process_pin_self(const struct cpuset *cpus);

/* Lets this process run wherever its cgroup does, now and after a resize: since Linux 6.2 a mask
 * once set is remembered and would keep it from CPUs that its cgroup wins later. */
int process_free_affinity(void);

/* CPUs that the kernel lets this process have at most: a container's or a cpuset's limits. */
int process_allowed_cpus(struct cpuset *ret, struct err *err);
