/* Nodes that join and change, and pods that wait for nodes (D7, D18). */

#include "admission_cluster.h"

TEST(nodes_join_and_change_before_the_infrastructure_exists)
{
	static const char bare[] = "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"}}";
	static const enum admission_operation operations[] = { OPERATION_CREATE, OPERATION_UPDATE };
	CLEANUP(arena_done) struct arena a;
	struct admission_result result;
	struct state_manifests m;

	arena_init(&a, 0);
	cluster(&m, &a);
	m.state.infrastructure = (struct infrastructure_status){ 0 };
	for (size_t i = 0; i < 4; i++) {
		struct admission_request rq = { .operation = operations[i / 2],
						.resource = STR("nodes"),
						.object = row_doc(str_from(bare), &a) };

		m.state.settings.nodes = i % 2 ? NODE_MODE_TAINT : NODE_MODE_REFUSE;
		CHECK_INT(admit_mutate(&m.state, &rq, &a, &result), 0);
		CHECK(result.allowed && patch_is_empty(&result.patch));
		CHECK_INT(admit_validate(&m.state, &rq, &a, &result), 0);
		CHECK(result.allowed);
	}
}

TEST(a_node_without_the_resource_may_stay_but_is_refused_or_tainted_when_it_joins)
{
	static const char bare[] = "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"},\"status\":{"
				   "\"capacity\":{\"cpu\":\"8\"}}}";
	struct admission_request rq = { .operation = OPERATION_CREATE, .resource = STR("nodes") };
	CLEANUP(arena_done) struct arena a;
	struct admission_result result;
	struct state_manifests m;
	struct err err = { 0 };
	yyjson_val *tainted;

	arena_init(&a, 0);
	cluster(&m, &a);
	rq.object = row_doc(str_from(bare), &a);
	CHECK_INT(admit_validate(&m.state, &rq, &a, &result), 0);
	CHECK(!result.allowed);
	rq.operation = OPERATION_UPDATE;
	CHECK_INT(admit_validate(&m.state, &rq, &a, &result), 0);
	CHECK(result.allowed && result.n_warnings == 1);

	m.state.settings.nodes = NODE_MODE_TAINT;
	rq.operation = OPERATION_CREATE;
	CHECK_INT(admit_validate(&m.state, &rq, &a, &result), 0);
	CHECK(result.allowed && result.n_warnings == 1); /* the mutating hook was not called */
	CHECK_INT(admit_mutate(&m.state, &rq, &a, &result), 0);
	CHECK_OK(patch_apply(&result.patch, rq.object, &a, &tainted, &err));
	CHECK_STR(
		row_text(doc_get(tainted, STR("spec")), &a),
		"{\"taints\":[{\"key\":\"pinfold.io/unpartitioned\",\"effect\":\"NoSchedule\"}]}");
	rq.object = tainted;
	CHECK_INT(admit_validate(&m.state, &rq, &a, &result), 0);
	CHECK(result.allowed && result.n_warnings == 1);
	CHECK_INT(admit_mutate(&m.state, &rq, &a, &result), 0);
	CHECK(patch_is_empty(&result.patch));
}

#define N(name, spec, status)                                                                      \
	"{\"kind\":\"Node\",\"metadata\":{\"name\":\"" name "\"},\"spec\":{" spec                  \
	"},\"status\":{" status "}}"
#define HAS(resource, amount) "\"allocatable\":{\"" resource "\":\"" amount "\"}"
#define CORES(amount) HAS("management.workload.openshift.io/cores", amount)
#define SHARED(amount) HAS("openshift.io/shared-cpus", amount)
#define READY(status) "\"conditions\":[{\"type\":\"Ready\",\"status\":\"" status "\"}]"
#define TAINT(key) "\"taints\":[{\"key\":\"" key "\",\"value\":\"v\",\"effect\":\"NoSchedule\"}]"

