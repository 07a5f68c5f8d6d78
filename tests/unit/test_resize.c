/* Pools that change their size while everything runs: the order of the steps as a table and as a
 * property, whole stories with a cgroup tree of plain files, and a crash at every system call. */

#include "agent_node.h"

#include "cpus.h"
#include "crash.h"
#include "pin/reboot.h"
#include "pin/resize.h"
#include "pool/store.h"

static struct resize_sets sets(const char *reserved, const char *shared)
{
	return (struct resize_sets){ { cpus(reserved), cpus(shared) } };
}

static const char *steps_text(const struct resize_steps *s, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < s->n; i++)
		strbuf_printf(&b, "%s%c%s" PRI_STR, i ? " " : "", s->items[i].pool ? 's' : 'r',
			      s->items[i].is_shrink ? "-" : "+",
			      FMT_STR(cpuset_format(&s->items[i].cpus, a)));
	return str_cstr(a, strbuf_str(&b));
}

TEST(pools_shrink_before_they_grow)
{
	static const struct {
		const char *reserved, *shared, *to_reserved, *to_shared, *steps;
		bool overlaps;
	} rows[] = {
		{ "0-1", "2-7", "0-3", "4-7", "s-4-7 r+0-3", false },
		{ "0-3", "4-7", "0-1", "2-7", "r-0-1 s+2-7", false },
		{ "0-1", "2-7", "0-1", "2-7", "", false },
		{ "0-1", "2-3", "0-1", "2-5", "s+2-5", false },
		{ "0-3", "4-7", "2-5", "0-1,6-7", "r-2-3 s-6-7 r+2-5 s+0-1,6-7", false },
		{ "0", "1", "0-1", "2", "s+2 r+0-1", false }, /* nothing in common: who can, goes */
		{ "1", "0", "2", "0-1", "r+2 s+0-1", false },
		{ "0-1", "2-3", "2", "0", "r-1 s-3 r+2 s+0", false },
		{ "0", "1", "1", "0", "r+1 s+0", true }, /* they change places */
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct resize_sets from = sets(rows[i].reserved, rows[i].shared),
					 to = sets(rows[i].to_reserved, rows[i].to_shared);
		struct resize_steps steps;

		TEST_ROW("%s|%s to %s|%s", rows[i].reserved, rows[i].shared, rows[i].to_reserved,
			 rows[i].to_shared);
		resize_order(&from, &to, &steps);
		CHECK_STR(steps_text(&steps, &a), rows[i].steps);
		CHECK(steps.overlaps == rows[i].overlaps);
	}
	TEST_NOTE("%zu rows", ARRAY_LEN(rows));
}

/* Every pair of disjoint sets over five CPUs to every other. */
TEST(no_order_of_steps_puts_a_cpu_into_two_pools)
{
	size_t n = 0, n_overlap = 0;

	for (unsigned from = 0; from < 243; from++)
		for (unsigned to = 0; to < 243; to++) {
			struct resize_sets x = { 0 }, y = { 0 };
			struct resize_steps steps;

			for (unsigned cpu = 0, f = from, t = to; cpu < 5; cpu++, f /= 3, t /= 3) {
				if (f % 3 < 2)
					cpuset_add(&x.of[f % 3], cpu);
				if (t % 3 < 2)
					cpuset_add(&y.of[t % 3], cpu);
			}
			if (cpuset_is_empty(&x.of[0]) || cpuset_is_empty(&x.of[1]) ||
			    cpuset_is_empty(&y.of[0]) || cpuset_is_empty(&y.of[1]))
				continue;
			resize_order(&x, &y, &steps);
			CHECK(steps.overlaps == (cpuset_is_subset(&x.of[0], &y.of[1]) &&
						 cpuset_is_subset(&x.of[1], &y.of[0])));
			n_overlap += steps.overlaps;
			for (size_t i = 0; i < steps.n; i++) {
				CHECK(i == 0 || steps.items[i - 1].is_shrink ||
				      !steps.items[i].is_shrink);
				CHECK(cpuset_eq(&steps.items[i].before,
						&x.of[steps.items[i].pool]));
				x.of[steps.items[i].pool] = steps.items[i].cpus;
				CHECK(steps.overlaps || !cpuset_intersects(&x.of[0], &x.of[1]));
			}
			CHECK(cpuset_eq(&x.of[0], &y.of[0]) && cpuset_eq(&x.of[1], &y.of[1]));
			n++;
		}
	TEST_NOTE("%zu resizes, %zu of them change places altogether", n, n_overlap);
}

