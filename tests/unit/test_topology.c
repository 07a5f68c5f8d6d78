/* Machines from every source: tests/machines, this one, and bad ones. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/macro.h"
#include "cpu/topology.h"
#include "cpu/topology_hwloc.h"
#include "cpu/topology_read.h"
#include "test.h"

/* A captured machine, unpacked for as long as a test needs it. */
struct tree {
	char path[64];
};

static void tree_done(struct tree *t)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf %s", t->path);
	CHECK_INT(system(command), 0);
}

static void tree_make(struct tree *t)
{
	const bool has_shm = access("/dev/shm", W_OK) == 0; /* not a disk: this is many files */

	(void)snprintf(t->path, sizeof(t->path), "%s/pinfold-machine-XXXXXX",
		       has_shm ? "/dev/shm" : "/tmp");
	CHECK(mkdtemp(t->path));
}

/* Without the syncing of file_replace_at: a machine is hundreds of files. */
static void tree_put(const struct tree *t, struct str name, struct str value, struct arena *a)
{
	struct str text = str_printf(a, "%s/sys/devices/" PRI_STR, t->path, FMT_STR(name));
	char *path = (char *)str_cstr(a, text), *slash = strrchr(path, '/');
	struct err err = { 0 };
	FILE *file;

	*slash = 0;
	CHECK_OK(file_mkdirs_at(AT_FDCWD, path, 0755, &err));
	*slash = '/';
	file = fopen(path, "w");
	CHECK(file);
	(void)fprintf(file, PRI_STR "\n", FMT_STR(value));
	CHECK_INT(fclose(file), 0);
}

static void tree_unpack(const struct tree *t, const char *file, struct arena *a)
{
	struct err err = { 0 };
	struct str_split lines;
	struct str text, line;

	CHECK_OK(file_read_at(AT_FDCWD, test_data(file), 1 << 20, a, &text, &err));
	lines = str_split(text);
	while (str_next(&lines, '\n', &line)) {
		struct str_split parts = str_split(line);
		struct str path;

		if (line.n && str_next(&parts, '=', &path))
			tree_put(t, path, parts.rest, a);
	}
}

static bool is_capture(const char *file)
{
	return str_ends(str_from(file), STR(".sysfs"));
}

static void load(const char *file, struct arena *a, struct topology *ret)
{
	CLEANUP(tree_done) struct tree tree = { 0 };
	struct err err = { 0 };

	tree_make(&tree);
	if (is_capture(file)) {
		tree_unpack(&tree, file, a);
		CHECK_OK(topology_read(tree.path, a, ret, &err));
		return;
	}
	CHECK_OK(topology_read(test_data(file), a, ret, &err));
}

static const struct machine {
	const char *file;
	unsigned sockets, dies, nodes, memory_only, caches, cores, cpus;
	const char *offline, *isolated;
	const char *siblings; /* of CPU 1 */
} machines[] = {
	{ "machines/virtual-2-cpus.xml", 1, 1, 1, 0, 1, 2, 2, "", "", "1" },
	{ "machines/one-cpu.synthetic", 1, 1, 1, 0, 1, 1, 1, "", "", "" },
	{ "machines/single-socket.synthetic", 1, 1, 1, 0, 1, 4, 8, "", "", "1,5" },
	{ "machines/dual-socket-smt.synthetic", 2, 2, 2, 0, 2, 32, 64, "", "", "1,33" },
	{ "machines/four-nodes-per-socket.synthetic", 2, 2, 8, 0, 16, 128, 256, "", "", "1,129" },
	{ "machines/no-smt.synthetic", 2, 2, 2, 0, 2, 160, 160, "", "", "1" },
	{ "machines/512-cpus.synthetic", 2, 2, 8, 0, 32, 256, 512, "", "", "1,257" },
	{ "machines/hybrid.sysfs", 1, 1, 1, 0, 1, 12, 16, "", "", "0-1" },
	{ "machines/offline.sysfs", 2, 2, 2, 0, 2, 8, 11, "10-11,13-15", "2-3", "1,9" },
	{ "machines/memory-only-node.sysfs", 2, 2, 2, 2, 2, 16, 32, "", "", "1,17" },
	{ "machines/two-dies.sysfs", 1, 2, 2, 0, 4, 8, 16, "", "", "0-1" },
};

