#include "local/local.h"

#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "cgroup/cgroup.h"
#include "codec/problems.h"
#include "cpu/topology_read.h"
#include "local/intent.h"
#include "local/plan.h"
#include "local/verify.h"
#include "test.h"

/* --- the intent file --- */

static struct local_container sample(void)
{
	static struct str argv[] = { STR_INIT("sh"), STR_INIT("-c"), STR_INIT("echo \"a b\"") };
	static struct str env[] = { STR_INIT("GREETING=hello") };
	struct local_container c = { .namespace = STR("shop"),
				     .pod = STR("web"),
				     .name = STR("main"),
				     .kind = CONTAINER_SIDECAR,
				     .restart = LOCAL_RESTART_ON_FAILURE,
				     .argv = argv,
				     .n_argv = ARRAY_LEN(argv),
				     .env = env,
				     .n_env = ARRAY_LEN(env),
				     .workdir = STR("/srv"),
				     .grace_s = 7,
				     .pool = POOL_GUARANTEED,
				     .is_exclusive = true,
				     .shares = 1024,
				     .quota_us = CGROUP_UNLIMITED,
				     .period_us = CGROUP_PERIOD_US };

	cpuset_add(&c.cpus, 3);
	return c;
}

static struct intent sample_intent(struct local_container *c, enum local_state *state,
				   unsigned *restarts)
{
	struct intent in = { .mode = LOCAL_CGROUP_V2,
			     .boot_id = STR("boot"),
			     .topology = STR("host"),
			     .containers = c,
			     .states = state,
			     .restarts = restarts,
			     .n = 1 };

	pool_config_init(&in.config);
	cpuset_add(&in.config.reserved, 0);
	cpuset_add(&in.config.shared, 1);
	cpuset_add(&in.config.guaranteed, 3);
	return in;
}

TEST(an_intent_comes_back_as_it_was_written)
{
	struct local_container c = sample(), *back;
	enum local_state is = LOCAL_LEAVING;
	unsigned restarts = 5;
	struct intent in = sample_intent(&c, &is, &restarts), out;
	struct err err = { 0 };
	struct arena a;
	struct str text;

	arena_init(&a, 0);
	CHECK_OK(intent_encode(&in, &a, &text, &err));
	CHECK_OK(intent_decode(text, STR("intent"), &a, &out, &err));
	CHECK_UINT(out.n, 1);
	CHECK_INT(out.mode, LOCAL_CGROUP_V2);
	CHECK_STR(out.boot_id, "boot");
	CHECK_STR(out.topology, "host");
	CHECK(pool_config_eq(&out.config, &in.config));
	CHECK_INT(out.states[0], LOCAL_LEAVING);
	CHECK_UINT(out.restarts[0], 5);
	back = &out.containers[0];
	CHECK(local_container_same(back, &c));
	CHECK(local_container_same_command(back, &c));
	CHECK(cpuset_eq(&back->cpus, &c.cpus));
	CHECK_INT(back->restart, c.restart);
	CHECK_UINT(back->grace_s, 7);
	CHECK_INT(back->pool, POOL_GUARANTEED);
	CHECK(back->is_exclusive);
	CHECK_UINT(back->shares, 1024);
	CHECK_INT(back->quota_us, CGROUP_UNLIMITED);
	arena_done(&a);
}

TEST(an_intent_that_was_damaged_is_refused_as_a_whole)
{
	static const struct {
		const char *from, *to;
	} rows[] = {
		{ "\"version\":1", "\"version\":2" },
		{ "\"pod\":\"web\"", "\"pod\":\"../web\"" }, /* it becomes part of a path */
		{ "\"container\":\"main\"", "\"container\":\"\"" },
		{ "\"namespace\":\"shop\"", "\"namespace\":\"a_b\"" },
		{ "\"cpus\":\"3\"", "\"cpus\":\"3-1\"" },
		{ "\"pool\":\"guaranteed\"", "\"pool\":\"mine\"" },
		{ "\"state\":\"leaving\"", "\"state\":\"gone\"" },
		{ "\"kind\":1", "\"kind\":9" },
		{ "\"restarts\":5", "\"restarts\":-1" },
		{ "\"period\":100000", "\"period\":0" },
		{ "\"argv\":[", "\"argx\":[" },
	};
	struct local_container c = sample();
	enum local_state is = LOCAL_LEAVING;
	unsigned restarts = 5;
	struct intent in = sample_intent(&c, &is, &restarts), out;
	struct err err = { 0 };
	struct arena a;
	struct str text;

	arena_init(&a, 0);
	CHECK_OK(intent_encode(&in, &a, &text, &err));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *whole = str_cstr(&a, text), *at = strstr(whole, rows[i].from);
		struct str damaged;

		TEST_ROW("%s", rows[i].to);
		CHECK(at != NULL);
		damaged = str_printf(&a, "%.*s%s%s", (int)(at - whole), whole, rows[i].to,
				     at + strlen(rows[i].from));
		CHECK(intent_decode(damaged, STR("intent"), &a, &out, &err) < 0);
		CHECK(err.msg[0]);
	}
	arena_done(&a);
}

