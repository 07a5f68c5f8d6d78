/* The ledger's decisions, table by table: pools, classic mode, init containers and sidecars,
 * resize, hot-unplug, adoption, and transactions that cannot be written. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "cpu/topology.h"
#include "pool/ledger.h"
#include "test.h"

static struct cpuset cpus(const char *list)
{
	struct err err = { 0 };
	struct cpuset s;

	CHECK_OK(cpuset_parse(str_from(list), &s, &err));
	return s;
}

/* 16 CPUs: two NUMA nodes of four cores, siblings side by side; `offline` are left out. */
struct bench {
	struct arena a;
	struct topology topology;
	struct pool_config config;
	struct ledger l;
};

static void machine(struct bench *b, const char *offline, struct topology *ret)
{
	struct topology_cpu list[16];
	struct topology_input in = { .cpus = list, .offline = cpus(offline) };
	struct err err = { 0 };

	for (uint16_t cpu = 0; cpu < 16; cpu++)
		if (!cpuset_has(&in.offline, cpu))
			list[in.n_cpus++] = (struct topology_cpu){
				.cpu = cpu,
				.id = { [TOPOLOGY_CORE] = cpu / 2U,
					[TOPOLOGY_NUMA] = cpu / 8U,
					[TOPOLOGY_SOCKET] = cpu / 8U,
					[TOPOLOGY_UNCORE] = TOPOLOGY_NO_ID },
			};
	CHECK_OK(topology_build(&in, &b->a, ret, &err));
}

static struct pool_config config(const char *reserved, const char *shared, const char *guaranteed)
{
	struct pool_config c;

	pool_config_init(&c);
	c.reserved = cpus(reserved);
	c.is_classic = shared == NULL;
	c.shared = shared ? cpus(shared) : cpus("");
	c.guaranteed = cpus(guaranteed);
	return c;
}

static void bench_start(struct bench *b, struct pool_config c)
{
	struct err err = { 0 };

	*b = (struct bench){ .config = c };
	arena_init(&b->a, 0);
	machine(b, "", &b->topology);
	CHECK_OK(ledger_init(&b->l, &b->topology, &b->config, &err));
}

static void bench_done(struct bench *b)
{
	ledger_done(&b->l);
	arena_done(&b->a);
}

static struct ledger_request want(const char *pod, const char *container, int64_t milli)
{
	enum container_kind kind = strncmp(container, "init", 4) == 0 ? CONTAINER_INIT :
				   strncmp(container, "side", 4) == 0 ? CONTAINER_SIDECAR :
									CONTAINER_APP;

	return (struct ledger_request){
		.pod_uid = str_from(pod),
		.pod_namespace = STR("ns"),
		.pod_name = str_from(pod),
		.container = str_from(container),
		.demand = { kind, true, milli },
	};
}

/* The CPUs a container gets, or the complaint. */
static const char *give(struct bench *b, const char *pod, const char *container, int64_t milli)
{
	struct ledger_request r = want(pod, container, milli);
	struct ledger_grant grant;
	struct err err = { 0 };

	if (ledger_allocate(&b->l, &r, &grant, &err) < 0)
		return str_cstr(&b->a, str_from(err.msg));
	return str_cstr(&b->a, cpuset_format(&grant.cpus, &b->a));
}

static struct str pool_now(struct bench *b, enum pool pool)
{
	struct cpuset s;

	(void)ledger_cpus(&b->l, pool, &s);
	return cpuset_format(&s, &b->a);
}

static struct str free_now(struct bench *b)
{
	struct cpuset s;

	ledger_free(&b->l, &s);
	return cpuset_format(&s, &b->a);
}

