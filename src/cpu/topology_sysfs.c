/* Reads a machine from /sys/devices/system (docs/reference/cpu-manager.md#sysfs). */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/macro.h"
#include "base/quote.h"
#include "topology_hwloc.h"
#include "topology_normalize.h"
#include "topology_read.h"

#define VALUE_MAX ((size_t)64 << 10)
#define UNDEFINED_ID 65535 /* the kernel's value for an unknown die */
#define MAX_NODES 1024

struct sysfs {
	int fd;
	struct arena scratch; /* forgotten with every value */
	struct cpuset online;
	struct topology_cpu *cpus;
	size_t n_cpus;
	uint16_t row[CPUSET_MAX]; /* of an online CPU, in `cpus` */
};

/* 1 with the text, 0 when there is no such file. */
static int read_value(struct sysfs *fs, const char *path, struct str *ret, struct err *err)
{
	int r;

	arena_reset(&fs->scratch);
	r = file_read_value_at(fs->fd, path, VALUE_MAX, &fs->scratch, ret, err);
	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	return r < 0 ? r : 1;
}

static int read_list(struct sysfs *fs, const char *path, struct cpuset *ret, struct err *err)
{
	struct str text;
	int r = read_value(fs, path, &text, err);

	if (r <= 0)
		return r;
	r = cpuset_parse_kernel(text, ret, err);
	return r < 0 ? err_wrap(err, "%s", path) : 1;
}

/* A number that may be absent, or -1 as with some firmware. */
static int read_id(struct sysfs *fs, const char *path, uint32_t *ret, struct err *err)
{
	struct str text;
	uint64_t n;
	int r = read_value(fs, path, &text, err);

	if (r <= 0)
		return r;
	text = str_trim(text);
	if (str_eq(text, STR("-1")))
		return 0;
	if (!str_to_u64(text, UINT32_MAX - 1, &n))
		return err_set(err, EINVAL, "%s: %s is no id", path, quote(text).text);
	*ret = (uint32_t)n;
	return 1;
}

/* Every online CPU of the list belongs to the group named after the lowest of them. */
static void assign(struct sysfs *fs, const struct cpuset *list, enum topology_level level)
{
	struct cpuset members = *list;
	unsigned first;

	cpuset_intersect(&members, &fs->online);
	/* Among online members: a group whose lowest CPU is offline is named after one that exists.
	 */
	first = cpuset_first(&members);
	CPUSET_FOREACH (cpu, &members)
		fs->cpus[fs->row[cpu]].id[level] = first;
}

static int find_online(struct sysfs *fs, struct cpuset *ret_present, struct err *err)
{
	int r = read_list(fs, "cpu/present", ret_present, err);

	if (r == 0)
		r = err_set(err, ENOENT,
			    "no cpu/present: this is no /sys/devices/system of any machine");
	if (r < 0)
		return r;
	r = read_list(fs, "cpu/online", &fs->online, err);
	if (r == 0) /* a kernel without hot-plug */
		fs->online = *ret_present;
	cpuset_intersect(&fs->online, ret_present);
	return r < 0 ? r : 0;
}

static int read_core(struct sysfs *fs, struct topology_cpu *cpu, struct err *err)
{
	struct cpuset siblings;
	char path[96];
	int r;

	(void)snprintf(path, sizeof(path), "cpu/cpu%u/topology/core_cpus_list", cpu->cpu);
	r = read_list(fs, path, &siblings, err);
	if (r == 0) { /* the name before Linux 5.3 */
		(void)snprintf(path, sizeof(path), "cpu/cpu%u/topology/thread_siblings_list",
			       cpu->cpu);
		r = read_list(fs, path, &siblings, err);
	}
	if (r > 0)
		assign(fs, &siblings, TOPOLOGY_CORE);
	return r < 0 ? r : 0;
}

static int read_die(struct sysfs *fs, struct topology_cpu *cpu, struct err *err)
{
	uint32_t id = UNDEFINED_ID;
	struct cpuset members;
	char path[96];
	int r;

	(void)snprintf(path, sizeof(path), "cpu/cpu%u/topology/die_id", cpu->cpu);
	r = read_id(fs, path, &id, err);
	if (r < 0 || id == UNDEFINED_ID)
		return r < 0 ? r : 0;
	(void)snprintf(path, sizeof(path), "cpu/cpu%u/topology/die_cpus_list", cpu->cpu);
	r = read_list(fs, path, &members, err);
	if (r > 0)
		assign(fs, &members, TOPOLOGY_DIE);
	return r < 0 ? r : 0;
}

