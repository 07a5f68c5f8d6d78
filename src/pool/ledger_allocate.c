/* Which CPUs a container gets, and when it loses them: first the NUMA nodes, as the kubelet's
 * topology manager chooses them (D17, docs/reference/pools.md#hints), then the CPUs, in the
 * kubelet's allocation order (docs/reference/cpu-manager.md#allocation-order). Both with the
 * guaranteed pool in place of the machine. Every role asks here, so that the agent, the OCI hook
 * and `local` decide the same. */

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

/* --- NUMA nodes --- */

unsigned ledger_wanted(const struct ledger_request *request)
{
	return request->is_management ? 0 : demand_cpus(&request->demand);
}

/* Removes what cannot be assigned with full-pcpus-only: CPUs whose core is not entirely in the set,
 * or is shared with another pool. No change without the option. */
static void keep_whole_cores(const struct ledger *l, struct cpuset *cpus)
{
	struct cpuset broken;

	if (!l->now.config.options.full_pcpus_only)
		return;
	cpuset_minus(cpus, &l->now.sets.split);
	topology_split(l->now.topology, TOPOLOGY_CORE, cpus, &broken);
	cpuset_minus(cpus, &broken);
}

/* Hints must count only CPUs that ledger_allocate() can pick. */
static int make_hints(const struct ledger *l, struct cpu_hint_request hint, struct arena *a,
		      struct hint_list *ret, struct err *err)
{
	const struct ledger_frame *f = &l->now;
	struct cpuset available, reusable = *hint.reusable, pool;

	ledger_free(l, &available);
	cpuset_intersect(&reusable, &f->topology->online);
	cpuset_union(&available, &reusable);
	keep_whole_cores(l, &available);
	cpuset_minus(&available, &reusable);
	(void)ledger_cpus(l, POOL_GUARANTEED, &pool);
	if (f->config.options.full_pcpus_only)
		cpuset_minus(&pool, &f->sets.split);
	hint.available = &available;
	hint.reusable = &reusable;
	hint.capacity = &pool;
	hint.align_by_socket = f->config.options.align_by_socket;
	return hints_for_cpus(f->topology, &hint, a, ret, err);
}

int ledger_hints(const struct ledger *l, const struct ledger_request *request, struct arena *a,
		 struct hint_list *ret, struct err *err)
{
	const struct assignment *has = ledger_find(l, request->pod_uid, request->container);
	struct cpuset reusable;
	struct cpu_hint_request hint = {
		.n_cpus = ledger_wanted(request),
		.reusable = &reusable,
		.allocated = has ? &has->cpus : NULL,
	};

	ledger_reusable(l, request->pod_uid, &reusable);
	return make_hints(l, hint, a, ret, err);
}

/* Only the containers that were placed so far, and this one, are known. */
static unsigned known_demand(const struct ledger_request *request, const struct cpuset *held,
			     const struct cpuset *reusable)
{
	struct cpuset lasting = *held;

	cpuset_minus(&lasting, reusable);
	return cpuset_count(&lasting) + ledger_wanted(request);
}

int ledger_pod_hints(const struct ledger *l, const struct ledger_request *request, struct arena *a,
		     struct hint_list *ret, struct err *err)
{
	const struct ledger_pod *pod = &request->pod;
	struct demand *demands = arena_array(a, struct demand, pod->n + 1);
	struct cpuset held = { 0 }, reusable;
	struct cpu_hint_request hint = { .reusable = &reusable };
	size_t n, first = ledger_find_pod(l, request->pod_uid, &n);

	if (!demands)
		return err_set(err, ENOMEM, "hints: not enough memory");
	for (size_t i = 0; i < pod->n; i++) {
		const struct ledger_member *m = &pod->members[i];
		const struct assignment *has = ledger_find(l, request->pod_uid, m->container);

		demands[i] = m->demand;
		if (has && cpuset_count(&has->cpus) != demand_cpus(&m->demand)) {
			*ret = (struct hint_list){ 0 }; /* cannot be satisfied */
			return 0;
		}
	}
	for (size_t i = first; i < first + n; i++)
		cpuset_union(&held, &l->items[i]->cpus);
	ledger_reusable(l, request->pod_uid, &reusable);
	hint.n_cpus = pod->n ? demand_pod_cpus(demands, pod->n) :
			       known_demand(request, &held, &reusable);
	if (!pod->n && hint.n_cpus < pod->n_cpus)
		hint.n_cpus = pod->n_cpus;
	/* All containers have their CPUs: the pod keeps them. Otherwise those it has must be part
	 * of the hint. */
	if (hint.n_cpus && cpuset_count(&held) == hint.n_cpus)
		hint.allocated = &held;
	else
		cpuset_union(&reusable, &held);
	return make_hints(l, hint, a, ret, err);
}

