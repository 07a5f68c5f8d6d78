#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "cluster/pki.h"
#include "codec/base64.h"
#include "codec/doc.h"
#include "preflight/preflight_cluster.h"
#include "preflight/preflight_node.h"
#include "preflight/runtime_config.h"
#include "test.h"

/* A cluster in which everything is right; a test spoils one object. */
#define NAMED(name) "{\"metadata\":{\"name\":\"" name "\"}}"
#define CRD(name)                                                                                  \
	"{\"metadata\":{\"name\":\"" name                                                          \
	"\"},\"status\":{\"conditions\":[{\"type\":\"Established\",\"status\":\"True\"}]}}"
#define NODE(name, ready, partitioned, labels, runtime)                                            \
	"{\"metadata\":{\"name\":\"" name "\",\"labels\":{" labels                                 \
	"}},\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"" ready                   \
	"\"},{\"type\":\"PartitioningReady\",\"status\":\"" partitioned                            \
	"\"}],\"nodeInfo\":{\"kubeletVersion\":\"v1.34.1\",\"containerRuntimeVersion\":\"" runtime \
	"\"}}}"
#define DAEMONSET(wanted, ready)                                                                   \
	"{\"metadata\":{\"generation\":1},\"status\":{\"observedGeneration\":1,"                   \
	"\"desiredNumberScheduled\":" wanted ",\"numberReady\":" ready "}}"
#define LIST(items) "{\"items\":[" items "]}"
#define PARTITION(name, version, conflict)                                                         \
	"{\"metadata\":{\"name\":\"" name "\"},\"status\":{\"agentVersion\":\"" version            \
	"\",\"conditions\":[{\"type\":\"Conflict\",\"status\":\"" conflict                         \
	"\",\"reason\":\"X\",\"lastTransitionTime\":\"2026-01-01T00:00:00Z\"}]}}"

#define GUARD NAMED("pinfold-guard") "," NAMED("pinfold-pods") "," NAMED("pinfold-converted")
#define PARTS NAMED("pinfold-webhook") "," NAMED("pinfold-agent") "," NAMED("pinfold-operator")
#define POLICIES "," PARTS "," NAMED("pinfold-permissions")

static const char *const fine[PREFLIGHT_OBJECT__COUNT] = {
	[PREFLIGHT_VERSION_OBJECT] = "{\"gitVersion\":\"v1.34.1\"}",
	[PREFLIGHT_CRDS_OBJECT] = LIST(CRD("infrastructures.config.openshift.io") "," CRD(
		"performanceprofiles.performance.openshift.io") "," CRD("nodepartitions.pinfold."
									"io")),
	[PREFLIGHT_POLICIES_OBJECT] = LIST(GUARD "," NAMED("pinfold-nodepartitions") POLICIES),
	[PREFLIGHT_BINDINGS_OBJECT] = LIST(GUARD "," NAMED("pinfold-nodepartitions") POLICIES),
	[PREFLIGHT_INFRASTRUCTURE_OBJECT] = "{\"status\":{\"cpuPartitioning\":\"AllNodes\"}}",
	[PREFLIGHT_MUTATING_OBJECT] =
		"{\"webhooks\":[{\"name\":\"w\",\"clientConfig\":{\"url\":\"https://w\"}}]}",
	[PREFLIGHT_VALIDATING_OBJECT] =
		"{\"webhooks\":[{\"name\":\"v\",\"clientConfig\":{\"url\":\"https://w\"}}]}",
	[PREFLIGHT_OPERATOR_OBJECT] =
		"{\"spec\":{\"replicas\":2},\"status\":{\"availableReplicas\":2}}",
	[PREFLIGHT_DAEMONSET_OBJECT] = DAEMONSET("2", "2"),
	[PREFLIGHT_NODES_OBJECT] = LIST(
		NODE("a", "True", "True", "", "containerd://2.0.5") "," NODE("b", "True", "True",
									     "", "cri-o://1.34.0")),
	[PREFLIGHT_PARTITIONS_OBJECT] =
		LIST(PARTITION("a", "1.0", "False") "," PARTITION("b", "1.0", "False")),
};

