#include <errno.h>

#include "admission/admission_state.h"
#include "base/arena.h"
#include "cpu/topology_read.h"
#include "kube/names.h"
#include "sim/sim_machine.h"
#include "sim/sim_report.h"
#include "sim/sim_workload.h"
#include "test.h"

/* A cluster of one machine type, whose state allows everything. */
struct fixture {
	struct arena a;
	struct topology t;
	struct sim_machine machine;
	struct state_manifests state;
	struct sim sim;
};

static yyjson_val *parse(struct fixture *f, struct str json)
{
	struct err err = { 0 };
	struct doc doc = { 0 };

	CHECK_OK(doc_parse(json, STR("object"), NULL, &f->a, &doc, &err));
	return doc.root;
}

static const char profile[] =
	"{\"apiVersion\":\"performance.openshift.io/v2\",\"kind\":\"PerformanceProfile\","
	"\"metadata\":{\"name\":\"p\"},\"spec\":{\"cpu\":{\"reserved\":\"0-1\",\"isolated\":\"8-"
	"15\","
	"\"shared\":\"2-7\"},\"nodeSelector\":{\"node-role.kubernetes.io/ran\":\"\"},"
	"\"numa\":{\"topologyPolicy\":\"single-numa-node\"}}}";

static yyjson_val *node_of(struct fixture *f)
{
	const struct sim_node_amounts amounts = { INT64_C(64) << 30, 20 };

	return sim_node_make(STR("ran"), &f->machine, &amounts, &f->a);
}

static void begin(struct fixture *f, const char *topology)
{
	yyjson_val *profiles[1];
	struct sim_pools_source from = { .profiles = profiles, .n_profiles = 1 };
	struct err err = { 0 };
	struct str note;

	*f = (struct fixture){ 0 };
	arena_init(&f->a, 0);
	profiles[0] = parse(f, str_from(profile));
	CHECK_OK(topology_parse_synthetic(str_from(topology), &f->a, &f->t, &err));
	CHECK_OK(sim_machine_of(&from, &f->t,
				parse(f, STR("{\"node-role.kubernetes.io/ran\":\"\"}")), &f->a,
				&f->machine, &note, &err));
	CHECK_STR(note, "");
	state_manifests_init(&f->state, &f->a);
	f->state.state.settings.pools = true;
	CHECK_OK(state_manifests_add(
		&f->state,
		parse(f, STR("{\"kind\":\"Infrastructure\",\"metadata\":{\"name\":"
			     "\"cluster\"},\"status\":{\"controlPlaneTopology\":"
			     "\"HighlyAvailable\",\"cpuPartitioning\":\"AllNodes\"}}")),
		&err));
	CHECK_OK(state_manifests_add(
		&f->state,
		parse(f,
		      STR("{\"kind\":\"Namespace\",\"metadata\":{\"name\":\"n\",\"annotations\":{"
			  "\"workload.openshift.io/allowed\":\"management\"}}}")),
		&err));
	CHECK_OK(state_manifests_add(&f->state, node_of(f), &err));
	state_manifests_seal(&f->state);
	sim_init(&f->sim, 1, &f->a);
}

static void end(struct fixture *f)
{
	sim_done(&f->sim);
	sim_machine_done(&f->machine);
	arena_done(&f->a);
}

static void add_nodes(struct fixture *f, uint32_t n)
{
	struct err err = { 0 };

	CHECK_OK(sim_add_nodes(&f->sim, node_of(f), STR("ran"), &f->machine, n, &err));
}

/* A pod of one container. */
static uint32_t add_class(struct fixture *f, const char *name, const char *cpu, bool is_guaranteed,
			  const char *more)
{
	struct err err = { 0 };
	struct str amounts = str_printf(&f->a, "{\"cpu\":\"%s\",\"memory\":\"1Gi\"}", cpu);
	struct str json = str_printf(
		&f->a,
		"{\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\",\"namespace\":\"n\"%s},\"spec\":{"
		"\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":" PRI_STR "%s" PRI_STR
		"}}]}}",
		name, more, FMT_STR(amounts), is_guaranteed ? ",\"limits\":" : "",
		FMT_STR(is_guaranteed ? amounts : STR("")));
	uint32_t class = SIM_NONE;

	CHECK_OK(sim_add_class(&f->sim, &f->state.state, parse(f, json), &class, &err));
	return class;
}

