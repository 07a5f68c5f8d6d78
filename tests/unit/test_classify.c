#include "pin/classify.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "nri/nri.h"
#include "pool/config.h"
#include "test.h"

#define TARGET "target.workload.openshift.io/management"
#define TYPE(name) "target.workload.openshift.io/" name
#define OWN "resources.workload.openshift.io/c"

static enum permission by_name(const void *data, struct str namespace, struct str type)
{
	(void)data;
	CHECK_STR(type, "management");
	if (str_eq(namespace, STR("allowed")))
		return PERMISSION_GRANTED;
	return str_eq(namespace, STR("denied")) ? PERMISSION_DENIED : PERMISSION_UNKNOWN;
}

struct class_row {
	const char *what;
	const char *namespace, *parent, *uid;
	struct nri_pair annotations[3];
	struct nri_cpu cpu;
	/* expected */
	bool is_management;
	uint64_t shares;
	int64_t quota_us;
	enum distrust_reason distrust;
	unsigned cpus; /* of its own */
	bool is_init;
};

#define SHARES(n) .has_shares = true, .shares = (n)
#define QUOTA(n) .has_quota = true, .quota_us = (n), .has_period = true, .period_us = 100000

static const struct class_row rows[] = {
	{ .what = "a converted pod",
	  .namespace = "allowed",
	  .annotations = { { TARGET, "{}" }, { OWN, "{\"cpushares\":20,\"cpulimit\":30}" } },
	  .cpu = { SHARES(2) },
	  .is_management = true,
	  .shares = 20,
	  .quota_us = 3000 },
	{ .what = "without settings of its own",
	  .namespace = "allowed",
	  .annotations = { { TARGET, "" } },
	  .cpu = { SHARES(2) },
	  .is_management = true },
	{ .what = "one that admission has not converted",
	  .namespace = "allowed",
	  .annotations = { { TARGET, "{}" } },
	  .cpu = { SHARES(1024) },
	  .is_management = true },
	{ .what = "a converted pod, permission unknown",
	  .annotations = { { TARGET, "{}" }, { OWN, "{\"cpushares\":20}" } },
	  .cpu = { SHARES(2) },
	  .distrust = DISTRUST_UNKNOWN },
	{ .what = "a broken annotation of a pod that is not permitted is not read",
	  .annotations = { { TARGET, "{}" }, { OWN, "{" } },
	  .cpu = { SHARES(2) },
	  .distrust = DISTRUST_UNKNOWN },
	{ .what = "a standalone container needs no namespace",
	  .namespace = "oci",
	  .uid = "oci-web",
	  .annotations = { { TARGET, "{}" }, { OWN, "{\"cpushares\":20}" } },
	  .cpu = { SHARES(2048) },
	  .is_management = true,
	  .shares = 20 },
	{ .what = "a container of a kubelet is not standalone",
	  .uid = "oci-web",
	  .parent = "/kubepods/burstable/podx",
	  .annotations = { { TARGET, "{}" } },
	  .cpu = { SHARES(2) },
	  .distrust = DISTRUST_UNKNOWN },
	{ .what = "where the namespace does not, the annotation is nothing",
	  .namespace = "denied",
	  .annotations = { { TARGET, "{}" }, { OWN, "{\"cpushares\":20}" } },
	  .cpu = { SHARES(2) },
	  .distrust = DISTRUST_NAMESPACE },
	{ .what = "a static pod needs no namespace",
	  .namespace = "denied",
	  .annotations = { { TARGET, "{}" }, { "kubernetes.io/config.source", "file" } },
	  .cpu = { SHARES(2) },
	  .is_management = true },
	{ .what = "a pod from the API is not static, whatever it says about itself",
	  .namespace = "denied",
	  .annotations = { { TARGET, "{}" }, { "kubernetes.io/config.source", "api" } },
	  .cpu = { SHARES(2) },
	  .distrust = DISTRUST_NAMESPACE },
	{ .what = "Guaranteed, two CPUs",
	  .parent = "/kubepods/podx",
	  .cpu = { SHARES(2048), QUOTA(200000) },
	  .cpus = 2 },
	{ .what = "the same with its quota lifted",
	  .parent = "/kubepods/podx",
	  .cpu = { SHARES(2048), QUOTA(-1) },
	  .cpus = 2 },
	{ .what = "the same where the kubelet sets no quota",
	  .parent = "kubepods-podx.slice",
	  .cpu = { SHARES(2048) },
	  .cpus = 2 },
	{ .what = "one and a half",
	  .parent = "/kubepods/podx",
	  .cpu = { SHARES(1536), QUOTA(150000) } },
	{ .what = "Burstable with whole CPUs",
	  .parent = "/kubepods/burstable/podx",
	  .cpu = { SHARES(2048), QUOTA(200000) } },
	{ .what = "BestEffort", .parent = "kubepods-besteffort-podx.slice", .cpu = { SHARES(2) } },
	{ .what = "the QoS class is unknown", .cpu = { SHARES(2048), QUOTA(200000) } },
	{ .what = "a stamp that agrees says the kind",
	  .parent = "/kubepods/podx",
	  .annotations = { { "pinfold.io/cpus", "{\"c\":{\"kind\":\"init\",\"milli\":2000,\"pool\":"
						"\"guaranteed\"}}" } },
	  .cpu = { SHARES(2048), QUOTA(200000) },
	  .cpus = 2,
	  .is_init = true },
	{ .what = "a stamp above the request is rejected",
	  .parent = "/kubepods/podx",
	  .annotations = { { "pinfold.io/cpus", "{\"c\":{\"kind\":\"app\",\"milli\":4000,\"pool\":"
						"\"guaranteed\"}}" } },
	  .cpu = { SHARES(2048), QUOTA(200000) },
	  .cpus = 2,
	  .distrust = DISTRUST_STAMP },
	{ .what = "a stamp cannot make a Burstable pod Guaranteed",
	  .parent = "/kubepods/burstable/podx",
	  .annotations = { { "pinfold.io/cpus", "{\"c\":{\"kind\":\"app\",\"milli\":2000,\"pool\":"
						"\"guaranteed\"}}" } },
	  .cpu = { SHARES(2048) },
	  .distrust = DISTRUST_STAMP },
	{ .what = "a stamp without this container",
	  .parent = "/kubepods/podx",
	  .annotations = { { "pinfold.io/cpus", "{}" } },
	  .cpu = { SHARES(1024), QUOTA(100000) },
	  .cpus = 1,
	  .distrust = DISTRUST_UNREADABLE },
	{ .what = "a broken stamp",
	  .parent = "/kubepods/podx",
	  .annotations = { { "pinfold.io/cpus", "{" } },
	  .cpu = { SHARES(1024), QUOTA(100000) },
	  .cpus = 1,
	  .distrust = DISTRUST_UNREADABLE },
};