/* Stories. */

static struct pool_config pools(const char *reserved, const char *shared, const char *guaranteed)
{
	struct pool_config c;

	pool_config_init(&c);
	c.reserved = cpus(reserved);
	c.shared = cpus(shared);
	c.guaranteed = cpus(guaranteed);
	return c;
}

/* A container of each kind, running. */
struct example {
	struct box mgmt, share, alone;
};

static void run_box(struct node *n, struct box *b)
{
	make_cgroup(n, b->pod_cgroup, "0-7");
	make_cgroup(n, b->pause + 1, "0-7");
	CHECK(!ask(n, "RunPodSandbox", b, NULL).status);
	make_cgroup(n, b->cgroup + 1, create(n, b).cpus);
	CHECK(!ask(n, "PostStartContainer", b, NULL).status);
}

static void example_init(struct example *s, struct node *n)
{
	box_init(&s->mgmt, "mgmt", "burstable/", 2, 0);
	box_manage(&s->mgmt, "{\"cpushares\":400}");
	box_init(&s->share, "share", "burstable/", 512, 0);
	box_init(&s->alone, "alone", "", 2048, 200000);
	run_box(n, &s->mgmt);
	run_box(n, &s->share);
	run_box(n, &s->alone);
}

static const char *cpus_of(struct node *n, const struct box *b)
{
	return read_at(n, b->cgroup + 1, "cpuset.cpus");
}

static void check_cpus(struct node *n, struct example *s, const char *mgmt, const char *share)
{
	CHECK_STR(cpus_of(n, &s->mgmt), mgmt);
	CHECK_STR(read_at(n, s->mgmt.pause + 1, "cpuset.cpus"), mgmt);
	CHECK_STR(read_at(n, s->share.pause + 1, "cpuset.cpus"), mgmt);
	CHECK_STR(cpus_of(n, &s->share), share);
	CHECK_STR(cpus_of(n, &s->alone), "6-7");
}

TEST(containers_follow_their_pools_and_return)
{
	CLEANUP(node_done) struct node n;
	struct pool_config wide = pools("0-3", "4-5", "6-7"), narrow = pools("0-1", "2-5", "6-7");
	struct resize_report report;
	struct example s;

	node_init(&n, "0-1", "2-5", "6-7");
	example_init(&s, &n);
	check_cpus(&n, &s, "0-1", "2-5");
	CHECK_INT(resize_apply(&n.manager, &wide, &report), 0);
	CHECK_INT(report.state, RESIZE_DONE);
	CHECK_UINT(report.n_writes, 1 + 1 + 3); /* one who shares, one who manages, three pauses */
	check_cpus(&n, &s, "0-3", "4-5");
	CHECK(pool_config_eq(&n.ledger.now.config, &wide));
	CHECK_INT(resize_apply(&n.manager, &narrow, &report), 0);
	check_cpus(&n, &s, "0-1", "2-5");
}

