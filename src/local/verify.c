#include "verify.h"

#include <errno.h>
#include <inttypes.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "process.h"

static const char *const drift_names[] = {
	[DRIFT_NOT_RUNNING] = "not-running",
	[DRIFT_FAILED] = "failed",
	[DRIFT_CPUS] = "cpus",
	[DRIFT_THREADS] = "threads",
	[DRIFT_WEIGHT] = "weight",
	[DRIFT_QUOTA] = "quota",
	[DRIFT_SHARED_EXCLUSIVE] = "shared-exclusive",
};
_Static_assert(ARRAY_LEN(drift_names) == DRIFT__COUNT, "every drift has a name");

const char *drift_name(enum drift drift)
{
	return drift_names[drift];
}

int observe(const struct cage *cage, const struct local_container *c, struct arena *a,
	    struct observation *ret, struct err *err)
{
	struct observation o = { 0 };
	pid_t *pids;
	size_t n;
	int r;

	r = cage_procs(cage, c, a, &pids, &n, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		struct cpuset cpus;
		size_t threads;

		if (process_cpus(pids[i], a, &cpus, &threads, NULL) < 0)
			continue; /* ended since */
		cpuset_union(&o.allowed, &cpus);
		o.n_processes++;
		o.n_threads += threads;
	}
	o.has_cgroup = cage_read(cage, c, a, &o.cgroup);
	*ret = o;
	return 0;
}

static void add(struct findings *f, enum drift drift, const struct local_container *c,
		struct str text)
{
	f->items[f->n++] = (struct finding){ drift, c, text };
}

static struct str wrong_cpus(const struct cpuset *is, const struct cpuset *want, const char *who,
			     struct arena *a)
{
	return str_printf(a, "%s on CPUs " PRI_STR ", should be on " PRI_STR, who,
			  FMT_STR(cpuset_format(is, a)), FMT_STR(cpuset_format(want, a)));
}

/* cgroup_weight_expected() for a mode, without a hierarchy at hand. */
static uint64_t expected_weight(enum local_mode mode, uint64_t shares)
{
	return mode == LOCAL_CGROUP_V2 ? cgroup_weight_from_shares(shares) : shares;
}

static void judge_cgroup(struct findings *f, enum local_mode mode, const struct local_container *c,
			 const struct cgroup_cpu *is, struct arena *a)
{
	uint64_t weight = expected_weight(mode, c->shares);

	if (!cpuset_eq(&is->effective, &c->cpus))
		add(f, DRIFT_CPUS, c, wrong_cpus(&is->effective, &c->cpus, "its cgroup is", a));
	if (is->weight != weight)
		add(f, DRIFT_WEIGHT, c,
		    str_printf(a, "weight %" PRIu64 ", should be %" PRIu64, is->weight, weight));
	if (is->quota_us != c->quota_us ||
	    (c->quota_us != CGROUP_UNLIMITED && is->period_us != c->period_us))
		add(f, DRIFT_QUOTA, c,
		    str_printf(a, "quota %" PRId64 "/%" PRIu64 ", should be %" PRId64 "/%" PRIu64,
			       is->quota_us, is->period_us, c->quota_us, c->period_us));
}

/* Init containers of a pod hand their CPUs on to its other containers; only those may share. */
static bool may_share(const struct local_container *x, const struct local_container *y)
{
	return local_container_same_pod(x, y) &&
	       (x->kind == CONTAINER_INIT || y->kind == CONTAINER_INIT);
}

static void judge_exclusive(struct findings *f, const struct verify_input *in, size_t i,
			    struct arena *a)
{
	const struct local_container *c = &in->containers[i];

	for (size_t k = 0; c->is_exclusive && k < in->n; k++) {
		const struct local_container *other = &in->containers[k];

		if (k == i || may_share(c, other) || !in->seen[k].n_processes ||
		    !cpuset_intersects(&c->cpus, &in->seen[k].allowed))
			continue;
		add(f, DRIFT_SHARED_EXCLUSIVE, c,
		    str_printf(a, PRI_STR " may run on its CPUs",
			       FMT_STR(local_container_id(other, a))));
		return;
	}
}

/* A container waits for the init containers before it; that is no drift. */
static bool must_run(const struct verify_input *in, size_t i)
{
	return (in->states[i] == LOCAL_WAITING || in->states[i] == LOCAL_STARTED) &&
	       local_container_may_run(in->containers, in->states, i);
}

struct findings local_verify(const struct verify_input *in, struct arena *a)
{
	struct findings f = { arena_array(a, struct finding, in->n * DRIFT__COUNT + 1), 0 };

	for (size_t i = 0; i < in->n; i++) {
		const struct local_container *c = &in->containers[i];
		const struct observation *o = &in->seen[i];

		if (!o->n_processes && must_run(in, i))
			add(&f, DRIFT_NOT_RUNNING, c, STR("is not running"));
		if (in->states[i] == LOCAL_FAILED)
			add(&f, DRIFT_FAILED, c, STR("failed, and is not started again"));
		if (!o->n_processes)
			continue;
		if (!cpuset_is_subset(&o->allowed, &c->cpus))
			add(&f, DRIFT_THREADS, c,
			    wrong_cpus(&o->allowed, &c->cpus, "threads may run", a));
		if (o->has_cgroup)
			judge_cgroup(&f, in->mode, c, &o->cgroup, a);
		judge_exclusive(&f, in, i, a);
	}
	return f;
}
