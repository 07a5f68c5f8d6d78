/* The ledger's decisions, table by table: who gets which CPUs, in pools and in classic mode, init
 * containers and sidecars; transactions that cannot be written; and the checker of all that. What
 * happens to CPUs that are in use is in test_ledger_change.c. */

#include <errno.h>
#include <stdio.h>

#include "base/macro.h"
#include "ledger_bench.h"

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
	CHECK(grant.pool == POOL_MANAGEMENT);
	CHECK_STR(cpuset_format(&grant.cpus, &b.a), "0-1");
	r = want("burstable", "app", 2000);
	r.demand.is_guaranteed = false;
	CHECK_OK(ledger_allocate(&b.l, &r, &grant, &err));
	CHECK(grant.pool == POOL_SHARED);
	CHECK_UINT(b.l.n, 1);
}

TEST(the_shared_pool_is_constant_and_in_classic_mode_all_cpus_not_exclusive)
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

TEST(when_every_cpu_is_exclusive_shared_containers_run_on_management_cpus)
{
	CLEANUP(bench_done) struct bench b;
	struct cpuset s;

	bench_start(&b, config("0-1", NULL, ""));
	CHECK_STR(give(&b, "big", "app", 14000), "2-15");
	CHECK(!ledger_cpus(&b.l, POOL_SHARED, &s)); /* an alarm */
	CHECK_STR(cpuset_format(&s, &b.a), "0-1");
}

TEST(cpus_of_init_containers_are_reused_and_those_of_sidecars_are_not)
{
	CLEANUP(bench_done) struct bench b;

	bench_start(&b, config("0-1", "2-7", "8-15"));
	CHECK_STR(give(&b, "p", "init0", 4000), "8-11");
	CHECK_STR(give(&b, "p", "side0", 2000), "8-9"); /* on CPUs of a finished init container */
	CHECK_STR(give(&b, "p", "init1", 4000), "10-13");
	CHECK_STR(give(&b, "p", "app0", 2000), "10-11");
	CHECK_STR(give(&b, "p", "app1", 2000), "12-13");
	CHECK_STR(free_now(&b), "14-15");
	/* CPUs of an init container are not reused by other pods. */
	CHECK_STR(give(&b, "q", "app", 4000),
		  "not enough cpus available to satisfy request: requested=4, available=2");
	CHECK_STR(give(&b, "p", "init0", 4000), "8-11"); /* the pod starts over */
}

TEST(a_restarted_container_keeps_its_cpus_whatever_it_requests)
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

TEST(cpus_are_released_with_the_pod_and_shared_ones_stay_with_their_other_owner)
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
	CHECK_INT(ledger_release_pod(&b.l, STR("unknown-pod"), &err), 0);
	CHECK_STR(free_now(&b), "8-15");
}

TEST(full_pcpus_only_assigns_whole_cores_or_refuses)
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

TEST(one_thread_of_a_core_in_use_is_not_assigned)
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

TEST(cpus_of_the_hinted_node_come_first_and_the_rest_from_any_node)
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
	struct ledger_member members[] = { { STR("init0"), { CONTAINER_INIT, true, 4000 } },
					   { STR("app0"), { CONTAINER_APP, true, 2000 } },
					   { STR("app1"), { CONTAINER_APP, true, 2000 } } };
	struct ledger_request r = want("p", "init0", 4000);
	struct hint_list hints;
	struct err err = { 0 };

	/* Six free CPUs on node 0, four on node 1; the pod needs four at its fullest moment. */
	bench_start(&b, config("0-1", "8-11", "2-7,12-15"));
	r.pod = (struct ledger_pod){ .members = members, .n = 3 };
	CHECK_OK(ledger_pod_hints(&b.l, &r, &b.a, &hints, &err));
	CHECK_UINT(hints.n, 3);
	CHECK_UINT(hints.items[0].mask, 1);
	CHECK_UINT(hints.items[1].mask, 2);
	/* What the pod has already decides: its first container is on node 1. */
	r.affinity = (struct numa_hint){ .mask = 2, .has_mask = true };
	CHECK_OK(ledger_allocate(&b.l, &r, &(struct ledger_grant){ 0 }, &err));
	CHECK_OK(ledger_pod_hints(&b.l, &r, &b.a, &hints, &err));
	CHECK_UINT(hints.n, 2);
	CHECK_UINT(hints.items[0].mask, 2);
	/* An assignment of another size than asked for cannot be satisfied any more. */
	members[0].demand.cpu_milli = 2000;
	CHECK_OK(ledger_pod_hints(&b.l, &r, &b.a, &hints, &err));
	CHECK(hints.n == 0 && !hints.any);
}

/* Asks like give(), with the rest of the request as it is. */
static struct str ask(struct bench *b, const struct ledger_request *r)
{
	struct ledger_grant grant;
	struct err err = { 0 };

	if (ledger_allocate(&b->l, r, &grant, &err) < 0)
		return str_dup(&b->a, str_from(err.msg));
	return cpuset_format(&grant.cpus, &b->a);
}

