#include "profile/layout.h"

#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "codec/problems.h"
#include "kube/names.h"
#include "manifests_text.h"
#include "profile/selector.h"
#include "test.h"

TEST(topologies_follow_from_replica_counts)
{
	/* docs/reference/openshift-render.md#topologies */
	static const struct {
		int64_t masters, arbiters, workers;
		const char *control_plane, *infrastructure;
	} rows[] = {
		{ 3, 0, 0, "HighlyAvailable", "HighlyAvailable" },
		{ 1, 0, 0, "SingleReplica", "SingleReplica" },
		{ 1, 0, 3, "SingleReplica", "HighlyAvailable" },
		{ 1, 0, 1, "SingleReplica", "SingleReplica" },
		{ 2, 0, 0, "DualReplica", "HighlyAvailable" },
		{ 2, 1, 0, "HighlyAvailableArbiter", "HighlyAvailable" },
		{ 3, 2, 0, "HighlyAvailableArbiter", "HighlyAvailable" },
		{ 3, 0, 3, "HighlyAvailable", "HighlyAvailable" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *control = control_plane_topology(rows[i].masters, rows[i].arbiters);

		TEST_ROW("row %zu", i);
		CHECK_STR(control, rows[i].control_plane);
		CHECK_STR(infrastructure_topology(rows[i].workers, control),
			  rows[i].infrastructure);
	}
}

static yyjson_val *json(const char *text, struct arena *a)
{
	struct err err = { 0 };
	struct doc doc;

	CHECK_OK(doc_parse(str_from(text), STR("test"), NULL, a, &doc, &err));
	return doc.root;
}

TEST(selectors_match_as_kubernetes_matches)
{
	static const struct {
		const char *selector, *labels;
		int matches;
	} rows[] = {
		{ "{}", "{}", 1 },
		{ "null", "{}", 0 },
		{ "{\"matchLabels\":{\"a\":\"\"}}", "{\"a\":\"\"}", 1 },
		{ "{\"matchLabels\":{\"a\":\"\"}}", "{\"a\":\"x\"}", 0 },
		{ "{\"matchLabels\":{\"a\":\"\"}}", "{}", 0 },
		{ "{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"x\"]}]}",
		  "{\"a\":\"x\"}", 1 },
		{ "{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"x\"]}]}",
		  "{}", 0 },
		{ "{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"NotIn\",\"values\":[\"x\"]}"
		  "]}",
		  "{}", 1 },
		{ "{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"NotIn\",\"values\":[\"x\"]}"
		  "]}",
		  "{\"a\":\"x\"}", 0 },
		{ "{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Exists\"}]}",
		  "{\"a\":\"\"}", 1 },
		{ "{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"DoesNotExist\"}]}",
		  "{\"a\":\"\"}", 0 },
		{ "{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Near\"}]}", "{}", -22 },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = { 0 };

		TEST_ROW("%s on %s", rows[i].selector, rows[i].labels);
		CHECK_INT(selector_matches(json(rows[i].selector, &a), json(rows[i].labels, &a),
					   &err),
			  rows[i].matches);
	}
}

static void resolve(const char *text, bool plain_hosts, struct arena *a, struct layout *ret,
		    struct problem_list *p)
{
	struct layout_options options = { .plain_hosts = plain_hosts };
	struct manifests *ms = arena_new(a, struct manifests);

	manifests_init(ms, a);
	problem_list_init(p, a);
	manifests_from_text(ms, str_dup(a, str_from(text)), STR("test"), p);
	layout_resolve(ms, &options, a, ret, p);
}

#define PROFILE                                                                                    \
	"apiVersion: performance.openshift.io/v2\nkind: PerformanceProfile\n"                      \
	"metadata: {name: p}\nspec:\n  cpu: {reserved: 0-1, isolated: 2-7}\n"                      \
	"  nodeSelector: {node-role.kubernetes.io/worker: \"\"}\n"
#define INFRASTRUCTURE                                                                             \
	"apiVersion: config.openshift.io/v1\nkind: Infrastructure\n"                               \
	"metadata: {name: cluster}\nstatus: {"

TEST(the_cluster_is_partitioned_only_with_a_flag_or_a_marker)
{
	static const struct {
		const char *what, *text;
		bool plain_hosts, pinned;
		size_t n_bootstrap;
	} rows[] = {
		{ "no source", PROFILE, false, false, 0 },
		{ "no source, plain hosts", PROFILE, true, true, 0 },
		{ "None", INFRASTRUCTURE "cpuPartitioning: None}\n", false, false, 0 },
		{ "None, plain hosts", INFRASTRUCTURE "cpuPartitioning: None}\n", true, false, 0 },
		{ "AllNodes", INFRASTRUCTURE "cpuPartitioning: AllNodes}\n", false, true, 2 },
		{ "empty", INFRASTRUCTURE "cpuPartitioning: \"\"}\n", false, false, 0 },
		{ "arbiter",
		  INFRASTRUCTURE "cpuPartitioning: AllNodes, "
				 "controlPlaneTopology: HighlyAvailableArbiter}\n",
		  false, true, 3 },
		{ "install-config", "baseDomain: x\ncpuPartitioningMode: AllNodes\n", false, true,
		  2 },
		{ "install-config None", "baseDomain: x\ncpuPartitioningMode: None\n", false, false,
		  0 },
		{ "another Infrastructure",
		  "apiVersion: config.openshift.io/v1\nkind: Infrastructure\n"
		  "metadata: {name: other}\nstatus: {cpuPartitioning: AllNodes}\n",
		  false, false, 0 },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct layout layout;
		struct problem_list p;

		TEST_ROW("%s", rows[i].what);
		resolve(rows[i].text, rows[i].plain_hosts, &a, &layout, &p);
		CHECK_UINT(p.n_errors, 0);
		CHECK_INT(layout.pinned, rows[i].pinned);
		CHECK_UINT(layout.n_bootstrap, rows[i].n_bootstrap);
	}
}

TEST(a_node_belongs_to_one_pool)
{
	static const struct {
		const char *labels, *pool;
	} rows[] = {
		{ "{\"node-role.kubernetes.io/worker\":\"\"}", "worker" },
		{ "{\"node-role.kubernetes.io/worker\":\"\",\"node-role.kubernetes.io/cnf\":\"\"}",
		  "cnf" },
		{ "{\"node-role.kubernetes.io/worker\":\"\",\"node-role.kubernetes.io/"
		  "master\":\"\"}",
		  "master" },
		{ "{\"node-role.kubernetes.io/cnf\":\"\",\"node-role.kubernetes.io/master\":\"\"}",
		  "master" },
		{ "{}", "" },
	};
	CLEANUP(arena_done) struct arena a;
	struct layout layout;
	struct problem_list p;

	arena_init(&a, 0);
	resolve("apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfigPool\n"
		"metadata: {name: cnf}\nspec:\n  nodeSelector:\n    matchLabels:\n"
		"      node-role.kubernetes.io/cnf: \"\"\n",
		false, &a, &layout, &p);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct machine_pool *pool =
			layout_pool_of_node(&layout, json(rows[i].labels, &a));

		TEST_ROW("%s", rows[i].labels);
		CHECK_STR(pool ? pool->name : STR(""), rows[i].pool);
	}
}

