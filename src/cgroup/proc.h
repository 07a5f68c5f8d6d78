#pragma once

/* What /proc says of processes: their names and parents, and on which CPUs their threads may run.
 * Everything is read below a handle of /proc, so that a captured machine can stand for one. Whoever
 * has ended meanwhile is no error: he is not there. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/str.h"
#include "cpu/cpuset.h"

struct arena;
struct err;

struct proc_stat {
	struct str name;
	pid_t parent;
	bool is_zombie;
	bool is_kernel; /* one of the kernel's own threads */
};

/* /proc/PID/stat; the name may hold blanks and parentheses. Pure; it points into the text. */
bool proc_parse_stat(struct str text, struct proc_stat *ret);

/* The CPUs in /proc/PID/status. Pure. */
bool proc_parse_allowed(struct str text, struct cpuset *ret);

bool proc_stat(int proc_fd, pid_t pid, struct arena *a, struct proc_stat *ret);
bool proc_allowed(int proc_fd, pid_t pid, struct cpuset *ret);

/* The numbers of everybody. */
int proc_list(int proc_fd, struct arena *a, pid_t **ret, size_t *ret_n, struct err *err);

/* Threads of one process that may use the same CPUs. */
struct proc_place {
	struct cpuset allowed;
	pid_t tid; /* the first of them */
	size_t n_threads;
};

/* Where the living threads of a process may run; false when there are none. */
bool proc_places(int proc_fd, pid_t pid, struct arena *a, struct proc_place **ret, size_t *ret_n);
