#include "cage.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "process.h"

#define CGROUP_MOUNT "/sys/fs/cgroup"
#define KILL_ROUNDS 500 /* of 10 ms: a process in uninterruptible sleep may take its time */

static int try_cgroups(struct cage *cage, struct err *err)
{
	char probe[LOCAL_NAME_MAX + 16];
	int r;

	r = cgroup_open(&cage->fs, CGROUP_MOUNT, err);
	if (r < 0)
		return r;
	(void)snprintf(probe, sizeof(probe), "pinfold-%s", cage->name);
	r = cgroup_make(&cage->fs, probe, err);
	if (r < 0) {
		cgroup_done(&cage->fs);
		return r;
	}
	cage->mode = cage->fs.version == CGROUP_V2 ? LOCAL_CGROUP_V2 : LOCAL_CGROUP_V1;
	return 0;
}

static bool is_name(const char *name)
{
	size_t n = strlen(name);

	return n && n < LOCAL_NAME_MAX && name[0] != '.' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz"
			    "0123456789-.") == n;
}

int cage_open(struct cage *cage, const char *name, bool affinity_only, struct err *why,
	      struct err *err)
{
	struct cage c = { .mode = LOCAL_AFFINITY, .fs = { .cpu_fd = -1, .cpuset_fd = -1 } };

	if (!is_name(name))
		return err_set(err, EINVAL,
			       "name \"%s\": use up to %d lower-case letters, digits, \"-\", \".\"",
			       name, LOCAL_NAME_MAX - 1);
	(void)snprintf(c.name, sizeof(c.name), "%s", name);
	if (affinity_only)
		(void)err_set(why, EPERM, "asked for");
	else
		(void)try_cgroups(&c, why);
	*cage = c;
	return 0;
}

void cage_done(struct cage *cage)
{
	if (cage->mode != LOCAL_AFFINITY)
		cgroup_done(&cage->fs);
}

struct str cage_mark(const struct cage *cage, const struct local_container *c, struct arena *a)
{
	return str_printf(a, "%s:" PRI_STR, cage->name, FMT_STR(local_container_id(c, a)));
}

/* A Kubernetes name has no "_", so that the two parts of a pod's cgroup can be told apart. */
static const char *pod_path(const struct cage *cage, const struct local_container *c,
			    struct arena *a)
{
	return str_printf(a, "pinfold-%s/" PRI_STR "_" PRI_STR, cage->name, FMT_STR(c->namespace),
			  FMT_STR(c->pod))
		.p;
}

static const char *container_path(const struct cage *cage, const struct local_container *c,
				  struct arena *a)
{
	return str_printf(a, "%s/" PRI_STR, pod_path(cage, c, a), FMT_STR(c->name)).p;
}

static int pin_running(const struct cage *cage, const struct local_container *c, struct arena *a,
		       struct err *err)
{
	pid_t *pids;
	size_t n;
	int r;

	r = cage_procs(cage, c, a, &pids, &n, err);
	for (size_t i = 0; r >= 0 && i < n; i++) {
		r = process_pin(pids[i], &c->cpus, a, err);
		if (r == -ESRCH)
			r = 0;
	}
	return r;
}

static int apply_cgroup(const struct cage *cage, const struct local_container *c,
			uint64_t pod_shares, struct arena *a, struct err *err)
{
	const char *pod = pod_path(cage, c, a), *path = container_path(cage, c, a);
	int r;

	r = cgroup_make(&cage->fs, path, err);
	if (r >= 0)
		r = cgroup_set_shares(&cage->fs, pod, pod_shares, err);
	if (r >= 0)
		r = cgroup_set_cpus(&cage->fs, path, &c->cpus, err);
	if (r >= 0)
		r = cgroup_set_shares(&cage->fs, path, c->shares, err);
	if (r >= 0)
		r = cgroup_set_quota(&cage->fs, path, c->quota_us, c->period_us, err);
	return r;
}

int cage_apply(const struct cage *cage, const struct local_container *c, uint64_t pod_shares,
	       struct err *err)
{
	struct arena a;
	int r;

	arena_init(&a, 0);
	r = cage->mode == LOCAL_AFFINITY ? pin_running(cage, c, &a, err) :
					   apply_cgroup(cage, c, pod_shares, &a, err);
	if (r < 0)
		r = err_wrap(err, PRI_STR, FMT_STR(local_container_id(c, &a)));
	arena_done(&a);
	return r;
}

struct entrance {
	const struct cage *cage;
	const struct local_container *c;
	const char *path;
};

/* Runs in the child. Its affinity is set as well: since Linux 6.2 an inherited mask of the
 * supervisor would outlive the move into the cgroup. */
static int enter(const void *data)
{
	const struct entrance *e = data;
	struct err err = { 0 };
	int r = 0;

	if (e->cage->mode != LOCAL_AFFINITY)
		r = cgroup_attach(&e->cage->fs, e->path, getpid(), &err);
	if (r >= 0 &&
	    sched_setaffinity(0, sizeof(e->c->cpus.w), (const cpu_set_t *)e->c->cpus.w) < 0)
		r = -errno;
	return r;
}

int cage_start(const struct cage *cage, const struct local_container *c, pid_t *ret,
	       struct err *err)
{
	struct entrance e = { .cage = cage, .c = c };
	struct arena a;
	int r;

	arena_init(&a, 0);
	e.path = container_path(cage, c, &a);
	r = process_start(c, cage_mark(cage, c, &a), enter, &e, ret, err);
	arena_done(&a);
	return r;
}

