/* Decisions about pods that no vector row covers: D3, D4, D8 to D10, D12, D19, the names of 2021,
 * stamps. */

#include <errno.h>

#include "admission_cluster.h"
#include "kube/pod.h"
#include "kube/stamp.h"

TEST(of_two_objects_with_the_same_name_the_last_one_counts)
{
	static const char objects[] =
		"[{\"kind\":\"Node\",\"metadata\":{\"name\":\"b\"},\"status\":{\"allocatable\":{"
		"\"openshift.io/shared-cpus\":\"4k\"}}},"
		"{\"kind\":\"Node\",\"metadata\":{\"name\":\"a\"}},"
		"{\"kind\":\"Node\",\"metadata\":{\"name\":\"c\"},\"spec\":{\"unschedulable\":true}"
		"},"
		"{\"kind\":\"Node\",\"metadata\":{\"name\":\"b\"},\"status\":{\"capacity\":{}}},"
		"{\"kind\":\"Namespace\",\"metadata\":{\"name\":\"m\",\"annotations\":{"
		"\"workload.openshift.io/allowed\":\"management\"}}},"
		"{\"kind\":\"Namespace\",\"metadata\":{\"name\":\"m\"}}]";
	CLEANUP(arena_done) struct arena a;
	struct namespace_permission facts;
	struct state_manifests m;
	struct err err = { 0 };
	yyjson_val *object;

	arena_init(&a, 0);
	state_manifests_init(&m, &a);
	DOC_EACH_ITEM (row_doc(str_from(objects), &a), object)
		CHECK_OK(state_manifests_add(&m, object, &err));
	state_manifests_seal(&m);
	CHECK_UINT(m.state.nodes.n, 3);
	CHECK_UINT(m.state.nodes.n_reporting, 1);
	CHECK_UINT(m.state.nodes.n_available, 2);
	CHECK_UINT(m.state.nodes.n_shared, 0);
	CHECK_UINT(m.state.nodes.n_missing_shared, 1);	      /* a group: neither has taints */
	CHECK_STR(m.state.nodes.missing_shared[0].name, "b"); /* at the position of the first */
	CHECK(m.state.find_namespace(m.state.owner, STR("m"), &facts) && !facts.has_allowed);
}

TEST(a_converted_pod_keeps_its_cores_and_limit_when_admitted_again)
{
	static const struct {
		const char *what, *before, *after;
	} cases[] = {
		{ "a LimitRange put default CPU back",
		  POD(TARGET ",\"resources.workload.openshift.io/c\":"
			     "\"{\\\"cpushares\\\":20,\\\"cpulimit\\\":30}\"",
		      CONTAINER("\"cpu\":\"1\",\"memory\":\"1Gi\","
				"\"management.workload.openshift.io/cores\":\"20\"",
				"\"cpu\":\"1\",\"memory\":\"1Gi\","
				"\"management.workload.openshift.io/cores\":\"20\"")),
		  POD("\"resources.workload.openshift.io/c\":"
		      "\"{\\\"cpushares\\\":20,\\\"cpulimit\\\":30}\"," TARGET,
		      CONTAINER("\"memory\":\"1Gi\",\"management.workload.openshift.io/"
				"cores\":\"20\"",
				"\"memory\":\"1Gi\","
				"\"management.workload.openshift.io/cores\":\"20\"")) },
		{ "the annotation was lost",
		  POD(TARGET, CONTAINER("\"memory\":\"1Gi\","
					"\"management.workload.openshift.io/cores\":\"1k\"",
					"\"management.workload.openshift.io/cores\":\"1k\"")),
		  POD("\"resources.workload.openshift.io/c\":\"{\\\"cpushares\\\":1024}\"," TARGET,
		      CONTAINER("\"memory\":\"1Gi\",\"management.workload.openshift.io/"
				"cores\":\"1k\"",
				"\"management.workload.openshift.io/cores\":\"1k\"")) },
		{ "cores without a matching annotation are overwritten",
		  POD(TARGET ",\"resources.workload.openshift.io/c\":\"{\\\"cpushares\\\":7}\"",
		      CONTAINER("\"cpu\":\"250m\",\"memory\":\"1Gi\","
				"\"management.workload.openshift.io/cores\":\"1\"",
				"")),
		  POD("\"resources.workload.openshift.io/c\":\"{\\\"cpushares\\\":256}\"," TARGET,
		      CONTAINER("\"memory\":\"1Gi\",\"management.workload.openshift.io/"
				"cores\":\"250\"",
				"\"management.workload.openshift.io/cores\":\"250\"")) },
	};
	CLEANUP(arena_done) struct arena a;
	struct state_manifests m;

	arena_init(&a, 0);
	cluster(&m, &a);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		yyjson_val *after;

		TEST_ROW("%s", cases[i].what);
		CHECK_INT(admitted(&m.state, cases[i].before, &a, &after).rule, RULE_CONVERT);
		check_same_pod(row_doc(str_from(cases[i].after), &a), after, &a);
	}
}

