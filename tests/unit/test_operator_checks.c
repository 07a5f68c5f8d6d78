/* The cluster checks: what each of them finds, and how findings are reported. */

#include "operator/checks.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "kube/object_time.h"
#include "operator/findings.h"
#include "operator/namespace_checks.h"
#include "operator/reconcile.h"
#include "test.h"

#define NOW_S 1800000000
#define CORES "management.workload.openshift.io/cores"

struct fixture {
	struct arena arena;
	struct object_store stores[OPERATOR_KIND__COUNT];
	struct operator_snapshot snapshot;
	struct cluster_findings found;
};

static void fixture_init(struct fixture *f)
{
	*f = (struct fixture){ 0 };
	arena_init(&f->arena, 0);
	f->found.arena = &f->arena;
}

static void fixture_done(struct fixture *f)
{
	for (size_t i = 0; i < OPERATOR_KIND__COUNT; i++)
		object_store_done(&f->stores[i]);
	arena_done(&f->arena);
}

static void put(struct fixture *f, enum operator_kind kind, const char *name, struct str text)
{
	(void)object_store_put(&f->stores[kind], str_from(name), STR("1"), text);
}

static void put_flag(struct fixture *f, const char *value)
{
	put(f, OPERATOR_INFRASTRUCTURES, "cluster",
	    str_printf(&f->arena, "{\"status\":{\"cpuPartitioning\":\"%s\"}}", value));
}

static void put_node(struct fixture *f, const char *name, const char *label, const char *cores,
		     int64_t age_s)
{
	put(f, OPERATOR_NODES, name,
	    str_printf(&f->arena,
		       "{\"metadata\":{\"name\":\"%s\",\"uid\":\"u-%s\",\"labels\":{%s},"
		       "\"creationTimestamp\":\"" PRI_STR "\"},\"status\":{\"allocatable\":{%s}}}",
		       name, name, label, FMT_STR(object_time(NOW_S - age_s, &f->arena)), cores));
}

static void put_profile(struct fixture *f, const char *name, const char *selector)
{
	put(f, OPERATOR_PROFILES, name,
	    str_printf(&f->arena,
		       "{\"metadata\":{\"name\":\"%s\",\"uid\":\"u-%s\"},\"spec\":{"
		       "\"nodeSelector\":{%s}}}",
		       name, name, selector));
}

static void build(struct fixture *f)
{
	operator_snapshot_build(f->stores, NOW_S, 0, &f->arena, &f->snapshot);
}

/* "reason name: problem", one on a line. */
static struct str summary(const struct fixture *f)
{
	struct strbuf b;

	strbuf_init(&b, f->found.arena);
	for (size_t i = 0; i < f->found.n; i++)
		strbuf_printf(&b, "%s " PRI_STR ": " PRI_STR "\n",
			      cluster_checks[f->found.items[i].check].reason,
			      FMT_STR(f->found.items[i].name), FMT_STR(f->found.items[i].problem));
	return strbuf_str(&b);
}

TEST(a_node_without_the_resource_is_found_in_a_cluster_that_partitions_all_nodes)
{
	static const struct {
		const char *flag, *cores;
		int64_t age_s;
		size_t want;
	} rows[] = {
		{ "AllNodes", "\"" CORES "\":\"8k\"", 600, 0 },
		{ "AllNodes", "\"" CORES "\":\"0\"", 600, 1 },
		{ "AllNodes", "", 600, 1 },
		{ "AllNodes", "", 60, 0 }, /* its agent may still start */
		{ "AllNodes", "\"openshift.io/shared-cpus\":\"8k\"", 600, 1 },
		{ "None", "", 600, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(fixture_done) struct fixture f;

		TEST_ROW("row %zu", i);
		fixture_init(&f);
		put_flag(&f, rows[i].flag);
		put_node(&f, "n1", "", rows[i].cores, rows[i].age_s);
		build(&f);
		check_nodes(&f.snapshot, &f.found);
		CHECK_UINT(f.found.counts[CLUSTER_NODE_RESOURCE], rows[i].want);
	}
}

TEST(a_cluster_without_the_flag_is_not_partitioned)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f);
	put_node(&f, "n1", "", "", 600);
	build(&f);
	check_cluster(&f.snapshot, &f.found);
	CHECK(!cluster_is_partitioned(&f.snapshot));
	CHECK_UINT(f.found.n, 0);
}

