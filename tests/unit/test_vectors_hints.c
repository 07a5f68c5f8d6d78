/* tests/vectors/topology-merge.json: all its tables but bitmask_vectors, which holds only titles.
 */

#include <string.h>

#include "base/macro.h"
#include "cpu/hints.h"
#include "cpu/hints_merge.h"
#include "topologies.h"

struct file {
	struct arena a;
	yyjson_val *root;
	yyjson_val *machines;
};

static void file_done(struct file *f)
{
	arena_done(&f->a);
}

static void file_open(struct file *f)
{
	arena_init(&f->a, 0);
	f->root = vectors_load("vectors/topology-merge.json", &f->a);
	f->machines = vectors_load("vectors/cpu-assignment.json", &f->a);
}

/* Rows of a table, each named in failures, with how many there were. */
#define EACH_ROW(f, table, row, n)                                                                 \
	DOC_EACH_ITEM (doc_get((f)->root, STR(table)), row)                                        \
		if (TEST_ROW(PRI_STR, FMT_STR(doc_text(doc_get(row, STR("id"))))), ++(n))

static uint64_t mask_of(yyjson_val *bits)
{
	uint64_t mask = 0;
	yyjson_val *bit;

	DOC_EACH_ITEM (bits, bit) {
		int64_t n = 64;

		CHECK(doc_int(bit, &n) && n >= 0 && n < 64);
		mask |= UINT64_C(1) << n;
	}
	return mask;
}

static struct numa_hint hint_of(yyjson_val *v)
{
	yyjson_val *affinity = doc_get(v, STR("affinity"));

	return (struct numa_hint){
		.has_mask = yyjson_is_arr(affinity),
		.mask = mask_of(affinity),
		.preferred = doc_bool(doc_get(v, STR("preferred")), false),
	};
}

static struct hint_list list_of(yyjson_val *v, struct arena *a)
{
	struct numa_hint *items = arena_array(a, struct numa_hint, yyjson_arr_size(v) + 1);
	struct hint_list list = { .any = !yyjson_is_arr(v), .items = items };
	yyjson_val *item;

	DOC_EACH_ITEM (v, item)
		items[list.n++] = hint_of(item);
	return list;
}

static struct hint_list *lists_of(yyjson_val *v, struct arena *a, size_t *ret_n)
{
	struct hint_list *lists = arena_array(a, struct hint_list, yyjson_arr_size(v) + 1);
	yyjson_val *item;

	*ret_n = 0;
	DOC_EACH_ITEM (v, item)
		lists[(*ret_n)++] = list_of(item, a);
	return lists;
}

static struct hint_provider *providers_of(yyjson_val *v, struct arena *a, size_t *ret_n)
{
	struct hint_provider *providers =
		arena_array(a, struct hint_provider, yyjson_arr_size(v) + 1);
	yyjson_val *item, *key, *value;

	*ret_n = 0;
	DOC_EACH_ITEM (v, item) {
		struct hint_list *lists =
			arena_array(a, struct hint_list, yyjson_obj_size(item) + 1);
		struct hint_provider *p = &providers[(*ret_n)++];

		DOC_EACH_PAIR (item, key, value)
			lists[p->n++] = list_of(value, a);
		p->resources = lists;
	}
	return providers;
}

static struct hint_nodes matrix_of(yyjson_val *rows, struct arena *a)
{
	const size_t n = yyjson_arr_size(rows);
	uint32_t *ids = arena_array(a, uint32_t, n + 1);
	uint32_t *distances = arena_array(a, uint32_t, n * n + 1);
	yyjson_val *row, *cell;
	size_t i = 0;

	DOC_EACH_ITEM (rows, row)
		DOC_EACH_ITEM (row, cell) {
			int64_t value = 0;

			CHECK(doc_int(cell, &value));
			ids[i / n] = (uint32_t)(i / n);
			distances[i++] = (uint32_t)value;
		}
	return (struct hint_nodes){ .n = (unsigned)n, .ids = ids, .distances = distances };
}

static struct hint_decision decide(struct file *f, yyjson_val *row)
{
	struct hint_config config = { 0 };
	struct err err = { 0 };
	struct hint_provider *providers;
	struct hint_nodes nodes;
	size_t n;

	CHECK_OK(hint_policy_parse(doc_str(doc_get(row, STR("policy"))), &config.policy, &err));
	config.prefer_closest = doc_bool(doc_get(row, STR("preferClosestNUMA")), false);
	nodes = matrix_of(
		doc_get(doc_get(doc_get(f->root, STR("numa")), doc_str(doc_get(row, STR("numa")))),
			STR("distances")),
		&f->a);
	CHECK(nodes.n > 0);
	providers = providers_of(doc_get(row, STR("providers")), &f->a, &n);
	return hints_decide(&config, &nodes, providers, n, &f->a);
}