static int merge(const struct ledger *l, const struct ledger_request *request,
		 const struct hint_config *config, struct arena *a, struct hint_decision *ret,
		 struct err *err)
{
	const struct topology *t = l->now.topology;
	const struct hint_nodes nodes = hint_nodes_of(t);
	struct hint_list cpus, devices = hints_for_nodes(t, request->device_nodes, a),
			       memory = hints_for_nodes(t, request->memory_nodes, a);
	/* In the kubelet's order, which decides between equal hints. */
	const struct hint_provider providers[] = { { &devices, 1 }, { &cpus, 1 }, { &memory, 1 } };
	int r;

	r = config->scope == HINT_SCOPE_POD ? ledger_pod_hints(l, request, a, &cpus, err) :
					      ledger_hints(l, request, a, &cpus, err);
	if (r < 0)
		return r;
	*ret = hints_decide(config, &nodes, providers, ARRAY_LEN(providers), a);
	return a->failed ? err_set(err, ENOMEM, "NUMA hints: not enough memory") : 0;
}

static struct str format_nodes(uint64_t mask, struct arena *a)
{
	return cpuset_format(&(struct cpuset){ .w = { mask } }, a);
}

/* The kubelet's reason and message, and what it leaves out: the numbers. */
static int refuse(const struct ledger *l, const struct ledger_request *request, struct arena *a,
		  struct err *err)
{
	const struct hint_config *config = &l->now.config.topology;
	const struct topology *t = l->now.topology;
	const struct topology_elements *numa = &t->level[TOPOLOGY_NUMA];
	struct cpuset available;
	struct strbuf b;

	ledger_free(l, &available);
	strbuf_init(&b, a);
	for (unsigned i = 0; i < numa->n; i++)
		if (topology_count_in(t, TOPOLOGY_NUMA, i, &l->now.sets.guaranteed))
			strbuf_printf(&b, "%s%u on node %u", b.n ? ", " : "",
				      topology_count_in(t, TOPOLOGY_NUMA, i, &available),
				      numa->ids[i]);
	if (request->device_nodes)
		strbuf_printf(&b, "; devices on node " PRI_STR,
			      FMT_STR(format_nodes(request->device_nodes, a)));
	if (request->memory_nodes)
		strbuf_printf(&b, "; memory on node " PRI_STR,
			      FMT_STR(format_nodes(request->memory_nodes, a)));
	return err_set(err, EXDEV,
		       HINTS_REJECT_REASON ": " HINTS_REJECT_MESSAGE
					   ": policy %s, scope %s, %u CPUs; free CPUs: " PRI_STR,
		       hint_policy_name(config->policy), hint_scope_name(config->scope),
		       ledger_wanted(request), FMT_STR(strbuf_str(&b)));
}

/* The NUMA nodes that the policy allows for the request: a hint without a mask when it has no
 * preference. -EXDEV when it refuses. */
static int decide_nodes(const struct ledger *l, const struct ledger_request *request,
			struct numa_hint *ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	struct hint_config config = l->now.config.topology;
	struct ledger_request known = *request;
	struct hint_decision decision = { 0 };
	int r;

	arena_init(&a, 0);
	*ret = request->affinity;
	if (ret->has_mask || config.policy == HINT_POLICY_NONE || l->now.topology->n_nodes <= 1 ||
	    !hints_are_supported(l->now.topology))
		return 0;
	r = merge(l, request, &config, &a, &decision, err);
	/* The total of a pod whose containers are unknown also counts CPUs in the shared pool: it
	 * must not be the reason of a refusal. */
	if (r == 0 && !decision.admit && !request->pod.n && request->pod.n_cpus) {
		known.pod.n_cpus = 0;
		r = merge(l, &known, &config, &a, &decision, err);
	}
	if (r == 0 && !decision.admit && request->is_running) {
		config.policy = HINT_POLICY_BEST_EFFORT;
		r = merge(l, &known, &config, &a, &decision, err);
	}
	if (r < 0)
		return r;
	if (!decision.admit)
		return refuse(l, request, &a, err);
	*ret = decision.hint;
	return 0;
}

/* --- CPUs --- */

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
	keep_whole_cores(l, &available);
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

	r = decide_nodes(l, &request, &request.affinity, err);
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
