/* The files that pools are read from. */

#include "pin/pools_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/macro.h"
#include "pin/kept_profile.h"
#include "test.h"

TEST(pools_come_from_either_file)
{
	CLEANUP(arena_done) struct arena a;
	struct pool_config c;
	struct err err = { 0 };

	arena_init(&a, 0);
	CHECK_OK(pools_file_parse(
		STR("{\"reserved\":\"0-1\",\"shared\":\"2-5\",\"guaranteed\":\"6-15\"}"), STR("f"),
		&a, &c, &err));
	CHECK(!c.is_classic);
	CHECK_STR(cpuset_format(&c.guaranteed, &a), "6-15");
	CHECK_OK(pools_file_parse(STR("{\"reserved\":\"0-1\"}"), STR("f"), &a, &c, &err));
	CHECK(c.is_classic);
	CHECK_OK(marker_file_parse(STR("{\"management\":{\"cpuset\":\"0-1,52-53\"}}"), STR("f"), &a,
				   &c, &err));
	CHECK(c.is_classic);
	CHECK_STR(cpuset_format(&c.reserved, &a), "0-1,52-53");
	CHECK_OK(pools_file_parse(STR("{\"reserved\":\"0\",\"resize\":\"defer\"}"), STR("f"), &a,
				  &c, &err));
	CHECK(c.defers_resize);
	CHECK(c.topology.policy == HINT_POLICY_BEST_EFFORT && !c.options.full_pcpus_only);
	CHECK_OK(
		pools_file_parse(STR("{\"topologyPolicy\":\"restricted\",\"topologyScope\":\"pod\","
				     "\"cpuManagerPolicyOptions\":{\"full-pcpus-only\":\"true\"}}"),
				 STR("f"), &a, &c, &err));
	CHECK(c.topology.policy == HINT_POLICY_RESTRICTED && c.topology.scope == HINT_SCOPE_POD);
	CHECK(c.options.full_pcpus_only);
	CHECK_ERR(pools_file_parse(STR("{\"topologyPolicy\":\"strict\"}"), STR("f"), &a, &c, &err),
		  EINVAL,
		  "f:1:19: want \"none\", \"best-effort\", \"restricted\" or "
		  "\"single-numa-node\"");
	CHECK_ERR(pools_file_parse(STR("{\"topologyScope\":1}"), STR("f"), &a, &c, &err), EINVAL,
		  "f:1:18: want \"container\" or \"pod\"");
	CHECK_ERR(pools_file_parse(STR("{\"cpuManagerPolicyOptions\":{\"full-pcpus-only\":true}}"),
				   STR("f"), &a, &c, &err),
		  EINVAL, "f:1:29: \"full-pcpus-only\": want \"true\" or \"false\", not a boolean");
	CHECK_ERR(pools_file_parse(STR("{\"resize\":\"later\"}"), STR("f"), &a, &c, &err), EINVAL,
		  "f:1:11: want \"refuse\" or \"defer\"");
	CHECK_ERR(pools_file_parse(STR("{\"reserved\":\"1-0\"}"), STR("f"), &a, &c, &err), EINVAL,
		  "f:1:13: bad range \"1-0\": 1 is above 0");
	CHECK_ERR(pools_file_parse(STR("{\"resrved\":\"0\"}"), STR("f"), &a, &c, &err), EINVAL,
		  "f:1:2: unknown pool \"resrved\"");
	CHECK_UINT(c.n_types, 0);
	CHECK_OK(legacy_marker_parse(STR("0-1,52\n"), STR("f"), &a, &c, &err));
	CHECK(c.is_classic);
	CHECK_STR(cpuset_format(&c.reserved, &a), "0-1,52");
	CHECK_ERR(legacy_marker_parse(STR("{}"), STR("f"), &a, &c, &err), EINVAL,
		  "f: bad item \"{}\": not a CPU number or range");
	CHECK_ERR(marker_file_parse(STR("{\"management\":{}}"), STR("f"), &a, &c, &err), EINVAL,
		  "f:1:1: no \"management\" with a \"cpuset\"");
}