TEST(hints_merge_as_the_topology_manager_merges_them)
{
	CLEANUP(file_done) struct file f;
	yyjson_val *row;
	size_t n = 0;

	file_open(&f);
	EACH_ROW(&f, "merge_vectors", row, n)
	{
		const struct hint_decision got = decide(&f, row);
		const struct numa_hint want = hint_of(doc_get(row, STR("expect")));

		CHECK_UINT(got.hint.has_mask, want.has_mask);
		CHECK_UINT(got.hint.mask, want.mask);
		CHECK_UINT(got.hint.preferred, want.preferred);
		CHECK_UINT(got.admit, doc_bool(doc_find(row, "/expect/admit"), false));
	}
	vectors_count("merge", n, 96);
}

TEST(policies_admit_what_the_topology_manager_admits)
{
	CLEANUP(file_done) struct file f;
	yyjson_val *row;
	size_t n = 0;

	file_open(&f);
	EACH_ROW(&f, "admit_vectors", row, n)
	{
		yyjson_val *expect = doc_get(row, STR("expect"));
		const struct hint_decision got = decide(&f, row);

		CHECK_UINT(got.admit, doc_bool(doc_get(expect, STR("admit")), false));
		if (!got.admit) {
			CHECK_STR(HINTS_REJECT_REASON, doc_str(doc_get(expect, STR("reason"))));
			CHECK_STR(HINTS_REJECT_MESSAGE, doc_str(doc_get(expect, STR("message"))));
		}
	}
	vectors_count("admit", n, 11);
}

TEST(the_better_of_two_hints_is_the_topology_managers_choice)
{
	CLEANUP(file_done) struct file f;
	yyjson_val *row;
	size_t n = 0;

	file_open(&f);
	EACH_ROW(&f, "compare_vectors", row, n)
	{
		static const struct hint_nodes no_nodes = { 0 };
		yyjson_val *current_val = doc_get(row, STR("current"));
		const struct numa_hint current = hint_of(current_val);
		const struct numa_hint candidate = hint_of(doc_get(row, STR("candidate")));
		struct hint_rule rule = { .nodes = &no_nodes };
		int64_t best = 0;

		CHECK(doc_int(doc_get(row, STR("bestNonPreferredAffinityCount")), &best));
		rule.best_non_preferred = best > 0 ? (unsigned)best : 0;
		CHECK_UINT(hint_is_better(&rule, yyjson_is_obj(current_val) ? &current : NULL,
					  &candidate),
			   str_eq(doc_str(doc_get(row, STR("expect"))), STR("candidate")));
	}
	vectors_count("compare", n, 19);
}

TEST(the_needed_nodes_are_the_maximum_of_the_narrowest_masks)
{
	CLEANUP(file_done) struct file f;
	yyjson_val *row;
	size_t n = 0;

	file_open(&f);
	EACH_ROW(&f, "max_of_min_vectors", row, n)
	{
		size_t n_lists;
		struct hint_list *lists = lists_of(doc_get(row, STR("hints")), &f.a, &n_lists);

		CHECK_UINT(hint_best_non_preferred(lists, n_lists),
			   uint_of(row, STR("expect"), 99));
	}
	vectors_count("max of min", n, 5);
}

TEST(a_single_numa_node_policy_keeps_only_preferred_hints_of_one_node)
{
	CLEANUP(file_done) struct file f;
	yyjson_val *row;
	size_t n = 0;

	file_open(&f);
	EACH_ROW(&f, "single_numa_filter_vectors", row, n)
	{
		size_t n_in, n_want;
		struct hint_list *in = lists_of(doc_get(row, STR("in")), &f.a, &n_in);
		struct hint_list *want = lists_of(doc_get(row, STR("expect")), &f.a, &n_want);

		CHECK_UINT(n_in, n_want);
		for (size_t i = 0; i < n_in; i++) {
			const struct hint_list got = hint_list_single_numa(&in[i], &f.a);

			CHECK_UINT(got.n, want[i].n);
			for (size_t j = 0; j < got.n; j++) {
				CHECK_UINT(got.items[j].mask, want[i].items[j].mask);
				CHECK_UINT(got.items[j].has_mask, want[i].items[j].has_mask);
				CHECK(got.items[j].preferred);
			}
		}
	}
	vectors_count("single NUMA filter", n, 5);
}

TEST(distances_are_averaged_over_all_pairs)
{
	CLEANUP(file_done) struct file f;
	yyjson_val *row;
	size_t n = 0;

	file_open(&f);
	EACH_ROW(&f, "average_distance_vectors", row, n)
	{
		const struct hint_nodes nodes = matrix_of(doc_get(row, STR("distances")), &f.a);
		const double got =
			hint_average_distance(&nodes, mask_of(doc_get(row, STR("mask"))));
		const double want = strtod(doc_text(doc_get(row, STR("expect"))).p, NULL);

		CHECK(got == want);
	}
	vectors_count("average distance", n, 5);
}