TEST(every_machine_file_is_read_with_its_counts)
{
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(machines); i++) {
		const struct machine *m = &machines[i];
		struct cpuset one = { { 2 } };
		struct topology t;

		TEST_ROW("%s", m->file);
		load(m->file, &a, &t);
		CHECK_UINT(t.level[TOPOLOGY_SOCKET].n, m->sockets);
		CHECK_UINT(t.level[TOPOLOGY_DIE].n, m->dies);
		CHECK_UINT(t.level[TOPOLOGY_NUMA].n, m->nodes);
		CHECK_UINT(t.n_nodes, m->nodes + m->memory_only);
		CHECK_UINT(t.level[TOPOLOGY_UNCORE].n, m->caches);
		CHECK_UINT(t.level[TOPOLOGY_CORE].n, m->cores);
		CHECK_UINT(t.n_cpus, m->cpus);
		CHECK_UINT(cpuset_count(&t.online), m->cpus);
		CHECK_STR(cpuset_format(&t.offline, &a), m->offline);
		CHECK_STR(cpuset_format(&t.isolated, &a), m->isolated);
		topology_whole(&t, TOPOLOGY_CORE, &one, &one);
		CHECK_STR(cpuset_format(&one, &a), m->siblings);
	}
	TEST_NOTE("%zu machines", ARRAY_LEN(machines));
}

static void check_same(const struct topology *x, const struct topology *y)
{
	CHECK_UINT(x->n_cpus, y->n_cpus);
	for (unsigned i = 0; i < x->n_cpus; i++) {
		CHECK_UINT(x->cpus[i].cpu, y->cpus[i].cpu);
		CHECK_UINT(x->cpus[i].core_type, y->cpus[i].core_type);
		for (int level = 0; level < TOPOLOGY__LEVELS; level++)
			CHECK_UINT(x->cpus[i].id[level], y->cpus[i].id[level]);
	}
	CHECK_UINT(topology_hash(x), topology_hash(y));
	CHECK(cpuset_eq(&x->offline, &y->offline));
	CHECK_UINT(x->n_nodes, y->n_nodes);
	CHECK(!x->distances == !y->distances);
	for (unsigned i = 0; i < x->n_nodes; i++)
		for (unsigned j = 0; j < x->n_nodes; j++)
			CHECK_UINT(topology_distance(x, x->nodes[i], x->nodes[j]),
				   topology_distance(y, y->nodes[i], y->nodes[j]));
}

TEST(a_machine_is_unchanged_after_writing_and_reading_json)
{
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(machines); i++) {
		struct err err = { 0 };
		struct topology t, back;
		struct str text;

		TEST_ROW("%s", machines[i].file);
		load(machines[i].file, &a, &t);
		CHECK_OK(doc_write(topology_to_doc(&t, doc_build(&a), &a), true, &a, &text, &err));
		CHECK_OK(topology_parse(text, STR("machine.json"), &a, &back, &err));
		check_same(&t, &back);
		CHECK(cpuset_eq(&t.isolated, &back.isolated));
	}
}