TEST(each_container_runs_in_the_pool_it_belongs_to)
{
	CLEANUP(bench_done) struct bench b;
	struct ledger_request r = want("m", "app", 2000);
	struct ledger_grant grant;
	struct err err = { 0 };

	bench_start(&b, config("0-1", "2-5", "6-15"));
	CHECK_STR(give(&b, "whole", "app", 2000), "6-7");
	CHECK_STR(give(&b, "fraction", "app", 1500), "2-5");
	CHECK_STR(give(&b, "nothing", "app", 0), "2-5");
	r.is_management = true;
	CHECK_OK(ledger_allocate(&b.l, &r, &grant, &err));
	CHECK(grant.pool == POOL_RESERVED);
	CHECK_STR(cpuset_format(&grant.cpus, &b.a), "0-1");
	r = want("burstable", "app", 2000);
	r.demand.is_guaranteed = false;
	CHECK_OK(ledger_allocate(&b.l, &r, &grant, &err));
	CHECK(grant.pool == POOL_SHARED);
	CHECK_UINT(b.l.n, 1);
}

TEST(the_shared_pool_is_constant_and_in_classic_mode_what_is_left)
{
	CLEANUP(bench_done) struct bench pools, classic, kubelet;
	struct pool_config c;

	bench_start(&pools, config("0-1", "2-5", "6-15"));
	bench_start(&classic, config("0-1", NULL, ""));
	c = config("0-1", NULL, "");
	c.options.strict_cpu_reservation = false;
	bench_start(&kubelet, c);
	CHECK_STR(pool_now(&classic, POOL_SHARED), "2-15");
	CHECK_STR(pool_now(&kubelet, POOL_SHARED), "0-15");
	(void)give(&pools, "p", "app", 4000);
	CHECK_STR(give(&classic, "p", "app", 4000), "2-5");
	CHECK_STR(give(&kubelet, "p", "app", 4000), "2-5");
	CHECK_STR(pool_now(&pools, POOL_SHARED), "2-5");
	CHECK_STR(pool_now(&classic, POOL_SHARED), "6-15");
	CHECK_STR(pool_now(&kubelet, POOL_SHARED), "0-1,6-15");
}

TEST(when_every_cpu_is_exclusive_shared_containers_go_to_the_reserved_ones)
{
	CLEANUP(bench_done) struct bench b;
	struct cpuset s;

	bench_start(&b, config("0-1", NULL, ""));
	CHECK_STR(give(&b, "big", "app", 14000), "2-15");
	CHECK(!ledger_cpus(&b.l, POOL_SHARED, &s)); /* an alarm */
	CHECK_STR(cpuset_format(&s, &b.a), "0-1");
}

TEST(init_containers_lend_their_cpus_and_sidecars_do_not)
{
	CLEANUP(bench_done) struct bench b;

	bench_start(&b, config("0-1", "2-7", "8-15"));
	CHECK_STR(give(&b, "p", "init0", 4000), "8-11");
	CHECK_STR(give(&b, "p", "side0", 2000), "8-9"); /* on CPUs of a finished init container */
	CHECK_STR(give(&b, "p", "init1", 4000), "10-13");
	CHECK_STR(give(&b, "p", "app0", 2000), "10-11");
	CHECK_STR(give(&b, "p", "app1", 2000), "12-13");
	CHECK_STR(free_now(&b), "14-15");
	/* Nobody else profits from what an init container once had. */
	CHECK_STR(give(&b, "q", "app", 4000),
		  "not enough cpus available to satisfy request: requested=4, available=2");
	CHECK_STR(give(&b, "p", "init0", 4000), "8-11"); /* the pod starts over */
}

TEST(a_restarted_container_finds_its_cpus_whatever_it_asks_for)
{
	CLEANUP(bench_done) struct bench b;
	struct ledger_request r = want("p", "app", 4000);
	struct ledger_grant grant;
	struct err err = { 0 };

	bench_start(&b, config("0-1", "2-7", "8-15"));
	CHECK_STR(give(&b, "p", "app", 2000), "8-9");
	CHECK_OK(ledger_allocate(&b.l, &r, &grant, &err));
	CHECK_STR(cpuset_format(&grant.cpus, &b.a), "8-9");
	CHECK(grant.size_differs && !grant.is_new);
}