TEST(annotations_are_accepted_only_with_a_reason)
{
	const struct classify_rules rules = { .permission = by_name };
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct class_row *row = &rows[i];
		struct nri_cpu cpu = row->cpu;
		struct nri_resources resources = { .cpu = &cpu };
		struct nri_container_linux on_linux = { .resources = &resources,
							.cgroups_path = "" };
		struct nri_container c = { .name = "c", .on_linux = &on_linux };
		struct nri_pod_linux pod_linux = { .cgroup_parent = row->parent ? row->parent : "",
						   .cgroups_path = "" };
		struct nri_pod pod = { .pod_namespace = row->namespace ? row->namespace : "any",
				       .uid = row->uid ? row->uid : "u",
				       .annotations = (struct nri_pair *)row->annotations,
				       .on_linux = &pod_linux };
		struct err err = { 0 };
		struct container_class class;

		TEST_ROW("%s", row->what);
		while (pod.n_annotations < 3 && row->annotations[pod.n_annotations].key)
			pod.n_annotations++;
		CHECK_OK(classify_container(&rules, &pod, &c, &a, &class, &err));
		CHECK_INT(class.is_management, row->is_management);
		CHECK_UINT(class.settings.shares, row->shares);
		CHECK_INT(class.settings.quota_us, row->quota_us);
		CHECK_STR(distrust_text(class.distrust), distrust_text(row->distrust));
		CHECK_UINT(class.is_management ? 0 : demand_cpus(&class.demand), row->cpus);
		if (row->cpus)
			CHECK_INT(class.demand.kind, row->is_init ? CONTAINER_INIT : CONTAINER_APP);
	}
	TEST_NOTE("%zu rows", ARRAY_LEN(rows));
}

