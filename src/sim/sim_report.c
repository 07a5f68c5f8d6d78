/* Figures are sums over nodes, so a report costs one pass over them. */

#include "sim_report.h"

#include <stdlib.h>

#include "base/arena.h"
#include "cpu/topology.h"

static struct sim_pool *pool_named(struct sim_report *r, struct str name, struct arena *a)
{
	struct sim_pool *pool;

	for (size_t i = 0; i < r->n_pools; i++)
		if (str_eq(r->pools[i].name, name))
			return &r->pools[i];
	r->pools = arena_one_more(a, r->pools, r->n_pools, sizeof(*r->pools));
	pool = &r->pools[r->n_pools++];
	*pool = (struct sim_pool){ .name = name };
	return pool;
}

static void note_profile(struct sim_pool *pool, const struct sim_machine *m)
{
	const struct str profile = m ? m->profile : STR("");

	if (!pool->n_nodes)
		pool->profile = profile;
	else if (!str_eq(pool->profile, profile))
		pool->profile = STR("several");
}

static unsigned whole_cores(const struct topology *t, int64_t milli)
{
	const unsigned width = topology_average(t, TOPOLOGY_CORE);
	const unsigned cpus = (unsigned)((milli + 999) / 1000);

	return (cpus + width - 1) / width * width;
}

static void add_management(struct sim_pool *pool, const struct sim_machine *m,
			   const struct sim_node *n)
{
	const unsigned cpus = cpuset_count(&m->empty.now.config.reserved);
	const unsigned enough = whole_cores(m->topology, n->peak_cores);

	if (!pool->management_cpus || cpus < pool->management_cpus)
		pool->management_cpus = cpus;
	if (n->peak_cores > pool->peak_milli)
		pool->peak_milli = n->peak_cores;
	if (enough > pool->sufficient_cpus)
		pool->sufficient_cpus = enough;
	pool->n_over += n->peak_cores > 1000 * (int64_t)cpus;
}

/* What of a node's free CPUs a container can get. */
struct free_cpus {
	struct cpuset cpus;
	unsigned n, n_broken;
	unsigned in_numa[64];
	size_t n_numa;
};

/* Free CPUs next to one that is assigned. */
static unsigned count_broken(const struct ledger *l, const struct cpuset *cpus)
{
	struct cpuset taken = l->now.sets.held;

	topology_whole(l->now.topology, TOPOLOGY_CORE, &taken, &taken);
	cpuset_intersect(&taken, cpus);
	return cpuset_count(&taken);
}

static struct free_cpus free_cpus_of(const struct ledger *l)
{
	const struct topology *t = l->now.topology;
	struct free_cpus f = { .n_numa = t->level[TOPOLOGY_NUMA].n };

	ledger_free(l, &f.cpus);
	f.n_broken = count_broken(l, &f.cpus);
	if (l->now.config.options.full_pcpus_only) {
		struct cpuset split;

		topology_split(t, TOPOLOGY_CORE, &f.cpus, &split);
		cpuset_minus(&f.cpus, &split);
	}
	f.n = cpuset_count(&f.cpus);
	if (f.n_numa > sizeof(f.in_numa) / sizeof(*f.in_numa))
		f.n_numa = sizeof(f.in_numa) / sizeof(*f.in_numa);
	for (size_t i = 0; i < f.n_numa; i++)
		f.in_numa[i] = topology_count_in(t, TOPOLOGY_NUMA, (unsigned)i, &f.cpus);
	return f;
}

static void add_exclusive(struct sim_report *r, struct sim_pool *pool, const struct ledger *l)
{
	const struct free_cpus f = free_cpus_of(l);
	struct cpuset all;

	ledger_free(l, &all);
	pool->guaranteed_cpus += cpuset_count(&l->now.sets.guaranteed);
	pool->assigned_cpus += cpuset_count(&l->now.sets.held);
	pool->free_cpus += cpuset_count(&all);
	pool->broken_cpus += f.n_broken;
	if (f.n > pool->largest_in_node)
		pool->largest_in_node = f.n;
	for (size_t i = 0; i < f.n_numa; i++)
		if (f.in_numa[i] > pool->largest_in_numa)
			pool->largest_in_numa = f.in_numa[i];
	for (size_t i = 0; i < r->n_rooms; i++) {
		r->rooms[i].by_count += f.n / r->rooms[i].n_cpus;
		for (size_t j = 0; j < f.n_numa; j++)
			r->rooms[i].in_numa_node += f.in_numa[j] / r->rooms[i].n_cpus;
	}
}