TEST(cpus_are_released_with_the_pod_and_siblings_keep_what_they_share)
{
	CLEANUP(bench_done) struct bench b;
	struct err err = { 0 };

	bench_start(&b, config("0-1", "2-7", "8-15"));
	(void)give(&b, "p", "init0", 4000);
	(void)give(&b, "p", "app0", 2000);
	CHECK_INT(ledger_release_container(&b.l, STR("p"), STR("init0"), &err), 1);
	CHECK_STR(free_now(&b), "10-15");
	CHECK_INT(ledger_release_container(&b.l, STR("p"), STR("init0"), &err), 0);
	CHECK_INT(ledger_release_pod(&b.l, STR("p"), &err), 1);
	CHECK_INT(ledger_release_pod(&b.l, STR("nobody"), &err), 0);
	CHECK_STR(free_now(&b), "8-15");
}

TEST(whole_cores_or_nothing)
{
	CLEANUP(bench_done) struct bench b;
	struct pool_config c = config("0-1", "2-6", "7-15"); /* 7 shares a core with 6 */
	struct ledger_capacity published;

	c.options.full_pcpus_only = true;
	bench_start(&b, c);
	ledger_capacity(&b.l, &published);
	CHECK_INT(published.guaranteed_milli, 9000);
	CHECK_INT(published.usable_milli, 8000);
	CHECK_STR(give(&b, "p", "app", 1000),
		  "SMT Alignment Error: requested 1 cpus not multiple cpus per core = 2");
	CHECK_STR(
		give(&b, "p", "app", 10000),
		"SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 8, "
		"requested CPUs = 10, CPUs per core = 2");
	CHECK_STR(give(&b, "p", "app", 8000), "8-15");
	CHECK_STR(ledger_reject_reason(-EDOM), "SMTAlignmentError");
	CHECK_STR(ledger_reject_reason(-ENOSPC), "UnexpectedAdmissionError");
}

TEST(half_a_core_from_before_the_option_is_not_given)
{
	CLEANUP(bench_done) struct bench b;
	struct pool_config c = config("0-1", "2-11", "12-15");
	struct err err = { 0 };

	bench_start(&b, c);
	CHECK_STR(give(&b, "p", "app", 1000), "12");
	c.options.full_pcpus_only = true;
	CHECK_OK(ledger_resize(&b.l, &c, &err));
	CHECK_STR(give(&b, "q", "app", 2000), "14-15"); /* not 13 */
}

TEST(a_hint_names_the_node_and_the_rest_comes_from_anywhere)
{
	CLEANUP(bench_done) struct bench b;
	struct ledger_request r = want("p", "app", 2000);
	struct ledger_grant grant;
	struct err err = { 0 };

	bench_start(&b, config("0-1", "2-3", "4-15"));
	r.affinity = (struct numa_hint){ .mask = 2, .has_mask = true };
	CHECK_OK(ledger_allocate(&b.l, &r, &grant, &err));
	CHECK_STR(cpuset_format(&grant.cpus, &b.a), "8-9");
	r = want("q", "app", 8000);
	r.affinity = (struct numa_hint){ .mask = 2, .has_mask = true };
	CHECK_OK(ledger_allocate(&b.l, &r, &grant, &err));
	CHECK_STR(cpuset_format(&grant.cpus, &b.a), "4-5,10-15");
}

TEST(hints_count_the_pool_and_not_the_machine)
{
	CLEANUP(bench_done) struct bench b;
	struct ledger_request r = want("p", "app", 6000);
	struct hint_list hints;
	struct err err = { 0 };

	/* Four CPUs of the pool on each node: six need both, and that is as good as it gets. */
	bench_start(&b, config("0-1", "2-3,8-11", "4-7,12-15"));
	CHECK_OK(ledger_hints(&b.l, &r, &b.a, &hints, &err));
	CHECK_UINT(hints.n, 1);
	CHECK_UINT(hints.items[0].mask, 3);
	CHECK(hints.items[0].preferred);
}

