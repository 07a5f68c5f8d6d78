/* The OpenShift objects of profiles: what is applied, restored and deleted. */

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "kube/pod.h"
#include "operator/openshift_apply.h"
#include "operator/openshift_objects.h"
#include "operator/reconcile.h"
#include "test.h"

struct fixture {
	struct arena arena;
	struct object_store stores[OPERATOR_KIND__COUNT];
	struct operator_snapshot snapshot;
	struct openshift_objects objects;
	struct operator_writes writes;
};

static void put(struct fixture *f, enum operator_kind kind, const char *key, const char *text)
{
	(void)object_store_put(&f->stores[kind], str_from(key), STR("1"), str_from(text));
}

static void put_flag(struct fixture *f, const char *flag, const char *topology)
{
	put(f, OPERATOR_INFRASTRUCTURES, "cluster",
	    str_cstr(&f->arena, str_printf(&f->arena,
					   "{\"metadata\":{\"name\":\"cluster\"},\"status\":{"
					   "\"cpuPartitioning\":\"%s\",\"controlPlaneTopology\":"
					   "\"%s\",\"infrastructureTopology\":\"%s\"}}",
					   flag, topology, topology)));
}

static void put_profile(struct fixture *f, const char *name, const char *reserved)
{
	put(f, OPERATOR_PROFILES, name,
	    str_cstr(&f->arena,
		     str_printf(&f->arena,
				"{\"metadata\":{\"name\":\"%s\",\"uid\":\"u-%s\"},\"spec\":{"
				"\"cpu\":{\"reserved\":\"%s\",\"isolated\":\"2-7\"},"
				"\"nodeSelector\":{\"node-role.kubernetes.io/worker\":\"\"}}}",
				name, name, reserved)));
}

static void fixture_init(struct fixture *f)
{
	*f = (struct fixture){ 0 };
	arena_init(&f->arena, 0);
	put_flag(f, "AllNodes", "HighlyAvailable");
}

static void fixture_done(struct fixture *f)
{
	for (size_t i = 0; i < OPERATOR_KIND__COUNT; i++)
		object_store_done(&f->stores[i]);
	arena_done(&f->arena);
}

static void decide(struct fixture *f)
{
	operator_snapshot_build(f->stores, 1800000000, 0, &f->arena, &f->snapshot);
	f->snapshot.has_current_profiles = true;
	openshift_objects_build(&f->snapshot, &f->objects);
	f->snapshot.openshift = &f->objects;
	f->writes = (struct operator_writes){ .arena = &f->arena };
	reconcile_openshift(&f->snapshot, &f->writes);
}

/* What the writes leave in the cluster, as a watch would report it. */
static void settle(struct fixture *f)
{
	for (size_t i = 0; i < f->objects.n; i++) {
		const struct openshift_object *o = &f->objects.items[i];
		struct str text, key = operator_object_key(o->want, &f->arena);
		struct err err = { 0 };
		char version[16];

		CHECK_OK(operator_object_trim(o->kind, o->want, &f->arena, &text, &err));
		(void)snprintf(version, sizeof(version), "%zu", i + 2);
		(void)object_store_put(&f->stores[o->kind], key, str_from(version), text);
	}
}

/* "method path", one on a line, without the query. */
static struct str summary(const struct fixture *f)
{
	struct strbuf b;

	strbuf_init(&b, f->writes.arena);
	for (size_t i = 0; i < f->writes.n; i++) {
		const struct api_request *r = &f->writes.items[i].request;
		struct str_split split = str_split(r->path);
		struct str path;

		(void)str_next(&split, '?', &path);
		strbuf_printf(&b, "%s " PRI_STR "%s\n", r->method, FMT_STR(path),
			      str_has(r->path, STR("force=true")) ? " force" : "");
	}
	return strbuf_str(&b);
}

#define CONFIGS "/apis/machineconfiguration.openshift.io/v1/machineconfigs/"
#define KUBELETS "/apis/machineconfiguration.openshift.io/v1/kubeletconfigs/"
#define TUNEDS                                                                                     \
	"/apis/tuned.openshift.io/v1/namespaces/openshift-cluster-node-tuning-operator/tuneds/"