TEST(profiles_that_select_no_node_or_the_same_are_found)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f);
	put_node(&f, "n1", "\"pool\":\"a\"", "", 600);
	put_node(&f, "n2", "\"pool\":\"a\",\"fast\":\"yes\"", "", 600);
	put_node(&f, "n3", "\"pool\":\"b\",\"fast\":\"yes\"", "", 600);
	put_profile(&f, "a", "\"pool\":\"a\"");
	put_profile(&f, "alone", "\"pool\":\"b\"");
	put_profile(&f, "empty", "");
	put_profile(&f, "fast-a", "\"pool\":\"a\",\"fast\":\"yes\"");
	put_profile(&f, "unused", "\"pool\":\"c\"");
	build(&f);
	check_profiles(&f.snapshot, &f.found);
	CHECK_STR(summary(&f),
		  "ProfilesOverlap a: node n2 is also selected by profile fast-a; nodes with "
		  "several profiles: 1\n"
		  "ProfileSelectsNoNode empty: spec.nodeSelector is empty and selects no node\n"
		  "ProfilesOverlap fast-a: node n2 is also selected by profile a; nodes with "
		  "several profiles: 1\n"
		  "ProfileSelectsNoNode unused: no node has the labels of spec.nodeSelector\n");
}

static yyjson_val *parse(struct str text, struct arena *a)
{
	struct err err = { 0 };
	struct doc doc;

	CHECK_OK(doc_parse(text, STR("object"), NULL, a, &doc, &err));
	return doc.root;
}

#define TARGET "\"target.workload.openshift.io/management\":\"{}\""
#define CONVERTED "\"resources.workload.openshift.io/c\":\"{\\\"cpushares\\\":2}\""

TEST(a_pod_that_opted_in_and_was_not_converted_is_found)
{
	static const struct {
		const char *meta;
		bool want;
	} rows[] = {
		{ "\"annotations\":{" TARGET "}", true },
		{ "\"annotations\":{" TARGET "," CONVERTED "}", false },
		{ "\"annotations\":{\"a\":\"b\"}", false },
		{ "\"labels\":{}", false },
		{ "\"deletionTimestamp\":\"2026-01-01T00:00:00Z\",\"annotations\":{" TARGET "}",
		  false },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		TEST_ROW("row %zu", i);
		CHECK_INT(pod_is_unconverted(
				  parse(str_printf(&a, "{\"metadata\":{%s}}", rows[i].meta), &a)),
			  rows[i].want);
	}
}

#define OWNER(kind, name, controller)                                                              \
	"\"ownerReferences\":[{\"kind\":\"" kind "\",\"name\":\"" name                             \
	"\",\"controller\":" controller "}]"

TEST(the_workload_of_a_pod_is_its_controller_or_the_deployment_above)
{
	static const struct {
		const char *meta, *want;
	} rows[] = {
		{ "\"labels\":{\"pod-template-hash\":\"5d4\"}," OWNER("ReplicaSet", "web-5d4",
								      "true"),
		  "Deployment web" },
		{ OWNER("ReplicaSet", "web-5d4", "true"), "ReplicaSet web-5d4" },
		{ "\"labels\":{\"pod-template-hash\":\"x\"}," OWNER("ReplicaSet", "web-5d4",
								    "true"),
		  "ReplicaSet web-5d4" },
		{ OWNER("StatefulSet", "db", "true"), "StatefulSet db" },
		{ OWNER("Thing", "other", "false"), "" },
		{ "\"labels\":{}", "" },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct workload_ref ref = { 0 };
		struct str got = STR("");

		TEST_ROW("row %zu", i);
		if (pod_workload(parse(str_printf(&a, "{\"metadata\":{\"namespace\":\"shop\",%s}}",
						  rows[i].meta),
				       &a),
				 &a, &ref))
			got = str_printf(&a, PRI_STR " " PRI_STR, FMT_STR(ref.kind),
					 FMT_STR(ref.name));
		CHECK_STR(got, rows[i].want);
	}
}

struct round {
	struct arena arena;
	struct object_store allowed;
	struct namespace_checks checks;
};

