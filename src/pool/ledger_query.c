/* Read-only views of the ledger. Pools are configured with offline CPUs; what containers may use is
 * always the online part. */

#include <errno.h>

#include "base/arena.h"
#include "base/err.h"
#include "cpu/topology.h"
#include "ledger_private.h"

const struct assignment *ledger_find(const struct ledger *l, struct str pod_uid,
				     struct str container)
{
	size_t at = ledger_position(l, pod_uid, container);

	if (at == l->n || !str_eq(l->items[at]->pod_uid, pod_uid) ||
	    !str_eq(l->items[at]->container, container))
		return NULL;
	return l->items[at];
}

size_t ledger_find_pod(const struct ledger *l, struct str pod_uid, size_t *ret_n)
{
	size_t first = ledger_position(l, pod_uid, STR("")), last = first;

	while (last < l->n && str_eq(l->items[last]->pod_uid, pod_uid))
		last++;
	*ret_n = last - first;
	return first;
}

static void online_part(const struct ledger_frame *f, const struct cpuset *of, struct cpuset *ret)
{
	struct cpuset s = *of;

	cpuset_intersect(&s, &f->topology->online);
	*ret = s;
}

static void own_cpus(const struct ledger_frame *f, enum pool pool, struct cpuset *ret)
{
	online_part(f,
		    pool == POOL_MANAGEMENT ? &f->config.reserved :
		    pool == POOL_SHARED	    ? &f->sets.shared :
					      &f->sets.guaranteed,
		    ret);
	if (pool == POOL_SHARED && f->config.is_classic) /* exclusive CPUs come out of it */
		cpuset_minus(ret, &f->sets.held);
}

bool ledger_frame_cpus(const struct ledger_frame *f, enum pool pool, struct cpuset *ret)
{
	own_cpus(f, pool, ret);
	if (!cpuset_is_empty(ret))
		return true;
	if (pool == POOL_GUARANTEED)
		return false;
	/* All CPUs of the pool are offline or exclusive. Its containers must run somewhere, and an
	 * empty list must not be written to a cgroup (docs/reference/pools.md#offline-cpus). */
	own_cpus(f, pool == POOL_MANAGEMENT ? POOL_SHARED : POOL_MANAGEMENT, ret);
	if (cpuset_is_empty(ret)) { /* any online CPU that is not exclusive */
		*ret = f->topology->online;
		cpuset_minus(ret, &f->sets.held);
	}
	return false;
}

bool ledger_cpus(const struct ledger *l, enum pool pool, struct cpuset *ret)
{
	return ledger_frame_cpus(&l->now, pool, ret);
}

void ledger_free(const struct ledger *l, struct cpuset *ret)
{
	online_part(&l->now, &l->now.sets.guaranteed, ret);
	cpuset_minus(ret, &l->now.sets.held);
	cpuset_minus(ret, &l->withheld);
}

void ledger_reusable(const struct ledger *l, struct str pod_uid, struct cpuset *ret)
{
	struct cpuset reusable = { 0 };
	size_t n, first = ledger_find_pod(l, pod_uid, &n);

	for (size_t i = first; i < first + n; i++)
		if (l->items[i]->kind == CONTAINER_INIT)
			cpuset_union(&reusable, &l->items[i]->cpus);
	for (size_t i = first; i < first + n; i++)
		/* A CPU that a later container has already reused is taken. */
		if (l->items[i]->kind != CONTAINER_INIT)
			cpuset_minus(&reusable, &l->items[i]->cpus);
	*ret = reusable;
}

static int64_t milli_of(const struct ledger_frame *f, const struct cpuset *s)
{
	struct cpuset online;

	online_part(f, s, &online);
	return 1000 * (int64_t)cpuset_count(&online);
}

void ledger_capacity(const struct ledger *l, struct ledger_capacity *ret)
{
	const struct ledger_frame *f = &l->now;
	/* Not from free CPUs (I5): the scheduler subtracts running pods itself, and a capacity that
	 * shrinks with use would count them twice. */
	struct cpuset usable = f->sets.guaranteed;

	if (f->config.options.full_pcpus_only)
		cpuset_minus(&usable, &f->sets.split);
	*ret = (struct ledger_capacity){
		.management_milli = milli_of(f, &f->config.reserved),
		.shared_milli = milli_of(f, &f->sets.shared),
		.guaranteed_milli = milli_of(f, &f->sets.guaranteed),
		.usable_milli = milli_of(f, &usable),
	};
}

void ledger_numa(const struct ledger *l, size_t node, struct ledger_numa *ret)
{
	const struct topology *t = l->now.topology;
	struct cpuset cpus = { 0 }, some;

	topology_add_element(t, TOPOLOGY_NUMA, (unsigned)node, &cpus);
	*ret = (struct ledger_numa){
		.id = t->level[TOPOLOGY_NUMA].ids[node],
		.n_cpus = cpuset_count(&cpus),
	};
	some = cpus;
	cpuset_intersect(&some, &l->now.sets.guaranteed);
	ret->n_allocatable = cpuset_count(&some);
	cpuset_minus(&some, &l->now.sets.held);
	cpuset_minus(&some, &l->withheld);
	ret->n_free = cpuset_count(&some);
}