TEST(in_pod_scope_all_containers_of_a_pod_must_fit_together)
{
	CLEANUP(bench_done) struct bench b;
	struct ledger_request pod[] = { want("p", "init0", 4000), want("p", "app0", 2000),
					want("p", "app1", 2000) };
	struct hint_list hints;
	struct err err = { 0 };

	/* Six free CPUs on node 0, four on node 1; the pod needs four at its fullest moment. */
	bench_start(&b, config("0-1", "8-11", "2-7,12-15"));
	CHECK_OK(ledger_pod_hints(&b.l, pod, 3, &b.a, &hints, &err));
	CHECK_UINT(hints.n, 3);
	CHECK_UINT(hints.items[0].mask, 1);
	CHECK_UINT(hints.items[1].mask, 2);
	/* What the pod has already decides: its first container is on node 1. */
	pod[0].affinity = (struct numa_hint){ .mask = 2, .has_mask = true };
	CHECK_OK(ledger_allocate(&b.l, &pod[0], &(struct ledger_grant){ 0 }, &err));
	CHECK_OK(ledger_pod_hints(&b.l, pod, 3, &b.a, &hints, &err));
	CHECK_UINT(hints.n, 2);
	CHECK_UINT(hints.items[0].mask, 2);
	/* An assignment of another size than asked for cannot be satisfied any more. */
	pod[0].demand.cpu_milli = 2000;
	CHECK_OK(ledger_pod_hints(&b.l, pod, 3, &b.a, &hints, &err));
	CHECK(hints.n == 0 && !hints.any);
	CHECK_OK(ledger_pod_hints(&b.l, pod, 0, &b.a, &hints, &err));
	CHECK(hints.any);
}

TEST(pools_are_resized_unless_a_container_would_lose_its_cpus)
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

TEST(a_plan_says_who_is_in_the_way_and_where_shared_containers_go_first)
{
	CLEANUP(bench_done) struct bench b;
	struct pool_config c = config("0-1", "2-3", "4-15");
	struct resize_plan plan;
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

TEST(an_unplugged_cpu_is_nobodys_until_it_is_back)
{
	CLEANUP(bench_done) struct bench b;
	struct topology less;
	struct ledger_capacity published;
	struct ledger_numa numa;
	struct cpuset offline;
	struct err err = { 0 };

	bench_start(&b, config("0-1", "2-7", "8-15"));
	CHECK_STR(give(&b, "p", "app", 2000), "8-9");
	machine(&b, "4,9,12", &less);
	CHECK_OK(ledger_hotplug(&b.l, &less, &err));
	CHECK(ledger_is_degraded(&b.l, ledger_find(&b.l, STR("p"), STR("app"))));
	CHECK_STR(give(&b, "p", "app", 2000), "8-9"); /* kept, nothing is substituted */
	CHECK_STR(free_now(&b), "10-11,13-15");
	CHECK_STR(pool_now(&b, POOL_SHARED), "2-3,5-7");
	ledger_offline(&b.l, &offline);
	CHECK_STR(cpuset_format(&offline, &b.a), "4,9,12");
	ledger_capacity(&b.l, &published);
	CHECK_INT(published.guaranteed_milli, 6000);
	CHECK_INT(published.shared_milli, 5000);
	ledger_numa(&b.l, 1, &numa);
	CHECK_UINT(numa.id, 1);
	CHECK_UINT(numa.n_cpus, 6);
	CHECK_UINT(numa.n_allocatable, 6);
	CHECK_UINT(numa.n_free, 5);
	CHECK_OK(ledger_hotplug(&b.l, &b.topology, &err));
	CHECK(!ledger_is_degraded(&b.l, ledger_find(&b.l, STR("p"), STR("app"))));
	CHECK_STR(free_now(&b), "10-15");
}

TEST(a_pool_that_is_all_offline_sends_its_containers_elsewhere)
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
	CHECK_STR(pool_now(&b, POOL_RESERVED), "2-3");
	machine(&b, "0-3", &less);
	CHECK_OK(ledger_hotplug(&b.l, &less, &err));
	CHECK_STR(give(&b, "p", "app", 2000), "4-5");
	CHECK_STR(pool_now(&b, POOL_SHARED), "6-15"); /* anything, but nobody's own */
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

TEST(running_containers_are_adopted_only_where_they_may_be)
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
		  "cannot adopt CPUs \"12-14\" of container \"app1\": not as many as it asks for" },
		{ "app1", "12-13", 1500,
		  "cannot adopt CPUs \"12-13\" of container \"app1\": not as many as it asks for" },
		{ "app1", "6-7", 2000,
		  "cannot adopt CPUs \"6-7\" of container \"app1\": not all in the guaranteed "
		  "pool" },
		{ "app1", "9-10", 2000,
		  "cannot adopt CPUs \"9-10\" of container \"app1\": held by another container" },
		{ "init1", "10-11", 2000,
		  "cannot adopt CPUs \"10-11\" of container \"init1\": held by another container" },
		{ "app0", "12-13", 2000,
		  "cannot adopt CPUs \"12-13\" of container \"app0\": it has others already" },
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

