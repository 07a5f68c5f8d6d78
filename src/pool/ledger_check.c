#include <errno.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "base/quote.h"
#include "cpu/topology.h"
#include "ledger_private.h"

struct str assignment_label(const struct assignment *a, struct arena *arena)
{
	if (!a->pod_name.n)
		return str_printf(arena, "pod %s container %s", quote(a->pod_uid).text,
				  quote(a->container).text);
	return str_printf(arena, PRI_STR "/" PRI_STR "/" PRI_STR, FMT_STR(a->pod_namespace),
			  FMT_STR(a->pod_name), FMT_STR(a->container));
}

static int broken(struct err *err, const char *invariant, const struct assignment *a,
		  const struct cpuset *cpus)
{
	CLEANUP(arena_done) struct arena arena;

	arena_init(&arena, 0);
	return err_set(err, EUCLEAN, "%s is broken: " PRI_STR "%sCPUs %s", invariant,
		       FMT_STR(a ? assignment_label(a, &arena) : STR("")), a ? ", " : "",
		       quote(cpuset_format(cpus, &arena)).text);
}

static int overlap(struct err *err, const char *invariant, const struct assignment *a,
		   const struct cpuset *x, const struct cpuset *y)
{
	struct cpuset both = *x;

	cpuset_intersect(&both, y);
	return cpuset_is_empty(&both) ? 0 : broken(err, invariant, a, &both);
}

/* I4: nobody of another pod; within the pod, two only when one of them is an init container that
 * has ended before the other starts. */
static int check_assignments(const struct ledger *l, struct cpuset *ret_held, struct err *err)
{
	struct cpuset held = { 0 }, pod = { 0 }, lasting = { 0 };
	int r;

	for (size_t i = 0; i < l->n; i++) {
		const struct assignment *a = l->items[i];

		if (i && assignment_cmp(l->items[i - 1], a) >= 0)
			return broken(err, "the order of assignments", a, &a->cpus);
		if (i && !str_eq(l->items[i - 1]->pod_uid, a->pod_uid)) {
			cpuset_union(&held, &pod);
			pod = lasting = (struct cpuset){ 0 };
		}
		if (cpuset_is_empty(&a->cpus))
			return broken(err, "I3 (an assignment without CPUs)", a, &a->cpus);
		r = overlap(err, "I4 (held by two pods)", a, &a->cpus, &held);
		if (r == 0 && a->kind != CONTAINER_INIT)
			r = overlap(err, "I4 (held by two containers)", a, &a->cpus, &lasting);
		if (r < 0)
			return r;
		cpuset_union(&pod, &a->cpus);
		if (a->kind != CONTAINER_INIT)
			cpuset_union(&lasting, &a->cpus);
	}
	cpuset_union(&held, &pod);
	*ret_held = held;
	return 0;
}

/* I1 and I2, as far as they can change after the configuration was accepted. */
static int check_pools(const struct ledger *l, struct err *err)
{
	const struct ledger_frame *f = &l->now;
	struct cpuset shared;
	int r;

	r = overlap(err, "I1 (reserved and guaranteed)", NULL, &f->config.reserved,
		    &f->sets.guaranteed);
	if (r < 0)
		return r;
	if (!f->config.is_classic) {
		r = overlap(err, "I1 (shared and guaranteed)", NULL, &f->sets.shared,
			    &f->sets.guaranteed);
		if (r == 0)
			r = overlap(err, "I1 (reserved and shared)", NULL, &f->config.reserved,
				    &f->sets.shared);
		if (r < 0)
			return r;
	}
	(void)ledger_cpus(l, POOL_SHARED, &shared);
	return overlap(err, "I2 (shared and exclusive)", NULL, &shared, &f->sets.held);
}

int ledger_check(const struct ledger *l, struct err *err)
{
	struct ledger_capacity published;
	struct cpuset held, lost, online;
	int r;

	r = check_assignments(l, &held, err);
	if (r < 0)
		return r;
	lost = held;
	cpuset_xor(&lost, &l->now.sets.held);
	if (!cpuset_is_empty(&lost))
		return broken(err, "I3 (lost or leaked)", NULL, &lost);
	cpuset_minus(&held, &l->now.sets.guaranteed);
	if (!cpuset_is_empty(&held))
		return broken(err, "I3 (exclusive outside the pool)", NULL, &held);
	r = check_pools(l, err);
	if (r < 0)
		return r;
	online = l->now.sets.guaranteed;
	cpuset_intersect(&online, &l->now.topology->online);
	ledger_capacity(l, &published);
	if (published.guaranteed_milli != 1000 * (int64_t)cpuset_count(&online))
		return broken(err, "I5 (published capacity)", NULL, &online);
	return 0;
}