/* Converted, the amount would be in an annotation, where the API server does not look. */
TEST(a_negative_amount_is_refused_before_it_is_moved)
{
	static const struct {
		const char *pod, *field;
	} cases[] = {
		{ POD(TARGET, CONTAINER("\"cpu\":\"1\",\"memory\":\"1Gi\"", "\"cpu\":\"-1\"")),
		  "spec.containers[0].resources.limits[cpu]: Invalid value: \"-1\": " },
		{ POD(TARGET, CONTAINER("\"cpu\":\"-100m\",\"memory\":\"1Gi\"", "")),
		  "spec.containers[0].resources.requests[cpu]: Invalid value: \"-100m\": " },
		{ POD(TARGET, CONTAINER("\"management.workload.openshift.io/cores\":\"20\","
					"\"memory\":\"1Gi\"",
					"\"management.workload.openshift.io/cores\":\"20\","
					"\"cpu\":\"-1n\"")),
		  "spec.containers[0].resources.limits[cpu]: Invalid value: \"-1n\": " },
	};
	CLEANUP(arena_done) struct arena a;
	struct state_manifests m;

	arena_init(&a, 0);
	cluster(&m, &a);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct admission_result result;
		yyjson_val *after;

		TEST_ROW("%s", cases[i].field);
		result = admitted(&m.state, cases[i].pod, &a, &after);
		CHECK_INT(result.code, 422);
		CHECK(str_has(result.message, str_from(cases[i].field)));
		CHECK(str_has(result.message, STR("must be greater than or equal to 0")));
	}
}

