#pragma once

/* docs/reference/cpu-manager.md#picking-cpus implemented literally and slowly: every list is made
 * anew from the set of free CPUs, every combination is tried. pick_cpus() must give the same
 * result. */

#include <float.h>
#include <math.h>

#include "cpu/pick.h"
#include "cpu/topology.h"

struct reference {
	const struct topology *t;
	struct cpuset free, result;
	int need;
};

/* A list of element ids, or of CPUs. */
struct reference_list {
	uint32_t id[1024];
	unsigned n;
};

/* CPUs of the element with this id, in a set. */
static struct cpuset reference_in(const struct topology *t, const struct cpuset *of,
				  enum topology_level level, uint32_t id)
{
	struct cpuset s = { 0 };

	for (unsigned i = 0; i < t->n_cpus; i++)
		if (t->cpus[i].id[level] == id && cpuset_has(of, t->cpus[i].cpu))
			cpuset_add(&s, t->cpus[i].cpu);
	return s;
}

static unsigned reference_free(const struct reference *r, enum topology_level level, uint32_t id)
{
	const struct cpuset s = reference_in(r->t, &r->free, level, id);

	return cpuset_count(&s);
}

/* Elements with a CPU in `within`, by (free CPUs on the machine, id); appended without repeats. */
static void reference_sorted(const struct reference *r, const struct cpuset *within,
			     enum topology_level level, struct reference_list *ret)
{
	const unsigned start = ret->n;

	for (unsigned i = 0; i < r->t->n_cpus; i++) {
		const uint32_t id = r->t->cpus[i].id[level];
		bool known = !cpuset_has(within, r->t->cpus[i].cpu);
		unsigned at = ret->n;

		for (unsigned j = 0; j < ret->n; j++)
			known |= ret->id[j] == id;
		if (known)
			continue;
		for (; at > start; at--) {
			const unsigned a = reference_free(r, level, ret->id[at - 1]);
			const unsigned b = reference_free(r, level, id);

			if (a < b || (a == b && ret->id[at - 1] < id))
				break;
			ret->id[at] = ret->id[at - 1];
		}
		ret->id[at] = id;
		ret->n++;
	}
}

static bool reference_numa_first(const struct topology *t)
{
	return t->level[TOPOLOGY_SOCKET].n >= t->level[TOPOLOGY_NUMA].n;
}

/* docs/reference/cpu-manager.md#order */
static struct reference_list reference_order(const struct reference *r, enum topology_level level)
{
	const bool numa_first = reference_numa_first(r->t);
	struct reference_list list = { .n = 0 }, parents;
	enum topology_level parent = TOPOLOGY_NUMA;

	if ((level == TOPOLOGY_NUMA && numa_first) || (level == TOPOLOGY_SOCKET && !numa_first)) {
		reference_sorted(r, &r->free, level, &list);
		return list;
	}
	if (level == TOPOLOGY_NUMA || (level == TOPOLOGY_CORE && numa_first))
		parent = TOPOLOGY_SOCKET;
	parents = reference_order(r, parent);
	for (unsigned i = 0; i < parents.n; i++) {
		const struct cpuset within = reference_in(r->t, &r->free, parent, parents.id[i]);

		reference_sorted(r, &within, level, &list);
	}
	return list;
}

static void reference_take(struct reference *r, const struct cpuset *s)
{
	cpuset_union(&r->result, s);
	cpuset_minus(&r->free, s);
	r->need -= (int)cpuset_count(s);
}

static void reference_take_full(struct reference *r, enum topology_level level)
{
	const struct reference_list list = reference_order(r, level);
	const struct cpuset free = r->free;

	for (unsigned i = 0; i < list.n; i++) {
		const struct cpuset all = reference_in(r->t, &r->t->online, level, list.id[i]);

		if (cpuset_is_subset(&all, &free) && r->need >= (int)cpuset_count(&all))
			reference_take(r, &all);
	}
}

static void reference_take_partial(struct reference *r, uint32_t uncore)
{
	const int per_core = (int)(r->t->n_cpus / r->t->level[TOPOLOGY_CORE].n);
	const struct cpuset in = reference_in(r->t, &r->free, TOPOLOGY_UNCORE, uncore);
	int cores = (r->need + per_core - 1) / per_core;
	struct cpuset s = { 0 };

	for (unsigned i = 0; i < r->t->level[TOPOLOGY_CORE].n && cores; i++) {
		const uint32_t core = r->t->level[TOPOLOGY_CORE].ids[i];
		const struct cpuset candidate = reference_in(r->t, &in, TOPOLOGY_CORE, core);
		const struct cpuset all = reference_in(r->t, &r->free, TOPOLOGY_CORE, core);

		if (cpuset_is_empty(&candidate))
			continue;
		cpuset_union(&s, &all);
		cores--;
	}
	if (r->need % 2 && per_core > 1 && (int)cpuset_count(&s) > r->need)
		cpuset_del(&s, cpuset_last(&s));
	if ((int)cpuset_count(&s) == r->need)
		reference_take(r, &s);
}

