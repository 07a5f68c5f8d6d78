/* Machines read by hwloc: this one, an XML file, a synthetic string. */

#include <errno.h>
#include <hwloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "base/quote.h"
#include "topology_hwloc.h"
#include "topology_normalize.h"
#include "topology_read.h"

#define XML_MAX ((size_t)64 << 20)

static void hwloc_done(hwloc_topology_t *h)
{
	if (*h)
		hwloc_topology_destroy(*h);
}

static int hwloc_begin(hwloc_topology_t *ret, struct err *err)
{
	hwloc_topology_t h;

	/* Keep hwloc from printing to standard error; callers get a struct err. */
	(void)setenv("HWLOC_HIDE_ERRORS", "2", 0);
	if (hwloc_topology_init(&h) < 0)
		return err_set(err, ENOMEM, "hwloc cannot start");
	/* All CPUs of the machine, not only those this process may run on. */
	(void)hwloc_topology_set_flags(h, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
	(void)hwloc_topology_set_io_types_filter(h, HWLOC_TYPE_FILTER_KEEP_NONE);
	*ret = h;
	return 0;
}

static int to_cpuset(hwloc_const_bitmap_t from, struct cpuset *ret, struct err *err)
{
	const int last = from ? hwloc_bitmap_last(from) : -1;
	int cpu;

	/* A weight below 0 is hwloc's sign for an infinite set. */
	if (last >= CPUSET_MAX || (from && hwloc_bitmap_weight(from) < 0))
		return err_set(err, ERANGE, "CPU %d is too large, the limit is %d", last,
			       CPUSET_MAX - 1);
	*ret = (struct cpuset){ 0 };
	for (cpu = last < 0 ? -1 : hwloc_bitmap_first(from); cpu >= 0;
	     cpu = hwloc_bitmap_next(from, cpu))
		cpuset_add(ret, (unsigned)cpu);
	return 0;
}

/* An object is named after its lowest CPU. */
static uint32_t leader(const struct hwloc_obj *obj)
{
	return obj && obj->cpuset && hwloc_bitmap_first(obj->cpuset) >= 0 ?
		       (uint32_t)hwloc_bitmap_first(obj->cpuset) :
		       TOPOLOGY_NO_ID;
}

static uint32_t os_id(const struct hwloc_obj *obj)
{
	if (!obj)
		return TOPOLOGY_NO_ID;
	return obj->os_index != HWLOC_UNKNOWN_INDEX ? obj->os_index : obj->logical_index;
}

/* In the kernel a CPU belongs to one node. hwloc may list more at the same distance, with memory
 * only: the one with the fewest CPUs, then the lowest, is the CPU's node. */
static uint32_t numa_of(hwloc_topology_t h, const struct hwloc_obj *pu)
{
	hwloc_obj_t best = NULL, node = NULL;

	while ((node = hwloc_get_next_obj_by_type(h, HWLOC_OBJ_NUMANODE, node))) {
		if (!node->cpuset || !hwloc_bitmap_isset(node->cpuset, pu->os_index))
			continue;
		if (!best ||
		    hwloc_bitmap_weight(node->cpuset) < hwloc_bitmap_weight(best->cpuset) ||
		    (hwloc_bitmap_isequal(node->cpuset, best->cpuset) &&
		     node->os_index < best->os_index))
			best = node;
	}
	return os_id(best);
}

/* In hwloc the kind with the highest "efficiency" has the performance cores. */
static uint8_t type_of(hwloc_topology_t h, const struct hwloc_obj *pu)
{
	const int n = hwloc_cpukinds_get_nr(h, 0);
	int kind, best = -1, own = -1;

	if (n < 2)
		return CORE_TYPE_UNKNOWN;
	kind = hwloc_cpukinds_get_by_cpuset(h, pu->cpuset, 0);
	for (int i = 0; i < n; i++) {
		int efficiency = -1;

		if (hwloc_cpukinds_get_info(h, (unsigned)i, NULL, &efficiency, NULL, NULL, 0) < 0)
			return CORE_TYPE_UNKNOWN;
		if (efficiency > best)
			best = efficiency;
		if (i == kind)
			own = efficiency;
	}
	if (own < 0)
		return CORE_TYPE_UNKNOWN;
	return own == best ? CORE_TYPE_PERFORMANCE : CORE_TYPE_EFFICIENCY;
}

static struct topology_cpu describe(hwloc_topology_t h, hwloc_obj_t pu)
{
	struct topology_cpu cpu = { .cpu = (uint16_t)pu->os_index };

	cpu.core_type = type_of(h, pu);
	cpu.id[TOPOLOGY_CORE] = leader(hwloc_get_ancestor_obj_by_type(h, HWLOC_OBJ_CORE, pu));
	cpu.id[TOPOLOGY_DIE] = leader(hwloc_get_ancestor_obj_by_type(h, HWLOC_OBJ_DIE, pu));
	cpu.id[TOPOLOGY_SOCKET] = os_id(hwloc_get_ancestor_obj_by_type(h, HWLOC_OBJ_PACKAGE, pu));
	cpu.id[TOPOLOGY_NUMA] = numa_of(h, pu);
	cpu.id[TOPOLOGY_UNCORE] = leader(hwloc_get_ancestor_obj_by_type(h, HWLOC_OBJ_L3CACHE, pu));
	return cpu;
}

static void apply_extra(const struct topology_extra *extra, struct topology_cpu *cpu)
{
	if (!extra)
		return;
	if (cpuset_has(&extra->performance, cpu->cpu))
		cpu->core_type = CORE_TYPE_PERFORMANCE;
	if (cpuset_has(&extra->efficiency, cpu->cpu))
		cpu->core_type = CORE_TYPE_EFFICIENCY;
}

static int read_cpus(hwloc_topology_t h, const struct topology_extra *extra, struct arena *a,
		     struct topology_input *in, struct err *err)
{
	const int n = hwloc_get_nbobjs_by_type(h, HWLOC_OBJ_PU);
	struct topology_cpu *cpus;
	hwloc_obj_t pu = NULL;
	int r;

	if (n < 1 || n > CPUSET_MAX)
		return err_set(err, ERANGE, "hwloc sees %d CPUs, the limit is %d", n, CPUSET_MAX);
	/* The complete set has offline CPUs too, which have no object. What is left after all
	 * objects are removed from it is offline. */
	r = to_cpuset(hwloc_topology_get_complete_cpuset(h), &in->offline, err);
	if (r < 0)
		return r;
	cpus = arena_array(a, struct topology_cpu, (size_t)n);
	if (!cpus)
		return err_set(err, ENOMEM, "topology: out of memory");
	while ((pu = hwloc_get_next_obj_by_type(h, HWLOC_OBJ_PU, pu)) && in->n_cpus < (size_t)n) {
		if (pu->os_index >= CPUSET_MAX)
			return err_set(err, ERANGE, "CPU %u is too large, the limit is %d",
				       pu->os_index, CPUSET_MAX - 1);
		cpuset_del(&in->offline, pu->os_index);
		cpus[in->n_cpus] = describe(h, pu);
		apply_extra(extra, &cpus[in->n_cpus++]);
	}
	topology_normalize(cpus, in->n_cpus);
	in->cpus = cpus;
	return 0;
}

static size_t node_row(const struct topology_input *in, uint32_t id)
{
	size_t i = 0;

	while (i < in->n_nodes && in->nodes[i] != id)
		i++;
	return i;
}

/* hwloc orders the nodes of a matrix in its own way. */
static bool fill_distances(const struct hwloc_distances_s *d, const struct topology_input *in,
			   uint32_t *ret)
{
	for (unsigned i = 0; i < d->nbobjs; i++) {
		const size_t row = node_row(in, os_id(d->objs[i]));

		for (unsigned j = 0; j < d->nbobjs; j++) {
			const size_t column = node_row(in, os_id(d->objs[j]));

			if (row == in->n_nodes || column == in->n_nodes)
				return false;
			ret[row * in->n_nodes + column] =
				(uint32_t)d->values[(size_t)i * d->nbobjs + j];
		}
	}
	return true;
}

static int read_nodes(hwloc_topology_t h, struct arena *a, struct topology_input *in,
		      struct err *err)
{
	const int n = hwloc_get_nbobjs_by_type(h, HWLOC_OBJ_NUMANODE);
	struct hwloc_distances_s *d = NULL;
	uint32_t *nodes, *distances;
	hwloc_obj_t node = NULL;
	unsigned one = 1;

	if (n < 0 || n > 1024)
		return err_set(err, ERANGE, "hwloc sees %d NUMA nodes", n);
	nodes = arena_array(a, uint32_t, (size_t)n + 1);
	distances = arena_array(a, uint32_t, (size_t)n * (size_t)n + 1);
	if (!nodes || !distances)
		return err_set(err, ENOMEM, "topology: out of memory");
	while ((node = hwloc_get_next_obj_by_type(h, HWLOC_OBJ_NUMANODE, node)) &&
	       in->n_nodes < (size_t)n)
		nodes[in->n_nodes++] = os_id(node);
	in->nodes = nodes;
	if (hwloc_distances_get_by_type(h, HWLOC_OBJ_NUMANODE, &one, &d,
					HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) == 0 &&
	    one && d && d->nbobjs == (unsigned)n && fill_distances(d, in, distances))
		in->distances = distances;
	if (d)
		hwloc_distances_release(h, d);
	return 0;
}

/* Loads the configured source and converts it. */
static int finish(hwloc_topology_t h, const struct topology_extra *extra, struct arena *a,
		  struct topology *ret, struct err *err)
{
	struct topology_input in = { 0 };
	int r;

	errno = 0;
	if (hwloc_topology_load(h) < 0)
		return err_set(err, EINVAL, "hwloc does not understand it%s%s",
			       errno && errno != EINVAL ? ": " : "",
			       errno && errno != EINVAL ? strerror(errno) : "");
	if (extra) {
		in.isolated = extra->isolated;
		in.memory_nodes = extra->memory_nodes.w[0];
	}
	/* Nodes first: their limit bounds numa_of(), which compares each CPU with each node. */
	r = read_nodes(h, a, &in, err);
	if (r == 0)
		r = read_cpus(h, extra, a, &in, err);
	return r < 0 ? r : topology_build(&in, a, ret, err);
}

int topology_parse_xml(struct str text, struct str file, struct arena *a, struct topology *ret,
		       struct err *err)
{
	CLEANUP(hwloc_done) hwloc_topology_t h = NULL;
	int r;

	if (text.n > XML_MAX)
		return err_set(err, EFBIG, PRI_STR ": larger than %zu bytes", FMT_STR(file),
			       XML_MAX);
	r = hwloc_begin(&h, err);
	if (r < 0)
		return r;
	/* hwloc wants the terminating NUL counted. */
	if (hwloc_topology_set_xmlbuffer(h, str_cstr(a, text), (int)text.n + 1) < 0)
		return err_set(err, EINVAL, PRI_STR ": not an hwloc XML topology", FMT_STR(file));
	r = finish(h, NULL, a, ret, err);
	return r < 0 ? err_wrap(err, PRI_STR, FMT_STR(file)) : 0;
}

static bool starts_number(char before, char c)
{
	return (before == ':' || before == ' ' || before == '\t' || before == '\n') &&
	       (str_is_digit(c) || c == '+' || c == '-');
}

/* The most CPUs a synthetic string can describe: the product of all numbers that follow a
 * colon or begin a word ("core:8", "8"), without attributes in parentheses. Checked first, because
 * hwloc would build all of them. Numbers are read as hwloc reads them: "0x10" and "+16" are 16. */
static uint64_t synthetic_size(const char *text)
{
	uint64_t product = 1;
	char before = ' ';

	while (*text && product <= CPUSET_MAX) {
		const char *close = *text == '(' ? strchr(text, ')') : NULL;
		unsigned long number;
		char *end;

		if (close)
			text = close;
		if (!starts_number(before, *text)) {
			before = *text++;
			continue;
		}
		number = strtoul(text, &end, 0);
		if (end == text)
			end++; /* a sign alone */
		before = end[-1];
		text = end;
		if (number > CPUSET_MAX)
			return number;
		/* Cannot overflow: both factors are at most CPUSET_MAX. */
		product *= number ? number : 1;
	}
	return product;
}

int topology_parse_synthetic(struct str text, struct arena *a, struct topology *ret,
			     struct err *err)
{
	CLEANUP(hwloc_done) hwloc_topology_t h = NULL;
	const struct str trimmed = str_trim(text);
	const char *description = str_cstr(a, trimmed);
	int r;

	if (!trimmed.n)
		return err_set(err, EINVAL, "an empty topology");
	if (synthetic_size(description) > CPUSET_MAX)
		return err_set(err, ERANGE, "%s: more than %d CPUs", quote(trimmed).text,
			       CPUSET_MAX);
	r = hwloc_begin(&h, err);
	if (r < 0)
		return r;
	if (hwloc_topology_set_synthetic(h, description) < 0)
		return err_set(err, EINVAL,
			       "%s: no such file, and not an hwloc synthetic topology such as "
			       "\"pack:2 core:4 pu:2\"",
			       quote(trimmed).text);
	r = finish(h, NULL, a, ret, err);
	return r < 0 ? err_wrap(err, "%s", quote(trimmed).text) : 0;
}

int topology_hwloc_host(const struct topology_extra *extra, struct arena *a, struct topology *ret,
			struct err *err)
{
	CLEANUP(hwloc_done) hwloc_topology_t h = NULL;
	int r = hwloc_begin(&h, err);

	if (r == 0)
		r = finish(h, extra, a, ret, err);
	return r < 0 ? err_wrap(err, "this machine") : 0;
}