TEST(updates_of_workload_annotations_and_counted_cpu_are_refused)
{
	static const char plain[] = POD("\"a\":\"b\"", CONTAINER("\"cpu\":\"1\"", ""));
	static const char counted[] =
		POD("", CONTAINER("\"cpu\":\"1\",\"openshift.io/shared-cpus\":\"1k\"", ""));
	static const struct change_row rows[] = {
		{ "nothing", "", plain, plain, NULL },
		{ "an unrelated annotation", "", plain, POD("", CONTAINER("\"cpu\":\"1\"", "")),
		  NULL },
		{ "adding an opt-in", "", plain,
		  POD("\"a\":\"b\",\"target.workload.openshift.io/x\":\"\"", ""),
		  "Pod \"p\" is invalid: metadata.annotations[target.workload.openshift.io/x]: "
		  "Forbidden: may not be added after the pod was created: delete the pod and "
		  "create "
		  "it again" },
		{ "changing a weight", "status",
		  POD("\"resources.workload.openshift.io/c\":\"{\\\"cpushares\\\":2}\"", ""),
		  POD("\"resources.workload.openshift.io/c\":\"{\\\"cpushares\\\":99}\"", ""),
		  "Pod \"p\" is invalid: metadata.annotations[resources.workload.openshift.io/c]: "
		  "Forbidden: may not be changed after the pod was created: delete the pod and "
		  "create it again" },
		{ "removing the stamp", "", POD("\"pinfold.io/cpus\":\"{}\"", ""), POD("", ""),
		  "Pod \"p\" is invalid: metadata.annotations[pinfold.io/cpus]: Forbidden: may not "
		  "be "
		  "removed after the pod was created: delete the pod and create it again" },
		{ "resizing a container that is not counted", "resize", plain,
		  POD("\"a\":\"b\"", CONTAINER("\"cpu\":\"2\"", "")), NULL },
		{ "the same CPU in other units", "resize", counted,
		  POD("", CONTAINER("\"cpu\":\"1000m\",\"openshift.io/shared-cpus\":\"1k\"", "")),
		  NULL },
		{ "resizing what is counted", "resize", counted,
		  POD("", CONTAINER("\"cpu\":\"2\",\"openshift.io/shared-cpus\":\"1k\"", "")),
		  "Pod \"p\" is invalid: spec.containers[0].resources: Forbidden: the CPU of "
		  "container "
		  "c is counted in a CPU pool and cannot be resized in place: delete the pod and "
		  "create it with the new CPU" },
		{ "adding CPU to a converted container", "resize",
		  POD("", CONTAINER("\"management.workload.openshift.io/cores\":\"20\"", "")),
		  POD("", CONTAINER("\"management.workload.openshift.io/cores\":\"20\","
				    "\"cpu\":\"1\"",
				    "")),
		  "Pod \"p\" is invalid: spec.containers[0].resources: Forbidden: the CPU of "
		  "container "
		  "c is counted in a CPU pool and cannot be resized in place: delete the pod and "
		  "create it with the new CPU" },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check_change(&rows[i], "", "pods", &a);
}

TEST(a_pod_is_static_only_when_a_node_creates_it)
{
	static const char pod[] = POD("\"kubernetes.io/config.source\":\"file\","
				      "\"target.workload.openshift.io/other\":\"\"",
				      CONTAINER("\"cpu\":\"1\"", ""));
	struct admission_request rq = { .operation = OPERATION_CREATE, .resource = STR("pods") };
	CLEANUP(arena_done) struct arena a;
	struct admission_result result;
	struct state_manifests m;

	arena_init(&a, 0);
	cluster(&m, &a);
	rq.object = row_doc(str_from(pod), &a);
	CHECK_INT(admit_mutate(&m.state, &rq, &a, &result), 0);
	CHECK_UINT(result.code, 403);
	rq.by_node = true;
	CHECK_INT(admit_mutate(&m.state, &rq, &a, &result), 0);
	CHECK(result.allowed && patch_is_empty(&result.patch));
	CHECK_INT(result.rule, RULE_STATIC);
}

#define WHOLE "\"cpu\":\"2\",\"memory\":\"1Gi\""
#define HALF "\"cpu\":\"1500m\",\"memory\":\"1Gi\""

TEST(each_container_is_counted_in_the_pool_it_will_run_in)
{
	static const struct {
		const char *what, *pod, *stamp;
	} rows[] = {
		{ "whole CPUs of a Guaranteed pod", POD("", CONTAINER(WHOLE, WHOLE)),
		  "{\"c\":{\"kind\":\"app\",\"milli\":2000,\"pool\":\"guaranteed\"}}" },
		{ "half a CPU of a Guaranteed pod", POD("", CONTAINER(HALF, HALF)),
		  "{\"c\":{\"kind\":\"app\",\"milli\":1500,\"pool\":\"shared\"}}" },
		{ "whole CPUs of a Burstable pod", POD("", CONTAINER(WHOLE, "")),
		  "{\"c\":{\"kind\":\"app\",\"milli\":2000,\"pool\":\"shared\"}}" },
		{ "no CPU", POD("", "{\"name\":\"c\"}"),
		  "{\"c\":{\"kind\":\"app\",\"milli\":0,\"pool\":\"shared\"}}" },
		{ "a sidecar",
		  "{\"kind\":\"Pod\"," META(
			  "") ",\"spec\":{\"initContainers\":[{\"name\":\"s\","
			      "\"restartPolicy\":\"Always\",\"resources\":{\"requests\":{" WHOLE
			      "},"
			      "\"limits\":{" WHOLE
			      "}}}],\"containers\":[" CONTAINER(WHOLE, WHOLE) "]}}",
		  "{\"s\":{\"kind\":\"sidecar\",\"milli\":2000,\"pool\":\"guaranteed\"},"
		  "\"c\":{\"kind\":\"app\",\"milli\":2000,\"pool\":\"guaranteed\"}}" },
		{ "pod-level CPU",
		  "{\"kind\":\"Pod\"," META(
			  "") ",\"spec\":{\"resources\":{\"requests\":{" WHOLE "},"
			      "\"limits\":{" WHOLE "}},\"containers\":[{\"name\":\"c\"}]}}",
		  "{\"c\":{\"kind\":\"app\",\"milli\":2000,\"pool\":\"shared\"}}" },
		{ "a pod of a workload type",
		  POD(TARGET, CONTAINER("\"cpu\":\"1\",\"memory\":\"1\"", "")), "" },
		{ "a pod that was skipped", POD(TARGET, CONTAINER("\"cpu\":\"1\"", "")),
		  "{\"c\":{\"kind\":\"app\",\"milli\":1000,\"pool\":\"shared\"}}" },
	};
	CLEANUP(arena_done) struct arena a;
	struct state_manifests m;

	arena_init(&a, 0);
	cluster(&m, &a);
	m.state.settings.pools = true;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		yyjson_val *after;
		struct pod pod;

		TEST_ROW("%s", rows[i].what);
		(void)admitted(&m.state, rows[i].pod, &a, &after);
		CHECK(pod_from_object(after, &pod));
		CHECK_STR(pod_annotation(&pod, STR(NAME_STAMP)), rows[i].stamp);
	}
}

#define PLUGINS(value) ",\"required-plugins.noderesource.dev\":\"" value "\""