TEST(defaults_are_taken_over_and_a_profile_gets_its_objects)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f);
	put_profile(&f, "w", "0-1");
	decide(&f);
	CHECK_STR(summary(&f), "PATCH " CONFIGS "01-master-cpu-partitioning force\n"
			       "PATCH " CONFIGS "01-worker-cpu-partitioning force\n"
			       "PATCH " CONFIGS "50-performance-w\n"
			       "PATCH " KUBELETS "performance-w\n"
			       "PATCH " TUNEDS "openshift-node-performance-w\n"
			       "PATCH /apis/node.k8s.io/v1/runtimeclasses/performance-w\n");
	CHECK(f.writes.items != NULL);
	CHECK(str_has(f.writes.items[2].request.body,
		      STR("\"app.kubernetes.io/managed-by\":\"pinfold\"")));
	CHECK(str_has(f.writes.items[2].request.body, STR("\"uid\":\"u-w\"")));
	CHECK(!str_has(f.writes.items[3].request.body, STR("null")));
	CHECK(!str_has(f.writes.items[3].request.body, STR("\"status\"")));
}

TEST(what_is_applied_is_not_written_again)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f);
	put_profile(&f, "w", "0-1");
	decide(&f);
	settle(&f);
	decide(&f);
	CHECK_STR(summary(&f), "");
	/* A change by others is undone, with force. */
	(void)object_store_remove(&f.stores[OPERATOR_MACHINE_CONFIGS],
				  STR("01-worker-cpu-partitioning"));
	put(&f, OPERATOR_MACHINE_CONFIGS, "01-worker-cpu-partitioning",
	    "{\"metadata\":{\"name\":\"01-worker-cpu-partitioning\",\"labels\":{"
	    "\"app.kubernetes.io/managed-by\":\"pinfold\"}},\"spec\":{}}");
	CHECK(object_store_remove(&f.stores[OPERATOR_KUBELET_CONFIGS], STR("performance-w")));
	decide(&f);
	CHECK_STR(summary(&f), "PATCH " CONFIGS "01-worker-cpu-partitioning force\n"
			       "PATCH " KUBELETS "performance-w\n");
}

TEST(objects_of_a_deleted_profile_are_deleted_and_the_defaults_stay)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f);
	put_profile(&f, "w", "0-1");
	decide(&f);
	settle(&f);
	CHECK(object_store_remove(&f.stores[OPERATOR_PROFILES], STR("w")));
	decide(&f);
	CHECK_STR(summary(&f), "DELETE " CONFIGS "50-performance-w\n"
			       "DELETE " KUBELETS "performance-w\n"
			       "DELETE " TUNEDS "openshift-node-performance-w\n"
			       "DELETE /apis/node.k8s.io/v1/runtimeclasses/performance-w\n");
	/* Not while the list of profiles may be incomplete. */
	f.snapshot.has_current_profiles = false;
	f.writes.n = 0;
	reconcile_openshift(&f.snapshot, &f.writes);
	CHECK_STR(summary(&f), "");
}

TEST(objects_of_a_profile_with_an_error_stay_and_other_profiles_are_applied)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f);
	put_profile(&f, "w", "0-1");
	decide(&f);
	settle(&f);
	CHECK(object_store_remove(&f.stores[OPERATOR_PROFILES], STR("w")));
	put_profile(&f, "w", "0-4"); /* overlaps */
	decide(&f);
	CHECK_STR(summary(&f), "");
	CHECK_UINT(f.objects.n_problems, 1);
	CHECK_STR(f.objects.problems[0].profile->name, "w");
	CHECK(str_has(f.objects.problems[0].text, STR("overlap")));
}

static void put_node(struct fixture *f, const char *name, const char *cores)
{
	put(f, OPERATOR_NODES, name,
	    str_cstr(&f->arena,
		     str_printf(&f->arena,
				"{\"metadata\":{\"name\":\"%s\"},\"status\":{\"allocatable\":{"
				"\"management.workload.openshift.io/cores\":\"%s\"}}}",
				name, cores)));
}