static void cluster_fine(struct arena *a, struct cluster_facts *ret)
{
	*ret = (struct cluster_facts){ .version = STR("1.0"),
				       .now_s = 1000,
				       .direct = { .is_made = true, .is_answered = true },
				       .pod = { .is_made = true, .is_answered = true } };
	for (int i = 0; i < PREFLIGHT_OBJECT__COUNT; i++) {
		struct err err = { 0 };
		struct doc doc;

		if (!fine[i]) {
			(void)err_set(&ret->objects[i].err, ENOENT, "not found");
			continue;
		}
		CHECK_OK(doc_parse(str_from(fine[i]), STR("fine"), NULL, a, &doc, &err));
		ret->objects[i].object = doc.root;
	}
}

static const struct preflight_finding *find(const struct preflight_report *r,
					    enum preflight_check check)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->items[i].check == check)
			return &r->items[i];
	return NULL;
}

TEST(a_cluster_in_which_everything_is_right_has_no_warnings)
{
	CLEANUP(arena_done) struct arena a;
	struct preflight_report r;
	struct cluster_facts f;

	arena_init(&a, 0);
	cluster_fine(&a, &f);
	preflight_report_init(&r, &a);
	preflight_cluster(&f, &r);
	CHECK_UINT(r.count[PREFLIGHT_FAILURE], 0);
	CHECK_UINT(r.count[PREFLIGHT_WARNING], 0);
	CHECK_UINT(r.count[PREFLIGHT_NOTE], 0);
	CHECK_UINT(r.count[PREFLIGHT_OK], 14);
}

