/* Divides a machine by moving whole cores from what is left, first to the reserved and then to the
 * shared set; the isolated set is the remainder. The caller prints the reasons with the sets. */

#include "suggest.h"

#include <errno.h>

#include "base/arena.h"
#include "base/err.h"
#include "cpu/topology.h"

/* Moves the first core of a NUMA node that is left; false when there is none. */
static bool move_next_core(const struct topology *t, unsigned node, struct cpuset *left,
			   struct cpuset *to)
{
	struct cpuset there = { 0 }, core = { 0 };
	unsigned cpu;

	topology_add_element(t, TOPOLOGY_NUMA, node, &there);
	cpuset_intersect(&there, left);
	cpu = cpuset_first(&there);
	if (cpu == CPUSET_NONE)
		return false;
	topology_add_element(t, TOPOLOGY_CORE, topology_index(t, TOPOLOGY_CORE, cpu), &core);
	cpuset_intersect(&core, left);
	cpuset_minus(left, &core);
	cpuset_union(to, &core);
	return true;
}

/* Moves the first CPUs that are left; false when there are too few. */
static bool move_cpus(unsigned n, struct cpuset *left, struct cpuset *to)
{
	while (cpuset_count(to) < n && !cpuset_is_empty(left)) {
		unsigned cpu = cpuset_first(left);

		cpuset_del(left, cpu);
		cpuset_add(to, cpu);
	}
	return cpuset_count(to) >= n;
}

/* Moves cores until `to` has at least `n` CPUs, beginning on the node of the machine's first CPU:
 * the kernel does work on that CPU that cannot be moved, so it belongs to the platform. */
static bool move_cores(const struct topology *t, const struct suggest_options *o, unsigned n,
		       struct cpuset *left, struct cpuset *to)
{
	unsigned n_nodes = t->level[TOPOLOGY_NUMA].n, n_exhausted = 0;
	unsigned node = topology_index(t, TOPOLOGY_NUMA, cpuset_first(&t->online));

	while (cpuset_count(to) < n && n_exhausted < n_nodes) {
		bool moved = move_next_core(t, node, left, to);

		n_exhausted = moved ? 0 : n_exhausted + 1;
		if (!moved || !o->packed)
			node = (node + 1) % n_nodes;
	}
	return cpuset_count(to) >= n;
}

static void add_reason(struct suggestion *s, struct str reason)
{
	s->reasons[s->n_reasons++] = reason; /* at most six: see the callers */
}

static void explain_size(struct suggestion *s, const struct topology *t,
			 const struct suggest_options *o, struct arena *a)
{
	unsigned got = cpuset_count(&s->reserved), threads = t->level[TOPOLOGY_CORE].max_size;

	add_reason(s, str_printf(a,
				 "%u CPU%s for the platform, with the core of CPU %u, because "
				 "some kernel work cannot be moved off it",
				 got, got == 1 ? "" : "s", cpuset_first(&t->online)));
	if (threads > 1 && t->level[TOPOLOGY_CORE].n == 1)
		add_reason(s,
			   STR("the threads of the machine's only core are divided and slow each "
			       "other down; check and render need --allow-split-cores"));
	else if (threads > 1)
		add_reason(s,
			   str_printf(a,
				      "whole cores of %u CPUs each, because the threads of a core "
				      "slow each other down",
				      threads));
	if (got > o->reserved)
		add_reason(s, str_printf(a, "%u more than requested, because cores are not split",
					 got - o->reserved));
}

static void explain_nodes(struct suggestion *s, const struct topology *t,
			  const struct suggest_options *o, struct arena *a)
{
	unsigned n_nodes = t->level[TOPOLOGY_NUMA].n;
	struct cpuset housekeeping = s->reserved;
	unsigned covered;

	cpuset_union(&housekeeping, &s->shared);
	covered = topology_span(t, TOPOLOGY_NUMA, &housekeeping);
	if (n_nodes < 2)
		return;
	add_reason(s, o->packed ?
			      STR("packed into as few NUMA nodes as possible, so that the others "
				  "belong to workloads alone") :
			      STR("spread over the NUMA nodes, so that each serves its own "
				  "interrupts and kernel threads"));
	if (covered < n_nodes)
		add_reason(s,
			   str_printf(a,
				      "%u of %u NUMA nodes have no housekeeping CPU: another node "
				      "serves their interrupts",
				      n_nodes - covered, n_nodes));
}

/* False when the machine is too small. */
static bool divide(const struct topology *t, const struct suggest_options *o, struct suggestion *s)
{
	struct cpuset left = t->online;
	bool ok;

	if (t->level[TOPOLOGY_CORE].n > 1)
		ok = move_cores(t, o, o->reserved, &left, &s->reserved) &&
		     move_cores(t, o, o->shared, &left, &s->shared);
	else
		ok = move_cpus(o->reserved, &left, &s->reserved) &&
		     move_cpus(o->shared, &left, &s->shared);
	s->isolated = left;
	return ok && !cpuset_is_empty(&left);
}

int suggest(const struct topology *t, const struct suggest_options *options, struct arena *a,
	    struct suggestion *ret, struct err *err)
{
	struct suggest_options o = *options;
	struct suggestion s = { 0 };

	if (t->n_cpus < 2)
		return err_set(err, ERANGE, "a machine with one CPU cannot be partitioned");
	if (o.reserved == SUGGEST_BY_SIZE)
		o.reserved = t->n_cpus / 2 < 4 ? t->n_cpus / 2 : 4;
	if (!o.reserved)
		return err_set(err, EINVAL, "the platform needs at least one CPU");
	if (!divide(t, &o, &s))
		return err_set(err, ERANGE,
			       "%u + %u CPUs in whole cores leave none of the machine's %u",
			       o.reserved, o.shared, t->n_cpus);
	explain_size(&s, t, &o, a);
	explain_nodes(&s, t, &o, a);
	if (o.shared)
		add_reason(&s, str_printf(a,
					  "%u CPU%s for pods without exclusive CPUs; the kernel is "
					  "tuned on the isolated CPUs only",
					  cpuset_count(&s.shared),
					  cpuset_count(&s.shared) == 1 ? "" : "s"));
	*ret = s;
	return 0;
}