TEST(partitioned_pods_require_the_agent_when_the_setting_is_on)
{
	static const struct {
		const char *what, *pod;
		bool requires_agent, pools;
		const char *want;
		size_t warnings;
	} rows[] = {
		{ "the setting is off", POD(TARGET, BURST), false, false, "", 0 },
		{ "converted", POD(TARGET, BURST), true, false, "[\"pinfold\"]", 0 },
		{ "left alone", POD("", BURST), true, false, "", 0 },
		{ "counted in a pool", POD("", BURST), true, true, "[\"pinfold\"]", 0 },
		{ "with others", POD(TARGET PLUGINS("[ first, 'second' ]"), BURST), true, false,
		  "[\"first\",\"second\",\"pinfold\"]", 0 },
		{ "again", POD(TARGET PLUGINS("[pinfold, other]"), BURST), true, false,
		  "[pinfold, other]", 0 },
		{ "not a list", POD(TARGET PLUGINS("first"), BURST), true, false, "first", 1 },
		{ "the agent itself",
		  POD(TARGET ",\"tolerate-missing-nri-plugins.noderesource.dev\":\"true\"", BURST),
		  true, false, "", 0 },
		{ "who does not tolerate",
		  POD(TARGET ",\"tolerate-missing-nri-plugins.noderesource.dev\":\"false\"", BURST),
		  true, false, "[\"pinfold\"]", 0 },
		{ "already required for the pod",
		  POD(TARGET ",\"required-plugins.noderesource.dev/pod\":\"[pinfold]\"", BURST),
		  true, false, "", 0 },
	};
	CLEANUP(arena_done) struct arena a;
	struct state_manifests m;

	arena_init(&a, 0);
	cluster(&m, &a);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct admission_result r;
		yyjson_val *after;

		TEST_ROW("%s", rows[i].what);
		m.state.settings.requires_agent = rows[i].requires_agent;
		m.state.settings.pools = rows[i].pools;
		r = admitted(&m.state, rows[i].pod, &a, &after);
		CHECK_STR(doc_str(doc_get(object_annotations(after), STR(NAME_REQUIRED_PLUGINS))),
			  rows[i].want);
		CHECK_UINT(r.n_warnings, rows[i].warnings);
	}
}

/* The validator uses only the most specific annotation, so one for a container must name the
 * agent. */
TEST(a_required_plugins_annotation_for_one_container_also_names_the_agent)
{
	static const char pod[] =
		POD(TARGET ",\"required-plugins.noderesource.dev/container.c\":\"[]\"", BURST);
	CLEANUP(arena_done) struct arena a;
	struct state_manifests m;
	yyjson_val *after;

	arena_init(&a, 0);
	cluster(&m, &a);
	m.state.settings.requires_agent = true;
	(void)admitted(&m.state, pod, &a, &after);
	CHECK_STR(doc_str(doc_get(object_annotations(after),
				  STR(NAME_REQUIRED_PLUGINS "/container.c"))),
		  "[\"pinfold\"]");
	CHECK_STR(doc_str(doc_get(object_annotations(after), STR(NAME_REQUIRED_PLUGINS))),
		  "[\"pinfold\"]");
}

TEST(pods_in_the_namespaces_of_webhook_and_agent_are_left_alone)
{
	static const char *const more[] = { "infra" };
	static const struct {
		const char *namespace;
		enum admission_rule rule;
	} rows[] = {
		{ "pinfold", RULE_EXEMPT },
		{ "pinfold-agent", RULE_EXEMPT },
		{ "infra", RULE_EXEMPT },
		{ "m", RULE_CONVERT },
	};
	CLEANUP(arena_done) struct arena a;
	struct state_manifests m;

	arena_init(&a, 0);
	cluster(&m, &a);
	m.state.settings.exempt = more;
	m.state.settings.n_exempt = 1;
	m.state.settings.pools = true;
	m.state.settings.requires_agent = true;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct admission_request rq = { .operation = OPERATION_CREATE,
						.resource = STR("pods"),
						.namespace = str_from(rows[i].namespace) };
		struct admission_result r;

		TEST_ROW("%s", rows[i].namespace);
		rq.object = row_doc(str_from(POD(TARGET, BURST)), &a);
		CHECK_INT(admit_mutate(&m.state, &rq, &a, &r), 0);
		CHECK_INT(r.rule, rows[i].rule);
		CHECK_INT(patch_is_empty(&r.patch), rows[i].rule == RULE_EXEMPT);
	}
}