TEST(only_a_single_node_that_publishes_the_resource_gets_the_flag)
{
	static const struct {
		const char *flag, *topology, *cores;
		bool want;
	} rows[] = {
		{ "None", "SingleReplica", "8k", true },
		{ "", "SingleReplica", "8k", true },
		{ "None", "SingleReplica", "0", false },
		{ "AllNodes", "SingleReplica", "8k", false },
		{ "None", "HighlyAvailable", "8k", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(fixture_done) struct fixture f;

		TEST_ROW("row %zu", i);
		fixture_init(&f);
		CHECK(object_store_remove(&f.stores[OPERATOR_INFRASTRUCTURES], STR("cluster")));
		put_flag(&f, rows[i].flag, rows[i].topology);
		put_node(&f, "sno", rows[i].cores);
		decide(&f);
		CHECK_INT(str_has(summary(&f), STR("PATCH /apis/config.openshift.io/v1/"
						   "infrastructures/cluster/status\n")),
			  rows[i].want);
		put_node(&f, "worker", rows[i].cores);
		decide(&f);
		CHECK(!str_has(summary(&f), STR("/infrastructures/")));
	}
}

TEST(a_single_node_that_is_partitioned_by_hand_gets_no_other_machine_config)
{
	CLEANUP(fixture_done) struct fixture f;

	fixture_init(&f);
	CHECK(object_store_remove(&f.stores[OPERATOR_INFRASTRUCTURES], STR("cluster")));
	put_flag(&f, "AllNodes", "SingleReplica");
	put(&f, OPERATOR_MACHINE_CONFIGS, "02-master-workload-partitioning",
	    "{\"metadata\":{\"name\":\"02-master-workload-partitioning\",\"labels\":{"
	    "\"machineconfiguration.openshift.io/role\":\"master\"}},\"spec\":{\"config\":{"
	    "\"storage\":{\"files\":[{\"path\":\"/etc/kubernetes/openshift-workload-pinning\"}]}}}"
	    "}");
	decide(&f);
	CHECK_STR(summary(&f), "PATCH " CONFIGS "01-worker-cpu-partitioning force\n");
	CHECK(f.objects.is_partitioned_by_hand);
}

TEST(an_object_contains_another_when_it_has_all_of_its_members)
{
	static const struct {
		const char *have, *want;
		bool result;
	} rows[] = {
		{ "{\"a\":1,\"b\":{\"c\":[1,2]}}", "{\"b\":{\"c\":[1,2]}}", true },
		{ "{\"a\":1}", "{\"a\":2}", false },
		{ "{\"a\":1}", "{\"a\":\"1\"}", false },
		{ "{\"a\":[1,2]}", "{\"a\":[1]}", false },
		{ "{\"a\":[{\"x\":1,\"y\":2}]}", "{\"a\":[{\"x\":1}]}", true },
		{ "{}", "{\"a\":{}}", true },
		{ "{}", "{\"a\":\"\"}", false },
		{ "{\"a\":true}", "{\"a\":true}", true },
		{ "{\"a\":true}", "{\"a\":false}", false },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct doc have, want;
		struct err err = { 0 };

		TEST_ROW("row %zu", i);
		CHECK_OK(doc_parse(str_from(rows[i].have), STR(""), NULL, &a, &have, &err));
		CHECK_OK(doc_parse(str_from(rows[i].want), STR(""), NULL, &a, &want, &err));
		CHECK_INT(object_contains(have.root, want.root), rows[i].result);
	}
}

/* The files of a user's MachineConfig may hold secrets, and rendered ones are large. */
TEST(of_machine_configs_of_others_only_paths_are_kept)
{
	const struct operator_kind_info *info = &operator_kinds[OPERATOR_MACHINE_CONFIGS];
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct doc doc;
	struct str text;

	arena_init(&a, 0);
	CHECK_OK(doc_parse(STR("{\"metadata\":{\"name\":\"rendered-worker-1\"}}"), STR(""), NULL,
			   &a, &doc, &err));
	CHECK(!info->is_wanted(doc.root));
	CHECK_OK(
		doc_parse(STR("{\"metadata\":{\"name\":\"99-x\"},\"spec\":{\"config\":{\"storage\":"
			      "{\"files\":[{\"path\":\"/a\",\"contents\":{\"source\":\"data:,s\"}}"
			      "]}}}}"),
			  STR(""), NULL, &a, &doc, &err));
	CHECK(info->is_wanted(doc.root));
	CHECK_OK(operator_object_trim(OPERATOR_MACHINE_CONFIGS, doc.root, &a, &text, &err));
	CHECK_STR(text, "{\"metadata\":{\"name\":\"99-x\"},\"spec\":{\"config\":{\"storage\":{"
			"\"files\":[{\"path\":\"/a\"}]}}}}");
}