TEST(exclusive_cpus_come_from_the_numa_nodes_that_the_policy_allows)
{
	static const struct {
		enum hint_policy policy;
		const char *pool; /* on node 0: 0-7, on node 1: 8-15 */
		int64_t milli;
		uint64_t devices, memory;
		const char *want;
	} rows[] = {
		/* Two CPUs from 3 on node 0 and 14-15 on node 1. */
		{ HINT_POLICY_NONE, "3,14-15", 2000, 0, 0, "14-15" },
		{ HINT_POLICY_NONE, "3,12,14", 2000, 0, 0, "3,12" },
		{ HINT_POLICY_BEST_EFFORT, "3,12,14", 2000, 0, 0, "12,14" },
		{ HINT_POLICY_SINGLE_NUMA_NODE, "3,12,14", 2000, 0, 0, "12,14" },
		/* Three CPUs: no node has them; the pool needs two nodes in any case. */
		{ HINT_POLICY_BEST_EFFORT, "3,12,14", 3000, 0, 0, "3,12,14" },
		{ HINT_POLICY_RESTRICTED, "3,12,14", 3000, 0, 0, "3,12,14" },
		{ HINT_POLICY_SINGLE_NUMA_NODE, "3,12,14", 3000, 0, 0,
		  "TopologyAffinityError: Resources cannot be allocated with Topology locality: "
		  "policy single-numa-node, scope container, 3 CPUs; free CPUs: 1 on node 0, "
		  "2 on node 1" },
		/* A device, or memory, on the other node. */
		{ HINT_POLICY_NONE, "2-3,12-13", 2000, 2, 0, "2-3" },
		{ HINT_POLICY_BEST_EFFORT, "2-3,12-13", 2000, 2, 0, "12-13" },
		{ HINT_POLICY_BEST_EFFORT, "2-3,12-13", 2000, 0, 2, "12-13" },
		{ HINT_POLICY_BEST_EFFORT, "3,12-13", 2000, 1, 0, "3,12" },
		{ HINT_POLICY_RESTRICTED, "3,12-13", 2000, 1, 0,
		  "TopologyAffinityError: Resources cannot be allocated with Topology locality: "
		  "policy restricted, scope container, 2 CPUs; free CPUs: 1 on node 0, 2 on node "
		  "1; devices on node 0" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(bench_done) struct bench b;
		struct ledger_request r = want("p", "app", rows[i].milli);
		struct pool_config c = config("0", "1", rows[i].pool);

		TEST_ROW("row %zu", i);
		c.fold_rest = true;
		c.topology.policy = rows[i].policy;
		bench_start(&b, c);
		r.device_nodes = rows[i].devices;
		r.memory_nodes = rows[i].memory;
		CHECK_STR(ask(&b, &r), rows[i].want);
	}
	CHECK_STR(ledger_reject_reason(-EXDEV), "TopologyAffinityError");
}

TEST(a_running_container_is_not_refused_for_its_numa_nodes)
{
	CLEANUP(bench_done) struct bench b;
	struct ledger_request r = want("p", "app", 3000);
	struct pool_config c = config("0", "1-2,4-11,13,15", "3,12,14");

	c.topology.policy = HINT_POLICY_SINGLE_NUMA_NODE;
	bench_start(&b, c);
	r.is_running = true;
	CHECK_STR(ask(&b, &r), "3,12,14");
}

TEST(policies_that_refuse_bind_memory_to_the_nodes_of_the_cpus)
{
	static const struct {
		enum hint_policy policy;
		int64_t milli;
		uint64_t want;
	} rows[] = {
		{ HINT_POLICY_NONE, 2000, 0 },
		{ HINT_POLICY_BEST_EFFORT, 2000, 0 },
		{ HINT_POLICY_RESTRICTED, 2000, 1 },
		{ HINT_POLICY_RESTRICTED, 12000, 3 },
		{ HINT_POLICY_SINGLE_NUMA_NODE, 7000, 2 },
		{ HINT_POLICY_SINGLE_NUMA_NODE, 1500, 0 }, /* shared */
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(bench_done) struct bench b;
		struct ledger_request r = want("p", "app", rows[i].milli);
		struct pool_config c = config("0", "1", "2-15");
		struct ledger_grant grant;
		struct err err = { 0 };

		TEST_ROW("row %zu", i);
		c.topology.policy = rows[i].policy;
		bench_start(&b, c);
		CHECK_OK(ledger_allocate(&b.l, &r, &grant, &err));
		CHECK_UINT(grant.memory_nodes, rows[i].want);
		CHECK_OK(ledger_allocate(&b.l, &r, &grant, &err)); /* a restart */
		CHECK_UINT(grant.memory_nodes, rows[i].want);
	}
}

TEST(in_pod_scope_the_first_container_reserves_the_cpus_of_its_pod)
{
	static const struct ledger_member members[] = {
		{ STR_INIT("init0"), { CONTAINER_INIT, true, 4000 } },
		{ STR_INIT("app0"), { CONTAINER_APP, true, 2000 } },
		{ STR_INIT("app1"), { CONTAINER_APP, true, 4000 } },
		{ STR_INIT("app2"), { CONTAINER_APP, true, 500 } },
	};
	CLEANUP(bench_done) struct bench b;
	struct pool_config c = config("0-1", "2-3,8-9", "4-7,10-15"); /* four and six */
	struct ledger_request r = want("p", "app0", 2000);

	c.topology = (struct hint_config){ .policy = HINT_POLICY_SINGLE_NUMA_NODE,
					   .scope = HINT_SCOPE_POD };
	bench_start(&b, c);
	r.pod = (struct ledger_pod){ .members = members, .n = 4, .reserves = true };
	/* Two CPUs alone would come from node 0. */
	CHECK_STR(ask(&b, &r), "10-11");
	CHECK_UINT(b.l.n, 3);
	CHECK_STR(free_now(&b), "4-7");
	CHECK_STR(give(&b, "p", "init0", 4000), "10-13");
	CHECK_STR(give(&b, "p", "app1", 4000), "12-15");
	/* A pod that fits together nowhere gets nothing. */
	r.pod_uid = STR("q");
	CHECK(str_starts(ask(&b, &r), STR("TopologyAffinityError")));
	CHECK_UINT(b.l.n, 3);
}

TEST(in_pod_scope_a_pod_with_unknown_containers_stays_where_its_first_one_is)
{
	CLEANUP(bench_done) struct bench b;
	struct pool_config c = config("0-1", "2-3,8-9", "4-7,10-15"); /* four and six */
	struct ledger_request r = want("p", "app0", 2000);

	c.topology = (struct hint_config){ .policy = HINT_POLICY_SINGLE_NUMA_NODE,
					   .scope = HINT_SCOPE_POD };
	bench_start(&b, c);
	/* The sandbox says that the pod has six and a half CPUs. */
	r.pod.n_cpus = 6;
	CHECK_STR(ask(&b, &r), "10-11");
	r = want("p", "app1", 4000);
	r.pod.n_cpus = 6;
	CHECK_STR(ask(&b, &r), "12-15");
	/* The rest of this total may be in the shared pool, so it refuses nothing. */
	r = want("q", "app0", 4000);
	r.pod.n_cpus = 5;
	CHECK_STR(ask(&b, &r), "4-7");
	CHECK_INT(ledger_release_pod(&b.l, STR("p"), &(struct err){ 0 }), 2);
	r = want("q", "app1", 1000); /* on node 1 only */
	CHECK(str_starts(ask(&b, &r), STR("TopologyAffinityError")));
}

TEST(a_member_that_fits_nowhere_takes_back_the_reservation_of_its_pod)
{
	static const struct ledger_member members[] = {
		{ STR_INIT("app0"), { CONTAINER_APP, true, 2000 } },
		{ STR_INIT("app1"), { CONTAINER_APP, true, 3000 } },
	};
	CLEANUP(bench_done) struct bench b;
	struct pool_config c = config("0-1", "2-3", "4-15");
	struct ledger_request r = want("p", "app0", 2000);
	struct err err = { 0 };

	c.options.full_pcpus_only = true;
	c.topology.scope = HINT_SCOPE_POD;
	bench_start(&b, c);
	r.pod = (struct ledger_pod){ .members = members, .n = 2, .reserves = true };
	ledger_begin(&b.l);
	CHECK_STR(ask(&b, &r),
		  "container \"app1\": SMT Alignment Error: requested 3 cpus not multiple cpus "
		  "per core = 2");
	CHECK_OK(ledger_commit(&b.l, &err));
	CHECK_UINT(b.l.n, 0);
	CHECK_STR(free_now(&b), "4-15");
}

static int fail_to_write(const struct ledger *l, void *data, struct err *err)
{
	(void)l;
	++*(int *)data;
	return err_set(err, EIO, "disk: broken");
}

TEST(a_change_that_cannot_be_written_is_rolled_back)
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
	/* Once for all of them, then for each alone. */
	CHECK_ERR(ledger_synchronize(&b.l, live, 1, NULL, 0, &err), EIO, "disk: broken");
	CHECK_INT(n_writes, 5);
	CHECK_INT(live[0].grant.pool, POOL_SHARED);
	CHECK_STR(cpuset_format(&live[0].grant.cpus, &b.a), "2-7");
	CHECK_UINT(b.l.n, 1);
	CHECK_STR(free_now(&b), "10-15");
	CHECK_STR(pool_now(&b, POOL_MANAGEMENT), "0-1");
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
TEST(each_broken_invariant_is_reported)
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

TEST(a_leaked_cpu_is_reported)
{
	CLEANUP(bench_done) struct bench b;
	struct err err = { 0 };

	bench_start(&b, config("0-1", "2-7", "8-15"));
	cpuset_add(&b.l.now.sets.held, 15);
	CHECK_ERR(ledger_check(&b.l, &err), EUCLEAN, "I3 (lost or leaked) is broken: CPUs \"15\"");
}