static void reference_take_uncore(struct reference *r)
{
	const struct reference_list list = reference_order(r, TOPOLOGY_UNCORE);

	for (unsigned i = 0; i < list.n; i++) {
		if (r->need >= (int)(r->t->n_cpus / r->t->level[TOPOLOGY_UNCORE].n))
			reference_take_full(r, TOPOLOGY_UNCORE);
		if (r->need < 1)
			return;
		reference_take_partial(r, list.id[i]);
		if (r->need < 1)
			return;
	}
}

static void reference_take_single(struct reference *r, bool spread)
{
	const enum topology_level level = spread ? TOPOLOGY_SOCKET : TOPOLOGY_CORE;
	const struct reference_list list = reference_order(r, level);

	for (unsigned i = 0; i < list.n; i++) {
		const struct cpuset cpus = reference_in(r->t, &r->free, level, list.id[i]);

		CPUSET_FOREACH (cpu, &cpus) {
			struct cpuset one = { 0 };

			if (r->need < 1)
				return;
			cpuset_add(&one, cpu);
			reference_take(r, &one);
		}
	}
}

/* False when there are not enough. */
static bool reference_packed(const struct topology *t, const struct cpuset *available, int n,
			     bool spread, bool uncore, struct cpuset *ret)
{
	const bool numa_first = reference_numa_first(t);
	struct reference r = { .t = t, .free = *available, .need = n };

	cpuset_intersect(&r.free, &t->online);
	if (r.need > (int)cpuset_count(&r.free))
		return false;
	if (r.need > 0)
		reference_take_full(&r, numa_first ? TOPOLOGY_NUMA : TOPOLOGY_SOCKET);
	if (r.need > 0)
		reference_take_full(&r, numa_first ? TOPOLOGY_SOCKET : TOPOLOGY_NUMA);
	if (r.need > 0 && uncore)
		reference_take_uncore(&r);
	if (r.need > 0 && !spread)
		reference_take_full(&r, TOPOLOGY_CORE);
	if (r.need > 0)
		reference_take_single(&r, spread);
	*ret = r.result;
	return true;
}

static double reference_round(double x)
{
	return round(x * 1000) / 1000;
}

static double reference_deviation(const int *v, unsigned n)
{
	double mean = 0, sum = 0;

	for (unsigned i = 0; i < n; i++)
		mean += v[i];
	mean = reference_round(mean / n);
	for (unsigned i = 0; i < n; i++)
		sum += (v[i] - mean) * (v[i] - mean);
	return reference_round(sqrt(sum / n));
}

/* Combinations as bits; rank says which of two of one size comes first lexicographically. */
static bool reference_comes_first(unsigned a, unsigned b)
{
	const unsigned differ = a ^ b;

	return differ && (a & (differ & -differ)); /* the lowest index in which they differ */
}

/* The next combination of as many members after `after`; 0 when there is none. 0 begins. */
static unsigned reference_next(unsigned n, unsigned of, unsigned size, unsigned after)
{
	unsigned best = 0;

	for (unsigned m = 1; m < 1U << n; m++)
		if ((m & ~of) == 0 && (unsigned)__builtin_popcount(m) == size &&
		    (!after || reference_comes_first(after, m)) &&
		    (!best || reference_comes_first(m, best)))
			best = m;
	return best;
}

struct reference_dealer {
	int free[16];
	unsigned n; /* nodes */
	int cpus, group;
	bool align;
	const struct topology *t;
	const struct reference_list *nodes;
};

static int reference_share(const struct reference_dealer *d, unsigned combination, bool limited)
{
	int share = d->cpus / __builtin_popcount(combination) / d->group * d->group;

	for (unsigned i = 0; limited && i < d->n; i++)
		if (combination >> i & 1 && d->free[i] / d->group * d->group < share)
			share = d->free[i] / d->group * d->group;
	return share;
}

/* The balance of a combination and the subset its remainder comes from; DBL_MAX when unfit. */
static double reference_balance(const struct reference_dealer *d, unsigned combination,
				unsigned *ret_remainder)
{
	const int share = reference_share(d, combination, d->align);
	int left[16], sum = 0, rest = d->cpus - share * __builtin_popcount(combination);
	double best = DBL_MAX;
	unsigned givers = 0;

	for (unsigned i = 0; i < d->n; i++) {
		left[i] = d->free[i];
		if (!(combination >> i & 1))
			continue;
		if (d->free[i] < share)
			return DBL_MAX;
		sum += d->free[i] / d->group * d->group;
		left[i] -= share;
		givers |= left[i] >= d->group ? 1U << i : 0;
	}
	if (sum < d->cpus)
		return DBL_MAX;
	*ret_remainder = 0;
	if (!rest)
		return reference_deviation(left, d->n);
	for (unsigned size = (unsigned)__builtin_popcount(givers); size >= 1; size--)
		for (unsigned s = 0; (s = reference_next(d->n, givers, size, s));) {
			int copy[16], r = rest, has = 0;
			double balance;

			for (unsigned i = 0; i < d->n; i++) {
				copy[i] = left[i];
				has += s >> i & 1 ? left[i] / d->group * d->group : 0;
			}
			if (has < rest)
				continue;
			while (r > 0)
				for (unsigned i = 0; i < d->n && r > 0; i++)
					if (s >> i & 1 && copy[i] >= d->group) {
						copy[i] -= d->group;
						r -= d->group;
					}
			balance = reference_deviation(copy, d->n);
			if (balance < best) {
				best = balance;
				*ret_remainder = s;
			}
		}
	return best;
}