/* hwloc reads the same tree through code that shares nothing with ours. */
TEST(the_sysfs_reader_and_hwloc_read_the_same_machine)
{
	CLEANUP(arena_done) struct arena a;
	size_t n = 0;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(machines); i++) {
		CLEANUP(tree_done) struct tree tree = { 0 };
		struct topology_extra extra;
		struct topology ours, theirs;
		struct err err = { 0 };
		int r, fd;

		tree_make(&tree);
		if (!is_capture(machines[i].file))
			continue;
		TEST_ROW("%s", machines[i].file);
		tree_unpack(&tree, machines[i].file, &a);
		CHECK_OK(topology_read(tree.path, &a, &ours, &err));
		fd = open(str_cstr(&a, str_printf(&a, "%s/sys/devices/system", tree.path)),
			  O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		CHECK_OK(topology_sysfs_extra(fd, &extra, &err));
		(void)close(fd);
		(void)setenv("HWLOC_FSROOT", tree.path, 1);
		(void)setenv("HWLOC_COMPONENTS", "linux,stop", 1);
		r = topology_hwloc_host(&extra, &a, &theirs, &err);
		(void)unsetenv("HWLOC_FSROOT");
		(void)unsetenv("HWLOC_COMPONENTS");
		CHECK_OK(r);
		check_same(&ours, &theirs);
		n++;
	}
	TEST_NOTE("%zu captured machines", n);
	CHECK(n >= 4);
}

