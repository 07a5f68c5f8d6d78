/* Which CPU belongs to which pool: what is refused, in which words, and what follows. */

#include <errno.h>

#include "base/arena.h"
#include "base/macro.h"
#include "codec/doc.h"
#include "cpu/topology_read.h"
#include "cpus.h"
#include "pool/config.h"
#include "test.h"

/* Eight CPUs, siblings side by side; 6 and 7 may be switched off. */
static void machine(bool some_offline, struct arena *a, struct topology *ret)
{
	struct topology_cpu list[8];
	struct topology_input in = { .cpus = list };
	struct err err = { 0 };

	for (unsigned cpu = 0; cpu < (some_offline ? 6U : 8U); cpu++)
		list[in.n_cpus++] = (struct topology_cpu){
			.cpu = (uint16_t)cpu,
			.id = { [TOPOLOGY_CORE] = cpu / 2U * 2U,
				[TOPOLOGY_UNCORE] = TOPOLOGY_NO_ID },
		};
	if (some_offline)
		in.offline = cpus("6-7");
	CHECK_OK(topology_build(&in, a, ret, &err));
}

static struct pool_config config(const char *reserved, const char *shared, const char *guaranteed)
{
	struct pool_config c;

	pool_config_init(&c);
	c.reserved = cpus(reserved);
	c.guaranteed = cpus(guaranteed);
	c.is_classic = shared == NULL;
	if (shared)
		c.shared = cpus(shared);
	return c;
}

TEST(an_invalid_configuration_is_refused_and_names_the_cpus)
{
	static const struct {
		const char *reserved, *shared, *guaranteed, *error;
	} rows[] = {
		{ "0-1", "2-3", "4-7", NULL },
		{ "0-1", "2-7", "", NULL }, /* docs/reference/pools.md#no-guaranteed-pool */
		{ "", "0-3", "4-7", NULL },
		{ "0-1", NULL, "", NULL },
		{ "0-1", NULL, "4-7", NULL },
		{ "0-2", "2-3", "4-7", "CPU \"2\" is both management and shared" },
		{ "0-1", "2-5", "4-7", "CPUs \"4-5\" are both shared and guaranteed" },
		{ "0-1,7", "2-3", "4-7", "CPU \"7\" is both management and guaranteed" },
		{ "0-1", "2-3", "4-9", "CPUs \"8-9\" are guaranteed, but not on this machine" },
		{ "0-1", "2", "4-7", "CPU \"3\" is in no pool" },
		{ "0-1", "", "2-7", "no CPU is left for the shared pool" },
		{ "0-7", NULL, "", "no CPU is left for the shared pool" },
		{ "0-1", NULL, "1-7", "CPU \"1\" is both management and guaranteed" },
	};
	CLEANUP(arena_done) struct arena a;
	struct topology t;

	arena_init(&a, 0);
	machine(false, &a, &t);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct pool_config c = config(rows[i].reserved, rows[i].shared, rows[i].guaranteed);
		struct err err = { 0 };

		TEST_ROW("row %zu", i);
		if (rows[i].error)
			CHECK_ERR(pool_config_check(&c, &t, &err), EINVAL, rows[i].error);
		else
			CHECK_OK(pool_config_check(&c, &t, &err));
	}
}

TEST(cpus_in_no_list_can_be_added_to_the_shared_pool)
{
	CLEANUP(arena_done) struct arena a;
	struct pool_config c = config("0", "2", "4-7");
	struct err err = { 0 };
	struct cpuset shared;
	struct topology t;

	arena_init(&a, 0);
	machine(false, &a, &t);
	c.fold_rest = true;
	CHECK_OK(pool_config_check(&c, &t, &err));
	pool_config_shared(&c, &t, &shared);
	CHECK_STR(cpuset_format(&shared, &a), "1-3");
}

TEST(offline_cpus_may_be_configured)
{
	CLEANUP(arena_done) struct arena a;
	struct pool_config c = config("0-1", "2-3", "4-7");
	struct err err = { 0 };
	struct topology t;

	arena_init(&a, 0);
	machine(true, &a, &t);
	CHECK_OK(pool_config_check(&c, &t, &err));
}