TEST(each_spoiled_object_is_found_with_a_remedy)
{
	static const struct {
		enum preflight_object object;
		const char *text; /* NULL: not found */
		enum preflight_check want;
		enum preflight_level level;
		const char *message;
	} rows[] = {
		{ PREFLIGHT_VERSION_OBJECT, NULL, PREFLIGHT_API_SERVER_CHECK, PREFLIGHT_FAILURE,
		  "not found" },
		{ PREFLIGHT_VERSION_OBJECT, "{\"gitVersion\":\"v1.29.9\"}",
		  PREFLIGHT_API_SERVER_CHECK, PREFLIGHT_FAILURE, "too old" },
		{ PREFLIGHT_CRDS_OBJECT, LIST(CRD("infrastructures.config.openshift.io")),
		  PREFLIGHT_CRDS_CHECK, PREFLIGHT_FAILURE,
		  "performanceprofiles.performance.openshift.io does not exist" },
		{ PREFLIGHT_CRDS_OBJECT, LIST(NAMED("infrastructures.config.openshift.io")),
		  PREFLIGHT_CRDS_CHECK, PREFLIGHT_FAILURE, "is not established" },
		{ PREFLIGHT_POLICIES_OBJECT, LIST(""), PREFLIGHT_POLICIES_CHECK, PREFLIGHT_WARNING,
		  "pinfold-guard does not exist" },
		{ PREFLIGHT_POLICIES_OBJECT, LIST(GUARD POLICIES), PREFLIGHT_POLICIES_CHECK,
		  PREFLIGHT_WARNING, "pinfold-nodepartitions does not exist" },
		{ PREFLIGHT_POLICIES_OBJECT,
		  LIST(GUARD "," NAMED("pinfold-nodepartitions") "," PARTS),
		  PREFLIGHT_POLICIES_CHECK, PREFLIGHT_WARNING,
		  "pinfold-permissions does not exist" },
		{ PREFLIGHT_BINDINGS_OBJECT, LIST(""), PREFLIGHT_POLICIES_CHECK, PREFLIGHT_WARNING,
		  "has no binding" },
		{ PREFLIGHT_OPERATOR_OBJECT, NULL, PREFLIGHT_OPERATOR_CHECK, PREFLIGHT_NOTE,
		  "no operator is installed" },
		{ PREFLIGHT_OPERATOR_OBJECT, "{\"spec\":{\"replicas\":2}}",
		  PREFLIGHT_OPERATOR_CHECK, PREFLIGHT_FAILURE, "0 of 2 operator pods" },
		{ PREFLIGHT_OPERATOR_OBJECT,
		  "{\"spec\":{\"replicas\":2},\"status\":{\"availableReplicas\":1}}",
		  PREFLIGHT_OPERATOR_CHECK, PREFLIGHT_WARNING, "1 of 2 operator pods" },
		{ PREFLIGHT_INFRASTRUCTURE_OBJECT, NULL, PREFLIGHT_CLUSTER_FLAG_CHECK,
		  PREFLIGHT_WARNING, "does not exist" },
		{ PREFLIGHT_INFRASTRUCTURE_OBJECT, "{\"status\":{\"cpuPartitioning\":\"None\"}}",
		  PREFLIGHT_CLUSTER_FLAG_CHECK, PREFLIGHT_WARNING, "AllNodes" },
		{ PREFLIGHT_VALIDATING_OBJECT, NULL, PREFLIGHT_WEBHOOK_CONFIGURATION_CHECK,
		  PREFLIGHT_FAILURE, "ValidatingWebhookConfiguration" },
		{ PREFLIGHT_DAEMONSET_OBJECT, DAEMONSET("2", "1"), PREFLIGHT_AGENT_PODS_CHECK,
		  PREFLIGHT_FAILURE, "1 of 2 agent pods" },
		{ PREFLIGHT_DAEMONSET_OBJECT, DAEMONSET("0", "0"), PREFLIGHT_AGENT_PODS_CHECK,
		  PREFLIGHT_WARNING, "0 of 0 agent pods" },
		{ PREFLIGHT_DAEMONSET_OBJECT, "{\"metadata\":{\"generation\":1}}",
		  PREFLIGHT_AGENT_PODS_CHECK, PREFLIGHT_FAILURE, "have not been created yet" },
		{ PREFLIGHT_NODES_OBJECT,
		  LIST(NODE("a", "Unknown", "True", "", "containerd://2.0.5")),
		  PREFLIGHT_NODES_READY_CHECK, PREFLIGHT_FAILURE, "not ready: a" },
		{ PREFLIGHT_NODES_OBJECT,
		  LIST(NODE("a", "True", "False", "", "containerd://2.0.5")),
		  PREFLIGHT_NODES_PARTITIONED_CHECK, PREFLIGHT_FAILURE, ": a" },
		{ PREFLIGHT_NODES_OBJECT,
		  LIST(NODE("a", "True", "True\",\"lastHeartbeatTime\":\"1970-01-01T00:00:00Z", "",
			    "containerd://2.0.5")),
		  PREFLIGHT_NODES_PARTITIONED_CHECK, PREFLIGHT_FAILURE, "15 minutes: a" },
		{ PREFLIGHT_NODES_OBJECT, LIST(NAMED("a")), PREFLIGHT_NODES_PARTITIONED_CHECK,
		  PREFLIGHT_WARNING, "no agent has reported" },
		{ PREFLIGHT_NODES_OBJECT,
		  LIST(NODE("a", "True", "True", "", "containerd://1.6.33")),
		  PREFLIGHT_NODE_VERSIONS_CHECK, PREFLIGHT_FAILURE, "has no NRI: a" },
		{ PREFLIGHT_NODES_OBJECT, LIST(NODE("a", "True", "True", "", "cri-o://1.29.1")),
		  PREFLIGHT_NODE_VERSIONS_CHECK, PREFLIGHT_WARNING, "NRI is off by default" },
		{ PREFLIGHT_NODES_OBJECT,
		  LIST(NODE("a", "True", "True",
			    "\"kubevirt.io/schedulable\":\"true\",\"cpumanager\":\"false\"",
			    "containerd://2.0.5")),
		  PREFLIGHT_KUBEVIRT_CHECK, PREFLIGHT_WARNING, "Pending: a" },
		{ PREFLIGHT_PARTITIONS_OBJECT,
		  LIST(PARTITION("a", "0.9", "False") "," PARTITION("b", "1.0", "False")),
		  PREFLIGHT_AGENT_VERSIONS_CHECK, PREFLIGHT_WARNING, "(1.0): a" },
		{ PREFLIGHT_PARTITIONS_OBJECT, LIST(PARTITION("a", "1.0", "True")),
		  PREFLIGHT_PROFILES_CHECK, PREFLIGHT_FAILURE, "the node: a" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a;
		const struct preflight_finding *found;
		struct preflight_report r;
		struct cluster_facts f;
		struct err err = { 0 };
		struct doc doc = { 0 };

		arena_init(&a, 0);
		cluster_fine(&a, &f);
		if (rows[i].text)
			CHECK_OK(doc_parse(str_from(rows[i].text), STR("row"), NULL, &a, &doc,
					   &err));
		else
			(void)err_set(&f.objects[rows[i].object].err, ENOENT, "not found");
		f.objects[rows[i].object].object = doc.root;
		preflight_report_init(&r, &a);
		preflight_cluster(&f, &r);
		found = find(&r, rows[i].want);
		CHECK(found != NULL);
		CHECK_INT(found->level, rows[i].level);
		CHECK(str_has(found->message, str_from(rows[i].message)));
		CHECK(found->remedy.n > 0);
	}
}

TEST(without_a_webhook_the_guard_is_missed_too)
{
	CLEANUP(arena_done) struct arena a;
	struct preflight_report r;
	struct cluster_facts f;

	arena_init(&a, 0);
	cluster_fine(&a, &f);
	f.objects[PREFLIGHT_MUTATING_OBJECT].object = NULL;
	f.objects[PREFLIGHT_POLICIES_OBJECT].object = f.objects[PREFLIGHT_VERSION_OBJECT].object;
	preflight_report_init(&r, &a);
	preflight_cluster(&f, &r);
	CHECK(str_has(find(&r, PREFLIGHT_POLICIES_CHECK)->message,
		      STR("pinfold-guard does not exist")));
}

TEST(a_webhook_that_the_api_server_does_not_reach_is_a_failure)
{
	CLEANUP(arena_done) struct arena a;
	struct preflight_report r;
	struct cluster_facts f;

	arena_init(&a, 0);
	cluster_fine(&a, &f);
	f.pod.is_answered = f.direct.is_answered = false;
	(void)err_set(&f.direct.err, EPROTO, "certificate verify failed");
	preflight_report_init(&r, &a);
	preflight_cluster(&f, &r);
	CHECK_INT(find(&r, PREFLIGHT_WEBHOOK_ANSWERS_CHECK)->level, PREFLIGHT_FAILURE);
	CHECK_INT(find(&r, PREFLIGHT_WEBHOOK_TRUST_CHECK)->level, PREFLIGHT_FAILURE);
	CHECK_STR(find(&r, PREFLIGHT_WEBHOOK_TRUST_CHECK)->message, "certificate verify failed");
}

TEST(a_pod_that_the_guard_refuses_did_not_reach_the_webhook)
{
	static const struct {
		const char *err; /* of the API server, or NULL: the pod is admitted */
		const char *message;
	} rows[] = {
		{ NULL, "admitted without the webhook" },
		{ "failed calling webhook \"pinfold\"", "failed calling webhook" },
		{ "ValidatingAdmissionPolicy 'pinfold-guard' denied request: not permitted",
		  "passes without the webhook, which the API server cannot call, and is refused "
		  "later: ValidatingAdmissionPolicy 'pinfold-guard'" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a;
		const struct preflight_finding *found;
		struct preflight_report r;
		struct cluster_facts f;

		TEST_ROW("%s", rows[i].message);
		arena_init(&a, 0);
		cluster_fine(&a, &f);
		f.pod.is_answered = false;
		if (rows[i].err)
			(void)err_set(&f.pod.err, EPERM, "%s", rows[i].err);
		preflight_report_init(&r, &a);
		preflight_cluster(&f, &r);
		found = find(&r, PREFLIGHT_WEBHOOK_ANSWERS_CHECK);
		CHECK_INT(found->level, PREFLIGHT_FAILURE);
		CHECK(str_has(found->message, str_from(rows[i].message)));
	}
}

/* A webhook behind a Service, with the certificate of one CA and the caBundle of another. */
static enum preflight_level trust_level(int64_t now_s, bool is_same_ca, struct arena *a)
{
	static const char *const names[] = { "pinfold-webhook.pinfold.svc" };
	const struct pki_leaf leaf = { names, 1, 1000000, 7 * INT64_C(86400) };
	struct pki_pair ca, other, cert;
	struct preflight_report r;
	struct cluster_facts f;
	struct err err = { 0 };
	struct doc doc;

	cluster_fine(a, &f);
	CHECK_OK(pki_make_ca("one", 1000000, 30 * INT64_C(86400), a, &ca, &err));
	CHECK_OK(pki_make_ca("two", 1000000, 30 * INT64_C(86400), a, &other, &err));
	CHECK_OK(pki_issue(&ca, &leaf, a, &cert, &err));
	CHECK_OK(doc_parse(
		str_printf(a,
			   "{\"webhooks\":[{\"name\":\"w\",\"clientConfig\":{\"service\":{},"
			   "\"caBundle\":\"" PRI_STR "\"}}]}",
			   FMT_STR(base64_encode(is_same_ca ? ca.cert_pem : other.cert_pem, a))),
		STR("configuration"), NULL, a, &doc, &err));
	f.objects[PREFLIGHT_MUTATING_OBJECT].object = doc.root;
	f.objects[PREFLIGHT_VALIDATING_OBJECT].object = doc.root;
	CHECK_OK(doc_parse(str_printf(a, "{\"data\":{\"tls.crt\":\"" PRI_STR "\"}}",
				      FMT_STR(base64_encode(cert.cert_pem, a))),
			   STR("secret"), NULL, a, &doc, &err));
	f.objects[PREFLIGHT_SECRET_OBJECT].object = doc.root;
	f.direct.is_made = false;
	f.now_s = now_s;
	preflight_report_init(&r, a);
	preflight_cluster(&f, &r);
	CHECK_INT(find(&r, PREFLIGHT_WEBHOOK_PODS_CHECK)->level, PREFLIGHT_FAILURE);
	return find(&r, PREFLIGHT_WEBHOOK_TRUST_CHECK)->level;
}

TEST(the_ca_bundle_must_have_the_ca_of_a_certificate_that_is_valid)
{
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	CHECK_INT(trust_level(1000000, true, &a), PREFLIGHT_OK);
	CHECK_INT(trust_level(1000000, false, &a), PREFLIGHT_FAILURE);
	CHECK_INT(trust_level(1000000 + 7 * 24 * 3600 - 3600, true, &a), PREFLIGHT_FAILURE);
}

TEST(missing_permissions_are_notes_and_not_failures)
{
	CLEANUP(arena_done) struct arena a;
	struct preflight_report r;
	struct cluster_facts f;

	arena_init(&a, 0);
	cluster_fine(&a, &f);
	for (int i = PREFLIGHT_CRDS_OBJECT; i < PREFLIGHT_OBJECT__COUNT; i++) {
		f.objects[i].object = NULL;
		(void)err_set(&f.objects[i].err, EACCES, "forbidden");
	}
	preflight_report_init(&r, &a);
	preflight_cluster(&f, &r);
	CHECK_UINT(r.count[PREFLIGHT_FAILURE], 0);
	CHECK(r.count[PREFLIGHT_NOTE] > 3);
}

TEST(a_response_shows_whether_the_webhook_saw_the_pod)
{
	static const struct {
		const char *text;
		bool want;
	} rows[] = {
		{ "{\"metadata\":{\"annotations\":{\"target.workload.openshift.io/management\":"
		  "\"{}\"}}}",
		  false },
		{ "{\"metadata\":{}}", true },
		{ "{\"metadata\":{\"annotations\":{\"workload.openshift.io/warning\":\"x\"}}}",
		  true },
		{ "{\"metadata\":{\"annotations\":{\"target.workload.openshift.io/management\":"
		  "\"{}\",\"resources.workload.openshift.io/check\":\"{}\"}}}",
		  true },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a;
		struct err err = { 0 };
		struct doc doc;

		arena_init(&a, 0);
		CHECK_OK(doc_parse(str_from(rows[i].text), STR("row"), NULL, &a, &doc, &err));
		CHECK(preflight_pod_was_seen(doc.root) == rows[i].want);
	}
	{
		CLEANUP(arena_done) struct arena a;
		struct err err = { 0 };
		struct doc doc;

		arena_init(&a, 0);
		CHECK_OK(doc_parse(preflight_pod(), STR("pod"), NULL, &a, &doc, &err));
		CHECK(!preflight_pod_was_seen(doc.root));
	}
}

TEST(versions_are_compared_by_their_first_two_numbers)
{
	static const struct {
		struct str text;
		bool want;
		unsigned version[2];
	} rows[] = {
		{ STR_INIT("v1.34.1"), true, { 1, 34 } },
		{ STR_INIT("2.0.0-rc.1"), true, { 2, 0 } },
		{ STR_INIT("6.1.0-18-amd64"), true, { 6, 1 } },
		{ STR_INIT("1.30"), true, { 1, 30 } },
		{ STR_INIT("1"), false, { 0 } },
		{ STR_INIT("1."), false, { 0 } },
		{ STR_INIT("v"), false, { 0 } },
		{ STR_INIT(""), false, { 0 } },
		{ STR_INIT("99999999999.1"), false, { 0 } },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		unsigned v[2] = { 0 };

		CHECK_INT(preflight_version(rows[i].text, v), rows[i].want);
		if (rows[i].want)
			CHECK(v[0] == rows[i].version[0] && v[1] == rows[i].version[1]);
	}
	CHECK(preflight_is_older((unsigned[]){ 1, 7 }, 2, 0));
	CHECK(!preflight_is_older((unsigned[]){ 2, 0 }, 1, 30));
}

TEST(cpus_of_kernel_arguments_are_read_behind_flags_and_the_last_one_counts)
{
	static const struct {
		struct str cmdline;
		const char *want; /* NULL: none */
	} rows[] = {
		{ STR_INIT("quiet isolcpus=2-3\n"), "2-3" },
		{ STR_INIT("isolcpus=managed_irq,domain,2-3,6"), "2-3,6" },
		{ STR_INIT("isolcpus=1 isolcpus=2"), "2" },
		{ STR_INIT("xisolcpus=1 isolcpu=2"), NULL },
		{ STR_INIT("isolcpus=domain"), NULL },
		{ STR_INIT("isolcpus=2-1"), NULL },
		{ STR_INIT(""), NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a;
		struct cpuset cpus = { 0 };
		bool found = cmdline_cpus(rows[i].cmdline, STR("isolcpus"), &cpus);

		arena_init(&a, 0);
		CHECK_INT(found, rows[i].want != NULL);
		if (found)
			CHECK_STR(cpuset_format(&cpus, &a), rows[i].want);
	}
}

TEST(the_last_file_decides_whether_nri_is_on)
{
	CLEANUP(arena_done) struct arena a;
	struct nri_setting s = { 0 };
	struct err err = { 0 };

	arena_init(&a, 0);
	CHECK_OK(runtime_config_read(DISTRO_CONTAINERD, STR("version = 2\n"), STR("a"), &a, &s,
				     &err));
	CHECK_INT(s.is_enabled, FACT_UNKNOWN);
	CHECK_OK(runtime_config_read(
		DISTRO_CONTAINERD, STR("[plugins.\"io.containerd.nri.v1.nri\"]\ndisable = true\n"),
		STR("b"), &a, &s, &err));
	CHECK_INT(s.is_enabled, FACT_NO);
	CHECK_OK(runtime_config_read(DISTRO_CONTAINERD,
				     STR("[plugins.\"io.containerd.nri.v1.nri\"]\ndisable = false\n"
					 "disable_connections = true\n"),
				     STR("c"), &a, &s, &err));
	CHECK_INT(s.is_enabled, FACT_YES);
	CHECK_INT(s.accepts_connections, FACT_NO);
	CHECK_STR(s.file, "c");
	CHECK(runtime_config_read(DISTRO_CRIO, STR("[crio"), STR("d"), &a, &s, &err) < 0);
	CHECK_OK(runtime_config_read(DISTRO_CRIO, STR("[crio.nri]\nenable_nri = false\n"), STR("e"),
				     &a, &s, &err));
	CHECK_INT(s.is_enabled, FACT_NO);
}

TEST(runtimes_without_nri_are_refused_and_those_with_nri_off_are_named)
{
	static const struct {
		struct str name, version;
		enum preflight_level level;
		enum fact nri_is_on;
	} rows[] = {
		{ STR_INIT("containerd"), STR_INIT("v2.1.0"), PREFLIGHT_OK, FACT_YES },
		{ STR_INIT("containerd"), STR_INIT("1.7.27"), PREFLIGHT_OK, FACT_NO },
		{ STR_INIT("containerd"), STR_INIT("1.6.9"), PREFLIGHT_FAILURE, FACT_NO },
		{ STR_INIT("cri-o"), STR_INIT("1.30.0"), PREFLIGHT_OK, FACT_YES },
		{ STR_INIT("cri-o"), STR_INIT("1.26.0"), PREFLIGHT_OK, FACT_NO },
		{ STR_INIT("cri-o"), STR_INIT("1.25.0"), PREFLIGHT_FAILURE, FACT_NO },
		{ STR_INIT("docker"), STR_INIT("27.0.0"), PREFLIGHT_FAILURE, FACT_NO },
		{ STR_INIT("containerd"), STR_INIT("unknown"), PREFLIGHT_NOTE, FACT_UNKNOWN },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct runtime_support s = preflight_runtime_support(rows[i].name, rows[i].version);

		CHECK_INT(s.level, rows[i].level);
		CHECK_INT(s.nri_is_on, rows[i].nri_is_on);
	}
}