TEST(among_masks_of_one_size_the_closest_nodes_win)
{
	CLEANUP(file_done) struct file f;
	yyjson_val *row;
	size_t n = 0;

	file_open(&f);
	EACH_ROW(&f, "closest_vectors", row, n)
	{
		const struct hint_nodes nodes = matrix_of(doc_get(row, STR("distances")), &f.a);
		const uint64_t first = mask_of(doc_get(row, STR("first")));
		const uint64_t second = mask_of(doc_get(row, STR("second")));

		CHECK_UINT(hint_closest_mask(&nodes, first, second),
			   str_eq(doc_str(doc_get(row, STR("expect"))), STR("first")) ? first :
											second);
	}
	vectors_count("closest", n, 3);
}

static void check_cpu_hints(struct file *f, yyjson_val *row)
{
	const struct str text = doc_str(doc_get(row, STR("topology")));
	struct str_split words = str_split(text);
	const struct cpuset available = cpus_of(row, STR("available"));
	const struct cpuset reusable = cpus_of(row, STR("reusable"));
	const struct cpuset allocated = cpus_of(row, STR("alreadyAllocated"));
	struct cpu_hint_request request = {
		.n_cpus = uint_of(row, STR("request"), 0),
		.available = &available,
		.reusable = &reusable,
		.align_by_socket = doc_bool(doc_find(row, "/options/align-by-socket"), false),
	};
	const struct hint_list want = list_of(doc_get(row, STR("expect")), &f->a);
	struct err err = { 0 };
	struct hint_list got;
	struct topology t;
	struct str name;

	CHECK(str_next(&words, ' ', &name));
	topologies_get(f->machines, name, &f->a, &t);
	if (yyjson_is_str(doc_get(row, STR("alreadyAllocated"))))
		request.allocated = &allocated;
	CHECK_OK(hints_for_cpus(&t, &request, &f->a, &got, &err));
	CHECK(!got.any);
	CHECK_UINT(got.n, want.n);
	for (size_t i = 0; i < got.n; i++) {
		CHECK_UINT(got.items[i].mask, want.items[i].mask);
		CHECK_UINT(got.items[i].preferred, want.items[i].preferred);
	}
}

TEST(cpu_hints_are_those_of_the_cpu_manager)
{
	CLEANUP(file_done) struct file f;
	yyjson_val *row;
	size_t n = 0;

	file_open(&f);
	EACH_ROW(&f, "cpu_hint_vectors", row, n)
	check_cpu_hints(&f, row);
	vectors_count("cpu hint", n, 10);
}

/* The call a row of error_vectors is about. */
static int provoke(struct str what, struct arena *a, struct err *err)
{
	static const struct topology_cpu cpus[] = { { .cpu = 0 },
						    { .cpu = 1, .id[TOPOLOGY_NUMA] = 1 } };
	const struct topology_input in = { .cpus = cpus, .n_cpus = 2 };
	struct hint_config config = { .policy = HINT_POLICY_RESTRICTED, .prefer_closest = true };
	struct topology t;
	enum hint_policy policy;
	enum hint_scope scope;
	struct str_split parts = str_split(what);
	struct str name = { 0 }, value = { 0 };

	if (str_starts(what, STR("unknown policy")))
		return hint_policy_parse(STR("foo"), &policy, err);
	if (str_starts(what, STR("unknown scope")))
		return hint_scope_parse(STR("foo"), &scope, err);
	if (str_starts(what, STR("unknown option")))
		return hint_config_set(&config, STR("foo"), STR("true"), err);
	if (str_has(what, STR("without distance"))) {
		CHECK(topology_build(&in, a, &t, err) == 0);
		return hint_config_check(&config, &t, err);
	}
	CHECK(str_next(&parts, '=', &name) && str_next(&parts, '=', &value));
	return hint_config_set(&config, name, value, err);
}

TEST(errors_have_the_kubelets_messages)
{
	CLEANUP(file_done) struct file f;
	yyjson_val *row;
	size_t n = 0;

	file_open(&f);
	DOC_EACH_ITEM (doc_get(f.root, STR("error_vectors")), row) {
		const struct str what = doc_str(doc_get(row, STR("case")));
		struct err err = { 0 };

		TEST_ROW(PRI_STR, FMT_STR(what));
		n++;
		CHECK(provoke(what, &f.a, &err) < 0);
		CHECK_STR(err.msg, doc_str(doc_get(row, STR("error"))));
	}
	vectors_count("error", n, 7);
}