static bool reference_in_one_socket(const struct reference_dealer *d, unsigned combination)
{
	uint32_t socket = TOPOLOGY_NO_ID;

	for (unsigned i = 0; i < d->t->n_cpus; i++)
		for (unsigned j = 0; j < d->n; j++) {
			const struct topology_cpu *cpu = &d->t->cpus[i];

			if (!(combination >> j & 1) || cpu->id[TOPOLOGY_NUMA] != d->nodes->id[j])
				continue;
			if (socket != TOPOLOGY_NO_ID && socket != cpu->id[TOPOLOGY_SOCKET])
				return false;
			socket = cpu->id[TOPOLOGY_SOCKET];
		}
	return true;
}

/* The best combination of k nodes; 0 when there is none. */
static unsigned reference_best(const struct reference_dealer *d, unsigned k,
			       unsigned *ret_remainder)
{
	const unsigned all = (1U << d->n) - 1;
	double best_balance = DBL_MAX;
	bool best_same = false;
	unsigned best = 0;

	for (unsigned c = 0; (c = reference_next(d->n, all, k, c));) {
		unsigned remainder = 0;
		double balance = reference_balance(d, c, &remainder);
		const bool same = d->align && reference_in_one_socket(d, c);
		bool better = balance < best_balance;

		if (balance == DBL_MAX)
			continue;
		if (d->align && same != best_same)
			better = same;
		if (!better)
			continue;
		best_balance = balance;
		best_same = same;
		best = c;
		*ret_remainder = remainder;
	}
	return best;
}

static void reference_take_in_node(struct reference *r, uint32_t node, int n, bool spread)
{
	const struct cpuset free = reference_in(r->t, &r->free, TOPOLOGY_NUMA, node);
	struct cpuset got = { 0 };

	(void)reference_packed(r->t, &free, n, spread, false, &got);
	reference_take(r, &got);
}

static int reference_ceil(int a, int b)
{
	return (a + b - 1) / b;
}

static bool reference_pick(const struct topology *t, const struct cpuset *available,
			   const struct pick_request *rq, struct cpuset *ret)
{
	struct reference r = { .t = t, .free = *available, .need = (int)rq->n_cpus };
	struct reference_list nodes;
	struct reference_dealer d = { .cpus = (int)rq->n_cpus,
				      .group = (int)rq->group,
				      .align = rq->align_by_socket,
				      .t = t,
				      .nodes = &nodes };
	int per, groups = d.cpus / d.group;

	cpuset_intersect(&r.free, &t->online);
	if (!rq->distributed || d.cpus % d.group || r.need < 1 ||
	    r.need > (int)cpuset_count(&r.free))
		return reference_packed(t, available, d.cpus, rq->spread,
					rq->uncore && !rq->distributed, ret);
	nodes = reference_order(&r, TOPOLOGY_NUMA);
	d.n = nodes.n;
	for (unsigned i = 0; i < d.n; i++)
		d.free[i] = (int)reference_free(&r, TOPOLOGY_NUMA, nodes.id[i]);
	per = reference_ceil(reference_ceil((int)t->n_cpus, d.group),
			     (int)t->level[TOPOLOGY_NUMA].n);
	for (int k = reference_ceil(groups, per); k <= groups && k <= (int)d.n; k++) {
		unsigned remainder = 0, best = reference_best(&d, (unsigned)k, &remainder);
		int share;

		if (!best)
			continue;
		share = reference_share(&d, best, true);
		for (unsigned i = 0; i < d.n; i++)
			if (best >> i & 1)
				reference_take_in_node(&r, nodes.id[i], share, rq->spread);
		while (r.need > 0)
			for (unsigned i = 0; i < d.n && r.need > 0; i++)
				if (remainder >> i & 1 &&
				    (int)reference_free(&r, TOPOLOGY_NUMA, nodes.id[i]) >= d.group)
					reference_take_in_node(&r, nodes.id[i], d.group,
							       rq->spread);
		*ret = r.result;
		return true;
	}
	return reference_packed(t, available, d.cpus, rq->spread, false, ret);
}