/* The kernel refuses the agent in a container to write its own cgroup. */
TEST(the_runtime_moves_the_agents_own_container)
{
	CLEANUP(node_done) struct node n;
	struct pool_config wide = pools("0-3", "4-5", "6-7");
	struct resize_report report;
	struct example s;

	node_init(&n, "0-1", "2-5", "6-7");
	example_init(&s, &n);
	n.manager.rules.own_pid = 4711;
	registry_find(&n.manager.registry, s.mgmt.container.id)->pid = 4711;
	CHECK_INT(resize_apply(&n.manager, &wide, &report), 0);
	CHECK_UINT(report.n_writes, 1 + 3); /* one who shares, three pauses */
	CHECK_STR(cpus_of(&n, &s.mgmt), "0-1");
	CHECK(n.manager.wants_sync);
	manager_reconcile(&n.manager, 10);
	CHECK_STR(cpus_of(&n, &s.mgmt), "0-1");
	CHECK_UINT(n.manager.counters.write_failures, 0);
}

TEST(refused_resize_names_the_containers_and_moves_nothing)
{
	CLEANUP(node_done) struct node n;
	struct pool_config c = pools("0-1", "2-6", "7");
	struct resize_report report;
	struct cpuset free;
	struct example s;

	node_init(&n, "0-1", "2-5", "6-7");
	example_init(&s, &n);
	CHECK_INT(resize_apply(&n.manager, &c, &report), -EBUSY);
	CHECK_INT(report.state, RESIZE_REFUSED);
	CHECK_UINT(report.n_obstacles, 1);
	CHECK_STR(report.obstacles[0].name, "ns/alone/c");
	CHECK_STR(report.obstacles[0].cpus, "6");
	CHECK_STR(report.why.msg, "ns/alone/c runs on CPUs 6, which would leave its pool");
	check_cpus(&n, &s, "0-1", "2-5");

	c.defers_resize = true;
	CHECK_INT(resize_apply(&n.manager, &c, &report), -EBUSY);
	CHECK_INT(report.state, RESIZE_DEFERRED);
	/* CPU 6 is not assigned any more. */
	ledger_free(&n.ledger, &free);
	CHECK(cpuset_is_empty(&free));
	CHECK(!ask(&n, "RemovePodSandbox", &s.alone, NULL).status);
	CHECK_INT(resize_apply(&n.manager, &c, &report), 0);
	CHECK_STR(cpus_of(&n, &s.share), "2-6");
	ledger_free(&n.ledger, &free);
	CHECK(cpuset_eq(&free, &c.guaranteed));
}

/* A deferred resize comes to its end although new containers keep coming. */
TEST(cpus_of_a_deferred_resize_are_not_assigned)
{
	CLEANUP(node_done) struct node n;
	struct pool_config fewer = pools("0-1", "2-5", "6-7"), all = pools("0-1", "2-3", "4-7");
	struct resize_report report;
	struct example s;
	struct box next;

	node_init(&n, "0-1", "2-3", "4-7");
	example_init(&s, &n);
	CHECK_STR(cpus_of(&n, &s.alone), "4-5");
	fewer.defers_resize = true;
	CHECK_INT(resize_apply(&n.manager, &fewer, &report), -EBUSY);
	CHECK_INT(report.state, RESIZE_DEFERRED);
	box_init(&next, "next", "", 2048, 200000);
	run_box(&n, &next);
	CHECK_STR(cpus_of(&n, &next), "6-7");
	CHECK(!ask(&n, "RemovePodSandbox", &s.alone, NULL).status);
	box_init(&s.alone, "third", "", 2048, 200000);
	CHECK(ask(&n, "CreateContainer", &s.alone, NULL).status);
	CHECK_INT(resize_apply(&n.manager, &fewer, &report), 0);
	CHECK_STR(cpus_of(&n, &s.share), "2-5");
	/* With the old pools configured again, all CPUs are available. */
	CHECK_INT(resize_apply(&n.manager, &all, &report), 0);
	CHECK_STR(create(&n, &s.alone).cpus, "4-5");
}

