/* A ledger whose CPUs are in use when something changes: pools, the machine, the agent itself, or
 * what a container asks for. */

#include <errno.h>
#include <stdio.h>

#include "base/macro.h"
#include "ledger_bench.h"

TEST(resize_is_refused_when_a_container_would_lose_its_cpus)
{
	static const struct {
		const char *reserved, *shared, *guaranteed, *error;
	} rows[] = {
		{ "0-1", "2-5", "6-15", NULL },
		{ "0-3", "4-7", "8-15", NULL }, /* all three move */
		{ "0-1", "2-9", "10-15",
		  "the guaranteed pool cannot lose CPUs \"8-9\": ns/p/app runs there" },
		{ "0-1", "2-15", "",
		  "the guaranteed pool cannot lose CPUs \"8-9\": ns/p/app runs there, and 1 more" },
		{ "0-1", NULL, "", NULL }, /* classic: what is held stays held */
		{ "8", NULL, "",
		  "the guaranteed pool cannot lose CPUs \"8\": ns/p/app runs there" },
		{ "0-1", "2-5", "6-14", "CPU \"15\" is in no pool" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct pool_config c = config(rows[i].reserved, rows[i].shared, rows[i].guaranteed);
		CLEANUP(bench_done) struct bench b;
		struct err err = { 0 };
		int r;

		TEST_ROW("row %zu", i);
		bench_start(&b, config("0-1", "2-7", "8-15"));
		CHECK_STR(give(&b, "p", "app", 2000), "8-9");
		CHECK_STR(give(&b, "q", "app", 2000), "10-11");
		r = ledger_resize(&b.l, &c, &err);
		CHECK((r < 0) == (rows[i].error != NULL));
		if (rows[i].error)
			CHECK_STR(err.msg, rows[i].error);
		CHECK(pool_config_eq(&b.l.now.config, r < 0 ? &b.config : &c));
		CHECK_STR(give(&b, "p", "app", 2000), "8-9");
	}
}

TEST(a_resize_plan_lists_conflicts_and_the_new_shared_cpus)
{
	CLEANUP(bench_done) struct bench b;
	struct pool_config c = config("0-1", "2-3", "4-15");
	struct ledger_resize_plan plan;
	struct err err = { 0 };

	bench_start(&b, config("0-1", "2-7", "8-15"));
	(void)give(&b, "p", "app", 4000);
	CHECK_OK(ledger_plan_resize(&b.l, &c, &b.a, &plan, &err));
	CHECK_UINT(plan.n_conflicts, 0);
	CHECK_STR(cpuset_format(&plan.shared, &b.a), "2-3");
	CHECK_STR(cpuset_format(&plan.joining, &b.a), "4-7");
	CHECK(cpuset_is_empty(&plan.leaving));
	c = config("0-1", "2-10", "11-15");
	CHECK_OK(ledger_plan_resize(&b.l, &c, &b.a, &plan, &err));
	CHECK_UINT(plan.n_conflicts, 1);
	CHECK_STR(plan.conflicts[0].assignment->container, "app");
	CHECK_STR(cpuset_format(&plan.conflicts[0].cpus, &b.a), "8-10");
}

TEST(an_offline_cpu_is_not_assigned_until_it_is_online)
{
	CLEANUP(bench_done) struct bench b;
	struct topology less;
	struct ledger_capacity published;
	struct ledger_numa numa;
	struct err err = { 0 };

	bench_start(&b, config("0-1", "2-7", "8-15"));
	CHECK_STR(give(&b, "p", "app", 2000), "8-9");
	machine(&b, "4,9,12", &less);
	CHECK_OK(ledger_hotplug(&b.l, &less, &err));
	CHECK_STR(give(&b, "p", "app", 2000), "8-9"); /* kept, nothing is substituted */
	CHECK_STR(free_now(&b), "10-11,13-15");
	CHECK_STR(pool_now(&b, POOL_SHARED), "2-3,5-7");
	ledger_capacity(&b.l, &published);
	CHECK_INT(published.guaranteed_milli, 6000);
	CHECK_INT(published.shared_milli, 5000);
	ledger_numa(&b.l, 1, &numa);
	CHECK_UINT(numa.id, 1);
	CHECK_UINT(numa.n_cpus, 6);
	CHECK_UINT(numa.n_allocatable, 6);
	CHECK_UINT(numa.n_free, 5);
	CHECK_OK(ledger_hotplug(&b.l, &b.topology, &err));
	CHECK_STR(free_now(&b), "10-15");
}

TEST(containers_of_a_pool_that_is_all_offline_use_another_pool)
{
	CLEANUP(bench_done) struct bench b;
	struct topology less;
	struct err err = { 0 };

	bench_start(&b, config("0-1", "2-3", "4-15"));
	machine(&b, "2-3", &less);
	CHECK_OK(ledger_hotplug(&b.l, &less, &err));
	CHECK_STR(pool_now(&b, POOL_SHARED), "0-1");
	machine(&b, "0-1", &less);
	CHECK_OK(ledger_hotplug(&b.l, &less, &err));
	CHECK_STR(pool_now(&b, POOL_MANAGEMENT), "2-3");
	machine(&b, "0-3", &less);
	CHECK_OK(ledger_hotplug(&b.l, &less, &err));
	CHECK_STR(give(&b, "p", "app", 2000), "4-5");
	CHECK_STR(pool_now(&b, POOL_SHARED), "6-15"); /* any CPU that is not exclusive */
}

TEST(with_a_sibling_offline_its_core_is_not_whole)
{
	CLEANUP(bench_done) struct bench pools, classic;
	struct bench *both[] = { &pools, &classic };
	struct pool_config c = config("0-1", "2-11", "12-15");
	struct topology less;
	struct err err = { 0 };

	c.options.full_pcpus_only = true;
	bench_start(&pools, c);
	c = config("0-11", NULL, "");
	c.options.full_pcpus_only = true;
	bench_start(&classic, c);
	for (size_t i = 0; i < ARRAY_LEN(both); i++) {
		machine(both[i], "13", &less);
		CHECK_OK(ledger_hotplug(&both[i]->l, &less, &err));
		CHECK_STR(give(both[i], "p", "app", 1000),
			  "SMT Alignment Error: requested 1 cpus not multiple cpus per core = 2");
		CHECK_STR(give(both[i], "p", "app", 2000), "14-15");
		CHECK_OK(ledger_hotplug(&both[i]->l, &both[i]->topology, &err));
	}
}

TEST(running_containers_are_adopted_only_with_valid_cpus)
{
	static const struct {
		const char *container, *list;
		int64_t milli;
		const char *error;
	} rows[] = {
		{ "app1", "12-13", 2000, NULL },
		{ "init1", "8-9", 2000,
		  NULL }, /* an init container that had these before the app */
		{ "app1", "12-14", 2000,
		  "cannot adopt CPUs \"12-14\" of container \"app1\": their number differs from "
		  "the request" },
		{ "app1", "12-13", 1500,
		  "cannot adopt CPUs \"12-13\" of container \"app1\": their number differs from "
		  "the request" },
		{ "app1", "6-7", 2000,
		  "cannot adopt CPUs \"6-7\" of container \"app1\": not all are in the guaranteed "
		  "pool" },
		{ "app1", "9-10", 2000,
		  "cannot adopt CPUs \"9-10\" of container \"app1\": another container owns some "
		  "of them" },
		{ "init1", "10-11", 2000,
		  "cannot adopt CPUs \"10-11\" of container \"init1\": another container owns some "
		  "of them" },
		{ "app0", "12-13", 2000,
		  "cannot adopt CPUs \"12-13\" of container \"app0\": it already owns other CPUs" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ledger_request r = want("p", rows[i].container, rows[i].milli);
		struct cpuset list = cpus(rows[i].list);
		CLEANUP(bench_done) struct bench b;
		struct err err = { 0 };

		TEST_ROW("row %zu", i);
		bench_start(&b, config("0-1", "2-7", "8-15"));
		CHECK_STR(give(&b, "p", "app0", 2000), "8-9");
		CHECK_STR(give(&b, "q", "app", 2000), "10-11");
		if (rows[i].error) {
			CHECK_ERR(ledger_adopt(&b.l, &r, &list, &err), EBUSY, rows[i].error);
			continue;
		}
		CHECK_OK(ledger_adopt(&b.l, &r, &list, &err));
		CHECK_STR(give(&b, "p", rows[i].container, 2000), rows[i].list);
	}
}

TEST(synchronize_releases_adopts_and_allocates)
{
	struct ledger_live live[] = {
		{ .request = want("stays", "app", 2000),
		  .current = cpus("8-9"),
		  .current_known = true },
		{ .request = want("strayed", "app", 2000),
		  .current = cpus("2-7"),
		  .current_known = true },
		{ .request = want("new", "app", 2000),
		  .current = cpus("14-15"),
		  .current_known = true },
		{ .request = want("unpinned", "app", 2000),
		  .current = cpus("0-15"),
		  .current_known = true },
		{ .request = want("shared", "app", 500),
		  .current = cpus("2-7"),
		  .current_known = true },
		{ .request = want("unknown", "app", 100) },
		{ .request = want("too-big", "app", 4000),
		  .current = cpus("2-7"),
		  .current_known = true },
	};
	static const struct {
		const char *cpus;
		bool push;
	} expected[] = { { "8-9", false }, { "10-11", true }, { "14-15", false }, { "12-13", true },
			 { "2-7", false }, { "2-7", true },   { "2-7", false } };
	CLEANUP(bench_done) struct bench b;
	struct err err = { 0 };

	bench_start(&b, config("0-1", "2-7", "8-15"));
	CHECK_STR(give(&b, "stays", "app", 2000), "8-9");
	CHECK_STR(give(&b, "strayed", "app", 2000), "10-11");
	CHECK_STR(give(&b, "gone", "app", 4000), "12-15");
	CHECK_OK(ledger_synchronize(&b.l, live, ARRAY_LEN(live), NULL, 0, &err));
	for (size_t i = 0; i < ARRAY_LEN(live); i++) {
		TEST_ROW(PRI_STR, FMT_STR(live[i].request.pod_uid));
		CHECK_STR(cpuset_format(&live[i].grant.cpus, &b.a), expected[i].cpus);
		CHECK(live[i].push == expected[i].push);
		CHECK((live[i].refused.code != 0) == (i == 6));
	}
	CHECK_STR(live[6].refused.msg,
		  "not enough cpus available to satisfy request: requested=4, available=0");
	CHECK(!ledger_find(&b.l, STR("gone"), STR("app")));
}

TEST(a_finished_container_of_an_existing_pod_keeps_its_cpus)
{
	struct ledger_live live[] = { { .request = want("p", "app1", 2000) } };
	CLEANUP(bench_done) struct bench b;
	struct err err = { 0 };

	bench_start(&b, config("0-1", "2-7", "8-15"));
	CHECK_STR(give(&b, "p", "app0", 2000), "8-9");
	CHECK_OK(ledger_synchronize(&b.l, live, 1, NULL, 0, &err));
	CHECK_STR(cpuset_format(&live[0].grant.cpus, &b.a), "10-11");
	CHECK_STR(give(&b, "p", "app0", 2000), "8-9");
	CHECK_OK(ledger_synchronize(&b.l, NULL, 0, NULL, 0, &err));
	CHECK_UINT(b.l.n, 0);
}

TEST(a_running_container_cannot_change_its_size_or_pool)
{
	static const struct {
		const char *pod;
		int64_t milli;
		const char *error;
	} rows[] = {
		{ "whole", 2000, NULL },
		{ "shared", 700, NULL },
		{ "whole", 4000,
		  "container \"app\" owns 2 CPUs and cannot change to 4000 millicores while it "
		  "runs: "
		  "recreate the pod" },
		{ "whole", 1500,
		  "container \"app\" owns 2 CPUs and cannot change to 1500 millicores while it "
		  "runs: "
		  "recreate the pod" },
		{ "shared", 2000,
		  "container \"app\" runs in the shared pool and cannot get exclusive CPUs while "
		  "it "
		  "runs: recreate the pod" },
	};
	CLEANUP(bench_done) struct bench b;

	bench_start(&b, config("0-1", "2-7", "8-15"));
	(void)give(&b, "whole", "app", 2000);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ledger_request r = want(rows[i].pod, "app", rows[i].milli);
		struct err err = { 0 };

		TEST_ROW("row %zu", i);
		if (rows[i].error)
			CHECK_ERR(ledger_check_update(&b.l, &r, &err), EPERM, rows[i].error);
		else
			CHECK_OK(ledger_check_update(&b.l, &r, &err));
	}
}
