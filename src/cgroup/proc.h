#pragma once

/* What /proc reports about processes: names, parents, and the CPUs their threads may use.
 * Everything is read below a handle of /proc, so that tests can use a captured machine. A process
 * that ends meanwhile is no error: it is not there. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/str.h"
#include "cpu/cpuset.h"

struct arena;
struct err;

struct proc_stat {
	struct str name;
	pid_t parent;
	bool is_zombie;
	bool is_kernel;	      /* a kernel thread */
	uint64_t start_ticks; /* since boot: tells processes with the same id apart; 0: unknown */
};

/* /proc/PID/stat; the name may hold blanks and parentheses. Pure; it points into the text. */
bool proc_parse_stat(struct str text, struct proc_stat *ret);

/* The CPUs in /proc/PID/status. Pure. */
bool proc_parse_allowed(struct str text, struct cpuset *ret);

/* The cgroup in /proc/PID/cgroup, "/system.slice/cron.service": of the unified hierarchy or, where
 * that has none, of systemd's own. "" when there is neither. Pure; it points into the text. */
struct str proc_parse_cgroup(struct str text);

/* The same of a process; "" also when it has ended. */
struct str proc_cgroup(int proc_fd, pid_t pid, struct arena *a);

bool proc_stat(int proc_fd, pid_t pid, struct arena *a, struct proc_stat *ret);
/* The same of a thread of a process. */
bool proc_thread_stat(int proc_fd, pid_t pid, pid_t tid, struct arena *a, struct proc_stat *ret);
/* The CPUs of a thread; false when it has ended. */
bool proc_thread_allowed(int proc_fd, pid_t pid, pid_t tid, struct arena *a, struct cpuset *ret);
/* The threads of a process. */
int proc_threads(int proc_fd, pid_t pid, struct arena *a, pid_t **ret, size_t *ret_n,
		 struct err *err);
bool proc_allowed(int proc_fd, pid_t pid, struct cpuset *ret);

/* All process ids. */
int proc_list(int proc_fd, struct arena *a, pid_t **ret, size_t *ret_n, struct err *err);

/* Threads of one process with the same affinity. */
struct proc_affinity {
	struct cpuset allowed;
	pid_t tid; /* the first of them */
	size_t n_threads;
};

/* The affinities of the threads that have not ended; false when there are none. */
bool proc_affinities(int proc_fd, pid_t pid, struct arena *a, struct proc_affinity **ret,
		     size_t *ret_n);
