/* Decisions that no vector row covers: D3, D4, D7 to D10, D12, D18, D19, the names of 2021, stamps.
 */

#include <errno.h>

#include "admission/admission.h"

#include "kube/stamp.h"

#include "admission_rows.h"
#include "kube/pod.h"

#define TARGET                                                                                     \
	"\"target.workload.openshift.io/"                                                          \
	"management\":\"{\\\"effect\\\":\\\"PreferredDuringScheduling\\\"}\""
#define META(annotations)                                                                          \
	"\"metadata\":{\"name\":\"p\",\"namespace\":\"m\",\"annotations\":{" annotations "}}"
#define POD(annotations, containers)                                                               \
	"{\"kind\":\"Pod\"," META(annotations) ",\"spec\":{\"containers\":[" containers "]}}"
#define CONTAINER(requests, limits)                                                                \
	"{\"name\":\"c\",\"resources\":{\"requests\":{" requests "},\"limits\":{" limits "}}}"

static const char cluster_objects[] =
	"[{\"kind\":\"Infrastructure\",\"metadata\":{\"name\":\"cluster\"},\"status\":{"
	"\"cpuPartitioning\":\"AllNodes\",\"controlPlaneTopology\":\"HighlyAvailable\"}},"
	"{\"kind\":\"Namespace\",\"metadata\":{\"name\":\"m\",\"annotations\":{"
	"\"workload.openshift.io/allowed\":\"management\"}}},"
	"{\"kind\":\"Namespace\",\"metadata\":{\"name\":\"old\",\"labels\":{"
	"\"workload.openshift.io/allowed\":\"management\"}}},"
	"{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"},\"status\":{\"allocatable\":{"
	"\"openshift.io/shared-cpus\":\"4k\",\"management.workload.openshift.io/cores\":\"8k\"}}}]";

static void cluster(struct state_manifests *m, struct arena *a)
{
	struct err err = { 0 };
	yyjson_val *object;

	state_manifests_init(m, a);
	DOC_EACH_ITEM (row_doc(str_from(cluster_objects), a), object)
		CHECK_OK(state_manifests_add(m, object, &err));
	state_manifests_seal(m);
}

/* The same, with these nodes: "{...},{...}". */
static void cluster_of(const char *nodes, struct state_manifests *m, struct arena *a)
{
	struct err err = { 0 };
	yyjson_val *object;

	cluster(m, a);
	m->n_nodes = 0;
	DOC_EACH_ITEM (row_doc(str_printf(a, "[%s]", nodes), a), object)
		CHECK_OK(state_manifests_add(m, object, &err));
	state_manifests_seal(m);
}

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

static struct admission_result admitted(const struct admission_state *s, const char *pod,
					struct arena *a, yyjson_val **ret)
{
	yyjson_val *object = row_doc(str_from(pod), a);
	struct admission_result result;
	struct err err = { 0 };

	CHECK_INT(admit_pod(s, object, a, &result), 0);
	CHECK_OK(patch_apply(&result.patch, object, a, ret, &err));
	return result;
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

struct change_row {
	const char *what, *subresource, *before, *after, *message; /* NULL: allowed */
};

static void check_change(const struct change_row *row, const char *group, const char *resource,
			 struct arena *a)
{
	struct admission_request rq = {
		.operation = OPERATION_UPDATE,
		.group = str_from(group),
		.resource = str_from(resource),
		.subresource = str_from(row->subresource),
		.old_object = row_doc(str_from(row->before), a),
		.object = row_doc(str_from(row->after), a),
	};
	struct admission_result result;
	struct state_manifests m;