/* A management container that named one of the reserved CPUs for itself. */
TEST(cpus_named_by_an_annotation_stay_or_refuse_the_resize)
{
	CLEANUP(node_done) struct node n;
	struct pool_config wide = pools("0-3", "4-5", "6-7"), without = pools("0", "1-5", "6-7");
	struct resize_report report;
	struct example s;
	struct box own;

	node_init(&n, "0-1", "2-5", "6-7");
	example_init(&s, &n);
	box_init(&own, "own", "burstable/", 2, 0);
	box_manage(&own, "{\"cpushares\":400,\"cpuset\":\"1\"}");
	run_box(&n, &own);
	CHECK_INT(resize_apply(&n.manager, &wide, &report), 0);
	CHECK_STR(cpus_of(&n, &own), "1");
	CHECK_STR(cpus_of(&n, &s.mgmt), "0-3");
	CHECK_INT(resize_apply(&n.manager, &without, &report), -EBUSY);
	CHECK_STR(report.obstacles[0].name, "ns/own/c");
	CHECK_STR(report.obstacles[0].cpus, "1");
}

/* Also when it names all that its type has: the list was chosen, and equal to the pool by chance.
 */
TEST(an_annotation_that_names_the_whole_pool_is_kept_like_any_other)
{
	CLEANUP(node_done) struct node n;
	struct pool_config wide = pools("0-3", "4-5", "6-7"), without = pools("0", "1-5", "6-7");
	struct resize_report report;
	struct box own;

	node_init(&n, "0-1", "2-5", "6-7");
	box_init(&own, "own", "burstable/", 2, 0);
	box_manage(&own, "{\"cpushares\":400,\"cpuset\":\"0-1\"}");
	run_box(&n, &own);
	CHECK_INT(resize_apply(&n.manager, &without, &report), -EBUSY);
	CHECK_STR(report.obstacles[0].cpus, "1");
	CHECK_INT(resize_apply(&n.manager, &wide, &report), 0);
	CHECK_STR(cpus_of(&n, &own), "0-1");
}

/* A resize after a CPU went offline, before the hotplug was handled: the pool has fewer CPUs than
 * the container, which names none and moves with its pool. */
TEST(a_container_that_names_no_cpus_follows_its_pool_after_a_cpu_went_offline)
{
	CLEANUP(node_done) struct node n;
	struct pool_config wide = pools("0-3", "4-5", "6-7");
	struct resize_report report;
	struct example s;

	node_init(&n, "0-1", "2-5", "6-7");
	example_init(&s, &n);
	(void)cpuset_parse(STR("0,2-7"), &n.topology.online, NULL);
	(void)cpuset_parse(STR("1"), &n.topology.offline, NULL);
	CHECK_INT(resize_apply(&n.manager, &wide, &report), 0);
	CHECK_STR(cpus_of(&n, &s.mgmt), "0,2-3");
}

/* Only the parts of the types change, then also the pool, and the old state comes back when a write
 * fails. */
TEST(containers_follow_their_workload_type)
{
	static const struct {
		const char *management, *ran, *reserved, *want_management, *want_ran;
	} rows[] = {
		{ "0", "1", "0-1", "0", "1" },
		{ "1", "0", "0-1", "1", "0" },	       /* they swap */
		{ "0-1", "0-1", "0-1", "0-1", "0-1" }, /* equal */
		{ "0-1", "2", "0-2", "0-1", "2" },
		{ "0", "1", "0-1", "0", "1" },
	};
	CLEANUP(node_done) struct node n;
	struct resize_report report;
	struct box mgmt, ran;

	node_init(&n, "0-1", "2-3", "4-7");
	node_set_type(&n, "management", "0");
	node_set_type(&n, "ran", "1");
	box_init(&mgmt, "mgmt", "burstable/", 2, 0);
	box_manage(&mgmt, "{}");
	box_init(&ran, "ran", "burstable/", 2, 0);
	box_manage(&ran, "{}");
	ran.annotations[0].key = "target.workload.openshift.io/ran";
	run_box(&n, &mgmt);
	run_box(&n, &ran);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct pool_config to = pools(rows[i].reserved, i == 3 ? "3" : "2-3", "4-7");
		struct cpuset set = cpus(rows[i].management);
		struct err err = { 0 };

		TEST_ROW("row %zu", i);
		CHECK_OK(pool_config_set_type(&to, STR("management"), &set, &err));
		set = cpus(rows[i].ran);
		CHECK_OK(pool_config_set_type(&to, STR("ran"), &set, &err));
		CHECK_INT(resize_apply(&n.manager, &to, &report), 0);
		CHECK_STR(cpus_of(&n, &mgmt), rows[i].want_management);
		CHECK_STR(cpus_of(&n, &ran), rows[i].want_ran);
		CHECK_STR(settings_cpus(&n, "ran"), rows[i].want_ran);
	}
}

