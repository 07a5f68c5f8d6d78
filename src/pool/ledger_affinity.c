/* Which NUMA nodes exclusive CPUs come from (D17): the kubelet's topology manager, with the
 * guaranteed pool in place of the machine (docs/reference/pools.md#hints). Every role asks here,
 * through ledger_allocate(), so that the agent, the OCI hook and `local` decide the same. */

#include <errno.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "cpu/topology.h"
#include "ledger_private.h"

unsigned ledger_wanted(const struct ledger_request *request)
{
	return request->is_management ? 0 : demand_cpus(&request->demand);
}

void ledger_keep_whole_cores(const struct ledger *l, struct cpuset *cpus)
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
	ledger_keep_whole_cores(l, &available);
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

int ledger_decide(const struct ledger *l, const struct ledger_request *request,
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
