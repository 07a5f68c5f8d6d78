/* A machine as sorted arrays: CPUs, and for each level its elements and their members. Everything
 * is in one arena, is built once, and never changes; a hot-plugged CPU means a new topology. */

#include "topology.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"

static int compare_cpus(const void *a, const void *b)
{
	return (int)((const struct topology_cpu *)a)->cpu -
	       (int)((const struct topology_cpu *)b)->cpu;
}

static int compare_ids(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Sorts and drops repeats; returns how many are left. */
static size_t unique_ids(uint32_t *ids, size_t n)
{
	size_t kept = 0;

	qsort(ids, n, sizeof(*ids), compare_ids);
	for (size_t i = 0; i < n; i++)
		if (!kept || ids[kept - 1] != ids[i])
			ids[kept++] = ids[i];
	return kept;
}

static bool find_id(const uint32_t *ids, size_t n, uint32_t id, unsigned *ret)
{
	const uint32_t *at = n ? bsearch(&id, ids, n, sizeof(*ids), compare_ids) : NULL;

	if (!at)
		return false;
	*ret = (unsigned)(at - ids);
	return true;
}

/* What a reader left open; see topology_input. */
static void fill_ids(struct topology_cpu *c)
{
	if (c->id[TOPOLOGY_CORE] == TOPOLOGY_NO_ID)
		c->id[TOPOLOGY_CORE] = c->cpu;
	if (c->id[TOPOLOGY_SOCKET] == TOPOLOGY_NO_ID)
		c->id[TOPOLOGY_SOCKET] = 0;
	if (c->id[TOPOLOGY_DIE] == TOPOLOGY_NO_ID)
		c->id[TOPOLOGY_DIE] = c->id[TOPOLOGY_SOCKET];
	if (c->id[TOPOLOGY_NUMA] == TOPOLOGY_NO_ID)
		c->id[TOPOLOGY_NUMA] = 0;
	if (c->id[TOPOLOGY_UNCORE] == TOPOLOGY_NO_ID)
		c->id[TOPOLOGY_UNCORE] = c->id[TOPOLOGY_SOCKET];
}

static int copy_cpus(const struct topology_input *in, struct arena *a, struct topology *t,
		     struct err *err)
{
	struct topology_cpu *cpus;

	if (!in->n_cpus)
		return err_set(err, EINVAL, "the machine has no CPU that is online");
	if (in->n_cpus > CPUSET_MAX)
		return err_set(err, ERANGE, "more than %d CPUs", CPUSET_MAX);
	cpus = arena_array(a, struct topology_cpu, in->n_cpus);
	if (!cpus)
		return err_set(err, ENOMEM, "topology: out of memory");
	memcpy(cpus, in->cpus, in->n_cpus * sizeof(*cpus));
	qsort(cpus, in->n_cpus, sizeof(*cpus), compare_cpus);
	for (size_t i = 0; i < in->n_cpus; i++) {
		if (cpus[i].cpu >= CPUSET_MAX)
			return err_set(err, ERANGE, "CPU %u is too large, the limit is %d",
				       cpus[i].cpu, CPUSET_MAX - 1);
		if (i && cpus[i].cpu == cpus[i - 1].cpu)
			return err_set(err, EINVAL, "CPU %u is given twice", cpus[i].cpu);
		if (cpuset_has(&in->offline, cpus[i].cpu))
			return err_set(err, EINVAL, "CPU %u is both online and offline",
				       cpus[i].cpu);
		fill_ids(&cpus[i]);
		cpuset_add(&t->online, cpus[i].cpu);
	}
	t->cpus = cpus;
	t->n_cpus = (unsigned)in->n_cpus;
	/* The CPUs are sorted: the last has the highest number. */
	t->n_words = cpus[in->n_cpus - 1].cpu / 64U + 1;
	t->offline = in->offline;
	t->isolated = in->isolated;
	/* The kernel also lists isolated CPUs that are offline. */
	cpuset_intersect(&t->isolated, &t->online);
	return 0;
}

/* A stable counting sort of the CPUs by their element. */
static void fill_members(struct topology_elements *e, const struct topology *t,
			 const uint16_t *index, uint16_t *first, uint16_t *members)
{
	for (unsigned i = 0; i < t->n_cpus; i++)
		/* Counts are stored one place ahead, so that the sums turn them into start
		 * positions in place. */
		first[index[t->cpus[i].cpu] + 1]++;
	for (unsigned i = 0; i < e->n; i++) {
		if (first[i + 1] > e->max_size)
			e->max_size = first[i + 1];
		first[i + 1] = (uint16_t)(first[i + 1] + first[i]);
	}
	for (unsigned i = 0; i < t->n_cpus; i++)
		members[first[index[t->cpus[i].cpu]]++] = t->cpus[i].cpu;
	memmove(first + 1, first, e->n * sizeof(*first)); /* each had moved on to the next one's */
	first[0] = 0;
	e->first = first;
	e->cpus = members;
}

static int build_level(struct topology *t, enum topology_level level, struct arena *a,
		       struct err *err)
{
	struct topology_elements *e = &t->level[level];
	uint32_t *ids = arena_array(a, uint32_t, t->n_cpus);
	uint16_t *index = arena_array(a, uint16_t, (size_t)t->n_words * 64);
	/* One more than there are elements at most: first[n] is the end of the last element. */
	uint16_t *first = arena_array(a, uint16_t, (size_t)t->n_cpus + 2);
	uint16_t *members = arena_array(a, uint16_t, t->n_cpus);

	if (!ids || !index || !first || !members)
		return err_set(err, ENOMEM, "topology: out of memory");
	memset(index, 0xff, (size_t)t->n_words * 64 * sizeof(*index)); /* TOPOLOGY_NO_INDEX */
	for (unsigned i = 0; i < t->n_cpus; i++)
		ids[i] = t->cpus[i].id[level];
	e->n = (unsigned)unique_ids(ids, t->n_cpus);
	e->ids = ids;
	for (unsigned i = 0; i < t->n_cpus; i++) {
		unsigned element = 0;

		(void)find_id(ids, e->n, t->cpus[i].id[level], &element);
		index[t->cpus[i].cpu] = (uint16_t)element;
	}
	t->index[level] = index;
	fill_members(e, t, index, first, members);
	return 0;
}

/* Distances in the order of the sorted nodes; only when the reader gave them for every node. */
static int order_distances(const struct topology_input *in, struct arena *a, struct topology *t,
			   struct err *err)
{
	static const uint32_t local =
		10; /* the distance of a node to itself, by the ACPI specification */
	uint32_t *distances;

	if (!in->distances && t->n_nodes == 1)
		t->distances = &local;
	if (!in->distances || in->n_nodes != t->n_nodes)
		return 0;
	distances = arena_array(a, uint32_t, in->n_nodes * in->n_nodes);
	if (!distances)
		return err_set(err, ENOMEM, "topology: out of memory");
	for (size_t i = 0; i < in->n_nodes * in->n_nodes; i++) {
		unsigned from = 0, to = 0;

		(void)find_id(t->nodes, t->n_nodes, in->nodes[i / in->n_nodes], &from);
		(void)find_id(t->nodes, t->n_nodes, in->nodes[i % in->n_nodes], &to);
		distances[(size_t)from * t->n_nodes + to] = in->distances[i];
	}
	t->distances = distances;
	return 0;
}

static int build_nodes(const struct topology_input *in, struct arena *a, struct topology *t,
		       struct err *err)
{
	const struct topology_elements *numa = &t->level[TOPOLOGY_NUMA];
	uint32_t *nodes = arena_array(a, uint32_t, in->n_nodes + numa->n);

	if (!nodes)
		return err_set(err, ENOMEM, "topology: out of memory");
	memcpy(nodes, numa->ids, numa->n * sizeof(*nodes));
	if (in->n_nodes)
		memcpy(nodes + numa->n, in->nodes, in->n_nodes * sizeof(*nodes));
	t->n_nodes = (unsigned)unique_ids(nodes, in->n_nodes + numa->n);
	t->nodes = nodes;
	t->memory_nodes = in->memory_nodes ? in->memory_nodes : topology_numa_mask(t, true);
	return order_distances(in, a, t, err);
}

int topology_build(const struct topology_input *in, struct arena *a, struct topology *ret,
		   struct err *err)
{
	struct topology t = { 0 };
	int r = copy_cpus(in, a, &t, err);

	for (int level = 0; r == 0 && level < TOPOLOGY__LEVELS; level++)
		r = build_level(&t, (enum topology_level)level, a, err);
	if (r == 0)
		r = build_nodes(in, a, &t, err);
	if (r == 0)
		*ret = t;
	return r;
}

const struct topology_cpu *topology_cpu_find(const struct topology *t, unsigned cpu)
{
	const struct topology_cpu key = { .cpu = (uint16_t)cpu };

	if (cpu >= CPUSET_MAX)
		return NULL;
	return bsearch(&key, t->cpus, t->n_cpus, sizeof(key), compare_cpus);
}

bool topology_find(const struct topology *t, enum topology_level level, uint32_t id,
		   unsigned *ret_element)
{
	return find_id(t->level[level].ids, t->level[level].n, id, ret_element);
}

unsigned topology_average(const struct topology *t, enum topology_level level)
{
	return t->n_cpus / t->level[level].n;
}

void topology_add_element(const struct topology *t, enum topology_level level, unsigned element,
			  struct cpuset *s)
{
	const struct topology_elements *e = &t->level[level];

	for (unsigned i = e->first[element]; i < e->first[element + 1]; i++)
		cpuset_add(s, e->cpus[i]);
}

unsigned topology_count_in(const struct topology *t, enum topology_level level, unsigned element,
			   const struct cpuset *s)
{
	const struct topology_elements *e = &t->level[level];
	unsigned n = 0;

	for (unsigned i = e->first[element]; i < e->first[element + 1]; i++)
		n += cpuset_has(s, e->cpus[i]);
	return n;
}

void topology_whole(const struct topology *t, enum topology_level level, const struct cpuset *s,
		    struct cpuset *ret)
{
	struct cpuset whole = { 0 };

	for (unsigned i = 0; i < t->level[level].n; i++)
		if (topology_count_in(t, level, i, s))
			topology_add_element(t, level, i, &whole);
	*ret = whole;
}

void topology_split(const struct topology *t, enum topology_level level, const struct cpuset *s,
		    struct cpuset *ret)
{
	struct cpuset split = { 0 };

	for (unsigned i = 0; i < t->level[level].n; i++)
		if (topology_count_in(t, level, i, s) < topology_size(t, level, i))
			topology_add_element(t, level, i, &split);
	cpuset_intersect(&split, s);
	*ret = split;
}

unsigned topology_span(const struct topology *t, enum topology_level level, const struct cpuset *s)
{
	unsigned n = 0;

	for (unsigned i = 0; i < t->level[level].n; i++)
		n += topology_count_in(t, level, i, s) > 0;
	return n;
}

void topology_numa_cpus(const struct topology *t, uint64_t numa_mask, struct cpuset *ret)
{
	const struct topology_elements *numa = &t->level[TOPOLOGY_NUMA];

	*ret = (struct cpuset){ 0 };
	for (unsigned i = 0; i < numa->n; i++)
		if (numa->ids[i] < 64 && (numa_mask >> numa->ids[i] & 1))
			topology_add_element(t, TOPOLOGY_NUMA, i, ret);
}

uint64_t topology_numa_mask(const struct topology *t, bool also_without_cpus)
{
	const struct topology_elements *numa = &t->level[TOPOLOGY_NUMA];
	const uint32_t *ids = also_without_cpus ? t->nodes : numa->ids;
	size_t n = also_without_cpus ? t->n_nodes : numa->n;
	uint64_t mask = 0;

	for (size_t i = 0; i < n && ids[i] < 64; i++)
		mask |= UINT64_C(1) << ids[i];
	return mask;
}

uint64_t topology_memory_of(const struct topology *t, const struct cpuset *cpus)
{
	const struct topology_elements *numa = &t->level[TOPOLOGY_NUMA];
	uint64_t mask = 0;

	for (unsigned i = 0; i < numa->n && numa->ids[i] < 64; i++)
		if (topology_count_in(t, TOPOLOGY_NUMA, i, cpus))
			mask |= UINT64_C(1) << numa->ids[i];
	return mask & t->memory_nodes;
}

uint32_t topology_distance(const struct topology *t, uint32_t from, uint32_t to)
{
	unsigned row, column;

	if (!t->distances || !find_id(t->nodes, t->n_nodes, from, &row) ||
	    !find_id(t->nodes, t->n_nodes, to, &column))
		return 0;
	return t->distances[(size_t)row * t->n_nodes + column];
}

static uint64_t hash_number(uint64_t hash, uint32_t number)
{
	for (int i = 0; i < 4; i++)
		hash = (hash ^ (number >> (8 * i) & 0xff)) * UINT64_C(0x100000001b3);
	return hash;
}

uint64_t topology_hash(const struct topology *t)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (unsigned i = 0; i < t->n_cpus; i++) {
		hash = hash_number(hash, t->cpus[i].cpu);
		for (int level = 0; level < TOPOLOGY__LEVELS; level++)
			hash = hash_number(hash, t->cpus[i].id[level]);
	}
	return hash;
}

const char *topology_core_type_name(enum topology_core_type type)
{
	static const char *const names[] = { "", "performance", "efficiency" };

	return names[type];
}