TEST(failed_resize_restores_the_cpus_of_workload_types)
{
	CLEANUP(node_done) struct node n;
	struct pool_config to = pools("0-1", "2-3", "4-7");
	const struct cpuset set = cpus("0");
	struct resize_report report;
	struct err err = { 0 };
	struct box ran;
	char path[256];

	node_init(&n, "0-1", "2-3", "4-7");
	node_set_type(&n, "ran", "1");
	box_init(&ran, "ran", "burstable/", 2, 0);
	box_manage(&ran, "{}");
	ran.annotations[0].key = "target.workload.openshift.io/ran";
	run_box(&n, &ran);
	CHECK_OK(pool_config_set_type(&to, STR("ran"), &set, &err));
	(void)snprintf(path, sizeof(path), "%s%s/cpuset.cpus", n.dir, ran.cgroup);
	CHECK(unlink(path) == 0 && mkdir(path, 0700) == 0); /* cannot be written */
	CHECK(resize_apply(&n.manager, &to, &report) < 0);
	CHECK_INT(report.state, RESIZE_FAILED);
	CHECK_STR(settings_cpus(&n, "ran"), "1");
	CHECK_STR(cpuset_format(&n.ledger.now.config.types[0].cpus, &n.a), "1");
}

static int cannot_write(const struct ledger *l, void *data, struct err *err)
{
	(void)l;
	(void)data;
	return err_set(err, ENOSPC, "disk full");
}

TEST(failed_step_undoes_the_resize)
{
	CLEANUP(node_done) struct node n;
	struct pool_config wide = pools("0-3", "4-5", "6-7");
	struct resize_report report;
	struct example s;
	struct box more;
	char path[512];

	node_init(&n, "0-1", "2-5", "6-7");
	example_init(&s, &n);
	n.ledger.persist = cannot_write; /* after the shrink */
	CHECK_INT(resize_apply(&n.manager, &wide, &report), -ENOSPC);
	CHECK_INT(report.state, RESIZE_FAILED);
	CHECK_STR(report.why.msg, "disk full");
	check_cpus(&n, &s, "0-1", "2-5");
	n.ledger.persist = NULL;

	/* During the growth: what is written there is never what is read back. Another container of
	 * the pool comes before it, and has to come back all the same. */
	box_init(&more, "a-more", "burstable/", 2, 0);
	box_manage(&more, "{\"cpushares\":400}");
	run_box(&n, &more);
	(void)snprintf(path, sizeof(path), "%s%s/cpuset.cpus", n.dir, s.mgmt.cgroup);
	CHECK(unlink(path) == 0 && symlink("/dev/null", path) == 0);
	CHECK(resize_apply(&n.manager, &wide, &report) < 0);
	CHECK_INT(report.state, RESIZE_FAILED);
	CHECK_STR(cpus_of(&n, &s.share), "2-5");
	CHECK_STR(cpus_of(&n, &more), "0-1");
	CHECK_STR(read_at(&n, s.share.pause + 1, "cpuset.cpus"), "0-1");
	CHECK_STR(cpuset_format(&n.ledger.now.config.reserved, &n.a), "0-1");
	CHECK_STR(settings_cpus(&n, "mgmt"), "0-1");
}

