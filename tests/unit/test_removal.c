#include "base/arena.h"
#include "base/macro.h"
#include "cli/removal.h"
#include "test.h"

static yyjson_val *parse(const char *json, struct arena *a)
{
	struct err err = { 0 };
	struct doc doc = { 0 };

	CHECK_OK(doc_parse(str_from(json), STR("object"), NULL, a, &doc, &err));
	return doc.root;
}

/* The step that takes an object of this kind; REMOVAL_STEP__COUNT: none. */
static enum removal_step step_of(const char *resource, const char *name)
{
	enum removal_step found = REMOVAL_STEP__COUNT;

	for (const struct removal_kind *k = removal_kinds; k->api; k++)
		if (str_eq(str_from(k->resource), str_from(resource)) &&
		    removal_takes(k, str_from(name))) {
			CHECK_INT(found, REMOVAL_STEP__COUNT); /* no object is deleted twice */
			found = k->step;
		}
	return found;
}

TEST(conversion_ends_first_and_what_restricts_accounts_goes_after_their_permissions)
{
	static const struct {
		const char *resource, *name;
		enum removal_step want;
	} rows[] = {
		{ "mutatingwebhookconfigurations", "pinfold", REMOVE_CONVERSION },
		{ "validatingadmissionpolicies", "pinfold-pods", REMOVE_CONVERSION },
		{ "validatingadmissionpolicybindings", "pinfold-guard", REMOVE_CONVERSION },
		{ "validatingadmissionpolicies", "pinfold-agent", REMOVE_PERMISSIONS },
		{ "validatingadmissionpolicies", "pinfold-permissions", REMOVE_PERMISSIONS },
		{ "validatingadmissionpolicybindings", "pinfold-webhook", REMOVE_PERMISSIONS },
		{ "deployments", "pinfold-operator", REMOVE_CONTROLLERS },
		{ "daemonsets", "pinfold-agent", REMOVE_AGENTS },
		{ "clusterroles", "pinfold-agent-topology", REMOVE_PERMISSIONS },
		{ "configmaps", "pinfold-permissions", REMOVE_PERMISSIONS },
		{ "configmaps", "pinfold-admission", REMOVE_PERMISSIONS },
		{ "flowschemas", "pinfold-agents", REMOVE_PERMISSIONS },
		{ "prioritylevelconfigurations", "pinfold", REMOVE_PERMISSIONS },
		{ "mutatingadmissionpolicybindings", "pinfold-workloads", REMOVE_CONVERSION },
		{ "validatingadmissionpolicies", "pinfold-guard", REMOVE_CONVERSION },
		{ "namespaces", "pinfold", REMOVE_NAMESPACES },
		{ "customresourcedefinitions", "nodepartitions.pinfold.io", REMOVE_CRDS },
		{ "customresourcedefinitions", "performanceprofiles.performance.openshift.io",
		  REMOVE_CRDS_WITH_DATA },
		{ "customresourcedefinitions", "infrastructures.config.openshift.io",
		  REMOVE_CRDS_WITH_DATA },
		/* Not ours. */
		{ "clusterroles", "pinfoldx", REMOVAL_STEP__COUNT },
		{ "clusterroles", "cluster-admin", REMOVAL_STEP__COUNT },
		{ "namespaces", "pinfold-staging", REMOVAL_STEP__COUNT },
		{ "customresourcedefinitions", "noderesourcetopologies.topology.node.k8s.io",
		  REMOVAL_STEP__COUNT },
		{ "configmaps", "coredns", REMOVAL_STEP__COUNT },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		TEST_ROW("%s/%s", rows[i].resource, rows[i].name);
		CHECK_INT(step_of(rows[i].resource, rows[i].name), rows[i].want);
	}
}

#define POD(meta, spec, requests)                                                                  \
	"{\"metadata\":{" meta "},\"spec\":{" spec "\"containers\":[{\"name\":\"a\"},{\"name\":"   \
	"\"b\",\"resources\":{\"requests\":{" requests "}}}]},\"status\":{\"phase\":\"Pending\"}}"
#define CORES "\"management.workload.openshift.io/cores\":\"20\""

TEST(only_converted_pods_without_a_node_would_be_stranded)
{
	static const struct {
		const char *pod;
		bool waits, has_controller;
	} rows[] = {
		{ POD("", "", CORES), true, false },
		{ POD("", "", "\"openshift.io/shared-cpus\":\"1k\""), true, false },
		{ POD("\"ownerReferences\":[{\"kind\":\"ReplicaSet\",\"controller\":true}]", "",
		      CORES),
		  true, true },
		{ POD("\"ownerReferences\":[{\"kind\":\"Thing\"}]", "", CORES), true, false },
		{ POD("", "", "\"cpu\":\"1\""), false, false },
		{ POD("", "\"nodeName\":\"n\",", CORES), false, false },
		{ POD("\"deletionTimestamp\":\"2026-11-17T05:00:00Z\"", "", CORES), false, false },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		yyjson_val *pod = parse(rows[i].pod, &a);

		TEST_ROW("%zu", i);
		CHECK_INT(pod_waits_for_node(pod), rows[i].waits);
		CHECK_INT(pod_has_controller(pod), rows[i].has_controller);
	}
}

TEST(agents_get_the_flag_once_and_no_probe)
{
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct str body;

	arena_init(&a, 0);
	CHECK_INT(agents_release_patch(
			  parse("{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":"
				"\"agent\",\"args\":[\"agent\",\"--listen=:9465\"]}]}}}}",
				&a),
			  &a, &body, &err),
		  1);
	CHECK_STR(body, "{\"spec\":{\"updateStrategy\":{\"type\":\"RollingUpdate\","
			"\"rollingUpdate\":{\"maxUnavailable\":\"100%\"}},\"template\":{\"spec\":{"
			"\"containers\":[{\"name\":\"agent\",\"args\":[\"agent\","
			"\"--listen=:9465\",\"--uninstall\"],\"livenessProbe\":null,"
			"\"readinessProbe\":null}]}}}}");
	CHECK_INT(agents_release_patch(
			  parse("{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":"
				"\"agent\",\"args\":[\"agent\",\"--uninstall\"]}]}}}}",
				&a),
			  &a, &body, &err),
		  0);
}

#define AGENT_POD(args, status)                                                                    \
	"{\"spec\":{\"containers\":[{\"args\":[" args "]}]},\"status\":{"                          \
	"\"containerStatuses\":[" status "]}}"

TEST(an_agent_has_released_its_node_when_its_container_succeeded)
{
	static const struct {
		const char *pod;
		bool want;
	} rows[] = {
		{ AGENT_POD("\"agent\",\"--uninstall\"",
			    "{\"state\":{\"terminated\":{\"exitCode\":0}}}"),
		  true },
		{ AGENT_POD("\"agent\",\"--uninstall\"",
			    "{\"state\":{\"waiting\":{}},\"lastState\":{\"terminated\":{"
			    "\"exitCode\":0}}}"),
		  true },
		{ AGENT_POD("\"agent\",\"--uninstall\"",
			    "{\"state\":{\"terminated\":{\"exitCode\":1}}}"),
		  false },
		{ AGENT_POD("\"agent\",\"--uninstall\"", "{\"state\":{\"running\":{}}}"), false },
		{ AGENT_POD("\"agent\",\"--uninstall\"", ""), false },
		{ AGENT_POD("\"agent\"", "{\"state\":{\"terminated\":{\"exitCode\":0}}}"), false },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		TEST_ROW("%zu", i);
		CHECK_INT(agent_has_released(parse(rows[i].pod, &a)), rows[i].want);
	}
}
