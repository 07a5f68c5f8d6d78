/* Containers start and end while their state is read. A cgroup or process that disappears meanwhile
 * is left out; only a failure on something that still exists is an error. */

#include "cgroup_snapshot.h"

#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"

#define DEPTH_MAX 16 /* of cgroups that a container creates below its own; bounds the recursion */

static void add_process(struct processes *l, const struct process *p, struct arena *a)
{
	l->items = arena_reserve(a, l->items, l->n, &l->cap, sizeof(*l->items));
	l->items[l->n++] = *p;
}

static void add_pid(struct processes *l, int proc_fd, pid_t pid, struct arena *a)
{
	struct process p = { .pid = pid };

	if (proc_affinities(proc_fd, pid, a, &p.affinities, &p.n_affinities))
		add_process(l, &p, a);
}

struct search {
	const struct cgroup_fs *fs;
	int proc_fd;
	struct arena *a;
	struct processes *found;
};

static int add_cgroup(struct search *s, const char *path, int depth, struct err *err)
{
	struct str *names;
	pid_t *pids;
	size_t n;
	int r;

	r = cgroup_procs(s->fs, path, s->a, &pids, &n, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		add_pid(s->found, s->proc_fd, pids[i], s->a);
	if (depth == DEPTH_MAX || cgroup_children(s->fs, path, s->a, &names, &n, NULL) < 0)
		return 0;
	for (size_t i = 0; i < n; i++) {
		const struct str below = str_printf(s->a, "%s/" PRI_STR, path, FMT_STR(names[i]));

		/* It is gone, or threaded: then its processes are listed in its parent. */
		(void)add_cgroup(s, str_cstr(s->a, below), depth + 1, NULL);
	}
	return 0;
}

int cgroup_snapshot_read_cgroup(const struct cgroup_fs *fs, int proc_fd, const char *path,
				struct arena *a, struct cgroup_snapshot *ret, struct err *err)
{
	struct cgroup_snapshot s = { .is_there = true, .has_cgroup = true };
	struct search search = { fs, proc_fd, a, &s.processes };
	bool is_there = *path && cgroup_exists(fs, path);
	struct cgroup_cpu memory;
	int r;

	if (is_there) {
		r = cgroup_read(fs, path, CGROUP_ALL, &s.cgroup, err);
		/* Few settings have memory nodes, and only for these they are compared. */
		if (r >= 0 && cgroup_read(fs, path, CGROUP_MEMS, &memory, NULL) >= 0) {
			s.cgroup.mems = memory.mems;
			s.cgroup.effective_mems = memory.effective_mems;
		}
		if (r >= 0)
			r = add_cgroup(&search, path, 0, err);
		/* It may be gone by now: then what was read is partial, or failed for that. */
		is_there = cgroup_exists(fs, path);
		if (r < 0 && is_there)
			return r;
	}
	*ret = is_there ? s : (struct cgroup_snapshot){ 0 };
	return 0;
}

void cgroup_snapshot_read_processes(int proc_fd, const pid_t *pids, size_t n, struct arena *a,
				    struct cgroup_snapshot *ret)
{
	struct cgroup_snapshot s = { 0 };

	for (size_t i = 0; i < n; i++)
		add_pid(&s.processes, proc_fd, pids[i], a);
	s.is_there = s.processes.n > 0;
	*ret = s;
}

/* A captured machine has no "self" link; there this pid may belong to another process. */
static pid_t own_pid(int proc_fd)
{
	char text[24] = "";
	uint64_t pid;
	ssize_t n = readlinkat(proc_fd, "self", text, sizeof(text) - 1);

	return n > 0 && str_to_u64((struct str){ text, (size_t)n }, INT32_MAX, &pid) ? (pid_t)pid :
										       0;
}

int cgroup_snapshot_read_machine(int proc_fd, struct arena *a, struct processes *ret,
				 struct err *err)
{
	const pid_t self = own_pid(proc_fd);
	struct processes list = { 0 };
	CLEANUP(arena_done) struct arena scratch;
	struct proc_stat stat;
	pid_t *pids;
	size_t n;
	int r;

	arena_init(&scratch, 0);
	r = proc_list(proc_fd, a, &pids, &n, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		struct process p = { .pid = pids[i] };

		arena_reset(&scratch); /* `stat` points into it; only what is kept goes into `a` */
		/* Kernel threads are left out: kernel arguments keep them off CPUs
		 * (docs/reference/pools.md#kernel-arguments). */
		if (p.pid == self || !proc_stat(proc_fd, p.pid, &scratch, &stat) ||
		    stat.is_kernel ||
		    !proc_affinities(proc_fd, p.pid, a, &p.affinities, &p.n_affinities))
			continue;
		p.name = str_dup(a, stat.name);
		p.cgroup = str_dup(a, proc_cgroup(proc_fd, p.pid, &scratch));
		add_process(&list, &p, a);
	}
	*ret = list;
	return 0;
}

void cgroup_snapshot_drop_ended(int proc_fd, struct processes *list)
{
	CLEANUP(arena_done) struct arena scratch;
	struct proc_stat stat;
	size_t kept = 0;

	arena_init(&scratch, 0);
	for (size_t i = 0; i < list->n; i++) {
		arena_reset(&scratch);
		if (proc_stat(proc_fd, list->items[i].pid, &scratch, &stat) && !stat.is_zombie)
			list->items[kept++] = list->items[i];
	}
	list->n = kept;
}

size_t cgroup_snapshot_threads(const struct cgroup_snapshot *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->processes.n; i++)
		for (size_t k = 0; k < s->processes.items[i].n_affinities; k++)
			n += s->processes.items[i].affinities[k].n_threads;
	return n;
}

struct cpuset cgroup_snapshot_allowed(const struct cgroup_snapshot *s)
{
	struct cpuset all = { 0 };

	for (size_t i = 0; i < s->processes.n; i++)
		for (size_t k = 0; k < s->processes.items[i].n_affinities; k++)
			cpuset_union(&all, &s->processes.items[i].affinities[k].allowed);
	return all;
}
