/* Below the top cgroup pinfold-NAME there is one cgroup per pod, which has a weight only, and below
 * it one per container, which has cpuset, weight, quota and the processes. In affinity mode there
 * are no cgroups: the processes of a container are found by their mark, and every thread is pinned.
 */

#include "container_cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "cgroup/cgroup_snapshot.h"
#include "lock.h"
#include "process.h"

#define CGROUP_MOUNT "/sys/fs/cgroup"
#define KILL_ROUNDS 500 /* of 10 ms: a process in uninterruptible sleep ends late */
#define PIN_ROUNDS 100

static void pause_10ms(void)
{
	const struct timespec t = { .tv_nsec = 10000000 };

	(void)nanosleep(&t, NULL);
}

static const char *top_path(const struct container_cgroup *cgroup,
			    char ret[static LOCAL_NAME_MAX + 16])
{
	(void)snprintf(ret, LOCAL_NAME_MAX + 16, "pinfold-%s", cgroup->name);
	return ret;
}

int container_cgroup_set_mark(struct container_cgroup *cgroup, const char *run_dir, struct err *err)
{
	char where[PATH_MAX];
	int n = snprintf(cgroup->mark, sizeof(cgroup->mark),
			 "%s:", realpath(run_dir, where) ? where : run_dir);

	if (n < 0 || (size_t)n >= sizeof(cgroup->mark))
		return err_set(err, ENAMETOOLONG, "%s: name too long", run_dir);
	return 0;
}

int container_cgroup_open(struct container_cgroup *cgroup, const char *name, const char *run_dir,
			  struct err *err)
{
	struct container_cgroup c = { .mode = LOCAL_AFFINITY,
				      .fs = { .cpu_fd = -1, .cpuset_fd = -1 },
				      .lock_fd = -1 };

	if (!local_name_is_valid(str_from(name), LOCAL_NAME_MAX - 1))
		return err_set(err, EINVAL,
			       "name \"%s\": use up to %d lower-case letters, digits, \"-\", \".\"",
			       name, LOCAL_NAME_MAX - 1);
	(void)snprintf(c.name, sizeof(c.name), "%s", name);
	if (container_cgroup_set_mark(&c, run_dir, err) < 0)
		return -ENAMETOOLONG;
	if (cgroup_open(&c.fs, CGROUP_MOUNT, NULL) >= 0)
		c.mode = c.fs.version == CGROUP_V2 ? LOCAL_CGROUP_V2 : LOCAL_CGROUP_V1;
	*cgroup = c;
	return 0;
}

void container_cgroup_done(struct container_cgroup *cgroup)
{
	if (cgroup->lock_fd >= 0)
		(void)close(cgroup->lock_fd);
	cgroup->lock_fd = -1;
	container_cgroup_use_affinity(cgroup);
}

void container_cgroup_use_affinity(struct container_cgroup *cgroup)
{
	if (cgroup->mode != LOCAL_AFFINITY)
		cgroup_done(&cgroup->fs);
	cgroup->mode = LOCAL_AFFINITY;
}

/* Two machines with the same name would use the same cgroups, also from different run directories,
 * so the lock of the run directory is not enough. */