#define OPT_IN                                                                                     \
	",\"annotations\":{\"target.workload.openshift.io/management\":"                           \
	"\"{\\\"effect\\\":\\\"PreferredDuringScheduling\\\"}\"}"

TEST(pods_are_admitted_as_by_the_webhook)
{
	const struct sim_class *c;
	struct fixture f;

	begin(&f, "pack:1 core:16 pu:1");
	(void)add_class(&f, "platform", "100m", false, OPT_IN);
	(void)add_class(&f, "unit", "4", true, "");
	(void)add_class(&f, "two", "1", true, OPT_IN);
	c = f.sim.classes;
	CHECK_INT(c[0].admission, SIM_CONVERTED);
	CHECK_INT(c[0].request.amounts.of[SIM_CPU], 0);
	CHECK_INT(c[0].request.amounts.of[SIM_CORES], 100);
	CHECK_INT(c[0].request.scored_cpu, 100); /* the scheduler's default without a request */
	CHECK_INT(c[1].admission, SIM_COUNTED);
	CHECK_INT(c[1].request.amounts.of[SIM_CPU], 4000);
	CHECK_INT(c[1].request.amounts.of[SIM_GUARANTEED], 4000);
	CHECK_UINT(c[1].n_cpus, 4);
	CHECK_INT(c[2].admission, SIM_SKIPPED);
	CHECK(c[2].message.n > 0);
	end(&f);
}

TEST(equal_pods_are_one_class)
{
	struct fixture f;
	uint32_t one;

	begin(&f, "pack:1 core:16 pu:1");
	one = add_class(&f, "a", "1", true, "");
	CHECK_UINT(add_class(&f, "b", "1", true, ""), one);
	CHECK(add_class(&f, "a", "2", true, "") != one);
	CHECK(add_class(&f, "a", "1", false, "") != one);
	CHECK_UINT(f.sim.n_classes, 3);
	end(&f);
}

TEST(a_pod_that_does_not_fit_waits_with_the_schedulers_words)
{
	struct fixture f;
	uint32_t class;

	begin(&f, "pack:1 core:16 pu:1");
	class = add_class(&f, "unit", "4", true, "");
	add_nodes(&f, 2);
	for (int i = 0; i < 5; i++)
		(void)sim_arrive(&f.sim, class);
	CHECK_UINT(f.sim.classes[class].n_running, 4);
	CHECK_UINT(f.sim.classes[class].n_pending, 1);
	CHECK_STR(sim_why_pending(&f.sim, &f.sim.classes[class], &f.a),
		  "0/2 nodes are available: 2 Insufficient " NAME_GUARANTEED_CPUS ".");
	end(&f);
}

TEST(a_pod_that_waits_gets_the_place_of_one_that_leaves)
{
	struct fixture f;
	uint32_t large, small, first, waiting;

	begin(&f, "pack:1 core:16 pu:1");
	large = add_class(&f, "large", "8", true, "");
	small = add_class(&f, "small", "4", true, "");
	add_nodes(&f, 1);
	first = sim_arrive(&f.sim, large);
	waiting = sim_arrive(&f.sim, small);
	(void)sim_arrive(&f.sim, large);
	CHECK_INT(f.sim.pods[waiting].state, SIM_POD_PENDING);
	sim_leave(&f.sim, first);
	CHECK_INT(f.sim.pods[waiting].state, SIM_POD_RUNNING);
	CHECK_UINT(f.sim.classes[large].n_pending, 1);
	sim_leave(&f.sim, waiting);
	CHECK_UINT(f.sim.classes[large].n_pending, 0);
	CHECK_UINT(f.sim.classes[large].n_running, 1);
	end(&f);
}

