/* Classification, placements, and the files that pools are read from. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/macro.h"
#include "cgroup/cgroup_path.h"
#include "nri/nri.h"
#include "pin/classify.h"
#include "pin/kept_profile.h"
#include "pin/placement.h"
#include "pin/pools_source.h"
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

static struct cpuset cpus(const char *list)
{
	struct cpuset s;

	CHECK(cpuset_parse(str_from(list), &s, NULL) == 0);
	return s;
}

TEST(management_container_stays_within_the_management_cpus)
{
	static const struct {
		const char *asked, *got, *sentence;
	} table[] = {
		{ "", "0-3", NULL },
		{ "1,2", "1-2", NULL },
		{ "3-4", NULL, "annotation cpuset \"3-4\" is not within the management CPUs 0-3" },
		{ "9", NULL, "annotation cpuset \"9\" is not within the management CPUs 0-3" },
	};
	const struct cpuset reserved = cpus("0-3");
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		const struct cpu_settings requested = { .cpus = cpus(table[i].asked) };
		struct placement p;
		struct err err = { 0 };
		int r;

		TEST_ROW("%s", table[i].asked);
		r = placement_of_management(&requested, STR("management"), &reserved, &p, &err);
		CHECK_INT(r == 0, table[i].got != NULL);
		if (r == 0)
			CHECK_STR(cpuset_format(&p.settings.cpus, &a), table[i].got);
		else if (table[i].sentence)
			CHECK_STR(err.msg, table[i].sentence);
	}
}

TEST(an_empty_set_is_never_pushed)
{
	const struct ledger_grant grant = { .pool = POOL_SHARED };
	CLEANUP(arena_done) struct arena a;
	struct placement p;
	struct err err = { 0 };

	arena_init(&a, 0);
	CHECK_ERR(placement_of_grant(&grant, &p, &err), ENOSPC, "no CPU left in the shared pool");
}

TEST(exclusive_containers_get_no_quota_and_shared_ones_only_cpus)
{
	struct ledger_grant grant = { .pool = POOL_GUARANTEED, .cpus = cpus("4-5") };
	CLEANUP(arena_done) struct arena a;
	struct placement p;
	struct err err = { 0 };
	struct nri_cpu say;

	arena_init(&a, 0);
	CHECK_OK(placement_of_grant(&grant, &p, &err));
	CHECK(p.is_exclusive && p.settings.has_quota);
	CHECK(settings_difference(&p.settings,
				  &(struct nri_cpu){ SHARES(2048), QUOTA(200000), .cpus = "" },
				  RUNTIME_CURRENT, &a, &say));
	CHECK_STR(say.cpus, "4-5");
	CHECK(say.has_quota && !say.has_shares && !say.has_period);
	CHECK_INT(say.quota_us, -1);

	grant.pool = POOL_SHARED;
	CHECK_OK(placement_of_grant(&grant, &p, &err));
	CHECK(settings_difference(&p.settings,
				  &(struct nri_cpu){ SHARES(512), QUOTA(50000), .cpus = "" },
				  RUNTIME_CURRENT, &a, &say));
	CHECK(say.cpus && !say.has_quota && !say.has_shares);
	/* Spelled differently, but the same. */
	CHECK(!settings_difference(&p.settings, &(struct nri_cpu){ .cpus = "4,5" }, RUNTIME_CURRENT,
				   &a, &say));
}

TEST(update_is_overridden_only_where_it_changes_settings)
{
	CLEANUP(arena_done) struct arena a;
	const struct cpu_settings settings = {
		.cpus = cpus("0-1"), .shares = 20, .has_quota = true, .quota_us = 3000
	};
	struct nri_cpu say;

	arena_init(&a, 0);
	/* A CPU manager's reconcile: cpus only, zeros elsewhere. */
	CHECK(settings_difference(&settings,
				  &(struct nri_cpu){ SHARES(0), .has_quota = true, .cpus = "2-7" },
				  RUNTIME_UPDATE, &a, &say));
	CHECK_STR(say.cpus, "0-1");
	CHECK(!say.has_shares && !say.has_quota);
	/* A resize of memory carries the least shares and a period. */
	CHECK(settings_difference(&settings, &(struct nri_cpu){ SHARES(2), .cpus = "" },
				  RUNTIME_UPDATE, &a, &say));
	CHECK(say.has_shares && !say.cpus);
	CHECK_UINT(say.shares, 20);
	CHECK(!settings_difference(&settings, &(struct nri_cpu){ .cpus = "" }, RUNTIME_UPDATE, &a,
				   &say));
	CHECK(!settings_difference(&settings, &(struct nri_cpu){ SHARES(20), .cpus = "0,1" },
				   RUNTIME_UPDATE, &a, &say));
}