/* Crashes. */

#define LEDGER "ledger.json"

struct rebirth {
	struct node *n;
	struct example *s;
	int run_fd;
	struct pool_config config;
};

/* A fresh start: the ledger from its file, the containers from the runtime's list. */
static void start_again(struct rebirth *b, struct ledger *l, struct store *store, struct manager *m,
			struct session *session)
{
	const struct box *boxes[] = { &b->s->mgmt, &b->s->share, &b->s->alone };
	struct nri_pod pods_[3];
	struct nri_container containers[3];
	struct nri_sync sync = {
		.pods = pods_, .n_pods = 3, .containers = containers, .n_containers = 3
	};
	struct store_report report;
	struct err err = { 0 };

	for (size_t i = 0; i < 3; i++) {
		pods_[i] = boxes[i]->pod;
		containers[i] = boxes[i]->container;
	}
	CHECK_OK(store_open(store, l,
			    &(struct store_settings){ b->run_fd, LEDGER, "boot", &b->n->topology,
						      &b->config },
			    &report, &err));
	manager_init(m, l, &b->n->cgroups);
	m->rules.permission = permit_all;
	session_init(session, &manager_handlers, m);
	session->name = "pinfold";
	session->index = "90";
	session_start(session);
	(void)runtime_take(session, MUX_CONN_RUNTIME, &b->n->a);
	CHECK_OK(session_feed(session,
			      runtime_request("Synchronize", 3,
					      runtime_encode(&nri_sync_message, &sync, &b->n->a),
					      &b->n->a),
			      &err));
	manager_flush(m);
}

static void end_life(struct ledger *l, struct store *store, struct manager *m,
		     struct session *session)
{
	session_done(session);
	manager_done(m);
	ledger_done(l);
	store_done(store);
}

struct life {
	struct ledger ledger;
	struct store store;
	struct manager manager;
	struct session session;
	struct pool_config wanted;
};

static void resize_in_life(void *data)
{
	struct life *l = data;
	struct resize_report report;

	(void)resize_apply(&l->manager, &l->wanted, &report);
}

/* No CPU of one pool among the other's. An empty file is one that was being written: a kernel has
 * no such moment. */
static void check_no_overlap(struct node *n, struct example *s)
{
	struct cpuset x, y;

	if (!*cpus_of(n, &s->mgmt) || !*cpus_of(n, &s->share))
		return;
	x = cpus(cpus_of(n, &s->mgmt));
	y = cpus(cpus_of(n, &s->share));
	CHECK(!cpuset_intersects(&x, &y));
}