TEST(workload_types_come_from_either_file)
{
	CLEANUP(arena_done) struct arena a;
	struct pool_config c;
	struct err err = { 0 };

	arena_init(&a, 0);
	/* The marker has no pool: the management pool is what all types have together. */
	CHECK_OK(marker_file_parse(
		STR("{\"ran\":{\"cpuset\":\"2-3\"},\"management\":{\"cpuset\":\"0-1\"},\"x\":1}"),
		STR("f"), &a, &c, &err));
	CHECK_STR(cpuset_format(&c.reserved, &a), "0-3");
	CHECK_UINT(c.n_types, 2);
	CHECK_STR(c.types[0].name, "management");
	CHECK_STR(cpuset_format(&c.types[0].cpus, &a), "0-1");
	CHECK_STR(c.types[1].name, "ran");
	CHECK_STR(cpuset_format(&c.types[1].cpus, &a), "2-3");
	CHECK_OK(pools_file_parse(
		STR("{\"reserved\":\"0-3\",\"shared\":\"4-7\",\"types\":{\"ran\":\"2-3\"}}"),
		STR("f"), &a, &c, &err));
	CHECK_STR(cpuset_format(&c.reserved, &a), "0-3");
	CHECK_UINT(c.n_types, 1);
	CHECK_ERR(marker_file_parse(STR("{\"ran\":{\"cpuset\":\"2\"}}"), STR("f"), &a, &c, &err),
		  EINVAL, "f:1:1: no \"management\" with a \"cpuset\"");
	CHECK_ERR(pools_file_parse(STR("{\"types\":{\"Ran\":\"2\"}}"), STR("f"), &a, &c, &err),
		  EINVAL, "f:1:17: \"Ran\" is not a workload type: want a DNS label");
	CHECK_ERR(pools_file_parse(STR("{\"types\":[]}"), STR("f"), &a, &c, &err), EINVAL,
		  "f:1:2: types: expected an object, found a list");
}

static void put_file(const char *dir, const char *name, const char *text)
{
	struct err err = { 0 };
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (text)
		CHECK_OK(file_replace_at(AT_FDCWD, path, str_from(text), 0600, &err));
	else
		(void)unlink(path);
}

/* Each file that is removed gives way to the next. */
TEST(the_pools_file_comes_before_the_profile_and_the_markers_of_node_pool_and_2021)
{
	static const struct {
		const char *file, *text, *reserved;
		enum pools_origin origin;
		const char *from; /* NULL: the file */
	} files[] = {
		{ "pools", "{\"reserved\":\"0\"}", "0", POOLS_FROM_FILE, NULL },
		{ KEPT_PROFILE_FILE,
		  "{\"name\":\"w\",\"generation\":1,\"pools\":{\"mode\":\"classic\","
		  "\"reserved\":\"4\",\"shared\":\"\",\"guaranteed\":\"\"}}",
		  "4", POOLS_FROM_PROFILE, "profile" },
		{ "marker.node", "{\"management\":{\"cpuset\":\"1\"}}", "1", POOLS_FROM_MARKER,
		  NULL },
		{ "marker", "{\"management\":{\"cpuset\":\"2\"}}", "2", POOLS_FROM_MARKER, NULL },
		{ "legacy", "3\n", "3", POOLS_FROM_MARKER, NULL },
	};
	char dir[] = "/tmp/pools-test-XXXXXX", paths[3][64];
	struct pools_source source = { .pools_file = paths[0],
				       .state_dir = dir,
				       .marker_file = paths[1],
				       .legacy_marker = paths[2] };
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct pool_config c;
	struct pools_found found;

	arena_init(&a, 0);
	CHECK(mkdtemp(dir) != NULL);
	(void)snprintf(paths[0], sizeof(paths[0]), "%s/pools", dir);
	(void)snprintf(paths[1], sizeof(paths[1]), "%s/marker", dir);
	(void)snprintf(paths[2], sizeof(paths[2]), "%s/legacy", dir);
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		put_file(dir, files[i].file, files[i].text);
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		TEST_ROW("%s", files[i].file);
		CHECK_OK(pools_source_read(&source, &a, &c, &found, &err));
		CHECK_STR(cpuset_format(&c.reserved, &a), files[i].reserved);
		CHECK(strstr(found.from, files[i].from ? files[i].from : files[i].file));
		CHECK_INT(found.origin, files[i].origin);
		put_file(dir, files[i].file, NULL);
	}
	CHECK_INT(pools_source_read(&source, &a, &c, &found, &err), -ENOENT);
	source.legacy_marker = NULL; /* without the dialect */
	put_file(dir, "legacy", "3\n");
	CHECK_INT(pools_source_read(&source, &a, &c, &found, &err), -ENOENT);
	source.or_whole_set = true;
	CHECK_OK(pools_source_read(&source, &a, &c, &found, &err));
	CHECK(c.is_classic && cpuset_is_empty(&c.reserved));
	CHECK_INT(found.origin, POOLS_FROM_NOTHING);
	put_file(dir, "legacy", NULL);
	CHECK(rmdir(dir) == 0);
}
