#include "local/local.h"

#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "cgroup/cgroup.h"
#include "codec/problems.h"
#include "cpu/topology_read.h"
#include "local/local_audit.h"
#include "local/local_plan.h"
#include "local/state_file.h"
#include "manifests_text.h"
#include "test.h"

/* --- state file --- */

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
				     .settings = { .shares = 1024,
						   .has_quota = true,
						   .quota_us = CGROUP_UNLIMITED,
						   .period_us = CGROUP_PERIOD_US } };

	cpuset_add(&c.settings.cpus, 3);
	return c;
}

static struct local_state_file sample_state_file(struct local_container *c, enum local_state *state,
						 unsigned *restarts)
{
	struct local_state_file in = { .mode = LOCAL_CGROUP_V2,
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

TEST(a_state_file_decodes_to_what_was_encoded)
{
	struct local_container c = sample(), *back;
	enum local_state is = LOCAL_STOPPING;
	unsigned restarts = 5;
	struct local_state_file in = sample_state_file(&c, &is, &restarts), out;
	struct err err = { 0 };
	struct arena a;
	struct str text;

	arena_init(&a, 0);
	CHECK_OK(state_file_encode(&in, &a, &text, &err));
	CHECK_OK(state_file_decode(text, STR("state.json"), &a, &out, &err));
	CHECK_UINT(out.n, 1);
	CHECK_INT(out.mode, LOCAL_CGROUP_V2);
	CHECK_STR(out.boot_id, "boot");
	CHECK_STR(out.topology, "host");
	CHECK(pool_config_eq(&out.config, &in.config));
	CHECK_INT(out.states[0], LOCAL_STOPPING);
	CHECK_UINT(out.restarts[0], 5);
	back = &out.containers[0];
	CHECK(local_container_same(back, &c));
	CHECK(local_container_same_command(back, &c));
	CHECK(cpuset_eq(&back->settings.cpus, &c.settings.cpus));
	CHECK_INT(back->restart, c.restart);
	CHECK_UINT(back->grace_s, 7);
	CHECK_INT(back->pool, POOL_GUARANTEED);
	CHECK(back->is_exclusive);
	CHECK_UINT(back->settings.shares, 1024);
	CHECK_INT(back->settings.quota_us, CGROUP_UNLIMITED);
	arena_done(&a);
}

TEST(a_damaged_state_file_is_refused_as_a_whole)
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
		{ "\"state\":\"stopping\"", "\"state\":\"gone\"" },
		{ "\"kind\":1", "\"kind\":9" },
		{ "\"restarts\":5", "\"restarts\":-1" },
		{ "\"periodUs\":100000", "\"periodUs\":0" },
		{ "\"argv\":[", "\"argx\":[" },
		{ "\"argv\":[", "\"argv\":[1," },
	};
	struct local_container c = sample();
	enum local_state is = LOCAL_STOPPING;
	unsigned restarts = 5;
	struct local_state_file in = sample_state_file(&c, &is, &restarts), out;
	struct err err = { 0 };
	struct arena a;
	struct str text;

	arena_init(&a, 0);
	CHECK_OK(state_file_encode(&in, &a, &text, &err));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *whole = str_cstr(&a, text), *at = strstr(whole, rows[i].from);
		struct str damaged;

		TEST_ROW("%s", rows[i].to);
		CHECK(at != NULL);
		damaged = str_printf(&a, "%.*s%s%s", (int)(at - whole), whole, rows[i].to,
				     at + strlen(rows[i].from));
		CHECK(state_file_decode(damaged, STR("state.json"), &a, &out, &err) < 0);
		CHECK(err.msg[0]);
	}
	arena_done(&a);
}

TEST(names_that_could_leave_their_directory_are_invalid)
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
		CHECK(local_name_is_valid(str_from(rows[i].name), 5) == rows[i].ok);
	}
}

/* --- audit: what cgroup/audit.h does not check --- */

/* Two containers of one pod. */
struct audit_row {
	const char *sentence;
	enum local_state state, second_state;
	bool is_init, runs, second_runs;
	const char *findings; /* the check of each */
};

static struct audit run_audit(const struct audit_row *row, struct arena *a)
{
	struct local_container *c = arena_array(a, struct local_container, 2);
	struct proc_affinity *place = arena_new(a, struct proc_affinity);
	struct process *process = arena_new(a, struct process);
	struct cgroup_snapshot *snapshots = arena_array(a, struct cgroup_snapshot, 2);
	const enum local_state states[] = { row->state, row->second_state };

