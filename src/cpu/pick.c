/* The kubelet's takeByTopology: which CPUs a request gets. It must choose the same CPUs as the
 * kubelet (D14), so each step follows it in order and in ties, and differs only in how the lists
 * are computed. */

#include "pick.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "pick_accumulator.h"
#include "pick_distribute.h"

struct pick_request pick_request_for(const struct pick_options *o, const struct topology *t,
				     unsigned n_cpus)
{
	return (struct pick_request){
		.n_cpus = n_cpus,
		.group = o->full_pcpus_only ? topology_average(t, TOPOLOGY_CORE) : 1,
		.distributed = o->distribute_cpus_across_numa,
		.spread = o->distribute_cpus_across_cores,
		.uncore = o->prefer_align_cpus_by_uncorecache,
		.align_by_socket = o->align_by_socket,
	};
}

/* True when take_whole() would take anything: most requests then need no sorted list. */
static bool has_whole(const struct accumulator *acc, enum topology_level level)
{
	for (unsigned i = 0; i < acc->t->level[level].n; i++)
		if (acc->count[level][i] && acc->count[level][i] <= acc->need &&
		    accumulator_is_whole(acc, level, i))
			return true;
	return false;
}

/* Takes whole free elements that fit, in their order. The list is made once, before the first is
 * taken, because the kubelet does not refresh it either (docs/reference/cpu-manager.md#packed). */
static void take_whole(struct accumulator *acc, enum topology_level level)
{
	unsigned n;

	if (!acc->need || !has_whole(acc, level))
		return;
	n = accumulator_order(acc, level);
	for (unsigned i = 0; i < n && acc->need; i++) {
		const unsigned element = acc->order[i];

		if (accumulator_is_whole(acc, level, element) &&
		    topology_size(acc->t, level, element) <= acc->need)
			accumulator_take_element(acc, level, element);
	}
}

/* The free CPUs of the first `max` cores, by id, that have a free CPU in this cache. */
static unsigned cpus_of_cores_in(struct accumulator *acc, unsigned uncore, unsigned max,
				 uint16_t *ret)
{
	const struct topology *t = acc->t;
	const struct topology_elements *cores = &t->level[TOPOLOGY_CORE];
	const struct topology_elements *e = &t->level[TOPOLOGY_UNCORE];
	/* The rank arrays are free between two calls of accumulator_order(); no other buffer is
	 * needed. */
	uint16_t *wanted = acc->rank[0];
	unsigned n = 0;

	memset(wanted, 0, cores->n * sizeof(*wanted));
	for (unsigned i = e->first[uncore]; i < e->first[uncore + 1]; i++)
		if (accumulator_is_free(acc, e->cpus[i]))
			wanted[t->index[TOPOLOGY_CORE][e->cpus[i]]] = 1;
	for (unsigned core = 0; core < cores->n && max; core++) {
		if (!wanted[core])
			continue;
		max--;
		for (unsigned i = cores->first[core]; i < cores->first[core + 1]; i++)
			if (accumulator_is_free(acc, cores->cpus[i]))
				ret[n++] = cores->cpus[i];
	}
	return n;
}

static void drop_highest(uint16_t *cpus, unsigned n)
{
	unsigned highest = 0;

	for (unsigned i = 1; i < n; i++)
		if (cpus[i] > cpus[highest])
			highest = i;
	cpus[highest] = cpus[n - 1];
}

/* Takes the rest of the request from one cache if its first cores have exactly that many free CPUs
 * (docs/reference/cpu-manager.md#l3-caches). */
static void take_partial_uncore(struct accumulator *acc, unsigned uncore)
{
	const unsigned per_core = topology_average(acc->t, TOPOLOGY_CORE);
	uint16_t *cpus = acc->spare;
	unsigned n;

	n = cpus_of_cores_in(acc, uncore, (acc->need + per_core - 1) / per_core, cpus);
	/* An odd request ends with half a core; the CPU with the highest number is left out. */
	if (acc->need % 2 && per_core > 1 && n > acc->need)
		drop_highest(cpus, n--);
	if (n != acc->need)
		return;
	for (unsigned i = 0; i < n; i++)
		accumulator_take_cpu(acc, cpus[i]);
}

