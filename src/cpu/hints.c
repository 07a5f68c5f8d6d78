/* The CPU manager's part of the kubelet's topology manager (which masks can hold a request) and the
 * policies that decide about the merged hint. Merging itself is in hints_merge.c. */

#include "hints.h"

#include <errno.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "base/quote.h"
#include "hints_merge.h"
#include "pick_options.h"
#include "topology.h"

static const char *const policy_names[] = {
	[HINT_POLICY_NONE] = "none",
	[HINT_POLICY_BEST_EFFORT] = "best-effort",
	[HINT_POLICY_RESTRICTED] = "restricted",
	[HINT_POLICY_SINGLE_NUMA_NODE] = "single-numa-node",
};

const char *hint_policy_name(enum hint_policy policy)
{
	return policy_names[policy];
}

const char *hint_scope_name(enum hint_scope scope)
{
	return scope == HINT_SCOPE_POD ? "pod" : "container";
}

int hint_policy_parse(struct str name, enum hint_policy *ret, struct err *err)
{
	for (unsigned i = 0; i < ARRAY_LEN(policy_names); i++)
		if (str_eq(name, str_from(policy_names[i]))) {
			*ret = (enum hint_policy)i;
			return 0;
		}
	return err_set(err, EINVAL, "unknown policy: %s", quote(name).text);
}

int hint_scope_parse(struct str name, enum hint_scope *ret, struct err *err)
{
	if (!str_eq(name, STR("container")) && !str_eq(name, STR("pod")))
		return err_set(err, EINVAL, "unknown scope: %s", quote(name).text);
	*ret = str_eq(name, STR("pod")) ? HINT_SCOPE_POD : HINT_SCOPE_CONTAINER;
	return 0;
}

/* The messages are the kubelet's. Go's Atoi accepts a sign. */
static int set_max_nodes(struct hint_config *c, struct str value, struct err *err)
{
	const bool negative = value.n && value.p[0] == '-';
	const bool has_sign = negative || (value.n && value.p[0] == '+');
	uint64_t n;

	if (!str_to_u64(str_skip(value, has_sign), UINT32_MAX, &n))
		return err_set(err, EINVAL,
			       "unable to convert policy option to integer "
			       "\"max-allowable-numa-nodes\": strconv.Atoi: parsing %s: "
			       "invalid syntax",
			       quote(value).text);
	if (negative || n < HINTS_DEFAULT_MAX_NODES)
		return err_set(err, EINVAL,
			       "the minimum value of \"max-allowable-numa-nodes\" should not be "
			       "less than %d",
			       HINTS_DEFAULT_MAX_NODES);
	c->max_nodes = (unsigned)n;
	return 0;
}

int hint_config_set(struct hint_config *c, struct str name, struct str value, struct err *err)
{
	if (str_eq(name, STR("prefer-closest-numa-nodes")))
		return policy_bool_parse(name, value, &c->prefer_closest, err);
	if (str_eq(name, STR("max-allowable-numa-nodes")))
		return set_max_nodes(c, value, err);
	return err_set(err, EINVAL, "unknown Topology Manager Policy option: %s", quote(name).text);
}

int hint_config_check(const struct hint_config *c, const struct topology *t, struct err *err)
{
	const unsigned max = c->max_nodes ? c->max_nodes : HINTS_DEFAULT_MAX_NODES;

	if (c->policy == HINT_POLICY_NONE)
		return 0;
	if (c->prefer_closest && !t->distances)
		return err_set(err, ENOTSUP,
			       "cannot discover NUMA topology: "
			       "error getting NUMA distances from cadvisor");
	if (t->n_nodes > max)
		return err_set(err, E2BIG, "unsupported on machines with more than %u NUMA Nodes",
			       max);
	return 0;
}

bool hints_are_supported(const struct topology *t)
{
	const struct topology_elements *numa = &t->level[TOPOLOGY_NUMA];

	return numa->n <= HINTS_DEFAULT_MAX_NODES && numa->ids[numa->n - 1] < 64;
}

struct hint_nodes hint_nodes_of(const struct topology *t)
{
	return (struct hint_nodes){ .n = t->n_nodes, .ids = t->nodes, .distances = t->distances };
}

/* Normalization as in the kubelet (docs/reference/topology-manager.md#merge): no list or "don't
 * care" becomes one preferred hint for any node, an empty list one hint that is not preferred. */
static struct hint_list normalize(const struct hint_list *list)
{
	static const struct numa_hint any = { .preferred = true }, impossible = { 0 };

	if (!list || list->any)
		return (struct hint_list){ .items = &any, .n = 1 };
	if (!list->n)
		return (struct hint_list){ .items = &impossible, .n = 1 };
	return *list;
}

static size_t collect(const struct hint_provider *providers, size_t n, struct arena *a,
		      struct hint_list **ret)
{
	struct hint_list *lists;
	size_t most = 0, used = 0;

