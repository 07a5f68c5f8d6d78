/* Changes of the pools and of the machine while containers run. Planning is separate from doing,
 * because the agent has to move shared containers in between (docs/reference/pools.md#pool-resize).
 */

#include <errno.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "base/quote.h"
#include "ledger_private.h"

static int find_conflicts(const struct ledger *l, const struct cpuset *pool, struct arena *a,
			  struct ledger_resize_plan *plan, struct err *err)
{
	struct resize_conflict *conflicts;
	const struct assignment *item;
	size_t n = 0;

	LEDGER_EACH(l, i, item)
	n += !cpuset_is_subset(&item->cpus, pool);
	conflicts = arena_array(a, struct resize_conflict, n + 1);
	if (!conflicts)
		return err_set(err, ENOMEM, "not enough memory");
	plan->conflicts = conflicts;
	LEDGER_EACH(l, i, item)
	{
		if (cpuset_is_subset(&item->cpus, pool))
			continue;
		*conflicts = (struct resize_conflict){ item, item->cpus };
		cpuset_minus(&conflicts->cpus, pool);
		conflicts++;
	}
	plan->n_conflicts = n;
	return 0;
}

int ledger_plan_resize(const struct ledger *l, const struct pool_config *c, struct arena *a,
		       struct ledger_resize_plan *ret, struct err *err)
{
	struct ledger_frame next = { .topology = l->now.topology, .config = *c };
	struct ledger_resize_plan plan = { 0 };
	int r;

	r = pool_config_check(c, l->now.topology, err);
	if (r < 0)
		return r;
	/* A resize moves no assignment. Classic mode computes both pools from them. */
	next.sets.held = l->now.sets.held;
	ledger_compute(&next);
	(void)ledger_frame_cpus(&next, POOL_MANAGEMENT, &plan.reserved);
	(void)ledger_frame_cpus(&next, POOL_SHARED, &plan.shared);
	plan.joining = next.sets.guaranteed;
	cpuset_minus(&plan.joining, &l->now.sets.guaranteed);
	plan.leaving = l->now.sets.guaranteed;
	cpuset_minus(&plan.leaving, &next.sets.guaranteed);
	r = find_conflicts(l, &next.sets.guaranteed, a, &plan, err);
	if (r < 0)
		return r;
	*ret = plan;
	return 0;
}

static int in_use(const struct ledger_resize_plan *plan, struct arena *a, struct err *err)
{
	const struct resize_conflict *first = &plan->conflicts[0];
	char more[48] = "";

	if (plan->n_conflicts > 1)
		(void)snprintf(more, sizeof(more), ", and %zu more", plan->n_conflicts - 1);
	return err_set(err, EBUSY,
		       "the guaranteed pool cannot lose CPUs %s: " PRI_STR " runs there%s",
		       quote(cpuset_format(&first->cpus, a)).text,
		       FMT_STR(assignment_label(first->assignment, a)), more);
}

int ledger_resize(struct ledger *l, const struct pool_config *c, struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	struct ledger_resize_plan plan;
	bool entered;
	int r;

	arena_init(&a, 0);
	r = ledger_plan_resize(l, c, &a, &plan, err);
	if (r < 0)
		return r;
	if (plan.n_conflicts)
		return in_use(&plan, &a, err);
	if (pool_config_eq(c, &l->now.config))
		return 0;
	entered = ledger_enter(l);
	ledger_set_frame(l, l->now.topology, c);
	return ledger_leave(l, entered, 0, err);
}

void ledger_withhold(struct ledger *l, const struct cpuset *cpus)
{
	l->withheld = cpus ? *cpus : (struct cpuset){ 0 };
}

int ledger_hotplug(struct ledger *l, const struct topology *t, struct err *err)
{
	bool entered = ledger_enter(l);

	ledger_set_frame(l, t, &l->now.config);
	return ledger_leave(l, entered, 0, err);
}