static void add_share(struct sim_report *r, const struct sim_shape *shape, const struct sim_node *n)
{
	const int64_t of = shape->allocatable.of[SIM_CPU];
	int64_t tenth = of ? n->used.of[SIM_CPU] * SIM_HISTOGRAM / of : 0;

	r->histogram[tenth < SIM_HISTOGRAM ? tenth : SIM_HISTOGRAM - 1]++;
}

static void add_node(const struct sim *s, const struct sim_node *n, struct sim_report *r,
		     struct arena *a)
{
	const struct sim_shape *shape = &s->shapes[n->shape];
	const struct sim_machine *m = shape->machine;
	struct sim_pool *pool = pool_named(r, shape->pool, a);

	note_profile(pool, m);
	if (!pool->n_nodes || n->n_pods < pool->fewest_pods)
		pool->fewest_pods = n->n_pods;
	if (n->n_pods > pool->most_pods)
		pool->most_pods = n->n_pods;
	pool->n_nodes++;
	pool->n_pods += n->n_pods;
	pool->n_cpus += m ? m->topology->n_cpus : shape->allocatable.of[SIM_CPU] / 1000;
	for (size_t i = 0; i < s->resources.n; i++) {
		pool->allocatable.of[i] += shape->allocatable.of[i];
		pool->used.of[i] += n->used.of[i];
	}
	add_share(r, shape, n);
	if (!m || !m->has_pools)
		return;
	add_management(pool, m, n);
	add_exclusive(r, pool, n->ledger ? n->ledger : &m->empty);
}

static int by_cpus(const void *x, const void *y)
{
	const struct sim_room *a = x, *b = y;

	return (a->n_cpus > b->n_cpus) - (a->n_cpus < b->n_cpus);
}

static void find_rooms(const struct sim *s, struct sim_report *r, struct arena *a)
{
	for (size_t i = 0; i < s->n_classes; i++) {
		const unsigned n = s->classes[i].n_cpus;
		size_t at = 0;

		while (at < r->n_rooms && r->rooms[at].n_cpus != n)
			at++;
		if (!n || at < r->n_rooms)
			continue;
		r->rooms = arena_one_more(a, r->rooms, r->n_rooms, sizeof(*r->rooms));
		r->rooms[r->n_rooms++] = (struct sim_room){ .n_cpus = n };
	}
	if (r->n_rooms)
		qsort(r->rooms, r->n_rooms, sizeof(*r->rooms), by_cpus);
}

static void count_placed(const struct sim *s, struct sim_report *r, struct arena *a)
{
	size_t *pool_of = arena_array(a, size_t, s->n_shapes + 1);

	for (size_t i = 0; i < s->n_shapes; i++)
		pool_of[i] = (size_t)(pool_named(r, s->shapes[i].pool, a) - r->pools);
	r->placed = arena_array(a, size_t, s->n_classes * r->n_pools + 1);
	for (size_t i = 0; i < s->n_pods; i++) {
		const struct sim_pod *p = &s->pods[i];

		if (p->state == SIM_POD_RUNNING)
			r->placed[p->class * r->n_pools + pool_of[s->nodes[p->node].shape]]++;
	}
}

void sim_report_make(const struct sim *s, struct arena *a, struct sim_report *ret)
{
	*ret = (struct sim_report){ .n_pods = s->n_pods };
	find_rooms(s, ret, a);
	for (size_t i = 0; i < s->n_classes; i++) {
		const struct sim_class *c = &s->classes[i];

		ret->by_admission[c->admission] += c->n_arrived;
		ret->n_running += c->n_running;
		ret->n_pending += c->n_pending;
		ret->n_refused += c->n_refused;
		ret->n_left += c->n_left;
	}
	ret->n_denied = ret->by_admission[SIM_DENIED];
	for (size_t i = 0; i < s->n_nodes; i++)
		add_node(s, &s->nodes[i], ret, a);
	count_placed(s, ret, a);
}