TEST(mutually_exclusive_options_are_refused)
{
	CLEANUP(arena_done) struct arena a;
	struct pool_config c = config("0-1", "2-3", "4-7");
	struct err err = { 0 };
	struct topology t;

	arena_init(&a, 0);
	machine(false, &a, &t);
	c.options.full_pcpus_only = true;
	c.options.distribute_cpus_across_cores = true;
	CHECK_ERR(
		pool_config_check(&c, &t, &err), EINVAL,
		"static policy options full-pcpus-only and distribute-cpus-across-cores can not be "
		"used at the same time");
}

TEST(whole_cores_need_cores_of_one_width)
{
	static const struct topology_cpu hybrid[] = {
		{ .cpu = 0, .id = { [TOPOLOGY_CORE] = 0 } },
		{ .cpu = 1, .id = { [TOPOLOGY_CORE] = 0 } },
		{ .cpu = 2, .id = { [TOPOLOGY_CORE] = 2 } },
		{ .cpu = 3, .id = { [TOPOLOGY_CORE] = 2 } },
		{ .cpu = 4, .id = { [TOPOLOGY_CORE] = 4 } },
		{ .cpu = 5, .id = { [TOPOLOGY_CORE] = 5 } },
	};
	struct topology_input in = { .cpus = hybrid, .n_cpus = ARRAY_LEN(hybrid) };
	CLEANUP(arena_done) struct arena a;
	struct pool_config c = config("0", "1", "2-5");
	struct err err = { 0 };
	struct topology t;

	arena_init(&a, 0);
	CHECK_OK(topology_build(&in, &a, &t, &err));
	CHECK_OK(pool_config_check(&c, &t, &err));
	c.options.full_pcpus_only = true;
	CHECK_ERR(pool_config_check(&c, &t, &err), EINVAL,
		  "full-pcpus-only: the guaranteed pool mixes cores of 2 and 1 threads");
	c = config("0-1", "4-5", "2-3");
	c.options.full_pcpus_only = true;
	CHECK_OK(pool_config_check(&c, &t, &err));
}

TEST(equal_configurations_have_equal_hashes_and_others_do_not)
{
	struct pool_config a = config("0-1", "2-3", "4-7"), b = a;

	CHECK(pool_config_eq(&a, &b));
	CHECK(pool_config_hash(&a) == pool_config_hash(&b));
	b.options.full_pcpus_only = true;
	CHECK(!pool_config_eq(&a, &b));
	CHECK(pool_config_hash(&a) != pool_config_hash(&b));
	b = config("0-1", "2-4", "5-7");
	CHECK(!pool_config_eq(&a, &b));
	CHECK(pool_config_hash(&a) != pool_config_hash(&b));
}

TEST(a_configuration_is_unchanged_after_writing_and_reading_json)
{
	CLEANUP(arena_done) struct arena a;
	struct pool_config c = config("0-1", NULL, "4-7"), back;
	struct err err = { 0 };
	struct str text;
	struct doc doc;

	arena_init(&a, 0);
	c.fold_rest = true;
	c.options.align_by_socket = true;
	c.options.strict_cpu_reservation = false;
	c.topology = (struct hint_config){ .policy = HINT_POLICY_NONE, .scope = HINT_SCOPE_POD };
	CHECK_OK(doc_write(pool_config_to_doc(&c, doc_build(&a), &a), false, &a, &text, &err));
	CHECK_OK(doc_parse(text, STR("c"), NULL, &a, &doc, &err));
	CHECK_OK(pool_config_from_doc(&doc, doc.root, &back, &err));
	CHECK(pool_config_eq(&c, &back));
}

TEST(policies_that_refuse_need_a_machine_with_hints)
{
	static const struct {
		enum hint_policy policy;
		const char *error;
	} rows[] = {
		{ HINT_POLICY_NONE, NULL },
		{ HINT_POLICY_BEST_EFFORT, NULL },
		{ HINT_POLICY_RESTRICTED,
		  "topology policy restricted: unsupported on machines with more than 8 NUMA nodes "
		  "that have CPUs" },
	};
	CLEANUP(arena_done) struct arena a;
	struct pool_config c = config("0-1", "2-3", "4-8");
	struct err err = { 0 };
	struct topology t;

	arena_init(&a, 0);
	CHECK_OK(topology_parse_synthetic(STR("numa:9 pu:1"), &a, &t, &err));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		TEST_ROW("row %zu", i);
		c.topology.policy = rows[i].policy;
		if (rows[i].error)
			CHECK_ERR(pool_config_check(&c, &t, &err), E2BIG, rows[i].error);
		else
			CHECK_OK(pool_config_check(&c, &t, &err));
	}
}