TEST(a_node_refuses_what_no_numa_node_can_hold)
{
	struct sim_report r;
	struct fixture f;
	uint32_t class;

	/* Of the guaranteed CPUs 8-15 four are in each NUMA node. */
	begin(&f, "pack:1 numa:4 core:4 pu:1");
	class = add_class(&f, "unit", "6", true, "");
	add_nodes(&f, 1);
	(void)sim_arrive(&f.sim, class);
	CHECK_UINT(f.sim.classes[class].n_refused, 1);
	CHECK_STR(ledger_reject_reason(f.sim.classes[class].refusal), "TopologyAffinityError");
	sim_report_make(&f.sim, &f.a, &r);
	CHECK_UINT(r.n_refused, 1);
	CHECK_UINT(r.pools[0].assigned_cpus, 0);
	CHECK_UINT(r.pools[0].largest_in_node, 8);
	CHECK_UINT(r.pools[0].largest_in_numa, 4);
	CHECK_UINT(r.rooms[0].by_count, 1);
	CHECK_UINT(r.rooms[0].in_numa_node, 0);
	end(&f);
}

TEST(the_report_says_how_many_management_cpus_suffice)
{
	struct sim_report r;
	struct fixture f;
	uint32_t class;

	begin(&f, "pack:1 core:8 pu:2");
	class = add_class(&f, "platform", "1100m", false, OPT_IN);
	add_nodes(&f, 1);
	for (int i = 0; i < 3; i++)
		(void)sim_arrive(&f.sim, class);
	sim_leave(&f.sim, 0);
	sim_report_make(&f.sim, &f.a, &r);
	CHECK_UINT(r.pools[0].management_cpus, 2);
	CHECK_INT(r.pools[0].peak_milli, 3300);
	CHECK_UINT(r.pools[0].sufficient_cpus, 4);
	CHECK_UINT(r.pools[0].n_over, 1);
	CHECK_UINT(r.pools[0].n_pods, 2);
	end(&f);
}

TEST(nodes_are_filled_evenly)
{
	struct fixture f;
	uint32_t class;

	begin(&f, "pack:1 core:16 pu:1");
	class = add_class(&f, "web", "500m", false, "");
	add_nodes(&f, 10);
	for (int i = 0; i < 50; i++)
		(void)sim_arrive(&f.sim, class);
	for (size_t i = 0; i < 10; i++)
		CHECK_UINT(f.sim.nodes[i].n_pods, 5);
	end(&f);
}

/* Init containers run one after the other, with the sidecars that were started before them. */
TEST(requests_are_added_as_the_scheduler_does)
{
	static const struct {
		const char *spec;
		int64_t cpu, scored, memory;
	} rows[] = {
		{ "{\"containers\":[{\"name\":\"a\",\"resources\":{\"requests\":{\"cpu\":\"1\"}}},"
		  "{\"name\":\"b\"}]}",
		  1000, 1100, 0 },
		{ "{\"initContainers\":[{\"name\":\"i\",\"resources\":{\"requests\":{\"cpu\":\"3\"}"
		  "}}],"
		  "\"containers\":[{\"name\":\"a\",\"resources\":{\"requests\":{\"cpu\":\"1\"}}}]}",
		  3000, 3000, 0 },
		{ "{\"initContainers\":[{\"name\":\"s\",\"restartPolicy\":\"Always\",\"resources\":"
		  "{"
		  "\"requests\":{\"cpu\":\"2\"}}},{\"name\":\"i\",\"resources\":{\"requests\":{"
		  "\"cpu\":"
		  "\"3\"}}}],\"containers\":[{\"name\":\"a\",\"resources\":{\"requests\":{\"cpu\":"
		  "\"1\"}}}]}",
		  5000, 5000, 0 },
		{ "{\"overhead\":{\"cpu\":\"250m\"},\"containers\":[{\"name\":\"a\",\"resources\":{"
		  "\"requests\":{\"cpu\":\"1\",\"memory\":\"1Ki\"}}}]}",
		  1250, 1250, 1024 },
		{ "{\"resources\":{\"requests\":{\"cpu\":\"4\"}},\"containers\":[{\"name\":\"a\"}]"
		  "}",
		  4000, 4000, 0 },
	};
	struct fixture f;

	begin(&f, "pack:1 core:16 pu:1");
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct pod pod;
		struct sim_request request;
		struct err err = { 0 };

		TEST_ROW("%zu", i);
		CHECK(pod_from_object(
			parse(&f, str_printf(&f.a, "{\"kind\":\"Pod\",\"spec\":%s}", rows[i].spec)),
			&pod));
		CHECK_OK(sim_request_of(&pod, &f.sim.resources, &request, &err));
		CHECK_INT(request.amounts.of[SIM_CPU], rows[i].cpu);
		CHECK_INT(request.amounts.of[SIM_MEMORY], rows[i].memory);
		CHECK_INT(request.amounts.of[SIM_PODS], 1);
		CHECK_INT(request.scored_cpu, rows[i].scored);
	}
	end(&f);
}