/* What an author of pods can write, in a namespace of which the node knows nothing. */
TEST(attack_annotations_gain_nothing_while_the_permission_is_unknown)
{
	static const struct {
		const char *what, *parent;
		struct nri_pair annotations[4];
		struct nri_cpu cpu;
	} attacks[] = {
		{ "a BestEffort pod with the target annotation",
		  "/kubepods/besteffort/podx",
		  { { TARGET, "{}" } },
		  { SHARES(2) } },
		{ "the same with the largest weight",
		  "/kubepods/besteffort/podx",
		  { { TARGET, "{}" }, { OWN, "{\"cpushares\":262144}" } },
		  { SHARES(2) } },
		{ "a Burstable pod whose annotation repeats its own shares",
		  "/kubepods/burstable/podx",
		  { { TARGET, "{}" }, { OWN, "{\"cpushares\":4096}" } },
		  { SHARES(4096) } },
		{ "and its own quota",
		  "/kubepods/burstable/podx",
		  { { TARGET, "{}" }, { OWN, "{\"cpushares\":4096,\"cpulimit\":4000}" } },
		  { SHARES(4096), QUOTA(400000) } },
		{ "with a CPU stamp that agrees",
		  "/kubepods/burstable/podx",
		  { { TARGET, "{}" },
		    { OWN, "{\"cpushares\":1024}" },
		    { "pinfold.io/cpus",
		      "{\"c\":{\"kind\":\"app\",\"milli\":1000,\"pool\":\"shared\"}}" } },
		  { SHARES(1024) } },
		{ "a pod from the API server that calls itself static",
		  "/kubepods/burstable/podx",
		  { { TARGET, "{}" }, { "kubernetes.io/config.source", "api" } },
		  { SHARES(2) } },
	};
	const struct classify_rules rules = { 0 };
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(attacks); i++) {
		struct nri_cpu cpu = attacks[i].cpu;
		struct nri_resources resources = { .cpu = &cpu };
		struct nri_container_linux on_linux = { .resources = &resources,
							.cgroups_path = "" };
		struct nri_container c = { .name = "c", .on_linux = &on_linux };
		struct nri_pod_linux pod_linux = { .cgroup_parent = attacks[i].parent,
						   .cgroups_path = "" };
		struct nri_pod pod = { .pod_namespace = "tenant",
				       .uid = "u",
				       .annotations = (struct nri_pair *)attacks[i].annotations,
				       .on_linux = &pod_linux };
		struct container_class class;
		struct err err = { 0 };

		TEST_ROW("%s", attacks[i].what);
		while (attacks[i].annotations[pod.n_annotations].key)
			pod.n_annotations++;
		CHECK_OK(classify_container(&rules, &pod, &c, &a, &class, &err));
		CHECK(!class.is_management);
		CHECK_UINT(class.settings.shares, 0);
		CHECK_INT(class.settings.quota_us, 0);
		CHECK_STR(distrust_text(class.distrust), distrust_text(DISTRUST_UNKNOWN));
	}
}