	c[0] = c[1] = sample();
	c[0].kind = row->is_init ? CONTAINER_INIT : CONTAINER_APP;
	c[0].name = STR("first");
	c[1].kind = CONTAINER_APP;
	c[1].is_exclusive = false;
	cpuset_add(&place->allowed, 3);
	*process = (struct process){ .pid = 7, .affinities = place, .n_affinities = 1 };
	if (row->runs)
		snapshots[0] = (struct cgroup_snapshot){ .is_there = true,
							 .processes = { process, 1, 1 } };
	if (row->second_runs)
		snapshots[1] = (struct cgroup_snapshot){ .is_there = true,
							 .processes = { process, 1, 1 } };
	return local_audit(
		&(struct local_audit_input){ LOCAL_AFFINITY, c, snapshots, states, 2, NULL }, a);
}

TEST(a_container_that_should_run_and_does_not_is_a_finding)
{
	static const struct audit_row rows[] = {
		{ "running", LOCAL_RUNNING, LOCAL_FINISHED, false, true, false, "" },
		{ "finished", LOCAL_FINISHED, LOCAL_FINISHED, false, false, false, "containers " },
		{ "its process has ended", LOCAL_RUNNING, LOCAL_FINISHED, false, false, false,
		  "not-running containers " },
		{ "not started", LOCAL_NOT_STARTED, LOCAL_FINISHED, false, false, false,
		  "not-running containers " },
		{ "failed", LOCAL_FAILED, LOCAL_FINISHED, false, false, false,
		  "failed containers " },
		{ "stopping", LOCAL_STOPPING, LOCAL_FINISHED, false, true, false, "" },
		{ "waiting for an init container", LOCAL_RUNNING, LOCAL_NOT_STARTED, true, true,
		  false, "" },
		{ "not started after its init container", LOCAL_FINISHED, LOCAL_NOT_STARTED, true,
		  false, false, "not-running containers " },
		{ "an init container shares its CPUs with its pod", LOCAL_RUNNING, LOCAL_RUNNING,
		  true, true, true, "" },
		{ "an app container does not", LOCAL_RUNNING, LOCAL_RUNNING, false, true, true,
		  "shared-exclusive " },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct audit t = run_audit(&rows[i], &a);
		struct strbuf b;

		TEST_ROW("%s", rows[i].sentence);
		strbuf_init(&b, &a);
		for (size_t k = 0; k < t.n_findings; k++)
			strbuf_printf(&b, "%s ", t.findings[k].check);
		CHECK_STR(strbuf_str(&b), rows[i].findings);
	}
}

TEST(audit_compares_with_the_settings_of_the_plan)
{
	CLEANUP(arena_done) struct arena a;
	struct local_container c = sample();
	struct proc_affinity place = { .tid = 7, .n_threads = 1 };
	struct process process = { .pid = 7, .affinities = &place, .n_affinities = 1 };
	struct cgroup_snapshot s = {
		.is_there = true,
		.has_cgroup = true,
		.cgroup = { .weight = 1000, .quota_us = 30000, .period_us = 5 },
		.processes = { &process, 1, 1 }
	};
	const enum local_state running = LOCAL_RUNNING;
	struct audit t;

	arena_init(&a, 0);
	cpuset_add(&place.allowed, 4);
	t = local_audit(&(struct local_audit_input){ LOCAL_CGROUP_V1, &c, &s, &running, 1, NULL },
			&a);
	CHECK_UINT(t.n_findings, 4);
	CHECK_STR(t.findings[0].expected, "3");
	CHECK_STR(t.findings[1].expected, "1024");
	CHECK_STR(t.findings[2].actual, "30000/5");
	CHECK_STR(t.findings[3].check, "thread");
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

/* Plans `text` with the ledger of the plans before. */
static int plan_text(struct bench *b, const char *text)
{
	struct manifests *m = arena_new(&b->a, struct manifests);
	struct local_plan_input in = { .manifests = m, .topology = &b->topology };
	struct pool_config config;
	struct err err = { 0 };
	int r;

	manifests_init(m, &b->a);
	problem_list_init(&b->p, &b->a);
	manifests_from_text(m, str_from(text), STR("t.yaml"), &b->p);
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
	return cpuset_format(&b->plan.containers[i].settings.cpus, &b->a);
}

#define POOLS "reserved: \"0\", shared: \"1\", isolated: \"2-7\""

TEST(exclusive_cpus_come_from_the_guaranteed_pool_and_others_use_the_shared_pool)
{
	struct bench b;

	bench_init(&b, "pack:1 core:8 pu:1");
	CHECK_INT(plan_text(&b, PROFILE(POOLS) CLUSTER POD("own", OWNS("2"))
					POD("web", "requests: {cpu: 250m}")),
		  0);
	CHECK_UINT(b.plan.n, 2);
	CHECK_STR(cpus_of(&b, 0), "2-3");
	CHECK(b.plan.containers[0].is_exclusive);
	CHECK_INT(b.plan.containers[0].settings.quota_us, CGROUP_UNLIMITED);
	CHECK_STR(cpus_of(&b, 1), "1");
	CHECK_UINT(b.plan.containers[1].settings.shares, 256);
	bench_done(&b);
}

TEST(a_second_plan_keeps_assignments_and_releases_removed_pods)
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
	CHECK_UINT(cpuset_count(&b.plan.containers[0].settings.cpus),
		   1); /* its request is smaller */
	CHECK_INT(plan_text(&b, PROFILE(POOLS) CLUSTER POD("two", "requests: {cpu: 1m}")), 0);
	CHECK_STR(cpus_of(&b, 0), "1"); /* and then fractional */
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

TEST(invalid_input_refuses_the_plan_without_changing_the_ledger)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ PROFILE("reserved: \"0\", isolated: \"1-99\"") CLUSTER, "no CPUs 8-99" },
		{ PROFILE("reserved: \"0-1\", isolated: \"1-7\"") CLUSTER, "1" },
		{ CLUSTER, "exactly one is needed" },
		{ PROFILE(POOLS) PROFILE(POOLS) CLUSTER, "" },
		{ PROFILE(POOLS) CLUSTER POD("two", OWNS("2")) POD("two", OWNS("2")),
		  "defined twice" },
		{ PROFILE(POOLS) CLUSTER POD("../up", OWNS("2")), "is not a valid pod name" },
		{ PROFILE(POOLS) CLUSTER
		  "apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: shop}\n"
		  "spec: {containers: [{name: c, image: y}]}\n",
		  "runs commands, not images" },
		{ PROFILE(POOLS) CLUSTER
		  "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x, namespace: shop}\n"
		  "spec: {replicas: many, template: {spec: {containers: []}}}\n",
		  "not a number from 0 to 1000" },
		{ PROFILE("reserved: \"0\", shared: \"1-2\", isolated: \"3-7\"")
			  CLUSTER POD("own", OWNS("2")),
		  "from shop/own/c, which owns them" },
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