TEST(kubelet_mode_removes_management_cpus_and_keeps_shared_containers_in_their_pool)
{
	static const struct {
		const char *shared, *given, *want;
	} table[] = {
		{ "", "", "" },	      { "", "4-7", "" },       { "", "0-7", "2-7" },
		{ "", "0-1", "" },    { "2-3", "0-7", "2-3" }, { "2-3", "0-3,6-7", "2-3" },
		{ "2-3", "4-5", "" }, { "2-3", "2-3", "" },
	};
	const struct cpuset reserved = cpus("0-1");
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		struct err err = { 0 };
		const struct cpuset shared = cpus(table[i].shared);
		struct placement p;

		TEST_ROW("%s of %s", table[i].given, table[i].shared);
		CHECK_OK(placement_in_kubelet_mode(table[i].given, &reserved, &shared, &p, &err));
		CHECK_STR(cpuset_format(&p.settings.cpus, &a), table[i].want);
	}
}

TEST(shared_cpus_that_the_kubelet_assigns_are_noticed)
{
	/* One after the other: the kubelet's lists of containers, and what is taken then. */
	static const struct {
		const char *given, *taken;
	} table[] = {
		{ "0-15", "" },	 /* a shared container */
		{ "10-11", "" }, /* exclusive, of the guaranteed pool */
		{ "4", "4" },	 /* exclusive, of the shared pool */
		{ "5", "4-5" },
		{ "0-3,6-15", "4-5" }, /* the kubelet's new list of the first */
		{ "0-3,5-15", "4" },   /* one was released */
		{ "0-15", "" },
	};
	const struct cpuset shared = cpus("4-7");
	CLEANUP(arena_done) struct arena a;
	struct cpuset taken = { 0 };

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		TEST_ROW("row %zu: %s", i, table[i].given);
		placement_note_taken(table[i].given, &shared, &taken);
		CHECK_STR(cpuset_format(&taken, &a), table[i].taken);
	}
}

TEST(cgroups_are_found_by_the_names_of_both_drivers)
{
	static const struct {
		const char *name, *path;
	} table[] = {
		{ "", "" },
		{ "/kubepods/burstable/pod1/abc", "kubepods/burstable/pod1/abc" },
		{ "kubepods/pod1", "kubepods/pod1" },
		{ "kubepods-pod1.slice:cri-containerd:abc",
		  "kubepods.slice/kubepods-pod1.slice/cri-containerd-abc.scope" },
		{ "kubepods-burstable-pod1.slice:crio:abc",
		  "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/"
		  "crio-abc.scope" },
		{ "kubepods-burstable-pod1.slice",
		  "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice" },
		{ "/kubepods.slice/kubepods-pod1.slice", "kubepods.slice/kubepods-pod1.slice" },
		{ "-.slice:crio:abc", "crio-abc.scope" },
		{ "/../etc", "" },
		{ "/kubepods/./x", "" },
		{ "a.slice:crio", "" },
		{ "a.slice::abc", "" },
		{ "noslice:crio:abc", "" },
		{ "a.slice:crio:../../x", "" },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		TEST_ROW("%s", table[i].name);
		CHECK_STR(cgroup_path_of(table[i].name, &a), table[i].path);
	}
}

