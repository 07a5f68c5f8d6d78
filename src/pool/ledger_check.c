/* The invariants I1 to I5 (docs/reference/pools.md#invariants), computed from the assignments and
 * not from the sets that the ledger keeps: a bug in the ledger must not reach the disk. */

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

/* The CPUs of the assignments before the current one. */
struct holders {
	struct cpuset other_pods, pod;
	struct cpuset lasting; /* of the pod, by others than init containers */
};

/* The only loop over all assignments at every change: it must stay cheap. */
static int check_assignment(const struct assignment *a, struct holders *h, unsigned n_words,
			    struct err *err)
{
	uint64_t mask = a->kind == CONTAINER_INIT ? 0 : UINT64_MAX;
	uint64_t any = 0, foreign = 0, twice = 0;

	/* Accumulates instead of leaving the loop early: the compiler can vectorize it, and the
	 * failing case is computed again for its message. */
	for (unsigned i = 0; i < n_words; i++) {
		uint64_t w = a->cpus.w[i];

		any |= w;
		foreign |= w & h->other_pods.w[i];
		twice |= w & mask & h->lasting.w[i];
	}
	if (!any)
		return broken(err, "I3 (an assignment without CPUs)", a, &a->cpus);
	if (foreign)
		return overlap(err, "I4 (held by two pods)", a, &a->cpus, &h->other_pods);
	if (twice)
		return overlap(err, "I4 (held by two containers)", a, &a->cpus, &h->lasting);
	for (unsigned i = 0; i < n_words; i++) {
		h->pod.w[i] |= a->cpus.w[i];
		h->lasting.w[i] |= a->cpus.w[i] & mask;
	}
	return 0;
}

/* I4: no CPU belongs to two pods; within a pod two containers share CPUs only when one of them is
 * an init container, which ends before the other starts. */
static int check_assignments(const struct ledger *l, struct cpuset *ret_held, struct err *err)
{
	struct holders h = { 0 };
	int r;

	for (size_t i = 0; i < l->n; i++) {
		const struct assignment *a = l->items[i];

		/* The order also makes the check linear: the assignments of a pod are adjacent. */
		if (i && assignment_cmp(l->items[i - 1], a) >= 0)
			return broken(err, "the order of assignments", a, &a->cpus);
		if (i && !str_eq(l->items[i - 1]->pod_uid, a->pod_uid)) {
			for (unsigned w = 0; w < l->n_words; w++) {
				h.other_pods.w[w] |= h.pod.w[w];
				h.pod.w[w] = h.lasting.w[w] = 0;
			}
		}
		r = check_assignment(a, &h, l->n_words, err);
		if (r < 0)
			return r;
	}
	cpuset_union(&h.pod, &h.other_pods);
	*ret_held = h.pod;
	return 0;
}

/* The parts of I1 and I2 that can change after the configuration was accepted. */
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