TEST(names_are_what_kubernetes_allows_and_nothing_that_leads_elsewhere)
{
	static const struct {
		const char *name;
		bool ok;
	} rows[] = {
		{ "web", true },   { "web-0", true },	 { "a.b", true },   { "", false },
		{ "..", false },   { ".hidden", false }, { "a/b", false },  { "a_b", false },
		{ "Web", false },  { "a b", false },	 { "a\nb", false }, { "0", true },
		{ "abcde", true }, { "abcdef", false }, /* longer than 5 */
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		TEST_ROW("\"%s\"", rows[i].name);
		CHECK(local_is_name(str_from(rows[i].name), 5) == rows[i].ok);
	}
}

/* --- kernel truth against intent --- */

struct sight {
	const char *sentence;
	enum local_state state;
	size_t n_processes;
	unsigned allowed, effective; /* a CPU each */
	uint64_t weight;
	int64_t quota_us;
	const char *drift; /* NULL: none */
};

static struct findings judge(const struct sight *row, struct arena *a)
{
	struct local_container *c = arena_new(a, struct local_container);
	struct observation *o = arena_new(a, struct observation);
	enum local_state *state = arena_new(a, enum local_state);
	struct verify_input in = { LOCAL_CGROUP_V1, c, o, state, 1 };

	*c = sample();
	c->quota_us = 20000;
	*state = row->state;
	*o = (struct observation){ .n_processes = row->n_processes,
				   .n_threads = row->n_processes,
				   .has_cgroup = true,
				   .cgroup = { .weight = row->weight,
					       .quota_us = row->quota_us,
					       .period_us = CGROUP_PERIOD_US } };
	cpuset_add(&o->allowed, row->allowed);
	cpuset_add(&o->cgroup.effective, row->effective);
	return local_verify(&in, a);
}

TEST(verify_names_every_way_the_kernel_can_differ)
{
	static const struct sight rows[] = {
		{ "as it should be", LOCAL_STARTED, 1, 3, 3, 1024, 20000, NULL },
		{ "finished", LOCAL_FINISHED, 0, 0, 0, 0, 0, NULL },
		{ "gone", LOCAL_STARTED, 0, 0, 0, 0, 0, "not-running" },
		{ "never started", LOCAL_WAITING, 0, 0, 0, 0, 0, "not-running" },
		{ "failed", LOCAL_FAILED, 0, 0, 0, 0, 0, "failed" },
		{ "leaving", LOCAL_LEAVING, 1, 3, 3, 1024, 20000, NULL },
		{ "a thread elsewhere", LOCAL_STARTED, 1, 4, 3, 1024, 20000, "threads" },
		{ "its cgroup elsewhere", LOCAL_STARTED, 1, 3, 4, 1024, 20000, "cpus" },
		{ "other weight", LOCAL_STARTED, 1, 3, 3, 1000, 20000, "weight" },
		{ "other quota", LOCAL_STARTED, 1, 3, 3, 1024, 30000, "quota" },
		{ "no quota", LOCAL_STARTED, 1, 3, 3, 1024, CGROUP_UNLIMITED, "quota" },
	};
	struct findings f;
	struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		TEST_ROW("%s", rows[i].sentence);
		f = judge(&rows[i], &a);
		CHECK_UINT(f.n, rows[i].drift != NULL);
		if (f.n)
			CHECK_STR(drift_name(f.items[0].drift), rows[i].drift);
	}
	arena_done(&a);
}

TEST(a_cpu_that_is_owned_belongs_to_nobody_else)
{
	struct local_container c[2] = { sample(), sample() };
	struct observation o[2] = { { .n_processes = 1 }, { .n_processes = 1 } };
	enum local_state states[2] = { LOCAL_STARTED, LOCAL_STARTED };
	struct verify_input in = { LOCAL_AFFINITY, c, o, states, 2 };
	struct findings f;
	struct arena a;

	arena_init(&a, 0);
	c[1].pod = STR("other");
	c[1].is_exclusive = false;
	cpuset_add(&o[0].allowed, 3);
	cpuset_add(&o[1].allowed, 3);
	f = local_verify(&in, &a);
	CHECK_UINT(f.n, 1);
	CHECK_INT(f.items[0].drift, DRIFT_SHARED_EXCLUSIVE);
	CHECK_STR(f.items[0].text, "shop/other/main may run on its CPUs");
	c[1].pod = c[0].pod; /* an init container hands its CPUs on */
	c[1].kind = CONTAINER_INIT;
	states[0] = LOCAL_WAITING;
	CHECK_UINT(local_verify(&in, &a).n, 0);
	arena_done(&a);
}

