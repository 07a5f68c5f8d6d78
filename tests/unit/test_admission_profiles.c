/* Changes of the cluster's own objects: the cluster flag and PerformanceProfiles. */

#include "admission_cluster.h"

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