TEST(unreadable_amounts_are_refused)
{
	struct sim_request request;
	struct err err = { 0 };
	struct fixture f;
	struct pod pod;

	begin(&f, "pack:1 core:16 pu:1");
	CHECK(pod_from_object(
		parse(&f, STR("{\"kind\":\"Pod\",\"spec\":{\"containers\":[{\"resources\":"
			      "{\"requests\":{\"memory\":\"1 Gi\"}}}]}}")),
		&pod));
	CHECK_INT(sim_request_of(&pod, &f.sim.resources, &request, &err), -EINVAL);
	end(&f);
}

TEST(an_adjusted_node_has_the_cpus_that_leave_the_management_pool)
{
	struct fixture f;
	yyjson_val *node;

	begin(&f, "pack:1 core:16 pu:1");
	node = parse(
		&f,
		STR("{\"kind\":\"Node\",\"metadata\":{\"name\":\"x\"},\"status\":{\"capacity\":{"
		    "\"cpu\":\"16\"},\"allocatable\":{\"cpu\":\"11500m\"}}}"));
	node = sim_node_adjust(node, &f.machine, 4, &f.a);
	CHECK_STR(doc_str(doc_find(node, "/status/allocatable/cpu")), "13500m");
	CHECK_STR(doc_str(doc_find(node, "/status/allocatable/openshift.io~1guaranteed-cpus")),
		  "8000");
	CHECK_STR(doc_str(doc_find(node, "/status/capacity/openshift.io~1shared-cpus")), "6000");
	end(&f);
}

TEST(every_kind_of_pod_of_every_workload_is_admitted)
{
	struct fixture f;

	begin(&f, "pack:1 core:16 pu:1");
	for (size_t w = 0; w < SIM_WORKLOAD__COUNT; w++) {
		enum sim_workload parsed;
		struct err err = { 0 };
		struct sim_mix mix;
		size_t n_management = 0;

		CHECK_OK(sim_workload_parse(str_from(sim_workload_name((enum sim_workload)w)),
					    &parsed, &err));
		CHECK_UINT(parsed, w);
		sim_mix_make(parsed, &f.a, &mix);
		for (size_t i = 0; i < mix.n; i++) {
			yyjson_val *pod = mix.pods[i];

			TEST_ROW("%zu %s", w, doc_str(doc_find(pod, "/metadata/name")).p);
			n_management += doc_find(pod, "/metadata/annotations") != NULL;
			CHECK(mix.weights[i] > 0);
		}
		CHECK(n_management > 0 && n_management < mix.n);
		CHECK_UINT(sim_mix_pick(&mix, 0), 0);
		CHECK_UINT(sim_mix_pick(&mix, mix.total - 1), mix.n - 1);
	}
	end(&f);
}