TEST(waiting_for_an_init_container_is_no_drift)
{
	struct local_container c[2] = { sample(), sample() };
	struct observation o[2] = { { .n_processes = 1 }, { 0 } };
	enum local_state states[2] = { LOCAL_STARTED, LOCAL_WAITING };
	struct verify_input in = { LOCAL_AFFINITY, c, o, states, 2 };
	struct arena a;

	arena_init(&a, 0);
	c[0].kind = CONTAINER_INIT;
	c[0].name = STR("first");
	c[1].kind = CONTAINER_APP;
	CHECK_UINT(local_verify(&in, &a).n, 0);
	states[0] = LOCAL_FINISHED;
	o[0].n_processes = 0;
	CHECK_UINT(local_verify(&in, &a).n, 1);
	arena_done(&a);
}

/* --- the plan --- */

#define PROFILE(cpus)                                                                              \
	"apiVersion: performance.openshift.io/v2\nkind: PerformanceProfile\n"                      \
	"metadata: {name: p}\nspec: {cpu: {" cpus                                                  \
	"}, nodeSelector: {node-role.kubernetes.io/worker: \"\"}}\n---\n"
#define CLUSTER                                                                                    \
	"apiVersion: config.openshift.io/v1\nkind: Infrastructure\nmetadata: {name: cluster}\n"    \
	"status: {cpuPartitioning: AllNodes, controlPlaneTopology: SingleReplica, "                \
	"infrastructureTopology: SingleReplica}\n---\n"                                            \
	"apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n---\n"
#define POD(name, resources)                                                                       \
	"apiVersion: v1\nkind: Pod\nmetadata: {name: " name ", namespace: shop}\n"                 \
	"spec: {containers: [{name: c, command: [x], resources: {" resources "}}]}\n---\n"
#define OWNS(n) "requests: {cpu: " n ", memory: 1Mi}, limits: {cpu: " n ", memory: 1Mi}"

struct bench {
	struct arena a;
	struct topology topology;
	struct ledger ledger;
	bool has_ledger;
	struct problem_list p;
	struct local_plan plan;
};

/* Plans `text` on what the plans before left; returns what local_plan_make does. */
static int plan_text(struct bench *b, const char *text)
{
	struct manifests *m = arena_new(&b->a, struct manifests);
	struct local_plan_input in = { .manifests = m, .topology = &b->topology };
	struct pool_config config;
	struct err err = { 0 };
	int r;

	manifests_init(m, &b->a);
	problem_list_init(&b->p, &b->a);
	manifests_add(m, str_from(text), STR("t.yaml"), &b->p);
	if (b->p.n_errors || !local_plan_config(&in, &b->a, &config, &b->p))
		return -1;
	if (!b->has_ledger)
		CHECK_OK(ledger_init(&b->ledger, &b->topology, &config, &err));
	b->has_ledger = true;
	r = local_plan_make(&in, &config, &b->ledger, &b->a, &b->plan, &b->p);
	if (r >= 0)
		CHECK_OK(ledger_commit(&b->ledger, &err));
	return r;
}

static void bench_init(struct bench *b, const char *topology)
{
	struct err err = { 0 };

	*b = (struct bench){ 0 };
	arena_init(&b->a, 0);
	CHECK_OK(topology_read(topology, &b->a, &b->topology, &err));
}

static void bench_done(struct bench *b)
{
	if (b->has_ledger)
		ledger_done(&b->ledger);
	arena_done(&b->a);
}

static struct str cpus_of(struct bench *b, size_t i)
{
	CHECK(i < b->plan.n);
	return cpuset_format(&b->plan.containers[i].cpus, &b->a);
}

#define POOLS "reserved: \"0\", shared: \"1\", isolated: \"2-7\""

TEST(a_plan_gives_owners_their_cpus_and_others_their_pool)
{
	struct bench b;

	bench_init(&b, "pack:1 core:8 pu:1");
	CHECK_INT(plan_text(&b, PROFILE(POOLS) CLUSTER POD("own", OWNS("2"))
					POD("web", "requests: {cpu: 250m}")),
		  0);
	CHECK_UINT(b.plan.n, 2);
	CHECK_STR(cpus_of(&b, 0), "2-3");
	CHECK(b.plan.containers[0].is_exclusive);
	CHECK_INT(b.plan.containers[0].quota_us, CGROUP_UNLIMITED);
	CHECK_STR(cpus_of(&b, 1), "1");
	CHECK_UINT(b.plan.containers[1].shares, 256);
	bench_done(&b);
}

