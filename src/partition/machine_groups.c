#include "machine_groups.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "cpu/topology.h"

/* One core with its place. */
struct place {
	uint32_t socket, numa, cache;
	unsigned core; /* the element */
	unsigned cpu;  /* its first one */
};

static int by_place(const void *x, const void *y)
{
	const struct place *a = x, *b = y;

	if (a->socket != b->socket)
		return a->socket < b->socket ? -1 : 1;
	if (a->numa != b->numa)
		return a->numa < b->numa ? -1 : 1;
	if (a->cache != b->cache)
		return a->cache < b->cache ? -1 : 1;
	return a->cpu < b->cpu ? -1 : a->cpu > b->cpu;
}

static bool is_same_group(const struct place *a, const struct place *b)
{
	return a->socket == b->socket && a->numa == b->numa && a->cache == b->cache;
}

static struct place place_of(const struct topology *t, unsigned core)
{
	const unsigned cpu = t->level[TOPOLOGY_CORE].cpus[t->level[TOPOLOGY_CORE].first[core]];
	const struct topology_cpu *row = topology_cpu_find(t, cpu);

	return (struct place){ row->id[TOPOLOGY_SOCKET], row->id[TOPOLOGY_NUMA],
			       row->id[TOPOLOGY_UNCORE], core, cpu };
}

int machine_groups_of(const struct topology *t, struct arena *a, struct machine_group **ret,
		      size_t *ret_n, struct err *err)
{
	const unsigned n_cores = t->level[TOPOLOGY_CORE].n;
	struct machine_group *groups = arena_array(a, struct machine_group, MACHINE_GROUPS_MAX);
	struct place *places = arena_array(a, struct place, n_cores);
	struct strbuf b = { 0 };
	size_t n = 0;

	for (unsigned i = 0; i < n_cores; i++)
		places[i] = place_of(t, i);
	qsort(places, n_cores, sizeof(*places), by_place);
	for (unsigned i = 0; i < n_cores; i++) {
		struct cpuset cpus = { 0 };

		if (i == 0 || !is_same_group(&places[i], &places[i - 1])) {
			if (n == MACHINE_GROUPS_MAX)
				return err_set(err, E2BIG, "the machine has too many caches");
			groups[n++] = (struct machine_group){ .socket = places[i].socket,
							      .numa = places[i].numa,
							      .cache = places[i].cache };
			strbuf_init(&b, a);
		} else {
			strbuf_addc(&b, ' ');
		}
		topology_add_element(t, TOPOLOGY_CORE, places[i].core, &cpus);
		strbuf_add(&b, cpuset_format(&cpus, a));
		groups[n - 1].cores = strbuf_str(&b);
	}
	*ret = groups;
	*ret_n = n;
	return 0;
}

struct group_builder {
	struct topology_cpu *cpus;
	size_t n;
	uint32_t core;
};

static int add_core(struct group_builder *b, const struct machine_group *g, struct str core,
		    struct err *err)
{
	struct cpuset cpus;
	int r = cpuset_parse(core, &cpus, err);

	if (r < 0)
		return r;
	CPUSET_FOREACH (cpu, &cpus) {
		if (b->n == CPUSET_MAX)
			return err_set(err, E2BIG, "more than %d CPUs", CPUSET_MAX);
		b->cpus[b->n++] = (struct topology_cpu){
			.cpu = (uint16_t)cpu,
			.id = { [TOPOLOGY_CORE] = b->core,
				[TOPOLOGY_DIE] = 0,
				[TOPOLOGY_SOCKET] = (uint32_t)g->socket,
				[TOPOLOGY_NUMA] = (uint32_t)g->numa,
				[TOPOLOGY_UNCORE] = (uint32_t)g->cache },
		};
	}
	b->core++;
	return 0;
}

int machine_groups_build(const struct machine_group *groups, size_t n, struct arena *a,
			 struct topology *ret, struct err *err)
{
	struct group_builder b = { .cpus = arena_array(a, struct topology_cpu, CPUSET_MAX) };
	int r = 0;

	for (size_t i = 0; r >= 0 && i < n; i++) {
		struct str_split cores = str_split(groups[i].cores);
		struct str core;

		while (r >= 0 && str_next(&cores, ' ', &core))
			if (core.n)
				r = add_core(&b, &groups[i], core, err);
	}
	if (r < 0)
		return err_wrap(err, "topology");
	return topology_build(&(struct topology_input){ .cpus = b.cpus, .n_cpus = b.n }, a, ret,
			      err);
}