	TEST_ROW("%s", row->what);
	cluster(&m, a);
	CHECK_INT(admit_validate(&m.state, &rq, a, &result), 0);
	CHECK(result.allowed == !row->message);
	CHECK_STR(result.message, row->message);
	CHECK_UINT(result.code, row->message ? 422 : 0);
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

#define INFRASTRUCTURE(mode)                                                                       \
	"{\"kind\":\"Infrastructure\",\"metadata\":{\"name\":\"cluster\"},\"status\":{"            \
	"\"cpuPartitioning\":\"" mode "\"}}"

TEST(turning_off_partitioning_is_refused)
{
	static const struct change_row rows[] = {
		{ "on", "status", INFRASTRUCTURE("None"), INFRASTRUCTURE("AllNodes"), NULL },
		{ "still on", "status", INFRASTRUCTURE("AllNodes"), INFRASTRUCTURE("AllNodes"),
		  NULL },
		{ "off", "status", INFRASTRUCTURE("AllNodes"), INFRASTRUCTURE("None"),
		  "Infrastructure.config.openshift.io \"cluster\" is invalid: "
		  "status.cpuPartitioning: "
		  "Forbidden: workload partitioning can not be turned off once it is AllNodes; "
		  "change "
		  "the CPU sets in the profiles instead" },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check_change(&rows[i], "config.openshift.io", "infrastructures", &a);
}

#define PROFILE_OF(meta, cpu)                                                                      \
	"{\"kind\":\"PerformanceProfile\",\"metadata\":{\"name\":\"p\"" meta "},\"spec\":{"        \
	"\"cpu\":{" cpu "},\"nodeSelector\":{\"node-role.kubernetes.io/worker\":\"\"}}}"
#define IS_BAD "PerformanceProfile.performance.openshift.io \"p\" is invalid: "
#define OVERLAP "spec.cpu.isolated: reserved and isolated overlap: CPUs 1"

TEST(a_change_of_a_profile_is_checked_unless_it_is_stored_with_the_same_faults)
{
	static const char good[] = PROFILE_OF("", "\"reserved\":\"0-1\",\"isolated\":\"2-3\"");
	static const char bad[] =
		PROFILE_OF(",\"generation\":2", "\"reserved\":\"0-1\",\"isolated\":\"1-3\"");
	static const struct change_row rows[] = {
		{ "to another sound one", "", good,
		  PROFILE_OF("", "\"reserved\":\"first 1 core\",\"isolated\":\"rest\""), NULL },
		{ "to one without isolated CPUs", "", good, PROFILE_OF("", "\"reserved\":\"0-1\""),
		  NULL },
		{ "to a bad one", "", good, bad, IS_BAD OVERLAP },
		{ "a label of a bad one", "", bad,
		  PROFILE_OF(",\"generation\":2,\"labels\":{\"a\":\"b\"}",
			     "\"reserved\":\"0-1\",\"isolated\":\"1-3\""),
		  NULL },
		{ "another CPU of a bad one", "", bad,
		  PROFILE_OF(",\"generation\":3", "\"reserved\":\"0-1\",\"isolated\":\"1-4\""),
		  IS_BAD OVERLAP },
		{ "a new fault of a bad one, in an annotation", "", bad,
		  PROFILE_OF(",\"generation\":2,\"annotations\":{\"kubeletconfig.experimental\":\"["
			     "\"}",
			     "\"reserved\":\"0-1\",\"isolated\":\"1-3\""),
		  IS_BAD "[metadata.annotations.kubeletconfig.experimental: not JSON: 1:2: "
			 "unexpected end of data, " OVERLAP "]" },
		{ "the last finalizer of a bad one", "", bad,
		  PROFILE_OF(",\"deletionTimestamp\":\"2026-11-17T05:00:00Z\"", ""), NULL },
		{ "the status", "status", good, bad, NULL },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check_change(&rows[i], "performance.openshift.io", "performanceprofiles", &a);
}

static void validate_profile(const struct admission_state *state, struct str text, struct arena *a,
			     struct admission_result *ret)
{
	struct admission_request rq = {
		.operation = OPERATION_CREATE,
		.group = STR("performance.openshift.io"),
		.resource = STR("performanceprofiles"),
		.object = row_doc(text, a),
	};

	CHECK_INT(admit_validate(state, &rq, a, ret), 0);
}

TEST(profiles_with_the_same_node_selector_conflict)
{
	static const struct profile_ref refs[] = {
		{ STR_INIT("ran"), STR_INIT("node-role.kubernetes.io/ran=") },
		{ STR_INIT("other"), STR_INIT("node-role.kubernetes.io/worker=") },
	};
	static const char good[] = PROFILE_OF("", "\"reserved\":\"0-1\",\"isolated\":\"2-3\"");
	CLEANUP(arena_done) struct arena a;
	struct admission_result result;
	struct state_manifests m;

	arena_init(&a, 0);
	cluster(&m, &a);
	m.state.profiles = refs;
	m.state.n_profiles = 1;
	validate_profile(&m.state, str_from(good), &a, &result);
	CHECK(result.allowed);
	m.state.n_profiles = 2;
	validate_profile(&m.state, str_from(good), &a, &result);
	CHECK_STR(result.message,
		  IS_BAD "spec.nodeSelector: profile \"other\" already selects the nodes with "
			 "node-role.kubernetes.io/worker=");
	CHECK_INT(result.rule, RULE_PROFILE_CONFLICT);
	m.state.has_profiles = false;
	m.state.n_profiles = 0;
	validate_profile(&m.state, str_from(good), &a, &result);
	CHECK(result.allowed);
	CHECK_UINT(result.n_warnings, 1);
}

TEST(a_profile_with_too_many_values_is_refused_before_it_is_checked)
{
	CLEANUP(arena_done) struct arena a;
	struct admission_result result;
	struct state_manifests m;
	struct strbuf b;

	arena_init(&a, 0);
	cluster(&m, &a);
	strbuf_init(&b, &a);
	strbuf_add(&b, STR("\"reserved\":\"0\""));
	for (int i = 0; i < 5000; i++)
		strbuf_printf(&b, ",\"x%d\":%d", i, i);
	validate_profile(&m.state, str_printf(&a, PROFILE_OF("", "%.*s"), FMT_STR(strbuf_str(&b))),
			 &a, &result);
	CHECK_STR(result.message, IS_BAD "spec: too many fields, or too long texts");
	CHECK_UINT(result.n_warnings, 0);
}

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
#define BURST CONTAINER("\"cpu\":\"1\",\"memory\":\"1\"", "")

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

#define ENVELOPE(uid, object, old)                                                                 \
	"{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{" uid   \
	"\"resource\":{\"group\":\"\",\"version\":\"v1\",\"resource\":\"pods\"},"                  \
	"\"namespace\":\"m\",\"operation\":\"CREATE\",\"userInfo\":{},\"object\":" object          \
	",\"oldObject\":" old "}}"
#define UID "\"uid\":\"u-1\","

struct answer {
	struct review_outcome facts;
	struct str text;
	struct err err;
	int r;
};

static struct answer answer_to(enum review_hook hook, struct str body, struct arena *a)
{
	struct state_manifests m;
	struct answer got = { .text = STR("") };

	cluster(&m, a);
	got.r = review_respond(&m.state, hook, body, a, &got.text, &got.facts, &got.err);
	return got;
}

/* Under failurePolicy Ignore the API server admits the pod when the call fails. */
TEST(attack_a_review_that_cannot_be_read_is_refused)
{
	static const struct {
		const char *what, *body;
		bool has_uid;
	} rows[] = {
		{ "cut off", "{\"kind\":\"AdmissionReview\",\"request\":{" UID "\"object\":{\"a",
		  true },
		{ "not JSON", ENVELOPE(UID, "{\"a\":tru}", "null"), true },
		{ "half a surrogate pair", ENVELOPE(UID, "{\"a\":\"\\ud800\"}", "null"), true },
		{ "the uid after other fields",
		  "{ \"x\" : [{\"request\":{\"uid\":\"no\"}}, \"}\\\"\"],\n\"request\" : { \"y\" : "
		  "{}, "
		  "\"uid\" :\t\"u-1\" , bad",
		  true },
		{ "no uid", ENVELOPE("", "{\"a\":tru}", "null"), false },
		{ "the uid in an object", "{\"request\":{\"object\":{" UID "\"a\":tru}}}", false },
		{ "an escaped uid", "{\"request\":{\"uid\":\"u\\u002d1\",bad}}", false },
		{ "nothing", "", false },
		{ "brackets", "[[[[[[[[", false },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (enum review_hook hook = REVIEW_MUTATE; hook <= REVIEW_VALIDATE; hook++) {
			struct answer got = answer_to(hook, str_from(rows[i].body), &a);

			TEST_ROW("%s", rows[i].what);
			CHECK_INT(got.r, rows[i].has_uid ? 0 : -EINVAL);
			if (!rows[i].has_uid)
				continue;
			CHECK(got.facts.is_malformed && !got.facts.allowed);
			CHECK(str_has(got.text, STR("\"uid\":\"u-1\",\"allowed\":false")));
			CHECK(str_has(got.text, STR("\"code\":400")));
			CHECK(str_has(got.text, STR("the review cannot be read: review:")));
		}
}

static struct str replace_once(struct str text, const char *from, struct str to, struct arena *a)
{
	const char *at = memmem(text.p, text.n, from, strlen(from));
	struct strbuf b;

	CHECK(at != NULL);
	strbuf_init(&b, a);
	strbuf_add(&b, (struct str){ text.p, (size_t)(at - text.p) });
	strbuf_add(&b, to);
	strbuf_add(&b, str_skip(text, (size_t)(at - text.p) + strlen(from)));
	return strbuf_str(&b);
}

static struct str repeated(const char *open, const char *close, size_t n, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < n; i++)
		strbuf_add(&b, str_from(open));
	for (size_t i = 0; i < n; i++)
		strbuf_add(&b, str_from(close));
	return strbuf_str(&b);
}

/* The author of a pod chooses managedFields; a client of the port chooses everything. */
TEST(attack_nesting_of_any_depth_does_not_keep_a_review_from_being_read)
{
	enum { DEPTH = 1000000 };
	static const struct {
		const char *what, *body;
		bool is_changed;
	} rows[] = {
#define MANAGED                                                                                    \
	",\"spec\":{\"containers\":[" CONTAINER("\"cpu\":\"1\",\"memory\":\"1Gi\"", "") "]}}"
		{ "managedFields",
		  ENVELOPE(UID,
			   "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"managedFields\":[{"
			   "\"fieldsV1\":@}],\"annotations\":{" TARGET "}}" MANAGED,
			   "null"),
		  true },
		{ "managedFields of the old object",
		  ENVELOPE(UID, "{\"kind\":\"Pod\"," META(TARGET) MANAGED,
			   "{\"metadata\":{\"managedFields\":@}}"),
		  true },
		{ "an annotation", ENVELOPE(UID, "{" META("\"x\":@," TARGET) MANAGED, "null"),
		  true },
		{ "a workload annotation",
		  ENVELOPE(UID, "{" META("\"target.workload.openshift.io/management\":@") MANAGED,
			   "null"),
		  false },
		{ "a label",
		  ENVELOPE(
			  UID,
			  "{\"metadata\":{\"labels\":{\"workload.openshift.io/target\":@}}" MANAGED,
			  "null"),
		  false },
		{ "a request", ENVELOPE(UID, POD(TARGET, CONTAINER("\"cpu\":@", "")), "null"),
		  false },
		{ "a container", ENVELOPE(UID, POD(TARGET, "@"), "null"), true },
		{ "the user", "{\"request\":{" UID "\"userInfo\":@}}", false },
	};
	CLEANUP(arena_done) struct arena texts;
	struct str deep;

	arena_init(&texts, 0);
	deep = repeated("[", "]", DEPTH, &texts);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (enum review_hook hook = REVIEW_MUTATE; hook <= REVIEW_VALIDATE; hook++) {
			CLEANUP(arena_done) struct arena a;
			struct answer got;

			TEST_ROW("%s", rows[i].what);
			arena_init(&a, 0);
			got = answer_to(hook, replace_once(str_from(rows[i].body), "@", deep, &a),
					&a);
			CHECK_INT(got.r, 0);
			CHECK(str_has(got.text, STR("\"uid\":\"u-1\"")));
			if (hook == REVIEW_MUTATE)
				CHECK(got.facts.is_changed == rows[i].is_changed);
		}
}

/* 3 MiB of '<', which the API server accepts, are 18 MiB in its review. */
TEST(attack_escaped_text_of_the_largest_request_is_still_read)
{
	static const char body[] = ENVELOPE(
		UID,
		"{\"kind\":\"Pod\"," META(TARGET) ",\"spec\":{\"containers\":[{\"name\":\"c\","
						  "\"env\":[{\"name\":\"x\",\"value\":\"@\"}],"
						  "\"resources\":{\"requests\":{"
						  "\"cpu\":\"1\",\"memory\":\"1Gi\"}}}]}}",
		"{\"old\":\"@\"}");
	CLEANUP(arena_done) struct arena a;
	struct answer got;
	struct str text;

	arena_init(&a, 0);
	text = replace_once(str_from(body), "@", repeated("\\u003c", "", 3 << 20, &a), &a);
	text = replace_once(text, "@", repeated("\\u003c", "", 3 << 19, &a), &a);
	got = answer_to(REVIEW_MUTATE, text, &a);
	CHECK_INT(got.r, 0);
	CHECK(got.facts.allowed && got.facts.is_changed);
	/* Beyond everything that can come it is refused, by its uid. */
	text = replace_once(str_from(body), "@", repeated("x", "", REVIEW_MAX_SIZE, &a), &a);
	got = answer_to(REVIEW_MUTATE, text, &a);
	CHECK_INT(got.r, 0);
	CHECK(!got.facts.allowed);
	CHECK(str_has(got.text, STR("\"code\":413")));
	CHECK(str_has(got.text, STR("RequestEntityTooLarge")));
}

/* As if the mutating hook had not been called. */
TEST(attack_annotations_that_came_past_the_mutating_hook_are_refused)
{
	static const char shares[] =
		"\"resources.workload.openshift.io/c\":\"{\\\"cpushares\\\":9}\"";
	static const struct {
		const char *what, *namespace, *annotations;
		bool allowed, is_legacy;
	} rows[] = {
		{ "a target with permission", "m", TARGET, true, false },
		{ "a target in a namespace without permission", "plain", TARGET, false, false },
		{ "a target in a namespace with the label of 2021", "legacy", TARGET, false,
		  false },
		{ "the same with the legacy setting", "legacy", TARGET, true, true },
		{ "a target of another type", "m", "\"target.workload.openshift.io/x\":\"{}\"",
		  false, false },
		{ "cpushares in a namespace without permission", "plain", shares, false, false },
		{ "nothing", "plain", "", true, false },
	};
	static const char others[] =
		"[{\"kind\":\"Namespace\",\"metadata\":{\"name\":\"plain\"}},"
		"{\"kind\":\"Namespace\",\"metadata\":{\"name\":\"legacy\",\"labels\":{"
		"\"workload.openshift.io/allowed\":\"management\"}}}]";
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct admission_request rq = { .operation = OPERATION_CREATE,
						.resource = STR("pods"),
						.namespace = str_from(rows[i].namespace) };
		struct admission_result result;
		struct state_manifests m;
		struct err err = { 0 };
		yyjson_val *object;

		TEST_ROW("%s", rows[i].what);
		cluster(&m, &a);
		DOC_EACH_ITEM (row_doc(str_from(others), &a), object)
			CHECK_OK(state_manifests_add(&m, object, &err));
		state_manifests_seal(&m);
		m.state.settings.legacy = rows[i].is_legacy;
		rq.object = row_doc(str_printf(&a,
					       "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\","
					       "\"annotations\":{%s}},\"spec\":{\"containers\":[{"
					       "\"name\":\"c\"}]}}",
					       rows[i].annotations),
				    &a);
		CHECK_INT(admit_validate(&m.state, &rq, &a, &result), 0);
		CHECK(result.allowed == rows[i].allowed);
		CHECK(rows[i].allowed || result.code == 422);
	}
}