TEST(a_second_plan_keeps_what_runs_and_frees_what_is_gone)
{
	struct bench b;

	bench_init(&b, "pack:1 core:8 pu:1");
	CHECK_INT(plan_text(&b, PROFILE(POOLS) CLUSTER POD("one", OWNS("2")) POD("two", OWNS("2"))),
		  0);
	CHECK_INT(plan_text(&b, PROFILE(POOLS) CLUSTER POD("two", OWNS("2")) POD("new", OWNS("4"))),
		  0);
	CHECK_STR(cpus_of(&b, 0), "4-5");
	CHECK_STR(cpus_of(&b, 1), "2-3,6-7");
	CHECK_INT(plan_text(&b, PROFILE(POOLS) CLUSTER POD("two", OWNS("1"))), 0);
	CHECK_UINT(cpuset_count(&b.plan.containers[0].cpus), 1); /* it asks for less now */
	CHECK_INT(plan_text(&b, PROFILE(POOLS) CLUSTER POD("two", "requests: {cpu: 1m}")), 0);
	CHECK_STR(cpus_of(&b, 0), "1"); /* and then for no CPU of its own */
	CHECK_UINT(b.ledger.n, 0);
	bench_done(&b);
}

TEST(a_pod_that_does_not_fit_is_refused_alone)
{
	struct bench b;

	bench_init(&b, "pack:1 core:8 pu:1");
	CHECK_INT(plan_text(&b,
			    PROFILE(POOLS) CLUSTER POD("big", OWNS("7")) POD("fits", OWNS("6"))),
		  0);
	CHECK_UINT(b.plan.n_refusals, 1);
	CHECK_STR(b.plan.refusals[0].pod, "big");
	CHECK_UINT(b.plan.n, 1);
	CHECK_STR(cpus_of(&b, 0), "2-7");
	bench_done(&b);
}

TEST(bad_input_refuses_the_plan_and_leaves_the_ledger_as_it_was)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ PROFILE("reserved: \"0\", isolated: \"1-99\"") CLUSTER, "no CPUs 8-99" },
		{ PROFILE("reserved: \"0-1\", isolated: \"1-7\"") CLUSTER, "1" },
		{ CLUSTER, "exactly one is needed" },
		{ PROFILE(POOLS) PROFILE(POOLS) CLUSTER, "" },
		{ PROFILE(POOLS) CLUSTER POD("two", OWNS("2")) POD("two", OWNS("2")),
		  "given twice" },
		{ PROFILE(POOLS) CLUSTER POD("../up", OWNS("2")), "is no name for a pod" },
		{ PROFILE(POOLS) CLUSTER
		  "apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: shop}\n"
		  "spec: {containers: [{name: c, image: y}]}\n",
		  "commands run, not images" },
		{ PROFILE(POOLS) CLUSTER
		  "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x, namespace: shop}\n"
		  "spec: {replicas: many, template: {spec: {containers: []}}}\n",
		  "not a number from 0 to 1000" },
		{ PROFILE("reserved: \"0\", shared: \"1-2\", isolated: \"3-7\"")
			  CLUSTER POD("own", OWNS("2")),
		  "from under shop/own/c" },
	};
	struct bench b;

	bench_init(&b, "pack:1 core:8 pu:1");
	CHECK_INT(plan_text(&b, PROFILE(POOLS) CLUSTER POD("own", OWNS("2"))), 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		TEST_ROW("%s", rows[i].says);
		CHECK(plan_text(&b, rows[i].text) < 0);
		CHECK(b.p.n_errors > 0);
		CHECK(str_has(problem_list_format(&b.p, &b.a), str_from(rows[i].says)));
		CHECK_UINT(b.ledger.n, 1);
		CHECK_STR(cpuset_format(&b.ledger.now.config.shared, &b.a), "1");
	}
	bench_done(&b);
}

TEST(pods_of_a_deployment_are_numbered_from_the_first_on)
{
	struct bench b;

	bench_init(&b, "pack:1 core:8 pu:1");
	CHECK_INT(plan_text(&b, PROFILE(POOLS) CLUSTER
			    "apiVersion: apps/v1\nkind: Deployment\n"
			    "metadata: {name: web, namespace: shop}\nspec: {replicas: 2, template: "
			    "{spec: {containers: [{name: c, command: [x]}]}}}\n"),
		  0);
	CHECK_UINT(b.plan.n, 2);
	CHECK_STR(b.plan.containers[0].pod, "web-0");
	CHECK_STR(b.plan.containers[1].pod, "web-1");
	bench_done(&b);
}
