/* Cpus_allowed in /proc is the mask the scheduler uses: the cpuset of the cgroup and the thread's
 * own affinity together. It is per thread; /proc/PID/status shows only the first thread of a
 * process. */

#include "proc.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/macro.h"

#define PROC_FILE_MAX 65536 /* a status file has about 2 KB, and more with thousands of CPUs */
#define KERNEL_THREAD 0x00200000u /* PF_KTHREAD */

/* The name is whatever the process chose, so it ends at the last parenthesis, not at the first.
 * Only twenty fields after it are read, which fit `rest`. */
bool proc_parse_stat(struct str text, struct proc_stat *ret)
{
	const char *from = text.n ? memchr(text.p, '(', text.n) : NULL;
	const char *to = text.n ? memrchr(text.p, ')', text.n) : NULL;
	char rest[512] = "";
	unsigned long long start = 0;
	unsigned flags;
	char state;
	int parent;

	if (!from || !to || to < from)
		return false;
	(void)snprintf(rest, sizeof(rest), PRI_STR,
		       FMT_STR(str_skip(text, (size_t)(to + 1 - text.p))));
	if (sscanf(rest,
		   " %c %9d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d "
		   "%llu",
		   &state, &parent, &flags, &start) < 3)
		return false;
	*ret = (struct proc_stat){ .name = { from + 1, (size_t)(to - from - 1) },
				   .parent = parent,
				   .is_zombie = state == 'Z' || state == 'X',
				   .is_kernel = flags & KERNEL_THREAD,
				   .start_ticks = start };
	return true;
}

/* The value of "Key:\tvalue". */
static bool find_line(struct str text, struct str key, struct str *ret)
{
	struct str_split lines = str_split(text);
	struct str line;

	while (str_next(&lines, '\n', &line))
		if (str_starts(line, key)) {
			*ret = str_trim(str_skip(line, key.n));
			return true;
		}
	return false;
}

bool proc_parse_allowed(struct str text, struct cpuset *ret)
{
	struct str list;

	return find_line(text, STR("Cpus_allowed_list:"), &list) &&
	       cpuset_parse_kernel(list, ret, NULL) == 0;
}

/* A line is "ID:CONTROLLERS:PATH", and the path may contain colons. */
struct str proc_parse_cgroup(struct str text)
{
	struct str_split lines = str_split(text);
	struct str line, found = STR("");

	while (str_next(&lines, '\n', &line)) {
		struct str_split fields = str_split(line);
		struct str id, controllers;

		if (!str_next(&fields, ':', &id) || !str_next(&fields, ':', &controllers))
			continue;
		/* With both hierarchies mounted, all may be in the root of the unified one. */
		if (str_eq(id, STR("0")) ? found.n <= 1 : str_eq(controllers, STR("name=systemd")))
			found = str_trim(fields.rest);
	}
	return found;
}

/* A thread that has ended stays in /proc until its exit status is collected. */
static bool has_ended(struct str status)
{
	struct str state;

	return find_line(status, STR("State:"), &state) &&
	       (str_starts(state, STR("Z")) || str_starts(state, STR("X")));
}

static bool read_stat(int proc_fd, const char *path, struct arena *a, struct proc_stat *ret)
{
	struct str text;

	return file_read_at(proc_fd, path, PROC_FILE_MAX, a, &text, NULL) >= 0 &&
	       proc_parse_stat(text, ret);
}

bool proc_stat(int proc_fd, pid_t pid, struct arena *a, struct proc_stat *ret)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "%d/stat", (int)pid);
	return read_stat(proc_fd, path, a, ret);
}

bool proc_thread_stat(int proc_fd, pid_t pid, pid_t tid, struct arena *a, struct proc_stat *ret)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%d/task/%d/stat", (int)pid, (int)tid);
	return read_stat(proc_fd, path, a, ret);
}

