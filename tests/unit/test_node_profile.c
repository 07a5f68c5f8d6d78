/* From a PerformanceProfile object to the pools of one machine. */

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "codec/problems.h"
#include "cpu/topology_read.h"
#include "cpus.h"
#include "partition/node_profile.h"
#include "pin/pools_source.h"
#include "profile/layout.h"
#include "render/pinning.h"
#include "test.h"

struct resolved {
	struct arena a;
	struct topology topology;
	struct problem_list problems;
	struct pool_config pools;
	bool ok;
};

static yyjson_val *resolve(struct resolved *r, const char *machine, const char *cpu,
			   const char *more)
{
	struct err err = { 0 };
	struct doc doc;

	arena_init(&r->a, 0);
	CHECK_OK(topology_read(machine, &r->a, &r->topology, &err));
	CHECK_OK(
		doc_parse(str_printf(&r->a,
				     "{\"metadata\":{\"name\":\"p\"%s},\"spec\":{\"cpu\":{%s},"
				     "\"nodeSelector\":{\"node-role.kubernetes.io/worker\":\"\"}}}",
				     more, cpu),
			  STR(""), NULL, &r->a, &doc, &err));
	problem_list_init(&r->problems, &r->a);
	r->ok = node_profile_pools(doc.root, &r->topology, &r->a, &r->pools, &r->problems);
	return doc.root;
}

static void resolved_done(struct resolved *r)
{
	arena_done(&r->a);
}

TEST(sets_become_pools)
{
	static const struct {
		const char *machine, *cpu, *want; /* management, shared, guaranteed */
		bool is_classic;
	} cases[] = {
		{ "core:8 pu:1", "\"reserved\":\"0-1\",\"shared\":\"2-3\",\"isolated\":\"4-7\"",
		  "0-1 2-3 4-7", false },
		{ "core:8 pu:1", "\"reserved\":\"0-1\",\"isolated\":\"2-7\"", "0-1  2-7", true },
		{ "core:8 pu:1", "\"reserved\":\"0-1\"", "0-1  ", true },
		{ "core:8 pu:1", "\"reserved\":\"0-1\",\"isolated\":\"4-7\",\"workloads\":[]",
		  "  4-7", true },
		{ "numa:2 core:4 pu:1",
		  "\"reserved\":\"first 1 core of each numa\",\"shared\":\"2 cpus\","
		  "\"isolated\":\"rest\"",
		  "0,4 1-2 3,5-7", false },
		{ "core:2 pu:1", "\"reserved\":\"first 1 core\",\"isolated\":\"rest\"", "0  1",
		  true },
		/* A core is split: a running node is partitioned all the same. */
		{ "core:4 pu:2", "\"reserved\":\"0\",\"isolated\":\"1-7\"", "0  1-7", true },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(resolved_done) struct resolved r;

		TEST_ROW("%s on %s", cases[i].cpu, cases[i].machine);
		(void)resolve(&r, cases[i].machine, cases[i].cpu, "");
		CHECK_STR(node_profile_errors(&r.problems, &r.a), "");
		CHECK(r.ok);
		CHECK_STR(str_printf(&r.a, PRI_STR " " PRI_STR " " PRI_STR,
				     FMT_STR(cpuset_format(&r.pools.reserved, &r.a)),
				     FMT_STR(cpuset_format(&r.pools.shared, &r.a)),
				     FMT_STR(cpuset_format(&r.pools.guaranteed, &r.a))),
			  cases[i].want);
		CHECK_INT(r.pools.is_classic, cases[i].is_classic);
		CHECK(!r.pools.defers_resize);
	}
}

TEST(annotations_set_types_and_what_a_resize_does)
{
	CLEANUP(resolved_done) struct resolved r;
	struct cpuset two = cpus("1");

	(void)resolve(&r, "core:8 pu:1", "\"reserved\":\"0-1\"",
		      ",\"annotations\":{\"pinfold.io/workload-types\":\"{\\\"ran\\\":\\\"1\\\"}\","
		      "\"pinfold.io/resize\":\"defer\"}");
	CHECK(r.ok && r.pools.defers_resize);
	CHECK_UINT(r.pools.n_types, 1);
	CHECK_STR(r.pools.types[0].name, "ran");
	CHECK(cpuset_eq(&r.pools.types[0].cpus, &two));
}