TEST(this_machine_is_the_same_read_by_hwloc_and_by_sysfs)
{
	CLEANUP(arena_done) struct arena a;
	struct topology ours, host;
	struct err err = { 0 };
	int fd = open("/sys/devices/system", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	arena_init(&a, 0);
	if (fd < 0 || faccessat(fd, "cpu/present", R_OK, 0) < 0)
		TEST_SKIP("no /sys/devices/system here");
	CHECK_OK(topology_read_sysfs(fd, &a, &ours, &err));
	(void)close(fd);
	CHECK_OK(topology_read_host(&a, &host, &err));
	CHECK_UINT(ours.n_cpus, host.n_cpus);
	for (int level = 0; level < TOPOLOGY__LEVELS; level++)
		CHECK_UINT(ours.level[level].n, host.level[level].n);
}

TEST(hybrid_cores_have_their_type)
{
	CLEANUP(arena_done) struct arena a;
	struct topology t;

	arena_init(&a, 0);
	load("machines/hybrid.sysfs", &a, &t);
	CHECK_UINT(topology_cpu_find(&t, 7)->core_type, CORE_TYPE_PERFORMANCE);
	CHECK_UINT(topology_cpu_find(&t, 8)->core_type, CORE_TYPE_EFFICIENCY);
	CHECK(!topology_cpu_find(&t, 16));
	CHECK(!topology_cpu_find(&t, CPUSET_MAX + 3));
}

TEST(sets_are_measured_against_the_machine)
{
	CLEANUP(arena_done) struct arena a;
	struct cpuset s = { { 0x3 } }, got; /* CPUs 0 and 1: two cores, of one thread each */
	struct topology t;
	unsigned element;

	arena_init(&a, 0);
	load("machines/memory-only-node.sysfs", &a, &t);
	topology_whole(&t, TOPOLOGY_CORE, &s, &got);
	CHECK_STR(cpuset_format(&got, &a), "0-1,16-17");
	topology_split(&t, TOPOLOGY_CORE, &s, &got);
	CHECK(cpuset_eq(&got, &s));
	cpuset_add(&s, 16);
	topology_split(&t, TOPOLOGY_CORE, &s, &got);
	CHECK_STR(cpuset_format(&got, &a), "1");
	cpuset_add(&s, 8);
	CHECK_UINT(topology_span(&t, TOPOLOGY_SOCKET, &s), 2);
	CHECK_UINT(topology_span(&t, TOPOLOGY_CORE, &s), 3);
	topology_numa_cpus(&t, 0xe, &got);
	CHECK_STR(cpuset_format(&got, &a), "8-15,24-31");
	CHECK_UINT(topology_numa_mask(&t, false), 0x3);
	CHECK_UINT(topology_numa_mask(&t, true), 0xf);
	CHECK_UINT(topology_distance(&t, 1, 3), 14);
	CHECK_UINT(topology_distance(&t, 1, 9), 0);
	CHECK(topology_find(&t, TOPOLOGY_NUMA, 1, &element) && element == 1);
	CHECK(!topology_find(&t, TOPOLOGY_NUMA, 2, &element));
	CHECK_UINT(topology_index(&t, TOPOLOGY_SOCKET, 8), 1);
	CHECK_UINT(topology_index(&t, TOPOLOGY_SOCKET, 5000), TOPOLOGY_NO_INDEX);
	CHECK_UINT(topology_average(&t, TOPOLOGY_CORE), 2);
}

TEST(bad_topologies_are_refused_with_their_position)
{
	static const struct {
		const char *text, *error;
	} rows[] = {
		{ "{}", "m:1:1: a topology needs \"cpus\", an array of CPUs" },
		{ "{\"cpus\":3}", "m:1:9: a topology needs \"cpus\", an array of CPUs" },
		{ "{\"cpus\":[]}", "m: the machine has no CPU that is online" },
		{ "{\"cpus\":[{}]}", "m:1:2: a CPU without \"cpu\", its number" },
		{ "{\"cpus\":[\n{\"cpu\":-1}]}",
		  "m:2:8: cpu: not a whole number from 0 to 1000000" },
		{ "{\"cpus\":[{\"cpu\":1.5}]}",
		  "m:1:17: cpu: not a whole number from 0 to 1000000" },
		{ "{\"cpus\":[{\"cpu\":8192}]}",
		  "m:1:17: CPU 8192 is too large, the limit is 8191" },
		{ "{\"cpus\":[{\"cpu\":0,\"numa\":\"x\"}]}",
		  "m:1:26: numa: not a whole number from 0 to 1000000" },
		{ "{\"cpus\":[{\"cpu\":0},{\"cpu\":0}]}", "m: CPU 0 is given twice" },
		{ "{\"cpus\":[{\"cpu\":0,\"type\":\"big\"}]}",
		  "m:1:26: type: not \"performance\" or \"efficiency\"" },
		{ "{\"cpus\":[{\"cpu\":0}],\"offline\":\"0-\"}",
		  "m:1:31: offline: bad item \"0-\": not a CPU number or range" },
		{ "{\"cpus\":[{\"cpu\":0}],\"offline\":\"0\"}",
		  "m: CPU 0 is both online and offline" },
		{ "{\"cpus\":[{\"cpu\":0}],\"nodes\":[{\"id\":0,\"distances\":[1,2]}]}",
		  "m:1:38: distances: need one for each of the 1 nodes" },
		{ "{\"cpus\":[{\"cpu\":0}],\"nodes\":[{}]}", NULL },
		{ "<topology>", NULL },
		{ "<?xml version=\"1.0\"?><html/>", NULL },
		{ "pack:2 core:0", NULL },
		{ "nonsense",
		  "\"nonsense\": no such file, and not an hwloc synthetic topology such as "
		  "\"pack:2 core:4 pu:2\"" },
		{ "pack:99999 core:99999 pu:2",
		  "\"pack:99999 core:99999 pu:2\": more than 8192 CPUs" },
		{ "pack:24 num[:1 co44re:779 pu:1",
		  "\"pack:24 num[:1 co44re:779 pu:1\": more than 8192 CPUs" },
		{ "64 64 4", "\"64 64 4\": more than 8192 CPUs" },
		{ "pack:64 L3:64(size=1) core:4",
		  "\"pack:64 L3:64(size=1) core:4\": more than 8192 CPUs" },
		{ "", "an empty topology" },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct topology t = { .n_cpus = 42 };
		struct err err = { 0 };

		TEST_ROW("%s", rows[i].text);
		CHECK(topology_parse(str_from(rows[i].text), STR("m"), &a, &t, &err) < 0);
		CHECK_UINT(t.n_cpus, 42);
		CHECK(err.msg[0] && !strchr(err.msg, '\n'));
		if (rows[i].error)
			CHECK_STR(err.msg, rows[i].error);
	}
}

TEST(attributes_of_a_synthetic_topology_are_not_counted_as_cpus)
{
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct topology t;

	arena_init(&a, 0);
	CHECK_OK(topology_parse_synthetic(
		STR("pack:2 numa:4 l3:4 core:8 pu:2(indexes=2*256:256*1)"), &a, &t, &err));
	CHECK_UINT(t.n_cpus, 512);
	CHECK(topology_parse_synthetic(STR("pack:2(indexes=0,1 core:4097"), &a, &t, &err) < 0);
}

TEST(xml_is_read_with_the_kinds_of_its_cores)
{
	CLEANUP(arena_done) struct arena a;
	struct str text, head;
	struct err err = { 0 };
	struct topology t;
	const char *xml;

	arena_init(&a, 0);
	CHECK_OK(file_read_at(AT_FDCWD, test_data("machines/virtual-2-cpus.xml"), 1 << 20, &a,
			      &text, &err));
	CHECK_OK(topology_parse_xml(text, STR("one kind"), &a, &t, &err));
	CHECK_UINT(topology_cpu_find(&t, 1)->core_type, CORE_TYPE_UNKNOWN);
	xml = str_cstr(&a, text);
	head = (struct str){ xml, (size_t)(strstr(xml, "<cpukind") - xml) };
	text = str_printf(&a,
			  PRI_STR "<cpukind cpuset=\"0x1\" forced_efficiency=\"0\"/>"
				  "<cpukind cpuset=\"0x2\" forced_efficiency=\"1\"/></topology>",
			  FMT_STR(head));
	CHECK_OK(topology_parse_xml(text, STR("two kinds"), &a, &t, &err));
	CHECK_UINT(topology_cpu_find(&t, 0)->core_type, CORE_TYPE_EFFICIENCY);
	CHECK_UINT(topology_cpu_find(&t, 1)->core_type, CORE_TYPE_PERFORMANCE);
}

TEST(xml_with_a_cpu_beyond_the_limit_is_refused)
{
	static const char field[] = "complete_cpuset=\"";
	CLEANUP(arena_done) struct arena a;
	struct topology t = { .n_cpus = 42 };
	struct err err = { 0 };
	struct strbuf b;
	struct str text;
	const char *xml, *at;

	arena_init(&a, 0);
	CHECK_OK(file_read_at(AT_FDCWD, test_data("machines/virtual-2-cpus.xml"), 1 << 20, &a,
			      &text, &err));
	xml = str_cstr(&a, text);
	at = strstr(xml, field) + strlen(field);
	strbuf_init(&b, &a);
	strbuf_add(&b, (struct str){ xml, (size_t)(at - xml) });
	strbuf_add(&b, STR("0x1,"));
	for (int i = 0; i < CPUSET_MAX / 32 - 1; i++)
		strbuf_add(&b, STR("0x0,"));
	strbuf_add(&b, str_from(at));
	CHECK_ERR(topology_parse_xml(strbuf_str(&b), STR("m"), &a, &t, &err), ERANGE,
		  "m: CPU 8192 is too large, the limit is 8191");
	CHECK_UINT(t.n_cpus, 42);
}

TEST(a_topology_beyond_the_limits_is_refused)
{
	const struct str large = { "<", ((size_t)64 << 20) + 1 };
	struct topology t = { .n_cpus = 42 };
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };

	arena_init(&a, 0);
	CHECK_ERR(topology_parse_synthetic(STR("numa:2000 pu:1"), &a, &t, &err), ERANGE,
		  "\"numa:2000 pu:1\": hwloc sees 2000 NUMA nodes");
	/* Numbers as hwloc reads them: it would build all of these before anyone counts them. */
	CHECK_ERR(topology_parse_synthetic(STR("pack:2 core:0x8000 pu:1"), &a, &t, &err), ERANGE,
		  "\"pack:2 core:0x8000 pu:1\": more than 8192 CPUs");
	CHECK_ERR(topology_parse_synthetic(STR("pack:+76 core:+80 pu:3"), &a, &t, &err), ERANGE,
		  "\"pack:+76 core:+80 pu:3\": more than 8192 CPUs");
	CHECK_ERR(topology_parse_synthetic(STR("pu:-1"), &a, &t, &err), ERANGE,
		  "\"pu:-1\": more than 8192 CPUs");
	CHECK_ERR(topology_parse_synthetic(STR("core:- pu:1"), &a, &t, &err), EINVAL,
		  "\"core:- pu:1\": no such file, and not an hwloc synthetic topology such as "
		  "\"pack:2 core:4 pu:2\"");
	CHECK_ERR(topology_parse_xml(large, STR("m"), &a, &t, &err), EFBIG,
		  "m: larger than 67108864 bytes");
	CHECK(topology_parse_xml(STR("nonsense"), STR("m"), &a, &t, &err) < 0);
	CHECK_UINT(t.n_cpus, 42);
}