/* The L3 is one of a handful of cache directories, in no fixed place. */
static int read_uncore(struct sysfs *fs, struct topology_cpu *cpu, struct err *err)
{
	/* The first missing directory ends the search: the kernel numbers them from 0 without gaps.
	 */
	for (int i = 0; i < 8; i++) {
		struct cpuset members;
		uint32_t level = 0;
		char path[96];
		int r;

		(void)snprintf(path, sizeof(path), "cpu/cpu%u/cache/index%d/level", cpu->cpu, i);
		r = read_id(fs, path, &level, err);
		if (r <= 0)
			return r;
		if (level != 3)
			continue;
		(void)snprintf(path, sizeof(path), "cpu/cpu%u/cache/index%d/shared_cpu_list",
			       cpu->cpu, i);
		r = read_list(fs, path, &members, err);
		if (r > 0)
			assign(fs, &members, TOPOLOGY_UNCORE);
		return r < 0 ? r : 0;
	}
	return 0;
}

/* A shared cache or die is read once, for all CPUs that share it. */
static int read_cpu(struct sysfs *fs, struct topology_cpu *cpu, struct err *err)
{
	char path[96];
	int r;

	(void)snprintf(path, sizeof(path), "cpu/cpu%u/topology/physical_package_id", cpu->cpu);
	r = read_id(fs, path, &cpu->id[TOPOLOGY_SOCKET], err);
	if (r >= 0 && cpu->id[TOPOLOGY_CORE] == TOPOLOGY_NO_ID)
		r = read_core(fs, cpu, err);
	if (r >= 0 && cpu->id[TOPOLOGY_DIE] == TOPOLOGY_NO_ID)
		r = read_die(fs, cpu, err);
	if (r >= 0 && cpu->id[TOPOLOGY_UNCORE] == TOPOLOGY_NO_ID)
		r = read_uncore(fs, cpu, err);
	return r < 0 ? r : 0;
}

static int read_cpus(struct sysfs *fs, struct arena *a, struct err *err)
{
	const unsigned n = cpuset_count(&fs->online);
	int r = 0;

	fs->cpus = arena_array(a, struct topology_cpu, n + 1);
	if (!fs->cpus)
		return err_set(err, ENOMEM, "topology: out of memory");
	CPUSET_FOREACH (cpu, &fs->online) {
		fs->row[cpu] = (uint16_t)fs->n_cpus;
		fs->cpus[fs->n_cpus].cpu = (uint16_t)cpu;
		for (int level = 0; level < TOPOLOGY__LEVELS; level++)
			fs->cpus[fs->n_cpus].id[level] = TOPOLOGY_NO_ID;
		fs->n_cpus++;
	}
	for (size_t i = 0; r == 0 && i < fs->n_cpus; i++)
		r = read_cpu(fs, &fs->cpus[i], err);
	if (r == 0)
		topology_normalize(fs->cpus, fs->n_cpus);
	return r;
}

/* Intel's hybrid processors name their kinds beside the system tree. */
static int read_extra(struct sysfs *fs, struct topology_extra *ret, struct err *err)
{
	int r = read_list(fs, "cpu/isolated", &ret->isolated, err);

	if (r >= 0)
		r = read_list(fs, "node/has_memory", &ret->memory_nodes, err);
	if (r >= 0)
		r = read_list(fs, "../cpu_core/cpus", &ret->performance, err);
	if (r >= 0)
		r = read_list(fs, "../cpu_atom/cpus", &ret->efficiency, err);
	return r < 0 ? r : 0;
}

int topology_sysfs_extra(int system_fd, struct topology_extra *ret, struct err *err)
{
	struct sysfs fs = { .fd = system_fd };
	struct topology_extra extra = { 0 };
	int r;

	arena_init(&fs.scratch, 0);
	r = read_extra(&fs, &extra, err);
	arena_done(&fs.scratch);
	if (r == 0)
		*ret = extra;
	return r;
}

static void set_types(struct sysfs *fs, const struct cpuset *members, enum topology_core_type type)
{
	CPUSET_FOREACH (cpu, members)
		if (cpuset_has(&fs->online, cpu))
			fs->cpus[fs->row[cpu]].core_type = (uint8_t)type;
}