TEST(the_rendered_pools_file_gives_the_pools_of_the_profile)
{
	static const struct {
		const char *cpu, *annotations;
		size_t n_types;
	} cases[] = {
		{ "\"reserved\":\"0-1\",\"shared\":\"2-3\",\"isolated\":\"4-7\"",
		  "\"pinfold.io/resize\":\"defer\"", 0 },
		{ "\"reserved\":\"0-1\",\"shared\":\"2-3\",\"isolated\":\"4-7\"",
		  "\"pinfold.io/workload-types\":\"{\\\"ran\\\":\\\"1\\\"}\"", 1 },
		{ "\"reserved\":\"0-2\",\"isolated\":\"3-7\"",
		  "\"pinfold.io/workload-types\":"
		  "\"{\\\"ran\\\":\\\"1\\\",\\\"management\\\":\\\"0\\\"}\"",
		  2 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(resolved_done) struct resolved r;
		struct pool_config c;
		struct layout layout;
		struct err err = { 0 };
		struct str text;
		yyjson_val *profile;
		char annotations[128];

		(void)snprintf(annotations, sizeof(annotations), ",\"annotations\":{%s}",
			       cases[i].annotations);
		profile = resolve(&r, "core:8 pu:1", cases[i].cpu, annotations);
		CHECK(r.ok);
		CHECK(node_profile_layout(profile, &r.topology, &r.a, &layout, &r.problems));
		text = pinning_pools(&layout.partitions[0], &r.a);
		CHECK_OK(pools_file_parse(text, STR("f"), &r.a, &c, &err));
		c.fold_rest = true; /* as the agent reads the file */
		CHECK(pool_config_eq(&c, &r.pools));
		CHECK_UINT(c.n_types, cases[i].n_types);
		CHECK_INT(c.defers_resize, r.pools.defers_resize);
	}
}

TEST(a_profile_that_does_not_fit_the_machine_gives_no_pools_but_the_reasons)
{
	static const struct {
		const char *cpu, *annotations, *want;
	} cases[] = {
		{ "\"reserved\":\"0-9\"", "",
		  "spec.cpu.reserved: the machine has no CPUs 4-9, only 0-3" },
		{ "\"reserved\":\"0\",\"isolated\":\"0-3\"", "",
		  "spec.cpu.isolated: reserved and isolated overlap: CPUs 0" },
		{ "\"isolated\":\"1\"", "", "spec.cpu.reserved: required" },
		{ "\"reserved\":\"all of numa 3\"", "",
		  "spec.cpu.reserved: \"all of numa 3\": this machine has no numa 3" },
		{ "\"reserved\":\"0-x\",\"isolated\":7", "",
		  "spec.cpu.reserved: \"0-x\" where a CPU list, first, last, all, rest or a "
		  "percentage is expected; "
		  "spec.cpu.isolated: must be a string, not a number: put quotes around it" },
		{ "\"reserved\":\"0-3\"", "", "no CPU is left for the shared pool" },
		{ "\"reserved\":\"0\"",
		  ",\"annotations\":{\"pinfold.io/workload-types\":\"{\\\"ran\\\":\\\"3\\\"}\"}",
		  "metadata.annotations.pinfold.io/workload-types: CPUs 3 of workload type ran are "
		  "not reserved" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(resolved_done) struct resolved r;

		TEST_ROW("%s", cases[i].cpu);
		(void)resolve(&r, "core:4 pu:1", cases[i].cpu, cases[i].annotations);
		CHECK(!r.ok);
		CHECK_STR(node_profile_errors(&r.problems, &r.a), cases[i].want);
	}
}

TEST(a_selector_without_a_role_is_enough_with_a_machine_config_label)
{
	static const char *const names[] = { "edge", "worker" /* also a pool of OpenShift */ };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		CLEANUP(arena_done) struct arena a;
		struct pool_config pools;
		struct problem_list p;
		struct topology t;
		struct err err = { 0 };
		struct doc doc;

		TEST_ROW("%s", names[i]);
		arena_init(&a, 0);
		CHECK_OK(topology_read("core:4 pu:1", &a, &t, &err));
		CHECK_OK(
			doc_parse(str_printf(&a,
					     "{\"metadata\":{\"name\":\"%s\"},\"spec\":{"
					     "\"cpu\":{\"reserved\":\"0\",\"isolated\":\"1-3\"},"
					     "\"machineConfigLabel\":{\"a.example/role\":\"edge\"},"
					     "\"nodeSelector\":{\"edge\":\"true\"}}}",
					     names[i]),
				  STR(""), NULL, &a, &doc, &err));
		problem_list_init(&p, &a);
		CHECK(node_profile_pools(doc.root, &t, &a, &pools, &p));
		CHECK_STR(node_profile_errors(&p, &a), "");
	}
}

TEST(cpus_of_ovs_are_a_warning)
{
	CLEANUP(resolved_done) struct resolved r;

	(void)resolve(&r, "core:8 pu:1",
		      "\"reserved\":\"0-1\",\"isolated\":\"2-5\",\"ovsDpdk\":\"6-7\"", "");
	CHECK(r.ok && r.problems.n_warnings == 1);
}

#define SELECTOR "\"nodeSelector\":{\"node-role.kubernetes.io/worker\":\"\"}"

TEST(a_profile_is_trimmed_to_what_has_an_effect)
{
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct str text;
	struct doc doc;

	arena_init(&a, 0);
	CHECK_OK(doc_parse(
		STR("{\"apiVersion\":\"performance.openshift.io/"
		    "v2\",\"kind\":\"PerformanceProfile\","
		    "\"metadata\":{\"name\":\"p\",\"uid\":\"u\",\"generation\":3,\"labels\":{},"
		    "\"annotations\":{\"kubectl.kubernetes.io/last-applied-configuration\":\"{}\","
		    "\"pinfold.io/resize\":\"defer\",\"kubeletconfig.experimental\":\"{}\","
		    "\"performance.openshift.io/enable-rps\":\"true\"},\"managedFields\":[1]},"
		    "\"spec\":{" SELECTOR "},\"status\":{\"conditions\":[]}}"),
		STR(""), NULL, &a, &doc, &err));
	CHECK_OK(node_profile_trim(doc.root, &a, &text, &err));
	CHECK_STR(text, "{\"apiVersion\":\"performance.openshift.io/v2\",\"kind\":"
			"\"PerformanceProfile\",\"metadata\":{\"name\":\"p\",\"uid\":\"u\","
			"\"generation\":3,\"annotations\":{\"pinfold.io/resize\":\"defer\","
			"\"kubeletconfig.experimental\":\"{}\","
			"\"performance.openshift.io/enable-rps\":\"true\"}},"
			"\"spec\":{" SELECTOR "}}");
}

/* It still selects its nodes: to drop it would take their pools away. */
TEST(a_profile_that_is_too_large_is_invalid)
{
	CLEANUP(arena_done) struct arena a;
	struct node_profile decision;
	yyjson_val *profile, *labels;
	struct err err = { 0 };
	struct topology t;
	struct str text;
	struct doc doc;
	char *filler;

	arena_init(&a, 0);
	filler = arena_array(&a, char, NODE_PROFILE_MAX_BYTES + 1);
	memset(filler, 'x', NODE_PROFILE_MAX_BYTES);
	CHECK_OK(topology_read("core:4 pu:1", &a, &t, &err));
	CHECK_OK(doc_parse(
		str_printf(&a,
			   "{\"metadata\":{\"name\":\"p\",\"generation\":2},"
			   "\"spec\":{\"cpu\":{\"reserved\":\"0\"},\"more\":\"%s\"," SELECTOR "}}",
			   filler),
		STR(""), NULL, &a, &doc, &err));
	CHECK_OK(node_profile_trim(doc.root, &a, &text, &err));
	CHECK(text.n < 1000);
	CHECK_OK(doc_parse(text, STR(""), NULL, &a, &doc, &err));
	profile = doc.root;
	labels = doc_find(profile, "/spec/nodeSelector");
	node_profile_decide(&profile, 1, labels, &t, &a, &decision);
	CHECK_INT(decision.state, PROFILE_INVALID);
	CHECK_STR(decision.name, "p");
	CHECK_INT(decision.generation, 2);
	CHECK_STR(decision.message, "the profile is larger than 128 KiB");
}