TEST(resize_interrupted_by_a_crash_is_finished_or_undone)
{
	CLEANUP(node_done) struct node n;
	const struct pool_config wide = pools("0-3", "4-5", "6-7"),
				 narrow = pools("0-1", "2-5", "6-7");
	struct example s;
	struct rebirth b = { .n = &n, .s = &s };
	struct life life;
	unsigned calls = 0, n_finished = 0, n_undone = 0;
	bool was_killed = true;

	node_init(&n, "0-1", "2-5", "6-7");
	example_init(&s, &n);
	b.run_fd = open(n.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (; was_killed; calls++) {
		const bool reverted = calls % 2; /* its author has second thoughts */

		TEST_ROW("killed before call %u", calls);
		b.config = narrow;
		start_again(&b, &life.ledger, &life.store, &life.manager, &life.session);
		check_cpus(&n, &s, "0-1", "2-5");
		life.wanted = wide;
		was_killed = crash_run(resize_in_life, &life, calls);
		end_life(&life.ledger, &life.store, &life.manager, &life.session);
		check_no_overlap(&n, &s);

		b.config = reverted ? narrow : wide;
		start_again(&b, &life.ledger, &life.store, &life.manager, &life.session);
		CHECK_STR(cpus_of(&n, &s.mgmt), reverted ? "0-1" : "0-3");
		CHECK_STR(cpus_of(&n, &s.share), reverted ? "2-5" : "4-5");
		CHECK_STR(cpus_of(&n, &s.alone), "6-7");
		CHECK(pool_config_eq(&life.ledger.now.config, &b.config));
		end_life(&life.ledger, &life.store, &life.manager, &life.session);
		*(reverted ? &n_undone : &n_finished) += 1;
	}
	(void)close(b.run_fd);
	TEST_NOTE("%u crashes, %u finished, %u undone", calls - 1, n_finished, n_undone);
	CHECK(calls > 30);
}

/* What a reboot alone can do. */

TEST(settings_that_need_a_reboot_are_reported)
{
	static const struct {
		const char *isolated, *nohz_full, *services, *notes;
	} rows[] = {
		{ "", "", "0-7", "" }, /* nothing is configured */
		{ "4-7", "4-7", "0-1", "" },
		/* possible CPUs that the machine does not have */
		{ "4-31", "4-31", "0-31", "" },
		{ "4-31", "", "0-1,8-31", "" },
		{ "2-7", "", "0-7", "isolcpus 2-7 4-7;" },
		{ "4-7", "2-7", "0-7", "nohz_full 2-7 4-7;" },
		{ "", "", "0-3", "systemd 0-3 0-1;" },
		{ "2-7", "2-7", "0", "isolcpus 2-7 4-7;nohz_full 2-7 4-7;systemd 0 0-1;" },
	};
	CLEANUP(arena_done) struct arena a;
	const struct cpuset reserved = cpus("0-1"), guaranteed = cpus("4-7");

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct boot_facts facts = { .online = cpus("0-7"),
						  .isolated = cpus(rows[i].isolated),
						  .nohz_full = cpus(rows[i].nohz_full),
						  .services = cpus(rows[i].services),
						  .knows_services = true };
		struct reboot_notes notes;
		struct strbuf b;

		TEST_ROW("row %zu", i);
		reboot_compare(&facts, &reserved, &guaranteed, &notes);
		strbuf_init(&b, &a);
		for (size_t k = 0; k < notes.n; k++)
			strbuf_printf(&b, "%s " PRI_STR " " PRI_STR ";", notes.items[k].what,
				      FMT_STR(cpuset_format(&notes.items[k].have, &a)),
				      FMT_STR(cpuset_format(&notes.items[k].want, &a)));
		CHECK_STR(strbuf_str(&b), rows[i].notes);
	}
	TEST_NOTE("%zu rows", ARRAY_LEN(rows));
}

TEST(boot_settings_are_read_from_the_machine)
{
	CLEANUP(arena_done) struct arena a;
	char dir[] = "/tmp/boot-facts-XXXXXX", command[512];
	struct boot_facts f;
	int fd;

	arena_init(&a, 0);
	CHECK(mkdtemp(dir) != NULL);
	(void)snprintf(command, sizeof(command),
		       "cd %s && mkdir -p sys/devices/system/cpu proc/1 && "
		       "cd sys/devices/system/cpu && echo 0-7 >online && echo >isolated && "
		       "echo ' (null)' >nohz_full && "
		       "printf 'Name:\\tinit\\nCpus_allowed_list:\\t0-1\\nx:\\t1\\n' "
		       ">%s/proc/1/status",
		       dir, dir);
	CHECK(system(command) == 0);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	reboot_read(fd, false, &f);
	CHECK_STR(cpuset_format(&f.online, &a), "0-7");
	CHECK(cpuset_is_empty(&f.isolated) && cpuset_is_empty(&f.nohz_full));
	CHECK(f.knows_services);
	CHECK_STR(cpuset_format(&f.services, &a), "0-1");
	reboot_read(fd, true, &f); /* process 1 is where the agent has moved it */
	CHECK(!f.knows_services);
	(void)close(fd);
	(void)snprintf(command, sizeof(command), "rm -rf %s", dir);
	CHECK(system(command) == 0);
}