TEST(xml_that_crashes_hwloc_is_refused)
{
	CLEANUP(arena_done) struct arena a;
	struct topology t = { .n_cpus = 42 };
	struct err err = { 0 };

	arena_init(&a, 0);
	CHECK_ERR(topology_read(test_data("machines/damaged.xml"), &a, &t, &err), EINVAL,
		  str_cstr(&a, str_printf(&a, "%s: hwloc crashed on this file: it is damaged",
					  test_data("machines/damaged.xml"))));
	CHECK_UINT(t.n_cpus, 42);
}

TEST(a_broken_sysfs_value_is_named)
{
	static const struct {
		const char *path, *value, *error;
	} rows[] = {
		{ "system/cpu/online", "0-x", "cpu/online: " },
		{ "system/cpu/cpu3/topology/physical_package_id", "zero",
		  "cpu/cpu3/topology/physical_package_id: \"zero\" is no id" },
		{ "system/cpu/cpu0/topology/core_cpus_list", "0,,1",
		  "cpu/cpu0/topology/core_cpus_list: " },
		{ "system/cpu/cpu0/cache/index2/shared_cpu_list", "9999999",
		  "cpu/cpu0/cache/index2/shared_cpu_list: " },
		{ "system/node/node0/distance", "10 20", "node/node0/distance: not 1 numbers" },
		{ "system/node/node0/cpulist", "-", "node/node0/cpulist: " },
		{ "cpu_atom/cpus", "?", "../cpu_atom/cpus: " },
	};
	CLEANUP(arena_done) struct arena a;
	CLEANUP(tree_done) struct tree tree = { 0 };

	arena_init(&a, 0);
	tree_make(&tree);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = { 0 };
		struct topology t;

		TEST_ROW("%s", rows[i].path);
		tree_unpack(&tree, "machines/hybrid.sysfs", &a);
		tree_put(&tree, str_from(rows[i].path), str_from(rows[i].value), &a);
		CHECK(topology_read(tree.path, &a, &t, &err) < 0);
		CHECK(str_has(str_from(err.msg), str_from(rows[i].error)));
		CHECK(str_starts(str_from(err.msg), str_from(tree.path)));
	}
}

TEST(a_machine_without_numa_or_cache_information_is_read)
{
	CLEANUP(arena_done) struct arena a;
	CLEANUP(tree_done) struct tree tree = { 0 };
	struct err err = { 0 };
	struct topology t;

	arena_init(&a, 0);
	tree_make(&tree);
	tree_put(&tree, STR("system/cpu/present"), STR("0-3"), &a);
	for (int i = 0; i < 4; i++)
		tree_put(&tree, str_printf(&a, "system/cpu/cpu%d/topology/physical_package_id", i),
			 str_printf(&a, "%d", i / 2), &a);
	CHECK_OK(topology_read(tree.path, &a, &t, &err));
	CHECK_UINT(t.level[TOPOLOGY_NUMA].n, 2); /* each package is a node */
	CHECK_UINT(t.level[TOPOLOGY_UNCORE].n, 2);
	CHECK_UINT(t.level[TOPOLOGY_CORE].n, 4);
	CHECK(!t.distances);
}