TEST(pools_come_from_either_file)
{
	CLEANUP(arena_done) struct arena a;
	struct pool_config c;
	struct err err = { 0 };

	arena_init(&a, 0);
	CHECK_OK(pools_file_parse(
		STR("{\"reserved\":\"0-1\",\"shared\":\"2-5\",\"guaranteed\":\"6-15\"}"), STR("f"),
		&a, &c, &err));
	CHECK(!c.is_classic);
	CHECK_STR(cpuset_format(&c.guaranteed, &a), "6-15");
	CHECK_OK(pools_file_parse(STR("{\"reserved\":\"0-1\"}"), STR("f"), &a, &c, &err));
	CHECK(c.is_classic);
	CHECK_OK(marker_file_parse(STR("{\"management\":{\"cpuset\":\"0-1,52-53\"}}"), STR("f"), &a,
				   &c, &err));
	CHECK(c.is_classic);
	CHECK_STR(cpuset_format(&c.reserved, &a), "0-1,52-53");
	CHECK_OK(pools_file_parse(STR("{\"reserved\":\"0\",\"resize\":\"defer\"}"), STR("f"), &a,
				  &c, &err));
	CHECK(c.defers_resize);
	CHECK(c.topology.policy == HINT_POLICY_BEST_EFFORT && !c.options.full_pcpus_only);
	CHECK_OK(
		pools_file_parse(STR("{\"topologyPolicy\":\"restricted\",\"topologyScope\":\"pod\","
				     "\"cpuManagerPolicyOptions\":{\"full-pcpus-only\":\"true\"}}"),
				 STR("f"), &a, &c, &err));
	CHECK(c.topology.policy == HINT_POLICY_RESTRICTED && c.topology.scope == HINT_SCOPE_POD);
	CHECK(c.options.full_pcpus_only);
	CHECK_ERR(pools_file_parse(STR("{\"topologyPolicy\":\"strict\"}"), STR("f"), &a, &c, &err),
		  EINVAL,
		  "f:1:19: want \"none\", \"best-effort\", \"restricted\" or "
		  "\"single-numa-node\"");
	CHECK_ERR(pools_file_parse(STR("{\"topologyScope\":1}"), STR("f"), &a, &c, &err), EINVAL,
		  "f:1:18: want \"container\" or \"pod\"");
	CHECK_ERR(pools_file_parse(STR("{\"cpuManagerPolicyOptions\":{\"full-pcpus-only\":true}}"),
				   STR("f"), &a, &c, &err),
		  EINVAL, "f:1:29: \"full-pcpus-only\": want \"true\" or \"false\", not a boolean");
	CHECK_ERR(pools_file_parse(STR("{\"resize\":\"later\"}"), STR("f"), &a, &c, &err), EINVAL,
		  "f:1:11: want \"refuse\" or \"defer\"");
	CHECK_ERR(pools_file_parse(STR("{\"reserved\":\"1-0\"}"), STR("f"), &a, &c, &err), EINVAL,
		  "f:1:13: bad range \"1-0\": 1 is above 0");
	CHECK_ERR(pools_file_parse(STR("{\"resrved\":\"0\"}"), STR("f"), &a, &c, &err), EINVAL,
		  "f:1:2: unknown pool \"resrved\"");
	CHECK_UINT(c.n_types, 0);
	CHECK_OK(legacy_marker_parse(STR("0-1,52\n"), STR("f"), &a, &c, &err));
	CHECK(c.is_classic);
	CHECK_STR(cpuset_format(&c.reserved, &a), "0-1,52");
	CHECK_ERR(legacy_marker_parse(STR("{}"), STR("f"), &a, &c, &err), EINVAL,
		  "f: bad item \"{}\": not a CPU number or range");
	CHECK_ERR(marker_file_parse(STR("{\"management\":{}}"), STR("f"), &a, &c, &err), EINVAL,
		  "f:1:1: no \"management\" with a \"cpuset\"");
}

