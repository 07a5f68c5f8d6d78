#include "base/arena.h"
#include "base/macro.h"
#include "codec/doc.h"
#include "kube/object_trim.h"
#include "test.h"

static const struct trimmed_kind *kind_of(const char *name)
{
	for (const struct trimmed_kind *k = trimmed_kinds; k->kind; k++)
		if (str_eq(str_from(k->kind), str_from(name)))
			return k;
	test_not_so(TEST_AT("a kind of the table"));
}

static void check(const char *kind, const char *object, const char *want)
{
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct doc doc;
	struct str text;

	arena_init(&a, 0);
	CHECK_OK(doc_parse(str_from(object), STR("o"), NULL, &a, &doc, &err));
	CHECK_OK(doc_write(object_trim(kind_of(kind), doc.root, doc_build(&a)), false, &a, &text,
			   &err));
	CHECK_STR(text, want);
}

TEST(of_a_pod_only_what_commands_read_is_kept)
{
	check("Pod",
	      "{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"managedFields\":[1],"
	      "\"annotations\":{\"kubectl.kubernetes.io/last-applied-configuration\":\"secret\","
	      "\"target.workload.openshift.io/management\":\"{}\",\"pinfold.io/cpus\":\"1\"},"
	      "\"labels\":{\"app\":\"x\",\"io.openshift.management\":\"\"}},"
	      "\"spec\":{\"nodeName\":\"w\",\"volumes\":[{\"secret\":{}}],\"containers\":[{"
	      "\"name\":\"c\",\"image\":\"i\",\"command\":[\"--password=x\"],\"env\":[{\"name\":"
	      "\"TOKEN\",\"value\":\"x\"}],\"resources\":{\"requests\":{\"cpu\":\"1\"}}}]},"
	      "\"status\":{\"phase\":\"Running\",\"podIP\":\"10.0.0.1\"}}",
	      "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"namespace\":"
	      "\"n\",\"annotations\":{\"target.workload.openshift.io/management\":\"{}\","
	      "\"pinfold.io/cpus\":\"1\"},\"labels\":{\"io.openshift.management\":\"\"}},\"spec\":{"
	      "\"nodeName\":\"w\",\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{"
	      "\"cpu\":\"1\"}}}]},\"status\":{\"phase\":\"Running\"}}");
}

TEST(of_a_workload_the_environment_keeps_its_names_only)
{
	check("DaemonSet",
	      "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"agent\",\"args\":["
	      "\"agent\"],\"env\":[{\"name\":\"A\",\"value\":\"secret\"},{\"name\":\"B\","
	      "\"valueFrom\":{\"secretKeyRef\":{}}}]}]}}}}",
	      "{\"apiVersion\":\"apps/"
	      "v1\",\"kind\":\"DaemonSet\",\"spec\":{\"template\":{\"spec\":{"
	      "\"containers\":[{\"name\":\"agent\",\"args\":[\"agent\"],\"env\":[{\"name\":\"A\"},{"
	      "\"name\":\"B\"}]}]}}}}");
}

TEST(of_an_infrastructure_addresses_are_dropped)
{
	check("Infrastructure",
	      "{\"metadata\":{\"name\":\"cluster\"},\"spec\":{\"platformSpec\":{}},\"status\":{"
	      "\"apiServerURL\":\"https://x\",\"cpuPartitioning\":\"AllNodes\"}}",
	      "{\"apiVersion\":\"config.openshift.io/"
	      "v1\",\"kind\":\"Infrastructure\",\"metadata\":{"
	      "\"name\":\"cluster\"},\"spec\":{},\"status\":{\"cpuPartitioning\":\"AllNodes\"}}");
}

TEST(an_object_of_another_shape_loses_what_does_not_fit)
{
	check("Pod", "{\"metadata\":7,\"spec\":[{\"nodeName\":\"w\"}],\"x\":{}}",
	      "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{},\"spec\":[{}]}");
	check("Namespace", "{\"metadata\":{\"annotations\":\"text\",\"name\":\"n\"}}",
	      "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"annotations\":{},"
	      "\"name\":\"n\"}}");
}
