#pragma once

/* Machines that never were: sockets, NUMA nodes, L3 groups, cores and threads in random numbers,
 * numbered in the two ways that exist (siblings side by side, or all first threads first). */

#include "base/arena.h"
#include "cpu/topology.h"
#include "prop.h"

#define MACHINE_MAX_CPUS 1024

struct machine {
	unsigned n_sockets, nodes_per_socket, cores_per_node, threads_per_core, cores_per_l3;
	bool siblings_adjacent;
	struct cpuset offline;
};

static inline unsigned machine_size(const struct machine *m)
{
	return m->n_sockets * m->nodes_per_socket * m->cores_per_node * m->threads_per_core;
}

static inline struct machine machine_draw(struct prop *p)
{
	static const unsigned threads[] = { 1, 2, 2, 2, 4 };
	struct machine m = { .siblings_adjacent = prop_one_in(p, 2) };

	m.n_sockets = prop_one_in(p, 2) ? 1 : (unsigned)prop_between(p, 2, 4);
	m.nodes_per_socket = prop_one_in(p, 2) ? 1 : (unsigned)prop_between(p, 2, 4);
	m.threads_per_core = prop_pick(p, threads);
	m.cores_per_node = (unsigned)prop_between(p, 2, prop_one_in(p, 8) ? 128 : 12);
	while (machine_size(&m) > MACHINE_MAX_CPUS)
		m.cores_per_node /= 2;
	m.cores_per_l3 = (unsigned)prop_between(p, 1, m.cores_per_node);
	return m;
}

/* CPUs of m->offline are left out, as a reader leaves them out. */
static inline void machine_build(const struct machine *m, struct arena *a, struct topology *ret)
{
	unsigned n_cores = machine_size(m) / m->threads_per_core;
	struct topology_cpu *cpus = arena_array(a, struct topology_cpu, machine_size(m));
	struct topology_input in = { .cpus = cpus, .offline = m->offline };
	struct err err = { 0 };

	for (unsigned core = 0; core < n_cores; core++) {
		unsigned node = core / m->cores_per_node, lowest = CPUSET_NONE;

		for (unsigned thread = 0; thread < m->threads_per_core; thread++) {
			unsigned cpu = m->siblings_adjacent ? core * m->threads_per_core + thread :
							      thread * n_cores + core;

			if (cpuset_has(&m->offline, cpu))
				continue;
			lowest = cpu < lowest ? cpu : lowest;
			cpus[in.n_cpus++] = (struct topology_cpu){
				.cpu = (uint16_t)cpu,
				.id = { [TOPOLOGY_CORE] = lowest,
					[TOPOLOGY_DIE] = TOPOLOGY_NO_ID,
					[TOPOLOGY_SOCKET] = node / m->nodes_per_socket,
					[TOPOLOGY_NUMA] = node,
					[TOPOLOGY_UNCORE] = core / m->cores_per_l3 },
			};
		}
	}
	CHECK_OK(topology_build(&in, a, ret, &err));
}
