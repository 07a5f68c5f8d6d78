/* Adopts containers that run already, and compares the ledger with all that the runtime lists after
 * a connection or a restart (docs/reference/pools.md#synchronization). */

#include <errno.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "base/quote.h"
#include "ledger_private.h"

/* Removes assignments of pods that are gone. Those of finished containers of existing pods stay: a
 * restarted container gets the same CPUs. */
static void release_absent(struct ledger *l, const struct ledger_live *live, size_t n,
			   const struct str *pods, size_t n_pods)
{
	CLEANUP(arena_done) struct arena a;
	struct str *uids;

	arena_init(&a, 0);
	uids = arena_array(&a, struct str, n + n_pods + 1);
	for (size_t i = 0; i < n; i++)
		uids[i] = live[i].request.pod_uid;
	for (size_t i = 0; i < n_pods; i++)
		uids[n + i] = pods[i];
	qsort(uids, n + n_pods, sizeof(*uids), str_order);
	for (size_t i = l->n; i > 0; i--)
		if (!bsearch(&l->items[i - 1]->pod_uid, uids, n + n_pods, sizeof(*uids), str_order))
			ledger_remove(l, i - 1);
}

/* Why these CPUs cannot be assigned to this container; NULL when they can. */
static const char *obstacle(const struct ledger *l, const struct ledger_request *request,
			    const struct cpuset *cpus)
{
	unsigned wanted = ledger_wanted(request);
	struct cpuset others = l->now.sets.held;
	size_t n, first = ledger_find_pod(l, request->pod_uid, &n);

	if (!wanted || cpuset_count(cpus) != wanted)
		return "their number differs from the request";
	/* Also refuses CPUs that a resize took out of the pool while the agent did not run. */
	if (!cpuset_is_subset(cpus, &l->now.sets.guaranteed))
		return "not all are in the guaranteed pool";
	for (size_t i = first; i < first + n; i++)
		if (request->demand.kind == CONTAINER_INIT || l->items[i]->kind == CONTAINER_INIT)
			cpuset_minus(&others, &l->items[i]->cpus);
	/* CPUs of an app container may also be in an init container's set: add them again. */
	for (size_t i = first; i < first + n && request->demand.kind != CONTAINER_INIT; i++)
		if (l->items[i]->kind != CONTAINER_INIT)
			cpuset_union(&others, &l->items[i]->cpus);
	return cpuset_intersects(cpus, &others) ? "another container owns some of them" : NULL;
}

int ledger_adopt(struct ledger *l, const struct ledger_request *request, const struct cpuset *cpus,
		 struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	const char *why;
	bool entered;

	arena_init(&a, 0);
	why = ledger_find(l, request->pod_uid, request->container) ? "it already owns other CPUs" :
								     obstacle(l, request, cpus);
	if (why)
		return err_set(err, EBUSY, "cannot adopt CPUs %s of container %s: %s",
			       quote(cpuset_format(cpus, &a)).text, quote(request->container).text,
			       why);
	entered = ledger_enter(l);
	ledger_add(l, request, cpus);
	return ledger_leave(l, entered, 0, err);
}

/* App containers and sidecars before init containers, whose CPUs may be shared within the pod. */
static void adopt_all(struct ledger *l, struct ledger_live *live, size_t n)
{
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < n; i++)
			if (live[i].current_known &&
			    (live[i].request.demand.kind == CONTAINER_INIT) == (pass == 1))
				(void)ledger_adopt(l, &live[i].request, &live[i].current, NULL);
}

/* Init containers first, so that other containers of the pod can reuse their CPUs. */
static void allocate_all(struct ledger *l, struct ledger_live *live, size_t n)
{
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < n; i++) {
			struct ledger_live *c = &live[i];

			if ((c->request.demand.kind == CONTAINER_INIT) != (pass == 0))
				continue;
			c->refused = (struct err){ 0 };
			c->request.is_running = true;
			/* It runs already and cannot be refused: it continues in the shared pool,
			 * and `refused` says why. */
			if (ledger_allocate(l, &c->request, &c->grant, &c->refused) < 0)
				c->grant = (struct ledger_grant){ .pool = POOL_SHARED };
		}
	}
}

int ledger_synchronize(struct ledger *l, struct ledger_live *live, size_t n, const struct str *pods,
		       size_t n_pods, struct err *err)
{
	bool entered = ledger_enter(l);
	struct cpuset shared;
	int r;

	/* The order matters: first CPUs become free, then running containers keep what they have,
	 * and only then are new CPUs picked, so that no pick takes a CPU on which a container
	 * already runs. */
	release_absent(l, live, n, pods, n_pods);
	adopt_all(l, live, n);
	allocate_all(l, live, n);
	r = ledger_leave(l, entered, 0, err);
	/* The containers run in any case. All of them before the shared set is known: it is
	 * final only after all allocations. */
	if (r < 0) {
		adopt_all(l, live, n);
		allocate_all(l, live, n);
	}
	(void)ledger_cpus(l, POOL_SHARED, &shared);
	for (size_t i = 0; i < n; i++) {
		struct ledger_live *c = &live[i];

		if (c->grant.pool == POOL_SHARED)
			c->grant.cpus = shared;
		else if (c->grant.pool == POOL_MANAGEMENT)
			(void)ledger_cpus(l, POOL_MANAGEMENT, &c->grant.cpus);
		c->push = !c->current_known || !cpuset_eq(&c->current, &c->grant.cpus);
	}
	return r;
}