/* One pass over whole caches is enough: a cache that does not fit now does not fit a smaller need
 * either, so the kubelet's repeated step finds nothing more. */
static void take_uncore(struct accumulator *acc)
{
	unsigned n = accumulator_order(acc, TOPOLOGY_UNCORE);
	uint16_t *order = acc->rank[1]; /* free for use: no other list is made below */

	memcpy(order, acc->order, n * sizeof(*order));
	/* The average and not the real size, as upstream: it only decides whether whole caches are
	 * tried at all, and each cache is compared with its real size below. */
	if (acc->need >= topology_average(acc->t, TOPOLOGY_UNCORE)) {
		for (unsigned i = 0; i < n && acc->need; i++)
			if (accumulator_is_whole(acc, TOPOLOGY_UNCORE, order[i]) &&
			    topology_size(acc->t, TOPOLOGY_UNCORE, order[i]) <= acc->need)
				accumulator_take_element(acc, TOPOLOGY_UNCORE, order[i]);
	}
	for (unsigned i = 0; i < n && acc->need; i++)
		take_partial_uncore(acc, order[i]);
}

/* docs/reference/cpu-manager.md#packed. The accumulator has at least as many free CPUs as needed.
 * Large elements are tried first so that a request spans as few nodes and sockets as possible;
 * fuller elements are tried before emptier ones, which keeps whole elements free for others. */
static void pack(struct accumulator *acc, bool spread, bool uncore)
{
	const bool numa_first = accumulator_is_numa_first(acc->t);
	unsigned n;

	take_whole(acc, numa_first ? TOPOLOGY_NUMA : TOPOLOGY_SOCKET);
	take_whole(acc, numa_first ? TOPOLOGY_SOCKET : TOPOLOGY_NUMA);
	if (uncore && acc->need)
		take_uncore(acc);
	if (!spread)
		take_whole(acc, TOPOLOGY_CORE);
	n = acc->need ? accumulator_order_cpus(acc, spread, acc->need) : 0;
	for (unsigned i = 0; i < n; i++)
		accumulator_take_cpu(acc, acc->order[i]);
	/* The caller has checked the number of free CPUs, and single CPUs always fit. */
	assert(!acc->need);
}

/* The socket of a NUMA node, in the topology of the whole machine. */
static uint16_t socket_of_node(const struct topology *t, unsigned node)
{
	const struct topology_elements *numa = &t->level[TOPOLOGY_NUMA];
	const uint16_t *socket = t->index[TOPOLOGY_SOCKET];
	const uint16_t first = socket[numa->cpus[numa->first[node]]];

	for (unsigned i = numa->first[node]; i < numa->first[node + 1]; i++)
		if (socket[numa->cpus[i]] != first)
			return DISTRIBUTE_MANY_SOCKETS;
	return first;
}

/* A distributed pick: the request as counts per node, and the node of each count. */
struct distribution {
	struct distribute_request rq;
	uint16_t node[DISTRIBUTE_MAX_NODES];
	struct accumulator inner; /* for packing within a node */
	bool spread;
};

static bool describe_nodes(struct distribution *d, struct accumulator *acc)
{
	const unsigned n = accumulator_order(acc, TOPOLOGY_NUMA);

	if (n > DISTRIBUTE_MAX_NODES)
		return false;
	for (unsigned i = 0; i < n; i++) {
		d->node[i] = acc->order[i];
		d->rq.free[i] = acc->count[TOPOLOGY_NUMA][acc->order[i]];
		d->rq.socket[i] = socket_of_node(acc->t, acc->order[i]);
	}
	d->rq.n_nodes = n;
	return true;
}

static unsigned divide_up(unsigned a, unsigned b)
{
	return (a + b - 1) / b;
}

/* Tries the least number of nodes first, up to all nodes with free CPUs. */
static bool find_plan(const struct distribution *d, const struct topology *t,
		      struct distribute_plan *ret)
{
	/* Capacity of a node in groups, from the whole machine and not from free CPUs: the least
	 * number of nodes depends on the hardware alone, as in the kubelet. */
	const unsigned groups = divide_up(t->n_cpus, d->rq.group);
	const unsigned per_node = divide_up(groups, t->level[TOPOLOGY_NUMA].n);
	const unsigned need = d->rq.n / d->rq.group;