TEST(after_a_restart_the_ledger_and_what_runs_are_brought_together)
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
	CHECK_OK(ledger_synchronize(&b.l, live, ARRAY_LEN(live), &err));
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

TEST(a_finished_container_of_a_living_pod_keeps_its_cpus)
{
	struct ledger_live live[] = { { .request = want("p", "app1", 2000) } };
	CLEANUP(bench_done) struct bench b;
	struct err err = { 0 };

	bench_start(&b, config("0-1", "2-7", "8-15"));
	CHECK_STR(give(&b, "p", "app0", 2000), "8-9");
	CHECK_OK(ledger_synchronize(&b.l, live, 1, &err));
	CHECK_STR(cpuset_format(&live[0].grant.cpus, &b.a), "10-11");
	CHECK_STR(give(&b, "p", "app0", 2000), "8-9");
	CHECK_OK(ledger_synchronize(&b.l, NULL, 0, &err));
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
		  "create the pod anew" },
		{ "whole", 1500,
		  "container \"app\" owns 2 CPUs and cannot change to 1500 millicores while it "
		  "runs: "
		  "create the pod anew" },
		{ "shared", 2000,
		  "container \"app\" runs in the shared pool and cannot get CPUs of its own while "
		  "it "
		  "runs: create the pod anew" },
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

static int fail_to_write(const struct ledger *l, void *data, struct err *err)
{
	(void)l;
	++*(int *)data;
	return err_set(err, EIO, "disk: broken");
}

TEST(what_cannot_be_written_has_not_happened)
{
	CLEANUP(bench_done) struct bench b;
	struct pool_config c = config("0-3", "4-7", "8-15");
	struct ledger_live live[] = { { .request = want("new", "app", 2000) } };
	struct err err = { 0 };
	int n_writes = 0;

	bench_start(&b, config("0-1", "2-7", "8-15"));
	CHECK_STR(give(&b, "p", "app", 2000), "8-9");
	b.l.persist = fail_to_write;
	b.l.persist_data = &n_writes;
	CHECK_STR(give(&b, "p", "app", 2000), "8-9"); /* nothing to write */
	CHECK_STR(give(&b, "s", "app", 500), "2-7");
	CHECK_INT(n_writes, 0);
	CHECK_STR(give(&b, "q", "app", 2000), "disk: broken");
	CHECK_ERR(ledger_release_pod(&b.l, STR("p"), &err), EIO, "disk: broken");
	CHECK_ERR(ledger_resize(&b.l, &c, &err), EIO, "disk: broken");
	CHECK_ERR(ledger_synchronize(&b.l, live, 1, &err), EIO, "disk: broken");
	CHECK_INT(n_writes, 4);
	CHECK_UINT(b.l.n, 1);
	CHECK_STR(free_now(&b), "10-15");
	CHECK_STR(pool_now(&b, POOL_RESERVED), "0-1");
	CHECK_OK(ledger_check(&b.l, &err));
}

