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

/* The errno is the only link between a refusal and its reason, so -EDOM and -EXDEV are used for
 * nothing else here. */
const char *ledger_reject_reason(int code)
{
	return code == -EDOM  ? "SMTAlignmentError" :
	       code == -EXDEV ? HINTS_REJECT_REASON :
				"UnexpectedAdmissionError";
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
	 * pick over all CPUs would prefer whole sockets elsewhere. With too few CPUs one pick names
	 * the whole request in its refusal. */
	if (request->affinity.has_mask && cpuset_count(available) >= wanted) {
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
	struct cpuset available, reusable;
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
	}
	/* Counting, as the kubelet does, is not enough: one thread of a core may be in use since
	 * before the option was on (docs/reference/cpu-manager.md#split-cores). */
	ledger_keep_whole_cores(l, &available);
	return pick_aligned(l, &available, request, ret, err);
}

static int assign_one(struct ledger *l, const struct ledger_request *request, struct err *err)
{
	struct cpuset cpus;
	int r = choose(l, request, &cpus, err);

	if (r < 0)
		return r;
	ledger_add(l, request, &cpus);
	return 0;
}

/* Pod scope, as in the kubelet: all containers get their CPUs at once, or the pod none. Otherwise
 * another pod could take the CPUs of those that are created later. */
static int assign_pod(struct ledger *l, const struct ledger_request *request, struct err *err)
{
	const struct ledger_pod *pod = &request->pod;
	struct ledger_request member = *request;
	size_t n_before = l->n_journal;
	int r = 0;

	for (size_t i = 0; r == 0 && i < pod->n; i++) {
		member.container = pod->members[i].container;
		member.demand = pod->members[i].demand;
		if (demand_cpus(&member.demand) &&
		    !ledger_find(l, member.pod_uid, member.container))
			r = assign_one(l, &member, err);
	}
	if (r == 0)
		return 0;
	while (l->n_journal > n_before) /* the caller may keep the transaction open */
		ledger_undo(l);
	return err_wrap(err, "container %s", quote(member.container).text);
}

static int assign(struct ledger *l, struct ledger_request request, struct err *err)
{
	int r;

	r = ledger_decide(l, &request, &request.affinity, err);
	if (r < 0)
		return r;
	if (l->now.config.topology.scope != HINT_SCOPE_POD || !request.pod.reserves ||
	    request.is_running)
		return assign_one(l, &request, err);
	return assign_pod(l, &request, err);
}

static struct ledger_grant grant_of(const struct ledger *l, const struct assignment *a)
{
	const bool binds_memory = l->now.config.topology.policy > HINT_POLICY_BEST_EFFORT;

	return (struct ledger_grant){
		.pool = POOL_GUARANTEED,
		.cpus = a->cpus,
		.memory_nodes = binds_memory ? topology_memory_of(l->now.topology, &a->cpus) : 0,
	};
}

int ledger_allocate(struct ledger *l, const struct ledger_request *request,
		    struct ledger_grant *ret, struct err *err)
{
	const struct assignment *a = ledger_find(l, request->pod_uid, request->container);
	unsigned wanted = ledger_wanted(request);
	bool entered;
	int r;

	if (a) {
		*ret = grant_of(l, a);
		ret->size_differs = cpuset_count(&a->cpus) != wanted;
		return 0;
	}
	if (!wanted) {
		*ret = (struct ledger_grant){
			.pool = request->is_management ? POOL_MANAGEMENT : POOL_SHARED,
		};
		(void)ledger_cpus(l, ret->pool, &ret->cpus);
		return 0;
	}
	entered = ledger_enter(l);
	r = assign(l, *request, err);
	r = ledger_leave(l, entered, r, err);
	if (r < 0)
		return r;
	*ret = grant_of(l, ledger_find(l, request->pod_uid, request->container));
	ret->is_new = true;
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
