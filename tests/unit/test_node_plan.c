/* Bodies of the requests to the Node, for every state it may have. */

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "codec/doc.h"
#include "cpu/topology_read.h"
#include "kube/patch.h"
#include "nodesync/node_plan.h"
#include "pool/ledger.h"
#include "test.h"

static yyjson_val *parse(const char *json, struct arena *a)
{
	struct err err = { 0 };
	struct doc doc;

	CHECK_OK(doc_parse(str_from(json), STR("test"), NULL, a, &doc, &err));
	return doc.root;
}

static struct node_observed observe(const char *json, struct arena *a)
{
	struct node_observed observed;

	node_observed_of(json ? parse(json, a) : NULL, &observed);
	return observed;
}

/* Classic mode with 8 CPUs, ready, at 2026-11-15T00:00:00Z. */
static struct node_desired eight_cpus(void)
{
	return (struct node_desired){ .amounts = { .milli = { 8000, NODE_ABSENT, NODE_ABSENT } },
				      .reason = NODE_PINNING,
				      .message = STR("fine"),
				      .now_s = 1794700800 };
}

#define CORES "management.workload.openshift.io/cores"
#define READY                                                                                      \
	"{\"type\":\"PartitioningReady\",\"status\":\"True\",\"reason\":\"Pinning\","              \
	"\"message\":\"fine\",\"lastHeartbeatTime\":\"2026-11-14T00:00:00Z\","                     \
	"\"lastTransitionTime\":\"2026-11-01T00:00:00Z\"}"
#define NEW_READY(since)                                                                           \
	"{\"type\":\"PartitioningReady\",\"status\":\"True\",\"reason\":\"Pinning\","              \
	"\"message\":\"fine\",\"lastHeartbeatTime\":\"2026-11-15T00:00:00Z\","                     \
	"\"lastTransitionTime\":\"" since "\"}"
#define STATUS(capacity, allocatable, conditions)                                                  \
	"{\"status\":{\"capacity\":{" capacity "},\"allocatable\":{" allocatable                   \
	"},\"conditions\":[" conditions "]}}"

TEST(the_status_is_patched_only_where_it_differs)
{
	static const struct {
		const char *what, *node, *want;
		bool heartbeat;
	} rows[] = {
		{ "nothing differs",
		  STATUS("\"cpu\":\"8\",\"" CORES "\":\"8k\"", "\"" CORES "\":\"8000\"", READY),
		  NULL, false },
		{ "a heartbeat keeps the time of the last change",
		  STATUS("\"" CORES "\":\"8k\"", "\"" CORES "\":\"8k\"", READY),
		  "{\"status\":{\"conditions\":[" NEW_READY("2026-11-01T00:00:00Z") "]}}", true },
		{ "zeroed by the kubelet",
		  STATUS("\"" CORES "\":\"0\"", "\"" CORES "\":\"0\"", READY),
		  "{\"status\":{\"capacity\":{\"" CORES "\":\"8k\"},\"allocatable\":{\"" CORES
		  "\":\"8k\"}}}",
		  false },
		{ "allocatable lags behind", STATUS("\"" CORES "\":\"8k\"", "\"cpu\":\"8\"", READY),
		  "{\"status\":{\"allocatable\":{\"" CORES "\":\"8k\"}}}", false },
		{ "unreadable amount",
		  STATUS("\"" CORES "\":\"many\"", "\"" CORES "\":\"8k\"", READY),
		  "{\"status\":{\"capacity\":{\"" CORES "\":\"8k\"}}}", false },
		{ "new Node", "{\"metadata\":{\"name\":\"n\"}}",
		  "{\"status\":{\"capacity\":{\"" CORES "\":\"8k\"},\"allocatable\":{\"" CORES
		  "\":\"8k\"},\"conditions\":[" NEW_READY("2026-11-15T00:00:00Z") "]}}",
		  false },
		{ "pools that are no longer configured",
		  STATUS("\"openshift.io/shared-cpus\":\"2k\",\"" CORES "\":\"8k\"",
			 "\"openshift.io/guaranteed-cpus\":\"0\",\"" CORES "\":\"8k\"", READY),
		  "{\"status\":{\"capacity\":{\"openshift.io/shared-cpus\":null},"
		  "\"allocatable\":{\"openshift.io/guaranteed-cpus\":null}}}",
		  false },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct node_observed observed = observe(rows[i].node, &a);
		struct node_desired want = eight_cpus();
		struct err err = { 0 };
		struct str body = STR("");
		int r;

		TEST_ROW("%s", rows[i].what);
		want.is_heartbeat_due = rows[i].heartbeat;
		r = node_plan_status(&observed, &want, &a, &body, &err);
		CHECK_INT(r, rows[i].want != NULL);
		CHECK_STR(body, rows[i].want ? rows[i].want : "");
	}
}