static int count_writes(const struct ledger *l, void *data, struct err *err)
{
	(void)l;
	(void)err;
	++*(int *)data;
	return 0;
}

TEST(a_transaction_is_one_write)
{
	CLEANUP(bench_done) struct bench b;
	struct err err = { 0 };
	int n_writes = 0;

	bench_start(&b, config("0-1", "2-7", "8-15"));
	b.l.persist = count_writes;
	b.l.persist_data = &n_writes;
	ledger_begin(&b.l);
	CHECK_STR(give(&b, "p", "app", 2000), "8-9");
	CHECK_STR(give(&b, "q", "app", 2000), "10-11");
	CHECK_INT(ledger_release_pod(&b.l, STR("p"), &err), 1);
	CHECK_STR(give(&b, "r", "app", 2000), "8-9");
	CHECK_INT(n_writes, 0);
	CHECK_OK(ledger_commit(&b.l, &err));
	CHECK_INT(n_writes, 1);
	ledger_begin(&b.l);
	CHECK_OK(ledger_commit(&b.l, &err));
	CHECK_INT(n_writes, 1); /* nothing changed */
}

/* The checker must be able to fail: lay down each kind of damage by hand. */
TEST(each_broken_invariant_is_noticed)
{
	static const struct {
		const char *first, *second; /* of one pod, or of two when `other_pod` */
		bool other_pod;
		const char *error;
	} rows[] = {
		{ "8-9", "9-10", true, "I4 (held by two pods) is broken: ns/q/app, CPUs \"9\"" },
		{ "8-9", "9-10", false,
		  "I4 (held by two containers) is broken: ns/p/b, CPUs \"9\"" },
		{ "8-9", "", true,
		  "I3 (an assignment without CPUs) is broken: ns/q/app, CPUs \"\"" },
		{ "8-9", "2-3", true, "I3 (exclusive outside the pool) is broken: CPUs \"2-3\"" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct str pod = rows[i].other_pod ? STR("q") : STR("p");
		struct assignment entries[] = {
			{ .pod_uid = STR("p"),
			  .pod_namespace = STR("ns"),
			  .pod_name = STR("p"),
			  .container = STR("a"),
			  .kind = CONTAINER_APP,
			  .cpus = cpus(rows[i].first) },
			{ .pod_uid = pod,
			  .pod_namespace = STR("ns"),
			  .pod_name = pod,
			  .container = rows[i].other_pod ? STR("app") : STR("b"),
			  .kind = CONTAINER_APP,
			  .cpus = cpus(rows[i].second) },
		};
		struct assignment *order[] = { &entries[0], &entries[1] };
		CLEANUP(bench_done) struct bench b;
		struct err err = { 0 };

		TEST_ROW("row %zu", i);
		bench_start(&b, config("0-1", "2-7", "8-15"));
		CHECK_ERR(ledger_load(&b.l, order, 2, &err), EUCLEAN, rows[i].error);
		CHECK_UINT(b.l.n, 0);
	}
}

TEST(a_leaked_cpu_is_noticed)
{
	CLEANUP(bench_done) struct bench b;
	struct err err = { 0 };

	bench_start(&b, config("0-1", "2-7", "8-15"));
	cpuset_add(&b.l.now.sets.held, 15);
	CHECK_ERR(ledger_check(&b.l, &err), EUCLEAN, "I3 (lost or leaked) is broken: CPUs \"15\"");
}

TEST(a_cpu_leads_back_to_its_container)
{
	CLEANUP(bench_done) struct bench b;

	bench_start(&b, config("0-1", "2-7", "8-15"));
	(void)give(&b, "p", "init0", 4000);
	(void)give(&b, "p", "app", 2000);
	CHECK_STR(ledger_owner(&b.l, 8)->container, "app");
	CHECK_STR(ledger_owner(&b.l, 11)->container, "init0");
	CHECK(!ledger_owner(&b.l, 12));
	CHECK(!ledger_owner(&b.l, 0));
	CHECK(!ledger_owner(&b.l, CPUSET_MAX));
}