TEST(a_list_keeps_its_spelling_and_sets_are_parsed)
{
	CLEANUP(arena_done) struct arena a;
	struct layout layout;
	struct problem_list p;

	arena_init(&a, 0);
	resolve("apiVersion: performance.openshift.io/v2\nkind: PerformanceProfile\n"
		"metadata: {name: p}\nspec:\n  cpu: {reserved: '3,2,1,0', isolated: 4-7}\n"
		"  nodeSelector: {node-role.kubernetes.io/worker: \"\"}\n",
		false, &a, &layout, &p);
	CHECK_UINT(layout.n_partitions, 1);
	CHECK_STR(layout.partitions[0].text[PROFILE_RESERVED], "3,2,1,0");
	CHECK_STR(cpuset_format(&layout.partitions[0].cpus[PROFILE_RESERVED], &a), "0-3");
	CHECK_STR(layout.partitions[0].pool->name, "worker");
	CHECK(layout_find(&layout, STR("worker")) == &layout.partitions[0]);
	CHECK(layout_find(&layout, STR("master")) == NULL);
}

TEST(problems_are_printed_with_file_line_and_field)
{
	CLEANUP(arena_done) struct arena a;
	struct layout layout;
	struct problem_list p;

	arena_init(&a, 0);
	resolve("baseDomain: x\ncontrolPlane: {replicas: -1}\ncpuPartitioningMode: all\n", false,
		&a, &layout, &p);
	problem_list_sort(&p);
	CHECK_STR(
		problem_list_format(&p, &a),
		"test:2:26: controlPlane.replicas: must be a whole number, 0 or more\n"
		"test:3:22: cpuPartitioningMode: unsupported value \"all\": valid values are None, "
		"AllNodes\n");
}
