/* Which CPUs a container gets, and when it loses them. Follows the kubelet's allocation order
 * (docs/reference/cpu-manager.md#allocation-order) with the guaranteed pool in place of its default
 * set. */

#include <errno.h>
#include <inttypes.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "base/quote.h"
#include "cpu/pick.h"
#include "cpu/topology.h"
#include "ledger_private.h"

/* The errno is the only link between a refusal and its reason, so -EDOM is used for nothing else
 * here. */
const char *ledger_reject_reason(int code)
{
	return code == -EDOM ? "SMTAlignmentError" : "UnexpectedAdmissionError";
}

static int take(const struct ledger *l, const struct cpuset *available, unsigned n,
		struct cpuset *ret, struct err *err)
{
	const struct ledger_frame *f = &l->now;
	struct pick_request request = pick_request_for(&f->config.options, f->topology, n);

	if (f->config.options.full_pcpus_only)
		request.group = f->sets.group; /* an offline sibling lowers the average */
	return pick_cpus(f->topology, available, &request, ret, err);
}

/* CPUs of the hinted nodes first, the rest from any node
 * (docs/reference/cpu-manager.md#allocation-order). */
static int pick_aligned(const struct ledger *l, const struct cpuset *available,
			const struct ledger_request *request, struct cpuset *ret, struct err *err)
{
	const struct ledger_frame *f = &l->now;
	unsigned wanted = demand_cpus(&request->demand), near = 0;
	struct cpuset aligned, rest = *available, taken = { 0 };
	int r;

	/* Two picks, as in the kubelet: as many CPUs as the hinted nodes have, then the rest. One
	 * pick over all CPUs would prefer whole sockets elsewhere. */
	if (request->affinity.has_mask) {
		topology_numa_cpus(f->topology, request->affinity.mask, &aligned);
		if (f->config.options.align_by_socket)
			topology_whole(f->topology, TOPOLOGY_SOCKET, &aligned, &aligned);
		cpuset_intersect(&aligned, available);
		near = cpuset_count(&aligned);
		near = near < wanted ? near : wanted;
		r = take(l, &aligned, near, &taken, err);
		if (r < 0)
			return r;
		cpuset_minus(&rest, &taken);
	}
	r = take(l, &rest, wanted - near, &aligned, err);
	if (r < 0)
		return r;
	cpuset_union(&taken, &aligned);
	*ret = taken;
	return 0;
}

static int choose(const struct ledger *l, const struct ledger_request *request, struct cpuset *ret,
		  struct err *err)
{
	const struct ledger_frame *f = &l->now;
	struct cpuset available, reusable, broken_cores;
	int r;

	ledger_free(l, &available);
	ledger_reusable(l, request->pod_uid, &reusable);
	/* Unlike free CPUs, those of an init container may have gone offline since. */
	cpuset_intersect(&reusable, &f->topology->online);
	cpuset_union(&available, &reusable);
	if (f->config.options.full_pcpus_only) {
		cpuset_minus(&available, &f->sets.split);
		r = pick_check_full_pcpus(f->sets.group, demand_cpus(&request->demand),
					  cpuset_count(&available), err);
		if (r < 0)
			return r;
		/* Counting, as the kubelet does, is not enough: one thread of a core may be in use
		 * since before the option was on (docs/reference/cpu-manager.md#split-cores). */
		topology_split(f->topology, TOPOLOGY_CORE, &available, &broken_cores);
		cpuset_minus(&available, &broken_cores);
	}
	return pick_aligned(l, &available, request, ret, err);
}

int ledger_allocate(struct ledger *l, const struct ledger_request *request,
		    struct ledger_grant *ret, struct err *err)
{
	const struct assignment *a = ledger_find(l, request->pod_uid, request->container);
	unsigned wanted = ledger_wanted(request);
	struct cpuset cpus;
	bool entered;
	int r;

	if (a) {
		*ret = (struct ledger_grant){
			.pool = POOL_GUARANTEED,
			.cpus = a->cpus,
			.size_differs = cpuset_count(&a->cpus) != wanted,
		};
		return 0;
	}
	if (!wanted) {
		*ret = (struct ledger_grant){
			.pool = request->is_management ? POOL_MANAGEMENT : POOL_SHARED,
		};
		(void)ledger_cpus(l, ret->pool, &ret->cpus);
		return 0;
	}
	r = choose(l, request, &cpus, err);
	if (r < 0)
		return r;
	entered = ledger_enter(l);
	ledger_add(l, request, &cpus);
	r = ledger_leave(l, entered, 0, err);
	if (r < 0)
		return r;
	*ret = (struct ledger_grant){ .pool = POOL_GUARANTEED, .cpus = cpus, .is_new = true };
	return 0;
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

int ledger_release_pod(struct ledger *l, struct str pod_uid, struct err *err)
{
	bool entered = ledger_enter(l);
	size_t n, first = ledger_find_pod(l, pod_uid, &n);

	/* From the end, so that the positions of the others stay valid. */
	for (size_t i = n; i > 0; i--)
		ledger_remove(l, first + i - 1);
	return ledger_leave(l, entered, (int)n, err);
}

int ledger_release_container(struct ledger *l, struct str pod_uid, struct str container,
			     struct err *err)
{
	size_t at = ledger_position(l, pod_uid, container);
	bool entered;

	/* ledger_position() returns an index also for an unknown container, namely where it would
	 * be inserted. */
	if (!ledger_find(l, pod_uid, container))
		return 0;
	entered = ledger_enter(l);
	ledger_remove(l, at);
	return ledger_leave(l, entered, 1, err);
}

int ledger_check_update(const struct ledger *l, const struct ledger_request *request,
			struct err *err)
{
	const struct assignment *a = ledger_find(l, request->pod_uid, request->container);
	unsigned has = a ? cpuset_count(&a->cpus) : 0;
	unsigned wants = ledger_wanted(request);

	if (has == wants)
		return 0;
	if (!has)
		return err_set(err, EPERM,
			       "container %s runs in the shared pool and cannot get exclusive CPUs "
			       "while it runs: recreate the pod",
			       quote(request->container).text);
	return err_set(err, EPERM,
		       "container %s owns %u CPUs and cannot change to %" PRId64
		       " millicores while it runs: recreate the pod",
		       quote(request->container).text, has, request->demand.cpu_milli);
}