TEST(a_termination_grace_period_is_kept)
{
	static const struct {
		const char *text;
		unsigned want;
	} rows[] = { { "0", 0 },
		     { "5", 5 },
		     { "7200", 7200 },
		     { "-3", 1 },
		     /* as in Kubernetes */ { "99999999999", INT32_MAX } };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct bench b;

		TEST_ROW("%s", rows[i].text);
		bench_init(&b, "pack:1 core:8 pu:1");
		CHECK_INT(plan_text(&b, str_cstr(&b.a,
						 str_printf(&b.a,
							    "%sapiVersion: v1\nkind: Pod\n"
							    "metadata: {name: p, namespace: "
							    "shop}\nspec: "
							    "{terminationGracePeriodSeconds: "
							    "%s, containers: [{name: c, "
							    "command: [x]}]}\n",
							    PROFILE(POOLS) CLUSTER, rows[i].text))),
			  0);
		CHECK_UINT(b.plan.containers[0].grace_s, rows[i].want);
		bench_done(&b);
	}
}

TEST(the_profile_sets_policy_and_scope_of_numa_alignment)
{
	struct bench b;

	/* Node 0 has CPUs 2-3 of the pool, node 1 has 4-7. */
	bench_init(&b, "numa:2 core:4 pu:1");
	CHECK_INT(
		plan_text(
			&b,
			"apiVersion: performance.openshift.io/v2\n"
			"kind: PerformanceProfile\nmetadata: {name: p, annotations: "
			"{kubeletconfig.experimental: "
			"'{\"topologyManagerScope\":\"pod\"}'}}\n"
			"spec: {cpu: {" POOLS "}, numa: {topologyPolicy: restricted}, "
			"nodeSelector: {node-role.kubernetes.io/worker: \"\"}}\n"
			"---\n" CLUSTER
			"apiVersion: v1\nkind: Pod\nmetadata: {name: du, namespace: shop}\n"
			"spec: {containers: [{name: a, command: [x], resources: {" OWNS(
				"1") "}}, {name: b, command: [x], resources: {" OWNS("2") "}}]}\n--"
											  "-\n" POD(
												  "big",
												  OWNS("3"))),
		0);
	CHECK_UINT(b.plan.n, 2);
	CHECK_STR(cpus_of(&b, 0), "4"); /* one CPU alone would be 2 */
	CHECK_STR(cpus_of(&b, 1), "5-6");
	CHECK_UINT(b.plan.containers[0].settings.mems, 2);
	CHECK_UINT(b.plan.n_refusals, 1);
	CHECK(str_has(b.plan.refusals[0].text, STR("TopologyAffinityError")));
	bench_done(&b);
}