int cage_procs(const struct cage *cage, const struct local_container *c, struct arena *a,
	       pid_t **ret, size_t *ret_n, struct err *err)
{
	const char *path;

	if (cage->mode == LOCAL_AFFINITY)
		return process_find(cage_mark(cage, c, a), false, a, ret, ret_n, err);
	path = container_path(cage, c, a);
	if (!cgroup_exists(&cage->fs, path)) {
		*ret_n = 0;
		return 0;
	}
	return cgroup_procs(&cage->fs, path, a, ret, ret_n, err);
}

bool cage_read(const struct cage *cage, const struct local_container *c, struct arena *a,
	       struct cgroup_cpu *ret)
{
	return cage->mode != LOCAL_AFFINITY &&
	       cgroup_read(&cage->fs, container_path(cage, c, a), a, ret, NULL) >= 0;
}

/* Until none is left: a process may fork while it is being killed. */
int cage_kill(const struct cage *cage, const struct local_container *c, struct err *err)
{
	const struct timespec pause_10ms = { .tv_nsec = 10000000 };
	struct arena a;
	pid_t *pids;
	size_t n = 0;
	int r = 0;

	arena_init(&a, 0);
	for (int round = 0; round < KILL_ROUNDS; round++) {
		arena_reset(&a);
		r = cage_procs(cage, c, &a, &pids, &n, err);
		if (r < 0 || !n)
			break;
		for (size_t i = 0; i < n; i++)
			(void)kill(pids[i], SIGKILL);
		(void)nanosleep(&pause_10ms, NULL);
	}
	if (r >= 0 && n)
		r = err_set(err, EBUSY, PRI_STR ": process %d does not end",
			    FMT_STR(local_container_id(c, &a)), (int)pids[0]);
	arena_done(&a);
	return r;
}

/* The kernel may need a moment after the last task is gone. */
static int remove_cgroup(const struct cage *cage, const char *path, struct err *err)
{
	const struct timespec pause_10ms = { .tv_nsec = 10000000 };
	int r = cgroup_remove(&cage->fs, path, err);

	for (int round = 0; r == -EBUSY && round < KILL_ROUNDS; round++) {
		(void)nanosleep(&pause_10ms, NULL);
		r = cgroup_remove(&cage->fs, path, err);
	}
	return r;
}

int cage_remove(const struct cage *cage, const struct local_container *c, struct err *err)
{
	struct str *names;
	struct arena a;
	size_t n = 1;
	int r;

	r = cage_kill(cage, c, err);
	if (r < 0 || cage->mode == LOCAL_AFFINITY)
		return r;
	arena_init(&a, 0);
	r = remove_cgroup(cage, container_path(cage, c, &a), err);
	if (r >= 0 && cgroup_exists(&cage->fs, pod_path(cage, c, &a)))
		r = cgroup_children(&cage->fs, pod_path(cage, c, &a), &a, &names, &n, err);
	if (r >= 0 && !n)
		r = remove_cgroup(cage, pod_path(cage, c, &a), err);
	arena_done(&a);
	return r;
}

/* --- what is there --- */

struct listing {
	struct local_container *items;
	size_t n, cap;
	struct arena *a;
};

static void add_listing(struct listing *l, struct str namespace, struct str pod, struct str name)
{
	if (l->n == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 16;

		l->items = arena_realloc(l->a, l->items, l->cap * sizeof(*l->items),
					 cap * sizeof(*l->items));
		l->cap = cap;
	}
	l->items[l->n++] = (struct local_container){
		.namespace = namespace, .pod = pod, .name = name, .grace_s = 0
	};
}

static int list_pod(const struct cage *cage, struct str dir, struct listing *l, struct err *err)
{
	struct str_split split = str_split(dir);
	struct str namespace, pod, *names;
	size_t n;
	int r;

	if (!str_next(&split, '_', &namespace) || !str_next(&split, '_', &pod))
		return 0; /* not one of ours */
	r = cgroup_children(&cage->fs,
			    str_printf(l->a, "pinfold-%s/" PRI_STR, cage->name, FMT_STR(dir)).p,
			    l->a, &names, &n, err);
	for (size_t i = 0; r >= 0 && i < n; i++)
		add_listing(l, namespace, pod, names[i]);
	if (r >= 0 && !n) /* a crash between the pod's cgroup and its first container's */
		r = cgroup_remove(
			&cage->fs,
			str_printf(l->a, "pinfold-%s/" PRI_STR, cage->name, FMT_STR(dir)).p, err);
	return r;
}

static int list_cgroups(const struct cage *cage, struct listing *l, struct err *err)
{
	const char *top = str_printf(l->a, "pinfold-%s", cage->name).p;
	struct str *names;
	size_t n;
	int r;

	if (!cgroup_exists(&cage->fs, top))
		return 0;
	r = cgroup_children(&cage->fs, top, l->a, &names, &n, err);
	for (size_t i = 0; r >= 0 && i < n; i++)
		r = list_pod(cage, names[i], l, err);
	return r;
}

int cage_list(const struct cage *cage, struct arena *a, struct local_container **ret, size_t *ret_n,
	      struct err *err)
{
	struct listing l = { .a = a };
	int r = 0;

	/* Without cgroups the intent file is the only list; its processes carry marks. */
	if (cage->mode != LOCAL_AFFINITY)
		r = list_cgroups(cage, &l, err);
	if (r < 0)
		return r;
	*ret = l.items;
	*ret_n = l.n;
	return 0;
}

int cage_destroy(const struct cage *cage, struct err *err)
{
	char top[LOCAL_NAME_MAX + 16];

	if (cage->mode == LOCAL_AFFINITY)
		return 0;
	(void)snprintf(top, sizeof(top), "pinfold-%s", cage->name);
	return remove_cgroup(cage, top, err);
}