TEST(the_agents_own_container_is_on_the_management_cpus)
{
	struct classify_rules rules = { .permission = by_name, .own_pid = 4711 };
	struct nri_pod pod = { .id = "p", .uid = "u", .name = "agent", .pod_namespace = "denied" };
	struct nri_container c = { .id = "c", .name = "c", .pid = 4711 };
	CLEANUP(arena_done) struct arena a;
	struct container_class class;
	struct err err = { 0 };

	arena_init(&a, 0);
	CHECK_OK(classify_container(&rules, &pod, &c, &a, &class, &err));
	CHECK(class.is_management);
	c.pid = 4712;
	CHECK_OK(classify_container(&rules, &pod, &c, &a, &class, &err));
	CHECK(!class.is_management);
}

TEST(a_broken_annotation_of_a_management_container_is_refused)
{
	const struct classify_rules rules = { .permission = by_name };
	struct nri_pair annotations[] = { { TARGET, "{}" }, { OWN, "{\"cpushares\":\"20\"}" } };
	struct nri_pod pod = { .pod_namespace = "allowed",
			       .uid = "u",
			       .annotations = annotations,
			       .n_annotations = 2 };
	struct nri_container c = { .name = "c" };
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct container_class class;

	arena_init(&a, 0);
	CHECK_ERR(
		classify_container(&rules, &pod, &c, &a, &class, &err), EINVAL,
		"annotation resources.workload.openshift.io/c: cpushares: want a whole number from "
		"0 on, not a string");
	annotations[1].value = "{\"cpuset\":\"x\"}";
	CHECK(classify_container(&rules, &pod, &c, &a, &class, &err) < 0);
	CHECK(strstr(err.msg, "annotation cpuset \"x\": "));
}

static enum permission by_type(const void *data, struct str namespace, struct str type)
{
	(void)data;
	return str_eq(namespace, type) ? PERMISSION_GRANTED : PERMISSION_DENIED;
}

/* The permission of the namespace is its name here. */
TEST(a_pod_belongs_to_the_workload_type_that_its_namespace_allows)
{
	static const struct {
		const char *namespace;
		struct nri_pair annotations[3];
		const char *type; /* NULL: not accepted */
		enum distrust_reason distrust;
	} table[] = {
		{ "ran", { { TYPE("ran"), "{}" } }, "ran", DISTRUST_NONE },
		{ "management", { { TYPE("management"), "{}" } }, "management", DISTRUST_NONE },
		{ "management", { { TYPE("ran"), "{}" } }, NULL, DISTRUST_NAMESPACE },
		{ "ran", { { TYPE("management"), "{}" } }, NULL, DISTRUST_NAMESPACE },
		{ "other", { { TYPE("other"), "{}" } }, NULL, DISTRUST_TYPE },
		/* of several the first by name that is configured here */
		{ "management",
		  { { TYPE("ran"), "{}" }, { TYPE("management"), "{}" } },
		  "management",
		  DISTRUST_NONE },
		{ "ran", { { TYPE("other"), "{}" }, { TYPE("ran"), "{}" } }, "ran", DISTRUST_NONE },
		{ "ran", { { TYPE(""), "{}" } }, NULL, DISTRUST_NONE },
	};
	CLEANUP(arena_done) struct arena a;
	struct pool_config pools;
	struct classify_rules rules = { .pools = &pools, .permission = by_type };

	arena_init(&a, 0);
	pool_config_init(&pools);
	CHECK(pool_config_set_type(&pools, STR("ran"), &(struct cpuset){ { 1 } }, NULL) == 0);
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct nri_container c = { .name = "c" };
		struct nri_pod pod = { .pod_namespace = table[i].namespace,
				       .uid = "u",
				       .annotations = (struct nri_pair *)table[i].annotations };
		struct container_class class;
		struct err err = { 0 };

		TEST_ROW("row %zu", i);
		while (table[i].annotations[pod.n_annotations].key)
			pod.n_annotations++;
		CHECK_OK(classify_container(&rules, &pod, &c, &a, &class, &err));
		CHECK_INT(class.is_management, table[i].type != NULL);
		if (table[i].type)
			CHECK_STR(class.type, table[i].type);
		CHECK_STR(distrust_text(class.distrust), distrust_text(table[i].distrust));
	}
}

