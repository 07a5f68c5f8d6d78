#include "base/arena.h"
#include "base/macro.h"
#include "fleet/fleet.h"
#include "test.h"

static void add_node(struct manifest_list *list, const char *name, const char *kubelet, int day,
		     struct arena *a)
{
	struct err err = { 0 };
	struct doc *doc = arena_new(a, struct doc);

	CHECK_OK(doc_parse(
		str_printf(
			a,
			"{\"kind\":\"Node\",\"metadata\":{\"name\":\"%s\"},\"status\":{"
			"\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"},{\"type\":"
			"\"PartitioningReady\",\"status\":\"True\",\"lastHeartbeatTime\":"
			"\"2026-11-%02dT00:00:00Z\"}],\"nodeInfo\":{\"kubeletVersion\":\"%s\"}}}",
			name, day, kubelet),
		STR("node"), NULL, a, doc, &err));
	manifest_list_add(list, a, (struct manifest){ doc, doc->root });
}

/* A cluster with one node, by its kubelet's version. */
static void add(struct fleet *f, const char *name, const char *kubelet)
{
	CLEANUP(arena_done) struct arena a; /* the cluster is forgotten afterwards */
	struct manifest_list list = { 0 };

	arena_init(&a, 0);
	add_node(&list, "n", kubelet, 1, &a);
	fleet_add(f, str_from(name), &list, 0);
}

static struct str outliers_of(const struct fleet *f)
{
	struct fleet_outlier *outliers;
	const size_t n = fleet_outliers(f, f->a, &outliers);
	struct strbuf b;

	strbuf_init(&b, f->a);
	for (size_t i = 0; i < n; i++)
		strbuf_printf(&b, PRI_STR " %s " PRI_STR " not " PRI_STR "\n",
			      FMT_STR(outliers[i].cluster->name),
			      fleet_attribute_name(outliers[i].value->attribute),
			      FMT_STR(outliers[i].value->text), FMT_STR(outliers[i].usual->text));
	return strbuf_str(&b);
}

TEST(a_cluster_with_a_rare_value_is_an_outlier)
{
	static const struct {
		unsigned n_usual, n_other;
		const char *want;
	} rows[] = {
		{ 1, 1, "" }, /* neither is usual */
		{ 2, 1, "other0 kubelet v2 not v1\n" },
		{ 5, 5, "" },  /* a rollout */
		{ 15, 2, "" }, /* two of seventeen are not rare */
		{ 39, 2, "other0 kubelet v2 not v1\nother1 kubelet v2 not v1\n" },
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct arena a;
		struct fleet f;

		TEST_ROW("%u and %u", rows[i].n_usual, rows[i].n_other);
		arena_init(&a, 0);
		fleet_init(&f, NULL, &a);
		for (unsigned j = 0; j < rows[i].n_usual; j++)
			add(&f, str_printf(&a, "usual%u", j).p, "v1");
		for (unsigned j = 0; j < rows[i].n_other; j++)
			add(&f, str_printf(&a, "other%u", j).p, "v2");
		CHECK_STR(outliers_of(&f), rows[i].want);
		arena_done(&a);
	}
}

/* Saved long ago: the newest heartbeat is the time, unless the cluster runs. */
TEST(saved_heartbeats_are_compared_with_each_other)
{
	struct manifest_list list = { 0 };
	struct arena a;
	struct fleet f;

	arena_init(&a, 0);
	fleet_init(&f, NULL, &a);
	add_node(&list, "silent", "v1", 1, &a);
	add_node(&list, "newest", "v1", 2, &a);
	fleet_add(&f, STR("saved"), &list, 0);
	fleet_add(&f, STR("live"), &list, INT64_C(1800000000));
	CHECK_UINT(f.clusters[0].faults[FAULT_SILENT], 1);
	CHECK_UINT(f.clusters[1].faults[FAULT_SILENT], 2);
	CHECK_STR(f.examples[FAULT_SILENT].node, "silent");
	arena_done(&a);
}

TEST(a_cluster_that_cannot_be_read_stays_in_the_report)
{
	const struct manifest_list nothing = { 0 };
	struct arena a;
	struct fleet f;

	arena_init(&a, 0);
	fleet_init(&f, NULL, &a);
	fleet_add_unreadable(&f, STR("gone"), STR("no such file"));
	fleet_add(&f, STR("empty"), &nothing, 0);
	CHECK_UINT(f.n_clusters, 2);
	CHECK_STR(f.clusters[0].problem, "no such file");
	CHECK_STR(f.clusters[1].problem, "no Node and no NodePartition in it");
	arena_done(&a);
}