bool proc_thread_allowed(int proc_fd, pid_t pid, pid_t tid, struct arena *a, struct cpuset *ret)
{
	struct str text;
	char path[64];

	(void)snprintf(path, sizeof(path), "%d/task/%d/status", (int)pid, (int)tid);
	return file_read_at(proc_fd, path, PROC_FILE_MAX, a, &text, NULL) >= 0 &&
	       !has_ended(text) && proc_parse_allowed(text, ret);
}

struct str proc_cgroup(int proc_fd, pid_t pid, struct arena *a)
{
	char path[32];
	struct str text;

	(void)snprintf(path, sizeof(path), "%d/cgroup", (int)pid);
	return file_read_at(proc_fd, path, PROC_FILE_MAX, a, &text, NULL) >= 0 ?
		       proc_parse_cgroup(text) :
		       STR("");
}

bool proc_allowed(int proc_fd, pid_t pid, struct cpuset *ret)
{
	CLEANUP(arena_done) struct arena a;
	char path[32];
	struct str text;

	arena_init(&a, 0);
	(void)snprintf(path, sizeof(path), "%d/status", (int)pid);
	return file_read_at(proc_fd, path, PROC_FILE_MAX, &a, &text, NULL) >= 0 &&
	       proc_parse_allowed(text, ret);
}

/* The names in a directory that are numbers: process ids, or thread ids of a process. */
static int list_numbers(int proc_fd, const char *path, struct arena *a, pid_t **ret, size_t *ret_n,
			struct err *err)
{
	struct str *names;
	pid_t *numbers;
	size_t n, kept = 0;
	int r;

	r = file_list_at(proc_fd, path, a, &names, &n, err);
	if (r < 0)
		return r;
	numbers = arena_array(a, pid_t, n);
	for (size_t i = 0; i < n; i++) {
		uint64_t number;

		if (str_to_u64(names[i], INT32_MAX, &number))
			numbers[kept++] = (pid_t)number;
	}
	*ret = numbers;
	*ret_n = kept;
	return 0;
}

int proc_list(int proc_fd, struct arena *a, pid_t **ret, size_t *ret_n, struct err *err)
{
	return list_numbers(proc_fd, ".", a, ret, ret_n, err);
}

int proc_threads(int proc_fd, pid_t pid, struct arena *a, pid_t **ret, size_t *ret_n,
		 struct err *err)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "%d/task", (int)pid);
	return list_numbers(proc_fd, path, a, ret, ret_n, err);
}

/* One entry per mask, not per thread: a process may have thousands of threads, and a set has 1 KiB.
 */
struct affinities {
	struct proc_affinity *items;
	size_t n, cap;
	struct arena *a;
};

static void add_affinity(struct affinities *p, pid_t tid, const struct cpuset *allowed)
{
	for (size_t i = 0; i < p->n; i++)
		if (cpuset_eq(&p->items[i].allowed, allowed)) {
			p->items[i].n_threads++;
			return;
		}
	p->items = arena_reserve(p->a, p->items, p->n, &p->cap, sizeof(*p->items));
	p->items[p->n++] = (struct proc_affinity){ *allowed, tid, 1 };
}

bool proc_affinities(int proc_fd, pid_t pid, struct arena *a, struct proc_affinity **ret,
		     size_t *ret_n)
{
	CLEANUP(arena_done) struct arena list, scratch;
	struct affinities p = { .a = a };
	struct cpuset allowed;
	pid_t *tids;
	size_t n;

	arena_init(&list, 0);
	arena_init(&scratch, 0);
	if (proc_threads(proc_fd, pid, &list, &tids, &n, NULL) < 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		arena_reset(&scratch);
		if (proc_thread_allowed(proc_fd, pid, tids[i], &scratch, &allowed))
			add_affinity(&p, tids[i], &allowed);
	}
	if (p.n == 0)
		return false;
	/* Give the spare capacity back: most processes have one affinity, and a machine has many
	 * processes. */
	*ret = arena_realloc(a, p.items, p.cap * sizeof(*p.items), p.n * sizeof(*p.items));
	*ret_n = p.n;
	return true;
}