TEST(labels_of_2021_count_only_with_the_legacy_setting)
{
	static const char pod[] =
		"{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"namespace\":\"old\",\"labels\":{"
		"\"workload.openshift.io/target\":\"management\"},\"annotations\":{"
		"\"cpu.workload.openshift.io/c\":\"400m\"}},\"spec\":{\"containers\":[" CONTAINER(
			"\"cpu.workload.openshift.io/management\":\"400m\",\"memory\":\"1Gi\"",
			"") "]}}";
	CLEANUP(arena_done) struct arena a;
	struct state_manifests m;
	yyjson_val *after;

	arena_init(&a, 0);
	cluster(&m, &a);
	CHECK_INT(admitted(&m.state, pod, &a, &after).rule, RULE_TARGET);
	m.state.settings.legacy = true;
	CHECK_INT(admitted(&m.state, pod, &a, &after).rule, RULE_CONVERT);
	CHECK_STR(row_text(object_annotations(after), &a),
		  "{\"resources.workload.openshift.io/c\":\"{\\\"cpushares\\\":409}\"," TARGET "}");
	CHECK_STR(row_text(doc_find(after, "/spec/containers/0/resources"), &a),
		  "{\"requests\":{\"memory\":\"1Gi\",\"management.workload.openshift.io/"
		  "cores\":\"400\"}"
		  ",\"limits\":{\"management.workload.openshift.io/cores\":\"400\"}}");
}

TEST(an_invalid_stamp_is_refused)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{ "[]", "want an object, not a list" },
		{ "{\"c\":{}}", "container \"c\": want kind, milli and pool" },
		{ "{\"c\":{\"kind\":\"x\",\"milli\":1,\"pool\":\"shared\"}}",
		  "container \"c\": unknown kind" },
		{ "{\"c\":{\"kind\":\"app\",\"milli\":1,\"pool\":\"x\"}}",
		  "container \"c\": unknown pool" },
		{ "{\"c\":{\"kind\":\"app\",\"milli\":-1,\"pool\":\"shared\"}}",
		  "container \"c\": bad amount of millicores" },
		{ "{\"c\":{\"kind\":\"app\",\"milli\":1500,\"pool\":\"guaranteed\"}}",
		  "container \"c\": guaranteed, but not whole CPUs" },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct cpu_stamp *stamps;
		struct err err = { 0 };
		size_t n;

		TEST_ROW("%s", rows[i].text);
		CHECK_ERR(stamps_parse(str_from(rows[i].text), &a, &stamps, &n, &err), EINVAL,
			  rows[i].why);
	}
}

TEST(a_stamp_is_compared_with_what_the_runtime_reports)
{
	static const struct cpu_stamp two = { .milli = 2000, .pool = POOL_GUARANTEED };
	static const struct cpu_stamp small = { .milli = 200, .pool = POOL_SHARED };
	static const struct {
		const struct cpu_stamp *stamp;
		struct runtime_cpu seen;
		bool matches;
	} rows[] = {
		{ &two, { 2048, 200000, 100000, true }, true },
		{ &two, { 2048, -1, 100000, true }, true },
		{ &two, { 2048, 200000, 100000, false }, false },
		{ &two, { 1024, 100000, 100000, true }, false },
		{ &two, { 2048, 100000, 100000, true }, false },
		{ &small, { 204, 40000, 100000, false }, true },
		{ &small, { 2, -1, 100000, false }, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		TEST_ROW("%zu", i);
		CHECK(stamp_matches(rows[i].stamp, &rows[i].seen) == rows[i].matches);
	}
}

TEST(a_request_that_exceeds_its_memory_limit_fails)
{
	static const char pod[] = POD(TARGET, CONTAINER("\"cpu\":\"1\",\"memory\":\"1Gi\"", ""));
	CLEANUP(arena_done) struct arena a;
	struct state_manifests m;
	struct row_request rq = { .operation = "CREATE", .resource = "pods" };
	struct str body, response = STR("untouched");
	size_t n_failed = 0;

	arena_init(&a, 0);
	cluster(&m, &a);
	rq.object = row_doc(str_from(pod), &a);
	body = row_review(&rq, &a);
	for (size_t limit = 64; limit < 64 << 10; limit += 64) {
		CLEANUP(arena_done) struct arena small;
		struct review_outcome facts;
		struct err err = { 0 };
		int r;

		arena_init(&small, limit);
		r = review_respond(&m.state, REVIEW_MUTATE, body, &small, &response, &facts, &err);
		if (r == 0) {
			CHECK(str_has(response, STR("\"patch\":")));
			break;
		}
		CHECK_INT(r, -ENOMEM);
		CHECK_STR(response, "untouched");
		n_failed++;
	}
	CHECK(n_failed > 10);
}
