/* What the operator tells the admission policies about the cluster. */

#include "operator/admission_parameters.h"

#include "base/arena.h"
#include "base/macro.h"
#include "operator/snapshot.h"
#include "operator/writes.h"
#include "test.h"

struct fixture {
	struct arena arena;
	struct object_store stores[OPERATOR_KIND__COUNT];
	struct operator_snapshot snapshot;
	struct operator_writes writes;
};

static void fixture_done(struct fixture *f)
{
	for (size_t i = 0; i < OPERATOR_KIND__COUNT; i++)
		object_store_done(&f->stores[i]);
	arena_done(&f->arena);
}

static void put(struct fixture *f, enum operator_kind kind, const char *key, const char *text)
{
	if (text)
		(void)object_store_put(&f->stores[kind], str_from(key), STR("1"), str_from(text));
}

static void build(struct fixture *f, const char *infrastructure, const char *const *nodes,
		  bool pools)
{
	*f = (struct fixture){ 0 };
	arena_init(&f->arena, 0);
	f->writes.arena = &f->arena;
	put(f, OPERATOR_INFRASTRUCTURES, "cluster", infrastructure);
	for (size_t i = 0; i < 3 && nodes[i]; i++) {
		struct str name = str_printf(&f->arena, "n%zu", i);
		struct str text = str_printf(&f->arena,
					     "{\"metadata\":{\"name\":\"" PRI_STR "\"},%s}",
					     FMT_STR(name), nodes[i]);

		(void)object_store_put(&f->stores[OPERATOR_NODES], name, STR("1"), text);
	}
	operator_snapshot_build(f->stores, 1800000000, 1000, &f->arena, &f->snapshot);
	f->snapshot.counts_pools = pools;
}

#define FLAG(status) "{\"metadata\":{\"name\":\"cluster\"}" status "}"
#define ON FLAG(",\"status\":{\"cpuPartitioning\":\"AllNodes\"}")
#define OFF FLAG(",\"status\":{\"cpuPartitioning\":\"None\"}")
#define SINGLE FLAG(",\"status\":{\"controlPlaneTopology\":\"SingleReplica\"}")
#define CORES "\"management.workload.openshift.io/cores\":\"4000\""
#define SHARED "\"openshift.io/shared-cpus\":\"4000\""
#define NODE(allocatable, ready)                                                                   \
	"\"status\":{\"allocatable\":{" allocatable "},\"ready\":\"" ready "\"}"
#define TAINTED(taint) "\"spec\":{\"taints\":[{" taint "}]},"

TEST(parameters_say_what_the_webhook_would_decide_from)
{
	static const struct {
		const char *infrastructure;
		const char *nodes[3];
		bool pools;
		const char *workloads, *types, *reported;
		bool has_pools;
		const char *taints;
	} rows[] = {
		{ NULL, { NODE(CORES, "True") }, false, "", "management", "management", false, "" },
		{ FLAG(""), { NULL }, false, "", "", "", false, "" },
		{ OFF, { NULL }, false, "off", "", "", false, "" },
		{ SINGLE,
		  { NODE(CORES, "True") },
		  false,
		  "single",
		  "management",
		  "management",
		  false,
		  "" },
		{ SINGLE, { NODE("", "True") }, false, "single", "", "", false, "" },
		{ SINGLE, { "\"status\":{}" }, false, "off", "", "", false, "" },
		{ ON, { NODE("", "True") }, false, "on", "", "", false, "" },
		/* D19: a ready node without cores, and one with cores that is not ready. */
		{ ON,
		  { NODE("", "True"), NODE(CORES, "False") },
		  false,
		  "on",
		  "",
		  "management",
		  false,
		  "" },
		{ ON,
		  { NODE(CORES, "False") },
		  false,
		  "on",
		  "management",
		  "management",
		  false,
		  "" },
		{ ON,
		  { NODE(CORES ",\"ran.workload.openshift.io/cores\":\"1\"", "True") },
		  false,
		  "on",
		  "management,ran",
		  "management,ran",
		  false,
		  "" },
		{ ON, { NODE(SHARED, "True") }, true, "on", "", "", true, "" },
		{ ON, { NODE(SHARED, "True") }, false, "on", "", "", false, "" },
		{ ON, { NODE(SHARED, "True"), NODE("", "True") }, true, "on", "", "", false, "" },
		{ ON, { NODE(SHARED, "True"), NODE("", "False") }, true, "on", "", "", true, "" },
		{ ON,
		  { NODE(SHARED, "True"),
		    TAINTED("\"key\":\"a\",\"value\":\"b\",\"effect\":\"NoSchedule\"},{\"key\":"
			    "\"c\",\"effect\":\"NoExecute\"") NODE("", "True"),
		    TAINTED("\"key\":\"d\",\"effect\":\"NoSchedule\"") NODE("", "True") },
		  true,
		  "on",
		  "",
		  "",
		  true,
		  "a=b:NoSchedule c=:NoExecute\nd=:NoSchedule" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(fixture_done) struct fixture f;
		struct admission_parameters p;

		build(&f, rows[i].infrastructure, rows[i].nodes, rows[i].pools);
		p = admission_parameters_of(&f.snapshot);
		CHECK_STR(p.workloads, str_from(rows[i].workloads));
		CHECK_STR(p.types, str_from(rows[i].types));
		CHECK_STR(p.reported_types, str_from(rows[i].reported));
		CHECK_INT(p.pools, rows[i].has_pools);
		CHECK_STR(p.taints_without_pool, str_from(rows[i].taints));
	}
}

TEST(parameters_are_written_when_they_differ)
{
	static const struct {
		const char *stored;
		const char *method; /* NULL: nothing is written */
	} rows[] = {
		{ NULL, "PATCH" },
		{ "{\"data\":{\"workloads\":\"on\",\"types\":\"management\",\"reported-types\":"
		  "\"management\",\"pools\":\"off\",\"taints-without-pool\":\"\"}}",
		  NULL },
		{ "{\"data\":{\"workloads\":\"off\",\"types\":\"management\",\"reported-types\":"
		  "\"management\",\"pools\":\"off\",\"taints-without-pool\":\"\"}}",
		  "PUT" },
		{ "{\"data\":{\"workloads\":\"on\",\"types\":\"management\",\"reported-types\":"
		  "\"management\",\"pools\":\"off\",\"taints-without-pool\":\"\",\"x\":\"y\"}}",
		  "PUT" },
		{ "{}", "PUT" },
	};
	static const char *const nodes[3] = { NODE(CORES, "True") };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(fixture_done) struct fixture f;

		build(&f, ON, nodes, false);
		put(&f, OPERATOR_PARAMETERS, "kube-system/pinfold-admission", rows[i].stored);
		reconcile_admission_parameters(&f.snapshot, &f.writes);
		CHECK_INT((int)f.writes.n, rows[i].method != NULL);
		if (!f.writes.n)
			continue;
		CHECK_STR(str_from(f.writes.items[0].request.method), str_from(rows[i].method));
		CHECK(str_has(f.writes.items[0].request.path, STR("configmaps/pinfold-admission")));
		CHECK(str_has(f.writes.items[0].request.body, STR("\"workloads\":\"on\"")));
	}
}

/* Prometheus refuses a page with the same series twice. */
TEST(no_two_kinds_have_the_same_name)
{
	for (size_t i = 0; i < OPERATOR_KIND__COUNT; i++)
		for (size_t j = 0; j < i; j++)
			CHECK(!str_eq(str_from(operator_kinds[i].name),
				      str_from(operator_kinds[j].name)));
}