	for (size_t i = 0; i < n; i++)
		most += providers[i].n ? providers[i].n : 1;
	lists = arena_array(a, struct hint_list, most ? most : 1);
	for (size_t i = 0; lists && i < n; i++) {
		if (!providers[i].n)
			lists[used++] = normalize(NULL);
		for (size_t j = 0; j < providers[i].n; j++)
			lists[used++] = normalize(&providers[i].resources[j]);
	}
	*ret = lists;
	return used;
}

struct hint_decision hints_decide(const struct hint_config *c, const struct hint_nodes *nodes,
				  const struct hint_provider *providers, size_t n, struct arena *a)
{
	const bool single = c->policy == HINT_POLICY_SINGLE_NUMA_NODE;
	/* With single-numa-node every mask that is left has at most one node: there is no distance
	 * to compare. */
	struct hint_rule rule = { .nodes = nodes, .prefer_closest = c->prefer_closest && !single };
	struct hint_decision decision = { .admit = true };
	struct hint_list *lists;
	size_t n_lists;

	if (c->policy == HINT_POLICY_NONE)
		return decision;
	n_lists = collect(providers, n, a, &lists);
	for (size_t i = 0; single && i < n_lists; i++)
		lists[i] = hint_list_single_numa(&lists[i], a);
	rule.best_non_preferred = hint_best_non_preferred(lists, n_lists);
	decision.hint = hint_lists_merge(&rule, lists, n_lists, a);
	/* As in the kubelet: a single-numa-node hint for all nodes is no constraint. */
	if (single && decision.hint.mask == hint_nodes_mask(nodes)) {
		decision.hint.has_mask = false;
		decision.hint.mask = 0;
	}
	/* best-effort admits with any hint, the other two only with a preferred one. */
	decision.admit = c->policy == HINT_POLICY_BEST_EFFORT || decision.hint.preferred;
	return decision;
}

/* CPUs of a request, counted per NUMA node that has capacity. */
struct cpu_counts {
	unsigned n;
	uint32_t id[HINTS_MAX_NODES];
	unsigned capacity[HINTS_MAX_NODES];
	unsigned available[HINTS_MAX_NODES];
	unsigned reusable[HINTS_MAX_NODES];
	uint64_t sockets[HINTS_MAX_NODES]; /* by index, modulo 64: only sizes are compared */
	unsigned all_reusable;
};

static uint64_t sockets_of_node(const struct topology *t, unsigned node)
{
	const struct topology_elements *numa = &t->level[TOPOLOGY_NUMA];
	uint64_t sockets = 0;

	for (unsigned i = numa->first[node]; i < numa->first[node + 1]; i++)
		sockets |= UINT64_C(1) << (t->index[TOPOLOGY_SOCKET][numa->cpus[i]] % 64);
	return sockets;
}

static int count_nodes(const struct topology *t, const struct cpu_hint_request *rq,
		       struct cpu_counts *c, struct err *err)
{
	const struct topology_elements *numa = &t->level[TOPOLOGY_NUMA];
	/* A container that has its CPUs gets the hints of exactly that set: a restart must not move
	 * it. */
	const struct cpuset *available = rq->allocated ? rq->allocated : rq->available;
	const struct cpuset *reusable = rq->allocated ? NULL : rq->reusable;

	for (unsigned i = 0; i < numa->n; i++) {
		const unsigned capacity =
			rq->capacity ? topology_count_in(t, TOPOLOGY_NUMA, i, rq->capacity) :
				       topology_size(t, TOPOLOGY_NUMA, i);
		const unsigned reuse = reusable ? topology_count_in(t, TOPOLOGY_NUMA, i, reusable) :
						  0;

		/* Also of nodes outside the pool: reusable CPUs that no mask contains make every
		 * mask unsuitable. */
		c->all_reusable += reuse;
		if (!capacity)
			continue;
		if (c->n == HINTS_MAX_NODES || numa->ids[i] > 63)
			return err_set(err, E2BIG,
				       "no NUMA hints on machines with more than %d NUMA nodes or "
				       "node ids above 63",
				       HINTS_MAX_NODES);
		c->id[c->n] = numa->ids[i];
		c->capacity[c->n] = capacity;
		c->available[c->n] = topology_count_in(t, TOPOLOGY_NUMA, i, available);
		c->reusable[c->n] = reuse;
		c->sockets[c->n++] = sockets_of_node(t, i);
	}
	return 0;
}

struct cpu_mask {
	unsigned size; /* nodes */
	unsigned capacity, available, reusable;
	uint64_t nodes, sockets;
};

/* `members` has a bit for each row of the counts. */
static struct cpu_mask measure(const struct cpu_counts *c, unsigned members)
{
	struct cpu_mask m = { 0 };

	for (unsigned i = 0; i < c->n; i++) {
		if (!(members >> i & 1))
			continue;
		m.size++;
		m.capacity += c->capacity[i];
		m.available += c->available[i];
		m.reusable += c->reusable[i];
		m.nodes |= UINT64_C(1) << c->id[i];
		m.sockets |= c->sockets[i];
	}
	return m;
}