static int lock_top(struct container_cgroup *cgroup, const char *top, struct err *err)
{
	cgroup->lock_fd = openat(cgroup->fs.cpu_fd, top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (cgroup->lock_fd < 0)
		return err_set(err, errno, "open cgroup %s: %s", top, strerror(errno));
	if (lock_wait(cgroup->lock_fd) < 0)
		return err_set(err, EBUSY, "cgroup %s is used by another pinfold process", top);
	return 0;
}

static int make_top(struct container_cgroup *cgroup, struct err *why, struct err *err)
{
	char top[LOCAL_NAME_MAX + 16];
	struct err cause = { 0 };
	struct cgroup_cpu cpu;
	int r;

	/* Only this failure selects affinity: it means that no cgroup can be created here. A top
	 * cgroup that exists and is locked belongs to another supervisor, which is an error. */
	if (cgroup_make(&cgroup->fs, top_path(cgroup, top), &cause) < 0) {
		*why = cause;
		container_cgroup_use_affinity(cgroup);
		return 0;
	}
	r = lock_top(cgroup, top, err);
	if (r < 0)
		return r;
	r = cgroup_read(&cgroup->fs, top, CGROUP_CPUS, &cpu, err);
	if (r >= 0) /* cpuset.cpus is empty on v2 while nothing is written: only this says it */
		cgroup->allowed = cpu.effective;
	return r;
}

int container_cgroup_make(struct container_cgroup *cgroup, struct err *why, struct err *err)
{
	int r = 0;

	if (cgroup->mode != LOCAL_AFFINITY)
		r = make_top(cgroup, why, err);
	else if (!why->code)
		(void)err_set(why, ENODEV,
			      CGROUP_MOUNT ": no cgroup hierarchy with cpu and cpuset");
	if (r >= 0 && cgroup->mode == LOCAL_AFFINITY)
		r = process_allowed_cpus(&cgroup->allowed, err);
	return r;
}

/* Kubernetes names contain no "_", so it separates the two parts unambiguously. */
static const char *pod_path(const struct container_cgroup *cgroup, const struct local_container *c,
			    struct arena *a)
{
	return str_printf(a, "pinfold-%s/" PRI_STR "_" PRI_STR, cgroup->name, FMT_STR(c->namespace),
			  FMT_STR(c->pod))
		.p;
}

static const char *container_path(const struct container_cgroup *cgroup,
				  const struct local_container *c, struct arena *a)
{
	return str_printf(a, "%s/" PRI_STR, pod_path(cgroup, c, a), FMT_STR(c->name)).p;
}

/* Repeats until a round changes nothing: processes and threads may be created in between. They
 * inherit the mask of the thread that creates them, so once all masks are right they stay right. */
static int pin_processes(const struct container_cgroup *cgroup, const struct local_container *c,
			 struct arena *a, struct err *err)
{
	bool changed = true;
	pid_t *pids;
	size_t n;
	int r = 0;

	for (int round = 0; r >= 0 && changed && round < PIN_ROUNDS; round++) {
		changed = false;
		r = container_cgroup_procs(cgroup, c, a, &pids, &n, err);
		for (size_t i = 0; r >= 0 && i < n; i++) {
			r = process_pin(pids[i], &c->settings.cpus, a, err);
			changed |= r > 0;
			if (r == -ESRCH)
				r = 0;
		}
	}
	if (r >= 0 && changed)
		return err_set(err, EBUSY, "it creates threads faster than they can be moved");
	return r < 0 ? r : 0;
}

/* The pod's cpuset is not written and stays that of the top cgroup: the containers of one pod may
 * be in different pools. Its weight has to be written, because weights compare siblings only: with
 * the default weight all pods would get the same share, whatever their containers request. */
static int apply_cgroup(const struct container_cgroup *cgroup, const struct local_container *c,
			uint64_t pod_shares, struct arena *a, struct err *err)
{
	const char *pod = pod_path(cgroup, c, a), *path = container_path(cgroup, c, a);
	int r;

	r = cgroup_make(&cgroup->fs, path, err);
	if (r >= 0)
		r = cgroup_set_shares(&cgroup->fs, pod, pod_shares, err);
	if (r >= 0)
		r = cgroup_set_cpus(&cgroup->fs, path, &c->settings.cpus, err);
	if (r >= 0 && c->settings.mems)
		r = cgroup_set_mems(&cgroup->fs, path, c->settings.mems, err);
	if (r >= 0)
		r = cgroup_set_shares(&cgroup->fs, path, c->settings.shares, err);
	if (r >= 0)
		r = cgroup_set_quota(&cgroup->fs, path, c->settings.quota_us, c->settings.period_us,
				     err);
	return r;
}

int container_cgroup_apply(const struct container_cgroup *cgroup, const struct local_container *c,
			   uint64_t pod_shares, struct err *err)
{
	struct arena a;
	int r;

	arena_init(&a, 0);
	r = cgroup->mode == LOCAL_AFFINITY ? pin_processes(cgroup, c, &a, err) :
					     apply_cgroup(cgroup, c, pod_shares, &a, err);
	if (r < 0)
		r = err_wrap(err, PRI_STR, FMT_STR(local_container_id(c, &a)));
	arena_done(&a);
	return r;
}

struct enter_data {
	const struct container_cgroup *cgroup;
	const struct local_container *c;
	const char *path;
};

/* Runs in the child, before exec. */
static int enter_cgroup(const void *data)
{
	const struct enter_data *e = data;
	struct err err = { 0 };
	int r;

	if (e->cgroup->mode == LOCAL_AFFINITY)
		return process_pin_self(&e->c->settings.cpus);
	/* In this order: a mask is limited to the cpuset that the process is in at that time. */
	r = cgroup_attach(&e->cgroup->fs, e->path, getpid(), &err);
	return r < 0 ? r : process_free_affinity();
}

int container_cgroup_start(const struct container_cgroup *cgroup, const struct local_container *c,
			   int output_fd, pid_t *ret, struct err *err)
{
	struct enter_data e = { .cgroup = cgroup, .c = c };
	struct process_settings s = { .enter = enter_cgroup, .data = &e, .output_fd = output_fd };
	struct arena a;
	int r;

	arena_init(&a, 0);
	e.path = container_path(cgroup, c, &a);
	s.mark = str_printf(&a, "%s" PRI_STR, cgroup->mark, FMT_STR(local_container_id(c, &a)));
	r = process_start(c, &s, ret, err);
	arena_done(&a);
	return r;
}

/* The processes of one container, from a list of all. */
static size_t filter_marks(const struct process_mark *marks, size_t n,
			   const struct local_container *c, struct arena *a, pid_t **ret)
{
	const struct str id = local_container_id(c, a);
	pid_t *pids = arena_array(a, pid_t, n);
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		if (str_eq(marks[i].id, id))
			pids[found++] = marks[i].pid;
	*ret = pids;
	return found;
}

static int list_marked_processes(const struct container_cgroup *cgroup,
				 const struct local_container *c, struct arena *a, pid_t **ret,
				 size_t *ret_n, struct err *err)
{
	struct process_mark *marks;
	size_t n;
	int r;

	r = process_list(str_from(cgroup->mark), a, &marks, &n, err);
	if (r >= 0)
		*ret_n = filter_marks(marks, n, c, a, ret);
	return r;
}

int container_cgroup_procs(const struct container_cgroup *cgroup, const struct local_container *c,
			   struct arena *a, pid_t **ret, size_t *ret_n, struct err *err)
{
	const char *path;

	if (cgroup->mode == LOCAL_AFFINITY)
		return list_marked_processes(cgroup, c, a, ret, ret_n, err);
	path = container_path(cgroup, c, a);
	if (!cgroup_exists(&cgroup->fs, path)) { /* not started yet, or removed */
		*ret_n = 0;
		return 0;
	}
	return cgroup_procs(&cgroup->fs, path, a, ret, ret_n, err);
}

int container_cgroup_snapshots(const struct container_cgroup *cgroup,
			       const struct local_container *containers, size_t n, struct arena *a,
			       struct cgroup_snapshot **ret, struct err *err)
{
	AUTO_CLOSE int proc = process_open_proc(err);
	struct cgroup_snapshot *snapshots = arena_array(a, struct cgroup_snapshot, n);
	struct process_mark *marks = NULL;
	size_t n_marks = 0;
	int r = proc;

	/* Once for all containers: it reads the environment of every process of the machine. */
	if (r >= 0 && cgroup->mode == LOCAL_AFFINITY)
		r = process_list(str_from(cgroup->mark), a, &marks, &n_marks, err);
	for (size_t i = 0; r >= 0 && i < n; i++) {
		pid_t *pids;

		if (cgroup->mode == LOCAL_AFFINITY) {
			const size_t k = filter_marks(marks, n_marks, &containers[i], a, &pids);

			cgroup_snapshot_read_processes(proc, pids, k, a, &snapshots[i]);
		} else {
			r = cgroup_snapshot_read_cgroup(&cgroup->fs, proc,
							container_path(cgroup, &containers[i], a),
							a, &snapshots[i], err);
		}
		snapshots[i].is_there = snapshots[i].processes.n > 0;
	}
	if (r < 0)
		return r;
	*ret = snapshots;
	return 0;
}

/* Repeats until none is left: a process may fork while it is being killed. The pids are read again
 * in each round, because an old one may have been reused. Zombies are not listed, so the loop does
 * not wait for children that only the caller reaps. */
int container_cgroup_kill(const struct container_cgroup *cgroup, const struct local_container *c,
			  struct err *err)
{
	struct arena a;
	pid_t *pids;
	size_t n = 0;
	int r = 0;

	arena_init(&a, 0);
	for (int round = 0; round < KILL_ROUNDS; round++) {
		arena_reset(&a);
		r = container_cgroup_procs(cgroup, c, &a, &pids, &n, err);
		if (r < 0 || !n)
			break;
		for (size_t i = 0; i < n; i++)
			(void)kill(pids[i], SIGKILL);
		pause_10ms();
	}
	if (r >= 0 && n)
		r = err_set(err, EBUSY, PRI_STR ": process %d does not end after SIGKILL",
			    FMT_STR(local_container_id(c, &a)), (int)pids[0]);
	arena_done(&a);
	return r;
}

/* The kernel reports EBUSY until the last exiting task has been released. */
static int remove_cgroup(const struct container_cgroup *cgroup, const char *path, struct err *err)
{
	int r = cgroup_remove(&cgroup->fs, path, err);

	for (int round = 0; r == -EBUSY && round < KILL_ROUNDS; round++) {
		pause_10ms();
		r = cgroup_remove(&cgroup->fs, path, err);
	}
	return r;
}

int container_cgroup_remove(const struct container_cgroup *cgroup, const struct local_container *c,
			    struct err *err)
{
	struct str *names;
	struct arena a;
	size_t n = 1; /* stays when the pod's cgroup is gone: then there is nothing to remove */
	int r;

	r = container_cgroup_kill(cgroup, c, err);
	if (r < 0 || cgroup->mode == LOCAL_AFFINITY)
		return r;
	arena_init(&a, 0);
	r = remove_cgroup(cgroup, container_path(cgroup, c, &a), err);
	if (r >= 0 && cgroup_exists(&cgroup->fs, pod_path(cgroup, c, &a)))
		r = cgroup_children(&cgroup->fs, pod_path(cgroup, c, &a), &a, &names, &n, err);
	if (r >= 0 && !n)
		r = remove_cgroup(cgroup, pod_path(cgroup, c, &a), err);
	arena_done(&a);
	return r;
}

/* --- listing --- */

struct listing {
	struct local_container *items;
	size_t n, cap;
	struct arena *a;
};

static void add_listing(struct listing *l, struct str namespace, struct str pod, struct str name)
{
	l->items = arena_reserve(l->a, l->items, l->n, &l->cap, sizeof(*l->items));
	l->items[l->n++] = (struct local_container){
		.namespace = namespace, .pod = pod, .name = name, .grace_s = 0
	};
}

static int list_pod(const struct container_cgroup *cgroup, struct str dir, struct listing *l,
		    struct err *err)
{
	struct str_split split = str_split(dir);
	struct str namespace, pod, *names;
	size_t n;
	int r;

	if (!str_next(&split, '_', &namespace) || !str_next(&split, '_', &pod))
		return 0; /* not created by pinfold */
	r = cgroup_children(&cgroup->fs,
			    str_printf(l->a, "pinfold-%s/" PRI_STR, cgroup->name, FMT_STR(dir)).p,
			    l->a, &names, &n, err);
	for (size_t i = 0; r >= 0 && i < n; i++)
		add_listing(l, namespace, pod, names[i]);
	if (r >= 0 && !n) /* left by a crash after creating the pod's cgroup */
		r = cgroup_remove(
			&cgroup->fs,
			str_printf(l->a, "pinfold-%s/" PRI_STR, cgroup->name, FMT_STR(dir)).p, err);
	return r;
}

static int list_cgroups(const struct container_cgroup *cgroup, struct listing *l, struct err *err)
{
	const char *top = str_printf(l->a, "pinfold-%s", cgroup->name).p;
	struct str *names;
	size_t n;
	int r;

	if (!cgroup_exists(&cgroup->fs, top))
		return 0;
	r = cgroup_children(&cgroup->fs, top, l->a, &names, &n, err);
	for (size_t i = 0; r >= 0 && i < n; i++)
		r = list_pod(cgroup, names[i], l, err);
	return r;
}

static bool is_listed(const struct listing *l, const struct local_container *c)
{
	for (size_t i = 0; i < l->n; i++)
		if (local_container_same(&l->items[i], c))
			return true;
	return false;
}

static int list_marks(const struct container_cgroup *cgroup, struct listing *l, struct err *err)
{
	struct process_mark *marks;
	size_t n;
	int r;

	r = process_list(str_from(cgroup->mark), l->a, &marks, &n, err);
	for (size_t i = 0; r >= 0 && i < n; i++) {
		struct str_split split = str_split(marks[i].id);
		struct local_container c = { 0 };

		if (str_next(&split, '/', &c.namespace) && str_next(&split, '/', &c.pod) &&
		    str_next(&split, '/', &c.name) && !is_listed(l, &c))
			add_listing(l, c.namespace, c.pod, c.name);
	}
	return r;
}

int container_cgroup_list(const struct container_cgroup *cgroup, struct arena *a,
			  struct local_container **ret, size_t *ret_n, struct err *err)
{
	struct listing l = { .a = a };
	int r;

	r = cgroup->mode == LOCAL_AFFINITY ? list_marks(cgroup, &l, err) :
					     list_cgroups(cgroup, &l, err);
	if (r < 0)
		return r;
	*ret = l.items;
	*ret_n = l.n;
	return 0;
}

bool container_cgroup_is_made(const struct container_cgroup *cgroup)
{
	char top[LOCAL_NAME_MAX + 16];

	return cgroup->mode != LOCAL_AFFINITY && cgroup_exists(&cgroup->fs, top_path(cgroup, top));
}

int container_cgroup_destroy(const struct container_cgroup *cgroup, struct err *err)
{
	char top[LOCAL_NAME_MAX + 16];

	if (cgroup->mode == LOCAL_AFFINITY)
		return 0;
	return remove_cgroup(cgroup, top_path(cgroup, top), err);
}