static int compare_nodes(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static int find_nodes(struct sysfs *fs, struct arena *a, struct topology_input *in, struct err *err)
{
	struct str *names;
	uint32_t *nodes;
	size_t n;
	int r = file_list_at(fs->fd, "node", a, &names, &n, err);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	nodes = arena_array(a, uint32_t, n + 1);
	if (!nodes)
		return err_set(err, ENOMEM, "topology: out of memory");
	for (size_t i = 0; i < n; i++) {
		uint64_t id;

		if (str_starts(names[i], STR("node")) &&
		    str_to_u64(str_skip(names[i], 4), MAX_NODES - 1, &id) &&
		    in->n_nodes < MAX_NODES)
			nodes[in->n_nodes++] = (uint32_t)id;
	}
	/* file_list_at() sorts bytewise, where node10 is before node2. */
	qsort(nodes, in->n_nodes, sizeof(*nodes), compare_nodes);
	in->nodes = nodes;
	return 0;
}

static int read_node_cpus(struct sysfs *fs, uint32_t node, struct err *err)
{
	struct cpuset members;
	char path[64];
	int r;

	(void)snprintf(path, sizeof(path), "node/node%u/cpulist", node);
	r = read_list(fs, path, &members, err);
	if (r <= 0)
		return r;
	cpuset_intersect(&members, &fs->online);
	CPUSET_FOREACH (cpu, &members)
		fs->cpus[fs->row[cpu]].id[TOPOLOGY_NUMA] = node;
	return 0;
}

/* One row per node: numbers for the online nodes in rising order. 0 when the file is not there. */
static int read_distances(struct sysfs *fs, uint32_t node, size_t n, uint32_t *ret, struct err *err)
{
	struct str_split numbers;
	struct str text, item;
	char path[64];
	size_t i = 0;
	uint64_t value;
	int r;

	(void)snprintf(path, sizeof(path), "node/node%u/distance", node);
	r = read_value(fs, path, &text, err);
	if (r <= 0)
		return r;
	numbers = str_split(str_trim(text));
	while (i <= n && str_next(&numbers, ' ', &item)) {
		if (!str_to_u64(item, UINT32_MAX, &value))
			return err_set(err, EINVAL, "%s: %s is no distance", path,
				       quote(item).text);
		if (i < n)
			ret[i] = (uint32_t)value;
		i++;
	}
	if (i != n)
		return err_set(err, EINVAL, "%s: not %zu numbers", path, n);
	return 1;
}

static int read_nodes(struct sysfs *fs, struct arena *a, struct topology_input *in, struct err *err)
{
	uint32_t *distances;
	size_t known = 0;
	int r = find_nodes(fs, a, in, err);

	if (r < 0)
		return r;
	if (!in->n_nodes) { /* a kernel without NUMA: each package is a node */
		for (size_t i = 0; i < fs->n_cpus; i++)
			fs->cpus[i].id[TOPOLOGY_NUMA] = fs->cpus[i].id[TOPOLOGY_SOCKET];
		return 0;
	}
	distances = arena_array(a, uint32_t, in->n_nodes * in->n_nodes);
	if (!distances)
		return err_set(err, ENOMEM, "topology: out of memory");
	for (size_t i = 0; r >= 0 && i < in->n_nodes; i++) {
		r = read_node_cpus(fs, in->nodes[i], err);
		if (r == 0)
			r = read_distances(fs, in->nodes[i], in->n_nodes,
					   &distances[i * in->n_nodes], err);
		/* Distances count only if every node has a row: a matrix with holes would compare
		 * nodes by zeros. */
		known += r == 1;
	}
	if (known == in->n_nodes)
		in->distances = distances;
	return r < 0 ? r : 0;
}

static int read_machine(struct sysfs *fs, struct arena *a, struct topology *ret, struct err *err)
{
	struct topology_input in = { 0 };
	struct topology_extra extra = { 0 };
	int r = find_online(fs, &in.offline, err);

	if (r == 0)
		r = read_extra(fs, &extra, err);
	if (r == 0)
		r = read_cpus(fs, a, err);
	if (r == 0)
		r = read_nodes(fs, a, &in, err);
	if (r < 0)
		return r;
	set_types(fs, &extra.performance, CORE_TYPE_PERFORMANCE);
	set_types(fs, &extra.efficiency, CORE_TYPE_EFFICIENCY);
	in.isolated = extra.isolated;
	in.memory_nodes = extra.memory_nodes.w[0];
	cpuset_minus(&in.offline, &fs->online);
	in.cpus = fs->cpus;
	in.n_cpus = fs->n_cpus;
	return topology_build(&in, a, ret, err);
}

int topology_read_sysfs(int system_fd, struct arena *a, struct topology *ret, struct err *err)
{
	struct sysfs *fs = arena_new(a, struct sysfs);
	int r;

	if (!fs)
		return err_set(err, ENOMEM, "topology: out of memory");
	fs->fd = system_fd;
	arena_init(&fs->scratch, 0);
	r = read_machine(fs, a, ret, err);
	arena_done(&fs->scratch);
	return r;
}