/* The next combination of `size` out of `n` rows in lexicographic order; false after the last. */
static bool next_combination(unsigned *chosen, unsigned size, unsigned n)
{
	for (unsigned i = size; i-- > 0;) {
		if (chosen[i] == n - size + i)
			continue;
		chosen[i]++;
		for (unsigned j = i + 1; j < size; j++)
			chosen[j] = chosen[j - 1] + 1;
		return true;
	}
	return false;
}

/* All masks in the kubelet's order (docs/reference/topology-manager.md#masks): by size, then
 * lexicographically. A bit is a row of the counts. */
static unsigned *enumerate(unsigned n, struct arena *a)
{
	/* 2^n entries, at most 65536 because n is at most HINTS_MAX_NODES. The empty mask is left
	 * out, which makes 2^n - 1 of them. */
	unsigned *masks = arena_array(a, unsigned, (size_t)1 << n), used = 0;

	for (unsigned size = 1; masks && size <= n; size++) {
		unsigned chosen[HINTS_MAX_NODES];

		for (unsigned i = 0; i < size; i++)
			chosen[i] = i;
		do {
			for (unsigned i = 0; i < size; i++)
				masks[used] |= 1U << chosen[i];
			used++;
		} while (next_combination(chosen, size, n));
	}
	return masks;
}

/* With align-by-socket, a mask that covers no more sockets than necessary is preferred as well. */
static bool is_socket_aligned(const struct topology *t, uint64_t sockets, unsigned least_nodes)
{
	const unsigned per_socket = t->level[TOPOLOGY_NUMA].n / t->level[TOPOLOGY_SOCKET].n;

	return per_socket && (unsigned)__builtin_popcountll(sockets) ==
				     (least_nodes + per_socket - 1) / per_socket;
}

/* The least number of nodes whose capacity holds the request: masks of that size are preferred
 * (docs/reference/topology-manager.md#cpu-hints). */
static unsigned least_size(const struct cpu_counts *c, const unsigned *masks, unsigned n_cpus)
{
	unsigned least = c->n;

	for (unsigned i = 0; i < (1U << c->n) - 1; i++) {
		const struct cpu_mask m = measure(c, masks[i]);

		if (m.capacity >= n_cpus && m.size < least)
			least = m.size;
	}
	return least;
}

static int generate(const struct topology *t, const struct cpu_hint_request *rq, struct arena *a,
		    struct hint_list *ret, struct err *err)
{
	struct cpu_counts c = { 0 };
	struct numa_hint *hints;
	unsigned *masks, least;
	size_t n = 0;
	int r = count_nodes(t, rq, &c, err);

	if (r < 0)
		return r;
	masks = enumerate(c.n, a);
	hints = arena_array(a, struct numa_hint, (size_t)1 << c.n);
	if (!masks || !hints)
		return err_set(err, ENOMEM, "NUMA hints: out of memory");
	least = least_size(&c, masks, rq->n_cpus);
	for (unsigned i = 0; i < (1U << c.n) - 1; i++) {
		const struct cpu_mask m = measure(&c, masks[i]);

		/* A mask must contain all reusable CPUs: they are taken before others
		 * (docs/reference/topology-manager.md#cpu-hints). */
		if (m.reusable < c.all_reusable || m.reusable + m.available < rq->n_cpus)
			continue;
		hints[n++] = (struct numa_hint){
			.mask = m.nodes,
			.has_mask = true,
			.preferred = m.size == least || (rq->align_by_socket &&
							 is_socket_aligned(t, m.sockets, least)),
		};
	}
	*ret = (struct hint_list){ .items = hints, .n = n };
	return 0;
}

int hints_for_cpus(const struct topology *t, const struct cpu_hint_request *request,
		   struct arena *a, struct hint_list *ret, struct err *err)
{
	if (!request->n_cpus) {
		*ret = (struct hint_list){ .any = true };
		return 0;
	}
	if (request->allocated && cpuset_count(request->allocated) != request->n_cpus) {
		*ret = (struct hint_list){ 0 };
		return 0;
	}
	return generate(t, request, a, ret, err);
}

struct hint_list hints_for_nodes(const struct topology *t, uint64_t nodes, struct arena *a)
{
	uint64_t others = topology_numa_mask(t, false) & ~nodes, id[HINTS_MAX_NODES];
	struct numa_hint *hints;
	unsigned *masks, n = 0;

	if (!nodes)
		return (struct hint_list){ .any = true };
	for (; others && n < HINTS_MAX_NODES; others &= others - 1)
		id[n++] = others & -others;
	masks = enumerate(n, a);
	hints = arena_array(a, struct numa_hint, (size_t)1 << n);
	if (!masks || !hints)
		return (struct hint_list){ .any = true }; /* the owner of the arena checks it */
	hints[0] = (struct numa_hint){ .mask = nodes, .has_mask = true, .preferred = true };
	for (unsigned i = 0; i < (1U << n) - 1; i++) {
		hints[i + 1] = (struct numa_hint){ .mask = nodes, .has_mask = true };
		for (unsigned k = 0; k < n; k++)
			hints[i + 1].mask |= masks[i] >> k & 1 ? id[k] : 0;
	}
	return (struct hint_list){ .items = hints, .n = (size_t)1 << n };
}
