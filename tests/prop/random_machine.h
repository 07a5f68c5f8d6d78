#pragma once

/* Random machines and random picks on them, from a seed: for the properties, and for the
 * comparison with the kubelet's own code, which needs no test framework. Shapes that exist and
 * some that do not: several sockets per NUMA node and the reverse, caches within and across nodes,
 * SMT or not or mixed, CPU numbers with holes, sparse ids. */

#include "base/arena.h"
#include "cpu/pick.h"
#include "cpu/topology.h"
#include "random.h"

struct machine_shape {
	unsigned sockets, nodes_per_socket, caches_per_node, cores_per_cache, threads;
	bool sockets_share_node; /* two sockets in one NUMA node */
	bool cache_spans_nodes;	 /* one cache per socket, whatever its nodes */
	bool hybrid;		 /* every other core has one thread only */
	bool siblings_apart;	 /* second threads are numbered after all first ones */
	bool sparse;		 /* ids and CPU numbers have holes */
};

static inline unsigned machine_cores(const struct machine_shape *s)
{
	return s->sockets * s->nodes_per_socket * s->caches_per_node * s->cores_per_cache;
}

static inline struct machine_shape machine_shape_draw(uint64_t *r, unsigned max_cpus)
{
	struct machine_shape s;

	do {
		s = (struct machine_shape){
			.sockets = 1 + random_below(r, 4),
			.nodes_per_socket = 1 + random_below(r, 4),
			.caches_per_node = 1 + random_below(r, 4),
			.cores_per_cache = 1 + random_below(r, random_below(r, 3) ? 8 : 64),
			.threads = random_below(r, 8) ? 1 + random_below(r, 2) : 4,
			.sockets_share_node = !random_below(r, 8),
			.cache_spans_nodes = !random_below(r, 6),
			.hybrid = !random_below(r, 6),
			.siblings_apart = random_below(r, 2),
			.sparse = !random_below(r, 5),
		};
		if (s.sockets_share_node)
			s.nodes_per_socket = 1;
	} while (machine_cores(&s) * s.threads > max_cpus || s.sockets * s.nodes_per_socket > 8);
	return s;
}

static inline void machine_fill(const struct machine_shape *s, unsigned core, unsigned cpu,
				struct topology_cpu *ret)
{
	const unsigned cache = core / s->cores_per_cache, node = cache / s->caches_per_node;
	const unsigned socket = node / s->nodes_per_socket, step = s->sparse ? 3 : 1;

	*ret = (struct topology_cpu){ .cpu = (uint16_t)(cpu * step) };
	ret->id[TOPOLOGY_CORE] = core * step;
	ret->id[TOPOLOGY_DIE] = socket;
	ret->id[TOPOLOGY_SOCKET] = socket * step;
	ret->id[TOPOLOGY_NUMA] = (s->sockets_share_node ? socket / 2 : node) * step;
	ret->id[TOPOLOGY_UNCORE] = s->cache_spans_nodes ? socket : cache * step;
}

static inline struct topology machine_build(const struct machine_shape *s, struct arena *a)
{
	const unsigned cores = machine_cores(s);
	struct topology_cpu *cpus = arena_array(a, struct topology_cpu, (size_t)cores * s->threads);
	struct topology_input in = { .cpus = cpus };
	struct topology t = { 0 };

	for (unsigned core = 0; core < cores; core++)
		for (unsigned thread = 0; thread < s->threads; thread++) {
			const unsigned cpu = s->siblings_apart ? thread * cores + core :
								 core * s->threads + thread;

			if (s->hybrid && core % 2 && thread)
				continue;
			machine_fill(s, core, cpu, &cpus[in.n_cpus++]);
		}
	(void)topology_build(&in, a, &t, NULL);
	return t;
}

/* Some of the machine's CPUs: all, most, or few; whole cores or not; now and then foreign ones. */
static inline struct cpuset machine_free(uint64_t *r, const struct topology *t)
{
	const unsigned percent = random_below(r, 3) ? 30 + random_below(r, 70) : 100;
	const bool by_core = random_below(r, 2);
	struct cpuset s = { 0 };

	for (unsigned i = 0; i < t->n_cpus; i++)
		if (!by_core && random_below(r, 100) < percent)
			cpuset_add(&s, t->cpus[i].cpu);
	for (unsigned i = 0; by_core && i < t->level[TOPOLOGY_CORE].n; i++)
		if (random_below(r, 100) < percent)
			topology_add_element(t, TOPOLOGY_CORE, i, &s);
	if (!random_below(r, 16))
		cpuset_add(&s, CPUSET_MAX - 1);
	return s;
}

static inline struct pick_request machine_request(uint64_t *r, const struct topology *t,
						  const struct cpuset *available)
{
	const unsigned n = cpuset_count(available);
	struct pick_request rq = { .group = 1 };

	rq.n_cpus = random_below(r, 4) ? random_below(r, n + 2) : random_below(r, n / 8 + 3);
	rq.distributed = random_below(r, 2);
	rq.spread = !random_below(r, 4);
	rq.uncore = !rq.distributed && random_below(r, 2);
	rq.align_by_socket = rq.distributed && !random_below(r, 3);
	if (rq.distributed && random_below(r, 2)) {
		rq.group = topology_average(t, TOPOLOGY_CORE);
		if (random_below(r, 4))
			rq.n_cpus -= rq.n_cpus % rq.group;
	}
	return rq;
}