	/* More nodes than groups would leave a node without any. */
	for (unsigned k = divide_up(need, per_node); k <= need && k <= d->rq.n_nodes; k++)
		if (distribute_over(&d->rq, k, ret))
			return true;
	return false;
}

/* Packs n CPUs within one NUMA node. */
static void take_in_node(struct distribution *d, struct accumulator *acc, unsigned i, unsigned n)
{
	struct accumulator *inner = &d->inner;
	struct cpuset node = { 0 };

	if (!n)
		return;
	topology_add_element(acc->t, TOPOLOGY_NUMA, d->node[i], &node);
	accumulator_start(inner, acc->free, node.w, n);
	pack(inner, d->spread, false);
	for (unsigned w = 0; w < acc->t->n_words; w++)
		for (uint64_t rest = inner->result[w]; rest; rest &= rest - 1)
			accumulator_take_cpu(acc, w * 64 + (unsigned)__builtin_ctzll(rest));
}

static void apply_plan(struct distribution *d, struct accumulator *acc,
		       const struct distribute_plan *plan)
{
	for (unsigned i = 0; i < plan->n_nodes; i++)
		take_in_node(d, acc, plan->nodes[i], plan->share);
	while (acc->need) {
		const unsigned before = acc->need;

		for (unsigned i = 0; i < plan->n_remainder && acc->need; i++) {
			const unsigned node = plan->remainder[i];

			if (acc->count[TOPOLOGY_NUMA][d->node[node]] >= d->rq.group)
				take_in_node(d, acc, node, d->rq.group);
		}
		/* The plan counts whole groups, so each round takes something; the kubelet does not
		 * (docs/reference/cpu-manager.md#remainder-without-groups). */
		assert(acc->need < before);
	}
}

/* docs/reference/cpu-manager.md#distributed: false when no even distribution exists; the caller
 * then packs. */
static bool distribute(struct accumulator *acc, const struct pick_request *request, struct arena *a)
{
	struct distribution d = { .spread = request->spread };
	struct distribute_plan plan;

	d.rq.n = request->n_cpus;
	d.rq.group = request->group ? request->group : 1;
	d.rq.align_by_socket = request->align_by_socket;
	/* A request that is no multiple of the group cannot be dealt out in groups. It is packed
	 * instead. */
	if (d.rq.n % d.rq.group || !describe_nodes(&d, acc) || !find_plan(&d, acc->t, &plan))
		return false;
	accumulator_init(&d.inner, acc->t, a);
	apply_plan(&d, acc, &plan);
	return true;
}

int pick_cpus(const struct topology *t, const struct cpuset *available,
	      const struct pick_request *request, struct cpuset *ret, struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	struct cpuset picked = { 0 };
	struct accumulator acc;

	arena_init(&a, 0);
	if (request->n_cpus) {
		accumulator_init(&acc, t, &a);
		accumulator_start(&acc, available->w, NULL, request->n_cpus);
		if (acc.n_free < request->n_cpus)
			return err_set(err, ENOSPC,
				       "not enough cpus available to satisfy request: "
				       "requested=%u, available=%u",
				       request->n_cpus, cpuset_count(available));
		if (!request->distributed || !distribute(&acc, request, &a))
			pack(&acc, request->spread, request->uncore && !request->distributed);
		memcpy(picked.w, acc.result, t->n_words * sizeof(*acc.result));
	}
	*ret = picked;
	return 0;
}

int pick_check_full_pcpus(unsigned per_core, unsigned n_cpus, unsigned n_free, struct err *err)
{
	if (n_cpus % per_core)
		return err_set(err, EDOM,
			       "SMT Alignment Error: requested %u cpus not multiple cpus per core "
			       "= %u",
			       n_cpus, per_core);
	if (n_cpus > n_free)
		return err_set(err, EDOM,
			       "SMT Alignment Error: not enough free physical CPUs: available "
			       "physical CPUs = %u, requested CPUs = %u, CPUs per core = %u",
			       n_free, n_cpus, per_core);
	return 0;
}