TEST(the_names_of_2021_count_in_the_legacy_dialect_only)
{
	static const struct {
		const char *what;
		struct nri_pair labels[2], annotations[3];
		bool is_management;
		uint64_t shares, pod_shares;
	} table[] = {
		{ "the label and a request",
		  { { "workload.openshift.io/target", "management" } },
		  { { "cpu.workload.openshift.io/c", "400m" },
		    { "cpu.workload.openshift.io/d", "1" } },
		  true,
		  409,
		  409 + 1024 },
		{ "a request of 0",
		  { { "workload.openshift.io/target", "management" } },
		  { { "cpu.workload.openshift.io/c", "0" } },
		  true,
		  2,
		  2 },
		{ "no request",
		  { { "workload.openshift.io/target", "management" } },
		  { { "x", "" } },
		  true,
		  0,
		  0 },
		{ "the annotation of the first draft",
		  { { "x", "" } },
		  { { "io.openshift.management", "true" } },
		  true,
		  0,
		  0 },
		{ "its label",
		  { { "io.openshift.management", "true" } },
		  { { "x", "" } },
		  true,
		  0,
		  0 },
		{ "which says no",
		  { { "io.openshift.management", "false" } },
		  { { "x", "" } },
		  false,
		  0,
		  0 },
		{ "the present names win",
		  { { "workload.openshift.io/target", "other" } },
		  { { TARGET, "{}" }, { OWN, "{\"cpushares\":20}" } },
		  true,
		  20,
		  20 },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct classify_rules rules = { .permission = by_name, .is_legacy = true };
		struct nri_container c = { .name = "c" };
		struct nri_pod pod = { .pod_namespace = "allowed",
				       .uid = "u",
				       .labels = (struct nri_pair *)table[i].labels,
				       .annotations = (struct nri_pair *)table[i].annotations,
				       .n_labels = 1 };
		struct container_class class;
		struct err err = { 0 };

		TEST_ROW("%s", table[i].what);
		while (table[i].annotations[pod.n_annotations].key)
			pod.n_annotations++;
		CHECK_OK(classify_container(&rules, &pod, &c, &a, &class, &err));
		CHECK_INT(class.is_management, table[i].is_management);
		CHECK_UINT(class.settings.shares, table[i].shares);
		CHECK_UINT(classify_pod_shares(&rules, &pod, &a), table[i].pod_shares);
		/* No permission, and without the dialect nothing at all. */
		pod.pod_namespace = "denied";
		CHECK_OK(classify_container(&rules, &pod, &c, &a, &class, &err));
		CHECK(!class.is_management);
		pod.pod_namespace = "allowed";
		rules.is_legacy = false;
		CHECK_OK(classify_container(&rules, &pod, &c, &a, &class, &err));
		CHECK_INT(class.is_management, table[i].pod_shares == 20);
	}
}

TEST(a_broken_request_of_2021_is_refused)
{
	const struct classify_rules rules = { .permission = by_name, .is_legacy = true };
	struct nri_pair label = { "workload.openshift.io/target", "management" };
	struct nri_pair annotation = { "cpu.workload.openshift.io/c", "a lot" };
	struct nri_pod pod = { .pod_namespace = "allowed",
			       .uid = "u",
			       .labels = &label,
			       .n_labels = 1,
			       .annotations = &annotation,
			       .n_annotations = 1 };
	struct nri_container c = { .name = "c" };
	CLEANUP(arena_done) struct arena a;
	struct container_class class;
	struct err err = { 0 };

	arena_init(&a, 0);
	CHECK_INT(classify_container(&rules, &pod, &c, &a, &class, &err), -EINVAL);
	CHECK(strstr(err.msg, "annotation cpu.workload.openshift.io/c: "));
	annotation.value = "-1";
	CHECK_ERR(classify_container(&rules, &pod, &c, &a, &class, &err), EINVAL,
		  "annotation cpu.workload.openshift.io/c: \"-1\" is below 0");
}