TEST(workload_types_come_from_either_file)
{
	CLEANUP(arena_done) struct arena a;
	struct pool_config c;
	struct err err = { 0 };

	arena_init(&a, 0);
	/* The marker has no pool: the management pool is what all types have together. */
	CHECK_OK(marker_file_parse(
		STR("{\"ran\":{\"cpuset\":\"2-3\"},\"management\":{\"cpuset\":\"0-1\"},\"x\":1}"),
		STR("f"), &a, &c, &err));
	CHECK_STR(cpuset_format(&c.reserved, &a), "0-3");
	CHECK_UINT(c.n_types, 2);
	CHECK_STR(c.types[0].name, "management");
	CHECK_STR(cpuset_format(&c.types[0].cpus, &a), "0-1");
	CHECK_STR(c.types[1].name, "ran");
	CHECK_STR(cpuset_format(&c.types[1].cpus, &a), "2-3");
	CHECK_OK(pools_file_parse(
		STR("{\"reserved\":\"0-3\",\"shared\":\"4-7\",\"types\":{\"ran\":\"2-3\"}}"),
		STR("f"), &a, &c, &err));
	CHECK_STR(cpuset_format(&c.reserved, &a), "0-3");
	CHECK_UINT(c.n_types, 1);
	CHECK_ERR(marker_file_parse(STR("{\"ran\":{\"cpuset\":\"2\"}}"), STR("f"), &a, &c, &err),
		  EINVAL, "f:1:1: no \"management\" with a \"cpuset\"");
	CHECK_ERR(pools_file_parse(STR("{\"types\":{\"Ran\":\"2\"}}"), STR("f"), &a, &c, &err),
		  EINVAL, "f:1:17: \"Ran\" is not a workload type: want a DNS label");
	CHECK_ERR(pools_file_parse(STR("{\"types\":[]}"), STR("f"), &a, &c, &err), EINVAL,
		  "f:1:2: types: expected an object, found a list");
}

static void put_file(const char *dir, const char *name, const char *text)
{
	struct err err = { 0 };
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (text)
		CHECK_OK(file_replace_at(AT_FDCWD, path, str_from(text), 0600, &err));
	else
		(void)unlink(path);
}

/* Each file that is removed gives way to the next. */
TEST(the_pools_file_comes_before_the_profile_and_the_markers_of_node_pool_and_2021)
{
	static const struct {
		const char *file, *text, *reserved;
		enum pools_origin origin;
		const char *from; /* NULL: the file */
	} files[] = {
		{ "pools", "{\"reserved\":\"0\"}", "0", POOLS_FROM_FILE, NULL },
		{ KEPT_PROFILE_FILE,
		  "{\"name\":\"w\",\"generation\":1,\"pools\":{\"mode\":\"classic\","
		  "\"reserved\":\"4\",\"shared\":\"\",\"guaranteed\":\"\"}}",
		  "4", POOLS_FROM_PROFILE, "profile" },
		{ "marker.node", "{\"management\":{\"cpuset\":\"1\"}}", "1", POOLS_FROM_MARKER,
		  NULL },
		{ "marker", "{\"management\":{\"cpuset\":\"2\"}}", "2", POOLS_FROM_MARKER, NULL },
		{ "legacy", "3\n", "3", POOLS_FROM_MARKER, NULL },
	};
	char dir[] = "/tmp/pools-test-XXXXXX", paths[3][64];
	struct pools_source source = { .pools_file = paths[0],
				       .state_dir = dir,
				       .marker_file = paths[1],
				       .legacy_marker = paths[2] };
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct pool_config c;
	struct pools_found found;

	arena_init(&a, 0);
	CHECK(mkdtemp(dir) != NULL);
	(void)snprintf(paths[0], sizeof(paths[0]), "%s/pools", dir);
	(void)snprintf(paths[1], sizeof(paths[1]), "%s/marker", dir);
	(void)snprintf(paths[2], sizeof(paths[2]), "%s/legacy", dir);
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		put_file(dir, files[i].file, files[i].text);
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		TEST_ROW("%s", files[i].file);
		CHECK_OK(pools_source_read(&source, &a, &c, &found, &err));
		CHECK_STR(cpuset_format(&c.reserved, &a), files[i].reserved);
		CHECK(strstr(found.from, files[i].from ? files[i].from : files[i].file));
		CHECK_INT(found.origin, files[i].origin);
		put_file(dir, files[i].file, NULL);
	}
	CHECK_INT(pools_source_read(&source, &a, &c, &found, &err), -ENOENT);
	source.legacy_marker = NULL; /* without the dialect */
	put_file(dir, "legacy", "3\n");
	CHECK_INT(pools_source_read(&source, &a, &c, &found, &err), -ENOENT);
	source.or_whole_set = true;
	CHECK_OK(pools_source_read(&source, &a, &c, &found, &err));
	CHECK(c.is_classic && cpuset_is_empty(&c.reserved));
	CHECK_INT(found.origin, POOLS_FROM_NOTHING);
	put_file(dir, "legacy", NULL);
	CHECK(rmdir(dir) == 0);
}
