#pragma once

/* Processes of containers: starting one inside its cage, finding those that run, ending them, and
 * asking the kernel where their threads may run. Every process carries its container's id in its
 * environment (PINFOLD_CONTAINER), so that it is found again after a crash of the supervisor, with
 * cgroups or without. */

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

/* Starts the command. Fails when the child could not enter its cage or the command could not be
 * executed, with the child's own reason; then no process is left. `mark` is "name:id". */
int process_start(const struct local_container *c, struct str mark, process_enter_fn enter,
		  const void *data, pid_t *ret, struct err *err);

/* Every process of this machine whose mark is `mark`, or begins with it when `prefix`. */
int process_find(struct str mark, bool prefix, struct arena *a, pid_t **ret, size_t *ret_n,
		 struct err *err);

/* The process the others descend from: its parent is not one of them. 0 when there is none. */
pid_t process_root(const pid_t *pids, size_t n);

/* The union of the CPUs that the threads of a process may use, read from the kernel; the number of
 * threads in *ret_threads. -ESRCH when the process is gone. */
int process_cpus(pid_t pid, struct arena *a, struct cpuset *ret, size_t *ret_threads,
		 struct err *err);

/* Sets the affinity of every thread of a process. */
int process_pin(pid_t pid, const struct cpuset *cpus, struct arena *a, struct err *err);