TEST(the_cpus_of_workload_types_are_in_the_management_pool)
{
	static const struct {
		const char *reserved, *management, *ran, *error;
	} rows[] = {
		{ "0-3", "0-1", "2-3", NULL },
		{ "0-3", NULL, "2-3", NULL },
		{ "0-3", "0-2", "2-3", NULL }, /* they may overlap */
		{ "0-3", "0-3", "0-3", NULL }, /* or be equal */
		{ "", "", "", NULL },	       /* a partition without a size */
		{ "0-3", "0-1", "3-4",
		  "CPU \"4\" is of workload type ran, but not in the management pool" },
		{ "0-3", "0-1", "", "workload type ran has no CPUs" },
	};
	CLEANUP(arena_done) struct arena a;
	struct topology t;

	arena_init(&a, 0);
	machine(false, &a, &t);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct pool_config c = config(rows[i].reserved, NULL, "");
		struct cpuset set = cpus(rows[i].ran);
		struct err err = { 0 };

		TEST_ROW("row %zu", i);
		CHECK_OK(pool_config_set_type(&c, STR("ran"), &set, &err));
		if (rows[i].management) {
			set = cpus(rows[i].management);
			CHECK_OK(pool_config_set_type(&c, STR("management"), &set, &err));
		}
		if (rows[i].error)
			CHECK_ERR(pool_config_check(&c, &t, &err), EINVAL, rows[i].error);
		else
			CHECK_OK(pool_config_check(&c, &t, &err));
	}
}

TEST(a_workload_type_has_its_cpus_or_the_whole_management_pool)
{
	struct pool_config c = config("0-3", NULL, "");
	const struct cpuset all = cpus("0-3"), rest = cpus("0-1"), ran = cpus("2-3");
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct cpuset got;

	arena_init(&a, 0);
	CHECK(pool_config_has_type(&c, STR("management")) && !pool_config_has_type(&c, STR("ran")));
	CHECK_OK(pool_config_set_type(&c, STR("ran"), &ran, &err));
	CHECK(pool_config_has_type(&c, STR("ran")));
	pool_config_type_cpus(&c, STR("ran"), &all, &got);
	CHECK_STR(cpuset_format(&got, &a), "2-3");
	pool_config_type_cpus(&c, STR("management"), &all, &got);
	CHECK_STR(cpuset_format(&got, &a), "0-3");
	/* all of its CPUs are offline */
	pool_config_type_cpus(&c, STR("ran"), &rest, &got);
	CHECK_STR(cpuset_format(&got, &a), "0-1");
	CHECK_ERR(pool_config_set_type(&c, STR("shared"), &ran, &err), EINVAL,
		  "a workload type cannot have the name of a pool, \"shared\"");
	for (char name[] = "a"; c.n_types < POOL_TYPES_MAX; name[0]++)
		CHECK_OK(pool_config_set_type(&c, str_from(name), &ran, &err));
	CHECK_ERR(pool_config_set_type(&c, STR("z"), &ran, &err), E2BIG,
		  "more than 8 workload types");
}

TEST(workload_types_are_written_compared_and_read_back)
{
	struct pool_config c = config("0-3", "4-7", ""), back, other;
	const struct cpuset ran = cpus("2-3");
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct str text;
	struct doc doc;

	arena_init(&a, 0);
	other = c;
	CHECK_OK(pool_config_set_type(&c, STR("ran"), &ran, &err));
	CHECK(!pool_config_eq(&c, &other) && pool_config_hash(&c) != pool_config_hash(&other));
	CHECK_OK(doc_write(pool_config_to_doc(&c, doc_build(&a), &a), false, &a, &text, &err));
	CHECK(str_has(text, STR("\"types\":{\"ran\":\"2-3\"}")));
	CHECK_OK(doc_parse(text, STR("f"), NULL, &a, &doc, &err));
	CHECK_OK(pool_config_from_doc(&doc, doc.root, &back, &err));
	CHECK(pool_config_eq(&c, &back));
	back.types[0].cpus = cpus("3");
	CHECK(!pool_config_eq(&c, &back));
}