TEST(a_changed_condition_gets_a_new_transition_time)
{
	CLEANUP(arena_done) struct arena a;
	struct node_desired want = eight_cpus();
	struct node_observed observed;
	struct err err = { 0 };
	struct str body;

	arena_init(&a, 0);
	observed = observe(STATUS("\"" CORES "\":\"8k\"", "\"" CORES "\":\"8k\"", READY), &a);
	want.reason = NODE_RUNTIME_LOST;
	want.message = STR("gone");
	CHECK_INT(node_plan_status(&observed, &want, &a, &body, &err), 1);
	CHECK_STR(body, "{\"status\":{\"conditions\":[{\"type\":\"PartitioningReady\","
			"\"status\":\"False\",\"reason\":\"RuntimeDisconnected\","
			"\"message\":\"gone\",\"lastHeartbeatTime\":\"2026-11-15T00:00:00Z\","
			"\"lastTransitionTime\":\"2026-11-15T00:00:00Z\"}]}}");
}

TEST(the_most_severe_reason_is_reported)
{
	static const struct {
		struct node_health health;
		enum node_reason want;
	} rows[] = {
		{ { true, false, false }, NODE_PINNING },
		{ { true, true, false }, NODE_POOLS_REFUSED },
		{ { true, true, true }, NODE_CGROUPS_FAIL },
		{ { false, true, true }, NODE_RUNTIME_LOST },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		CHECK_INT(node_reason_choose(&rows[i].health), rows[i].want);
	CHECK_STR(node_reason_status(NODE_AGENT_STOPPED), "Unknown");
}

TEST(the_taint_is_added_again_only_with_taints_unready_and_a_delay)
{
	static const struct {
		bool is_ready;
		uint64_t unready_ms;
		bool taints_unready;
		enum node_taint want;
	} rows[] = {
		{ true, 0, false, NODE_TAINT_REMOVE },
		{ true, 0, true, NODE_TAINT_REMOVE },
		{ false, NODE_UNREADY_MS, false, NODE_TAINT_LEAVE },
		{ false, NODE_UNREADY_MS - 1, true, NODE_TAINT_LEAVE },
		{ false, NODE_UNREADY_MS, true, NODE_TAINT_PUT },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		TEST_ROW("row %zu", i);
		CHECK_INT(node_taint_choose(rows[i].is_ready, rows[i].unready_ms,
					    rows[i].taints_unready),
			  rows[i].want);
	}
}

#define OTHER "{\"key\":\"other\",\"effect\":\"NoExecute\"}"
#define AGENT_TAINT "{\"key\":\"pinfold.io/unpartitioned\",\"effect\":\"NoSchedule\"}"

TEST(a_taint_is_changed_without_the_others)
{
	static const struct {
		const char *node;
		enum node_taint taint;
		const char *want;
	} rows[] = {
		{ "{\"spec\":{\"taints\":[" OTHER "," AGENT_TAINT "]}}", NODE_TAINT_REMOVE,
		  "[{\"op\":\"test\",\"path\":\"/spec/taints/1/key\","
		  "\"value\":\"pinfold.io/unpartitioned\"},"
		  "{\"op\":\"remove\",\"path\":\"/spec/taints/1\"}]" },
		{ "{\"spec\":{\"taints\":[" OTHER "]}}", NODE_TAINT_REMOVE, NULL },
		{ "{\"spec\":{\"taints\":[" AGENT_TAINT "]}}", NODE_TAINT_PUT, NULL },
		{ "{\"spec\":{\"taints\":[" AGENT_TAINT "]}}", NODE_TAINT_LEAVE, NULL },
		{ "{\"spec\":{\"taints\":[" OTHER "]}}", NODE_TAINT_PUT,
		  "[{\"op\":\"add\",\"path\":\"/spec/taints/-\",\"value\":" AGENT_TAINT "}]" },
		{ "{\"metadata\":{\"resourceVersion\":\"12\"},\"spec\":{}}", NODE_TAINT_PUT,
		  "[{\"op\":\"test\",\"path\":\"/metadata/resourceVersion\",\"value\":\"12\"},"
		  "{\"op\":\"add\",\"path\":\"/spec/taints\",\"value\":[" AGENT_TAINT "]}]" },
		{ "{\"spec\":{\"taints\":[{\"key\":\"pinfold.io/unpartitioned\","
		  "\"effect\":\"NoExecute\"}]}}",
		  NODE_TAINT_REMOVE, NULL },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct node_observed observed = observe(rows[i].node, &a);
		struct err err = { 0 };
		struct str body = STR("");
		int r;

		TEST_ROW("%s", rows[i].node);
		r = node_plan_taint(&observed, rows[i].taint, &a, &body, &err);
		CHECK_INT(r, rows[i].want != NULL);
		CHECK_STR(body, rows[i].want ? rows[i].want : "");
	}
}

TEST(uninstalling_removes_only_what_the_agent_wrote)
{
	CLEANUP(arena_done) struct arena a;
	struct node_observed observed;
	struct err err = { 0 };
	struct str body;

	arena_init(&a, 0);
	observed =
		observe(STATUS("\"cpu\":\"8\",\"" CORES "\":\"8k\"", "\"cpu\":\"8\"", READY), &a);
	CHECK_INT(node_plan_removal(&observed, &a, &body, &err), 1);
	CHECK_STR(body, "{\"status\":{\"capacity\":{\"" CORES "\":null},\"conditions\":["
			"{\"$patch\":\"delete\",\"type\":\"PartitioningReady\"}]}}");
	observed = observe(STATUS("\"cpu\":\"8\"", "\"cpu\":\"8\"", ""), &a);
	CHECK_INT(node_plan_removal(&observed, &a, &body, &err), 0);
}

TEST(a_node_is_registered_with_its_resources)
{
	static const char *const labels[] = { "rack=r1", "example.com/empty=" };
	static const char *const taints[] = { "dedicated=ran:NoSchedule", "slow:NoExecute" };
	const struct node_registration registration = { STR("n1"), labels, 2, taints, 2 };
	CLEANUP(arena_done) struct arena a;
	struct node_desired want = eight_cpus();
	struct err err = { 0 };
	struct str body;

	arena_init(&a, 0);
	want.amounts.milli[NODE_SHARED] = 2000;
	want.amounts.milli[NODE_GUARANTEED] = 0;
	want.taint = NODE_TAINT_PUT;
	CHECK_OK(node_registration_check(&registration, &err));
	CHECK_INT(node_plan_registration(&registration, &want, &a, &body, &err), 1);
	CHECK_STR(body, "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\","
			"\"labels\":{\"kubernetes.io/hostname\":\"n1\",\"rack\":\"r1\","
			"\"example.com/empty\":\"\"}},\"spec\":{\"taints\":["
			"{\"key\":\"dedicated\",\"value\":\"ran\",\"effect\":\"NoSchedule\"},"
			"{\"key\":\"slow\",\"effect\":\"NoExecute\"}," AGENT_TAINT "]},\"status\":{"
			"\"capacity\":{\"" CORES "\":\"8k\",\"openshift.io/shared-cpus\":\"2k\","
			"\"openshift.io/guaranteed-cpus\":\"0\"},"
			"\"allocatable\":{\"" CORES "\":\"8k\",\"openshift.io/shared-cpus\":\"2k\","
			"\"openshift.io/guaranteed-cpus\":\"0\"},"
			"\"conditions\":[" NEW_READY("2026-11-15T00:00:00Z") "]}}");
}

TEST(invalid_labels_and_taints_are_rejected_at_startup)
{
	static const struct {
		const char *label, *taint, *want;
	} rows[] = {
		{ "rack", NULL, "\"rack\" is not a label like key=value" },
		{ "=x", NULL, "\"=x\" is not a label like key=value" },
		{ "a=b c", NULL, "\"a=b c\" is not a label like key=value" },
		{ NULL, "a", "\"a\" is not a taint like key=value:NoSchedule" },
		{ NULL, "a=b:Never", "\"a=b:Never\" is not a taint like key=value:NoSchedule" },
		{ NULL, ":NoSchedule", "\":NoSchedule\" is not a taint like key=value:NoSchedule" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct node_registration registration = { STR("n"), &rows[i].label,
								rows[i].label != NULL,
								&rows[i].taint,
								rows[i].taint != NULL };
		struct err err = { 0 };

		TEST_ROW("%s", rows[i].want);
		CHECK_ERR(node_registration_check(&registration, &err), EINVAL, rows[i].want);
	}
}

TEST(a_node_is_named_after_its_host_in_lower_case)
{
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct str name;

	arena_init(&a, 0);
	CHECK_OK(node_name_of(STR("Worker-0.Example.COM\n"), &a, &name, &err));
	CHECK_STR(name, "worker-0.example.com");
	CHECK_ERR(node_name_of(STR("a/b"), &a, &name, &err), EINVAL,
		  "\"a/b\" is not a valid Node name");
	CHECK_ERR(node_name_of(STR(""), &a, &name, &err), EINVAL, "\"\" is not a valid Node name");
}

TEST(amounts_are_computed_from_the_pools)
{
	static const struct {
		const char *shared, *guaranteed;
		bool full_cores, pools;
		int64_t want[NODE_RESOURCE__COUNT];
	} rows[] = {
		{ NULL, "", false, true, { 8000, NODE_ABSENT, NODE_ABSENT } },
		{ "2-3", "4-7", false, true, { 8000, 2000, 4000 } },
		{ "2-3", "4-7", false, false, { 8000, NODE_ABSENT, NODE_ABSENT } },
		/* CPU 3 shares its core with 2: whole cores only are 4-7 */
		{ "2", "3-7", true, true, { 8000, 1000, 4000 } },
		{ "2-7", "", false, true, { 8000, 6000, 0 } },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a;
		struct topology topology;
		struct pool_config pools;
		struct ledger ledger;
		struct node_amounts amounts;
		struct err err = { 0 };

		TEST_ROW("row %zu", i);
		arena_init(&a, 0);
		CHECK_OK(topology_parse_synthetic(STR("pack:1 core:4 pu:2"), &a, &topology, &err));
		pool_config_init(&pools);
		pools.is_classic = !rows[i].shared;
		pools.options.full_pcpus_only = rows[i].full_cores;
		CHECK_OK(cpuset_parse(STR("0-1"), &pools.reserved, &err));
		CHECK_OK(cpuset_parse(str_from(rows[i].shared), &pools.shared, &err));
		CHECK_OK(cpuset_parse(str_from(rows[i].guaranteed), &pools.guaranteed, &err));
		CHECK_OK(ledger_init(&ledger, &topology, &pools, &err));
		node_amounts_of(&ledger, rows[i].pools, &amounts);
		for (size_t r = 0; r < NODE_RESOURCE__COUNT; r++)
			CHECK_INT(amounts.milli[r], rows[i].want[r]);
		ledger_done(&ledger);
	}
}

#define RAN "ran.workload.openshift.io/cores"

TEST(the_cores_of_every_workload_type_are_published_and_removed)
{
	static const struct {
		const char *what, *node, *want;
		size_t n_types; /* of "infra" and "ran" */
	} rows[] = {
		{ "no type yet", STATUS("\"" CORES "\":\"8k\"", "\"" CORES "\":\"8k\"", READY),
		  "{\"status\":{\"capacity\":{\"infra.workload.openshift.io/cores\":\"8k\",\"" RAN
		  "\":\"8k\"},\"allocatable\":{\"infra.workload.openshift.io/cores\":\"8k\",\"" RAN
		  "\":\"8k\"}}}",
		  2 },
		{ "set to zero by a kubelet",
		  STATUS("\"" CORES "\":\"8k\",\"infra.workload.openshift.io/cores\":\"8k\",\"" RAN
			 "\":\"0\"",
			 "\"" CORES "\":\"8k\",\"infra.workload.openshift.io/cores\":\"8k\",\"" RAN
			 "\":\"8k\"",
			 READY),
		  "{\"status\":{\"capacity\":{\"" RAN "\":\"8k\"}}}", 2 },
		{ "as it should be",
		  STATUS("\"" CORES "\":\"8k\",\"infra.workload.openshift.io/cores\":\"8k\"",
			 "\"" CORES "\":\"8k\",\"infra.workload.openshift.io/cores\":\"8k\"",
			 READY),
		  NULL, 1 },
		{ "a type that is not configured any more",
		  STATUS("\"" CORES "\":\"8k\",\"" RAN "\":\"8k\"",
			 "\"" CORES "\":\"8k\",\"" RAN "\":\"8k\"", READY),
		  "{\"status\":{\"capacity\":{\"" RAN "\":null},\"allocatable\":{\"" RAN
		  "\":null}}}",
		  0 },
		{ "other resources are not touched",
		  STATUS("\"" CORES "\":\"8k\",\"example.com/cores\":\"1\"",
			 "\"" CORES "\":\"8k\",\"workload.openshift.io/cores\":\"1\"", READY),
		  NULL, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct node_desired want = eight_cpus();
		CLEANUP(arena_done) struct arena a;
		struct node_observed observed;
		struct err err = { 0 };
		struct str body;

		TEST_ROW("%s", rows[i].what);
		arena_init(&a, 0);
		want.amounts.n_types = rows[i].n_types;
		memcpy(want.amounts.types[0], "infra", 6);
		memcpy(want.amounts.types[1], "ran", 4);
		observed = observe(rows[i].node, &a);
		CHECK_INT(node_plan_status(&observed, &want, &a, &body, &err),
			  rows[i].want != NULL);
		if (rows[i].want)
			CHECK_STR(body, rows[i].want);
		CHECK_INT(node_has_capacity(&observed, &want.amounts), i >= 2);
	}
}

TEST(uninstall_removes_the_cores_of_every_workload_type)
{
	CLEANUP(arena_done) struct arena a;
	struct node_observed observed;
	struct err err = { 0 };
	struct str body;

	arena_init(&a, 0);
	observed = observe(STATUS("\"" CORES "\":\"8k\",\"" RAN "\":\"8k\"", "", ""), &a);
	CHECK_INT(node_plan_removal(&observed, &a, &body, &err), 1);
	CHECK_STR(body, "{\"status\":{\"capacity\":{\"" CORES "\":null,\"" RAN "\":null}}}");
}