static void round_init(struct round *r)
{
	*r = (struct round){ 0 };
	arena_init(&r->arena, 0);
	(void)object_store_put(&r->allowed, STR("shop"), STR("1"), STR("{}"));
	r->checks = (struct namespace_checks){ .arena = &r->arena,
					       .allowed = &r->allowed,
					       .found.arena = &r->arena };
}

static void round_done(struct round *r)
{
	object_store_done(&r->allowed);
	arena_done(&r->arena);
}

static yyjson_val *object(struct round *r, const char *namespace, const char *members)
{
	return parse(str_printf(&r->arena,
				"{\"metadata\":{\"namespace\":\"%s\",\"name\":\"x\",\"uid\":\"u\"}"
				",%s}",
				namespace, members),
		     &r->arena);
}

#define METRIC(kind, type, name, target)                                                           \
	"{\"type\":\"" type "\",\"" kind "\":{\"name\":\"" name                                    \
	"\",\"target\":{\"type\":\"" target "\"}}}"
#define AUTOSCALER(target, metrics)                                                                \
	"\"spec\":{\"scaleTargetRef\":{\"kind\":\"Deployment\",\"name\":\"" target                 \
	"\"},\"metrics\":[" metrics "]}"

TEST(an_autoscaler_on_cpu_utilization_of_a_converted_workload_is_found)
{
	static const struct {
		const char *members;
		size_t want;
	} rows[] = {
		{ AUTOSCALER("web", METRIC("resource", "Resource", "cpu", "Utilization")), 1 },
		{ AUTOSCALER("web", METRIC("resource", "Resource", "memory",
					   "Utilization") "," METRIC("containerResource",
								     "ContainerResource", "cpu",
								     "Utilization")),
		  1 },
		{ AUTOSCALER("web", METRIC("resource", "Resource", "cpu", "AverageValue")), 0 },
		{ AUTOSCALER("web", METRIC("resource", "Resource", "memory", "Utilization")), 0 },
		{ AUTOSCALER("other", METRIC("resource", "Resource", "cpu", "Utilization")), 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(round_done) struct round r;

		TEST_ROW("row %zu", i);
		round_init(&r);
		namespace_check_pod(
			&r.checks,
			parse(STR("{\"metadata\":{\"namespace\":\"shop\",\"name\":\"web-5d4-1\","
				  "\"annotations\":{" TARGET "," CONVERTED "},\"labels\":{"
				  "\"pod-template-hash\":\"5d4\"}," OWNER("ReplicaSet", "web-5d4",
									  "true") "}}"),
			      &r.arena));
		namespace_check_autoscaler(&r.checks, object(&r, "shop", rows[i].members));
		namespace_check_autoscaler(&r.checks, object(&r, "elsewhere", rows[i].members));
		CHECK_UINT(r.checks.found.n, rows[i].want);
		if (rows[i].want)
			CHECK_STR(
				r.checks.found.items[0].problem,
				"it scales on cpu utilization, and the pods of Deployment web have "
				"no cpu request");
	}
}

TEST(limits_and_quotas_of_cpu_in_namespaces_that_allow_a_type_are_found)
{
	static const struct {
		void (*check)(struct namespace_checks *c, yyjson_val *object);
		const char *members, *want;
	} rows[] = {
		{ namespace_check_limit_range,
		  "\"spec\":{\"limits\":[{\"type\":\"Container\",\"max\":{\"cpu\":\"1\"}}]}",
		  "max.cpu of type Container refuses converted pods" },
		{ namespace_check_limit_range,
		  "\"spec\":{\"limits\":[{\"type\":\"Container\",\"default\":{\"cpu\":\"1\"}},"
		  "{\"type\":\"Pod\",\"min\":{\"cpu\":\"1\"}}]}",
		  "min.cpu of type Pod refuses converted pods" },
		{ namespace_check_limit_range,
		  "\"spec\":{\"limits\":[{\"type\":\"Container\",\"max\":{\"memory\":\"1Gi\"}}]}",
		  "" },
		{ namespace_check_limit_range,
		  "\"spec\":{\"limits\":[{\"type\":\"PersistentVolumeClaim\",\"max\":{\"cpu\":"
		  "\"1\"}"
		  "}]}",
		  "" },
		{ namespace_check_quota, "\"spec\":{\"hard\":{\"limits.cpu\":\"4\"}}",
		  "limits.cpu refuses converted pods" },
		{ namespace_check_quota,
		  "\"spec\":{\"hard\":{\"cpu\":\"4\"},\"scopes\":[\"NotTerminating\"]}",
		  "cpu refuses converted pods in its scope" },
		{ namespace_check_quota,
		  "\"spec\":{\"hard\":{\"cpu\":\"4\"},\"scopes\":[\"Terminating\"]}", "" },
		{ namespace_check_quota, "\"spec\":{\"hard\":{\"requests.memory\":\"4Gi\"}}", "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(round_done) struct round r;

		TEST_ROW("row %zu", i);
		round_init(&r);
		rows[i].check(&r.checks, object(&r, "elsewhere", rows[i].members));
		CHECK_UINT(r.checks.found.n, 0);
		rows[i].check(&r.checks, object(&r, "shop", rows[i].members));
		CHECK_UINT(r.checks.found.n, *rows[i].want != '\0');
		if (*rows[i].want)
			CHECK_STR(r.checks.found.items[0].problem, rows[i].want);
	}
}

TEST(findings_are_counted_and_the_first_are_kept)
{
	CLEANUP(fixture_done) struct fixture f;
	struct cluster_findings all;
	char name[16];

	fixture_init(&f);
	for (unsigned i = 0; i < 60; i++) {
		(void)snprintf(name, sizeof(name), "p%u", i);
		cluster_findings_add(&f.found, &(struct cluster_finding){
						       .check = CLUSTER_POD_UNCONVERTED,
						       .kind = STR("Pod"),
						       .namespace = STR("shop"),
						       .name = str_from(name),
						       .problem = STR("it is not converted") });
	}
	CHECK_UINT(f.found.n, CLUSTER_FINDINGS_KEPT);
	CHECK_STR(f.found.items[49].name, "p49");
	all = (struct cluster_findings){ .arena = &f.arena };
	CHECK_STR(cluster_findings_format(&all, &f.arena), "no findings\n");
	cluster_findings_append(&all, &f.found);
	CHECK_UINT(all.counts[CLUSTER_POD_UNCONVERTED], 60);
	CHECK(str_starts(cluster_findings_format(&all, &f.arena), STR("PodNotConverted: Create ")));
	CHECK(str_has(cluster_findings_format(&all, &f.arena),
		      STR("\n  Pod shop/p0: it is not converted\n")));
	CHECK(str_ends(cluster_findings_format(&all, &f.arena), STR("  and 10 more\n")));
}

TEST(a_finding_is_an_event_on_its_object_and_a_figure)
{
	CLEANUP(fixture_done) struct fixture f;
	struct reconcile_figures figures = { 0 };
	struct operator_writes w;

	fixture_init(&f);
	put_flag(&f, "AllNodes");
	put_node(&f, "n1", "", "", 600);
	build(&f);
	cluster_findings_add(&f.found,
			     &(struct cluster_finding){ .check = CLUSTER_QUOTA,
							.api = STR("v1"),
							.kind = STR("ResourceQuota"),
							.namespace = STR("shop"),
							.name = STR("q"),
							.problem = STR("cpu refuses them") });
	f.snapshot.scanned = &f.found;
	w = (struct operator_writes){ .arena = &f.arena };
	reconcile_checks(&f.snapshot, &w, &figures);
	CHECK_UINT(w.n, 2);
	CHECK_STR(w.items[0].request.path, "/api/v1/namespaces/default/events");
	CHECK(str_has(w.items[0].request.body, STR("\"reason\":\"NodeWithoutResource\"")));
	CHECK(str_has(w.items[0].request.body, STR("\"uid\":\"u-n1\"")));
	CHECK_STR(w.items[1].request.path, "/api/v1/namespaces/shop/events");
	CHECK_STR(w.items[1].key, "QuotaRefusesPods shop/q");
	CHECK(w.items[1].interval_ms >= 600000); /* not with every reconcile */
	CHECK_UINT(figures.findings[CLUSTER_NODE_RESOURCE], 1);
	CHECK_UINT(figures.findings[CLUSTER_QUOTA], 1);
	CHECK_UINT(figures.findings[CLUSTER_AUTOSCALER], 0);
}