TEST(pods_are_held_back_while_no_ready_node_has_cores_and_warned_about_while_some_lack_them)
{
	static const struct {
		const char *what, *nodes;
		enum admission_rule rule;
		const char *warning;
	} rows[] = {
#define NONE                                                                                       \
	"skip pod CPUs requests modifications because no node that is ready advertises the "       \
	"resource management.workload.openshift.io/cores"
		{ "no node", "", RULE_CORES, NONE },
		{ "a node without them", N("a", "", READY("True")), RULE_CORES, NONE },
		{ "a node with them", N("a", "", READY("True") "," CORES("8k")), RULE_CONVERT, "" },
		{ "a kubelet has just set them to 0", N("a", "", READY("True") "," CORES("0")),
		  RULE_CONVERT, "" },
		{ "the only one is not ready", N("a", "", READY("False") "," CORES("8k")),
		  RULE_CONVERT, "" },
		{ "the only one with them is not ready, another node is",
		  N("a", "", READY("Unknown") "," CORES("8k")) "," N("b", "", READY("True")),
		  RULE_CORES, NONE },
		{ "one of two",
		  N("a", "", READY("True") "," CORES("8k")) "," N("b", "", READY("True")),
		  RULE_CONVERT,
		  "1 of 2 nodes that are ready advertise the resource "
		  "management.workload.openshift.io/cores, the pod cannot run on the others" },
		{ "the other one joins",
		  N("a", "", READY("True") "," CORES("8k")) "," N(
			  "b", TAINT("pinfold.io/unpartitioned"), READY("True")),
		  RULE_CONVERT, "" },
		{ "the other one is cordoned",
		  N("a", "", READY("True") "," CORES("8k")) "," N("b", "\"unschedulable\":true",
								  READY("True")),
		  RULE_CONVERT, "" },
		{ "cores of another type only",
		  N("a", "", READY("True") "," HAS("other.workload.openshift.io/cores", "8k")),
		  RULE_CORES, NONE },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a;
		struct admission_result r;
		struct state_manifests m;
		yyjson_val *after;

		TEST_ROW("%s", rows[i].what);
		arena_init(&a, 0);
		cluster_of(rows[i].nodes, &m, &a);
		r = admitted(&m.state, POD(TARGET, BURST), &a, &after);
		CHECK(r.allowed);
		CHECK_INT(r.rule, rows[i].rule);
		CHECK_STR(r.n_warnings ? r.warnings[0] : STR(""), rows[i].warning);
		/* Held back: CPU stays, and the annotations that say otherwise are removed. */
		CHECK_INT(doc_find(after, "/spec/containers/0/resources/requests/cpu") != NULL,
			  rows[i].rule == RULE_CORES);
		CHECK_INT(doc_get(object_annotations(after),
				  STR("target.workload.openshift.io/management")) != NULL,
			  rows[i].rule == RULE_CONVERT);
	}
}

/* Without its annotations it would be refused. */
TEST(a_pod_that_was_converted_is_not_held_back)
{
	CLEANUP(arena_done) struct arena a;
	struct state_manifests m;
	yyjson_val *after;

	arena_init(&a, 0);
	cluster_of(N("a", "", READY("True")), &m, &a);
	CHECK_INT(admitted(&m.state,
			   POD(TARGET ",\"resources.workload.openshift.io/c\":"
				      "\"{\\\"cpushares\\\":20}\"",
			       CONTAINER("\"memory\":\"1Gi\","
					 "\"management.workload.openshift.io/cores\":\"20\"",
					 "\"management.workload.openshift.io/cores\":\"20\"")),
			   &a, &after)
			  .rule,
		  RULE_CONVERT);
}

TEST(pools_wait_only_for_nodes_that_could_take_the_pod)
{
	static const struct {
		const char *what, *nodes;
		const char *warning;
	} rows[] = {
#define WITH N("a", "", READY("True") "," SHARED("4k")) ","
		{ "no node", "",
		  "CPU pools are inactive: no node advertises openshift.io/shared-cpus" },
		{ "a node without the pool", WITH N("b", "", READY("True")),
		  "CPU pools are inactive: node b does not advertise openshift.io/shared-cpus" },
		{ "it joins", WITH N("b", TAINT("pinfold.io/unpartitioned"), READY("True")), "" },
		{ "it is not ready", WITH N("b", "", READY("Unknown")), "" },
		{ "it is cordoned", WITH N("b", "\"unschedulable\":true", READY("True")), "" },
		{ "its taint is not tolerated", WITH N("b", TAINT("other"), READY("True")), "" },
		{ "its taint is tolerated", WITH N("b", TAINT("mine"), READY("True")),
		  "CPU pools are inactive: node b does not advertise openshift.io/shared-cpus" },
		{ "one of its taints is not tolerated",
		  WITH N("b",
			 "\"taints\":[{\"key\":\"mine\",\"value\":\"v\",\"effect\":\"NoSchedule\"},"
			 "{\"key\":\"mine\",\"value\":\"w\",\"effect\":\"NoExecute\"}]",
			 READY("True")),
		  "" },
		{ "a taint that keeps no pod away",
		  WITH N("b", "\"taints\":[{\"key\":\"x\",\"effect\":\"PreferNoSchedule\"}]",
			 READY("True")),
		  "CPU pools are inactive: node b does not advertise openshift.io/shared-cpus" },
		{ "a kubelet has just set it to 0", N("a", "", READY("True") "," SHARED("0")), "" },
	};
	static const char pod[] = "{\"kind\":\"Pod\"," META(
		"") ",\"spec\":{\"tolerations\":[{\"key\":\"mine\","
		    "\"value\":\"v\",\"effect\":\"NoSchedule\"}],\"containers\":[" BURST "]}}";

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a;
		struct admission_result r;
		struct state_manifests m;
		yyjson_val *after;

		TEST_ROW("%s", rows[i].what);
		arena_init(&a, 0);
		cluster_of(rows[i].nodes, &m, &a);
		m.state.settings.pools = true;
		r = admitted(&m.state, pod, &a, &after);
		CHECK_STR(r.n_warnings ? r.warnings[0] : STR(""), rows[i].warning);
		CHECK_INT(doc_get(object_annotations(after), STR(NAME_STAMP)) != NULL,
			  !*rows[i].warning);
	}
}
