/* The affinity that a process chose itself is kept as far as it is within the services' CPUs. */

#include "processes.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"
#include "base/macro.h"
#include "cgroup/proc.h"

#define CGROUP_MAX 65536
#define INIT_PID 1

struct thread {
	pid_t tid;
	uint64_t start_ticks;
	struct cpuset cpus;
};

struct visit {
	int proc_fd;
	void (*fn)(struct visit *v, const struct thread *t, struct arena *a);
	struct originals *record;
	const struct originals *o;
	bool is_changed;
	struct cpuset base; /* the original affinity of process 1 */
	struct processes_result result;
};

static bool is_service(int proc_fd, pid_t pid, struct arena *a)
{
	struct proc_stat stat;
	struct str text;
	char path[32];

	(void)snprintf(path, sizeof(path), "%d/cgroup", (int)pid);
	return proc_stat(proc_fd, pid, a, &stat) && !stat.is_kernel && !stat.is_zombie &&
	       file_read_at(proc_fd, path, CGROUP_MAX, a, &text, NULL) == 0 &&
	       host_process_is_service(text);
}

static void visit_process(struct visit *v, pid_t pid, struct arena *a)
{
	struct proc_stat stat;
	struct thread t;
	pid_t *tids;
	size_t n;

	if (!is_service(v->proc_fd, pid, a) ||
	    proc_threads(v->proc_fd, pid, a, &tids, &n, NULL) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		t.tid = tids[i];
		if (!proc_thread_allowed(v->proc_fd, pid, t.tid, a, &t.cpus) ||
		    !proc_thread_stat(v->proc_fd, pid, t.tid, a, &stat))
			continue;
		t.start_ticks = stat.start_ticks;
		v->fn(v, &t, a);
	}
}

static int visit_all(struct visit *v, struct err *err)
{
	CLEANUP(arena_done) struct arena list, scratch;
	pid_t *pids;
	size_t n;
	int r;

	arena_init(&list, 0);
	arena_init(&scratch, 0);
	r = proc_list(v->proc_fd, &list, &pids, &n, err);
	for (size_t i = 0; i < n && r >= 0; i++) {
		arena_reset(&scratch);
		visit_process(v, pids[i], &scratch);
	}
	return r < 0 ? r : 0;
}

static void record(struct visit *v, const struct thread *t, struct arena *a)
{
	if (!cpuset_eq(&t->cpus, &v->base))
		originals_add_thread(v->record,
				     &(struct thread_original){ t->tid, t->start_ticks,
								cpuset_format(&t->cpus, a) });
}

int processes_record(int proc_fd, struct originals *o, struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	struct visit v = { .proc_fd = proc_fd, .fn = record, .record = o };
	int r;

	arena_init(&a, 0);
	if (o->services.n)
		return 0;
	if (!proc_allowed(proc_fd, INIT_PID, &v.base))
		return err_set(err, ENOENT, "cannot read the affinity of process 1");
	r = visit_all(&v, err);
	if (r == 0)
		originals_set(o, &o->services, cpuset_format(&v.base, &a));
	return r;
}

static void set_affinity(struct visit *v, pid_t tid, const struct cpuset *cpus)
{
	const void *mask = cpus->w;

	if (sched_setaffinity(tid, sizeof(cpus->w), mask) == 0)
		v->result.n_moved++;
	else if (errno != ESRCH)
		v->result.n_refused++;
}

static bool original_of(const struct visit *v, const struct thread *t, struct cpuset *ret)
{
	const struct thread_original *original = originals_thread(v->o, t->tid, t->start_ticks);

	return original && cpuset_parse_kernel(original->cpus, ret, NULL) == 0;
}

/* A thread that is not recorded was in the state of process 1, or has inherited it. */
static void apply(struct visit *v, const struct thread *t, struct arena *a)
{
	struct cpuset original, want;

	(void)a;
	if (!original_of(v, t, &original))
		original = v->base;
	if (host_mask_decide(&(struct host_mask){ &t->cpus, &original, &v->o->applied.services,
						  v->is_changed },
			     &want))
		set_affinity(v, t->tid, &want);
}

int processes_apply(int proc_fd, const struct originals *o, bool is_changed,
		    struct processes_result *ret, struct err *err)
{
	struct visit v = { .proc_fd = proc_fd, .fn = apply, .o = o, .is_changed = is_changed };
	int r;

	if (!o->services.n)
		return err_set(err, ENOENT, "the affinities of processes are not recorded");
	r = cpuset_parse_kernel(o->services, &v.base, err);
	if (r == 0)
		r = visit_all(&v, err);
	if (r == 0)
		*ret = v.result;
	return r;
}

/* One that has other CPUs than were applied has chosen them since. */
static void restore(struct visit *v, const struct thread *t, struct arena *a)
{
	struct cpuset original, applied;

	(void)a;
	if (!original_of(v, t, &original))
		original = v->base;
	host_mask_within(&original, &v->o->applied.services, &applied);
	if (cpuset_eq(&t->cpus, &applied) && !cpuset_eq(&t->cpus, &original))
		set_affinity(v, t->tid, &original);
}

int processes_restore(int proc_fd, const struct originals *o, struct processes_result *ret,
		      struct err *err)
{
	struct visit v = { .proc_fd = proc_fd, .fn = restore, .o = o };
	int r;

	if (!o->services.n || !o->has_applied)
		return 0;
	r = cpuset_parse_kernel(o->services, &v.base, err);
	if (r == 0)
		r = visit_all(&v, err);
	if (r == 0)
		*ret = v.result;
	return r;
}
