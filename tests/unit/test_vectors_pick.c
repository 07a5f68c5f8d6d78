/* tests/vectors/cpu-assignment.json, the rows about picking: vectors, model_vectors,
 * quirk_vectors and accumulator_vectors. Its policy_vectors and pool_vectors are about who owns
 * CPUs and are replayed by the ledger's tests. */

#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "cpu/pick.h"
#include "cpu/pick_accumulator.h"
#include "topologies.h"

static struct pick_request request_of(yyjson_val *row)
{
	yyjson_val *options = doc_get(row, STR("options"));

	return (struct pick_request){
		.n_cpus = uint_of(row, STR("numCPUs"), 0),
		.group = uint_of(row, STR("cpuGroupSize"), 1),
		.distributed = str_eq(doc_str(doc_get(row, STR("algorithm"))), STR("distributed")),
		.spread = doc_bool(doc_get(options, STR("distribute-cpus-across-cores")), false),
		.uncore =
			doc_bool(doc_get(options, STR("prefer-align-cpus-by-uncorecache")), false),
		.align_by_socket = doc_bool(doc_get(options, STR("align-by-socket")), false),
	};
}

static void check_pick(yyjson_val *file, yyjson_val *row, struct arena *a)
{
	const struct cpuset available = cpus_of(row, STR("available"));
	const struct pick_request request = request_of(row);
	yyjson_val *expect = doc_get(row, STR("expect_fixed"));
	struct err err = { 0 };
	struct topology t;
	struct cpuset got;
	struct str error;
	int r;

	if (!expect)
		expect = doc_get(row, STR("expect"));
	topologies_get(file, doc_str(doc_get(row, STR("topology"))), a, &t);
	r = pick_cpus(&t, &available, &request, &got, &err);
	error = doc_str(doc_get(expect, STR("error")));
	if (error.n) {
		CHECK(r < 0);
		CHECK_STR(err.msg, error);
		return;
	}
	CHECK_OK(r);
	CHECK_STR(cpuset_format(&got, a), doc_str(doc_get(expect, STR("cpus"))));
	CHECK_UINT(cpuset_count(&got), request.n_cpus);
	CHECK(cpuset_is_subset(&got, &available));
}

static void replay(const char *table, size_t least)
{
	CLEANUP(arena_done) struct arena a;
	yyjson_val *file, *row;
	size_t n = 0;

	arena_init(&a, 0);
	file = vectors_load("vectors/cpu-assignment.json", &a);
	DOC_EACH_ITEM (doc_get(file, str_from(table)), row) {
		TEST_ROW(PRI_STR, FMT_STR(doc_str(doc_get(row, STR("id")))));
		n++;
		check_pick(file, row, &a);
	}
	vectors_count(table, n, least);
}

TEST(picks_are_those_of_the_kubelets_own_tests)
{
	replay("vectors", 46);
}

TEST(picks_are_those_of_the_reference_implementation)
{
	replay("model_vectors", 178);
}

TEST(picks_are_correct_where_the_kubelet_has_a_defect)
{
	replay("quirk_vectors", 5);
}

static int compare_ids(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* The elements of a level that are entirely free, best candidate first. */
static size_t free_elements(struct accumulator *acc, enum topology_level level, uint32_t *ret)
{
	const unsigned all = accumulator_order(acc, level);
	size_t n = 0;

	for (unsigned i = 0; i < all; i++)
		if (accumulator_is_whole(acc, level, acc->order[i]))
			ret[n++] = acc->t->level[level].ids[acc->order[i]];
	return n;
}

static size_t query(yyjson_val *row, const struct topology *t, struct arena *a, uint32_t *ret)
{
	const struct cpuset available = cpus_of(row, STR("available"));
	const struct str what = doc_str(doc_get(row, STR("query")));
	struct accumulator acc;
	unsigned n;

	accumulator_init(&acc, t, a);
	accumulator_start(&acc, available.w, NULL, 0);
	if (str_eq(what, STR("free-sockets")))
		return free_elements(&acc, TOPOLOGY_SOCKET, ret);
	if (str_eq(what, STR("free-numa-nodes")))
		return free_elements(&acc, TOPOLOGY_NUMA, ret);
	if (str_eq(what, STR("free-cores")))
		return free_elements(&acc, TOPOLOGY_CORE, ret);
	CHECK(str_eq(what, STR("free-cpus")));
	n = accumulator_order_cpus(&acc, false, t->n_cpus);
	for (unsigned i = 0; i < n; i++)
		ret[i] = acc.order[i];
	return n;
}

TEST(candidates_are_in_the_kubelets_order)
{
	CLEANUP(arena_done) struct arena a;
	yyjson_val *file, *row, *id;
	size_t n = 0;

	arena_init(&a, 0);
	file = vectors_load("vectors/cpu-assignment.json", &a);
	DOC_EACH_ITEM (doc_get(file, STR("accumulator_vectors")), row) {
		yyjson_val *expect = doc_get(row, STR("expect"));
		struct topology t;
		uint32_t *got;
		size_t n_got, i = 0;

		TEST_ROW(PRI_STR, FMT_STR(doc_str(doc_get(row, STR("id")))));
		n++;
		topologies_get(file, doc_str(doc_get(row, STR("topology"))), &a, &t);
		got = arena_array(&a, uint32_t, t.n_cpus);
		n_got = query(row, &t, &a, got);
		CHECK_UINT(n_got, yyjson_arr_size(expect));
		if (!doc_bool(doc_get(row, STR("ordered")), false))
			qsort(got, n_got, sizeof(*got), compare_ids);
		DOC_EACH_ITEM (expect, id) {
			int64_t want;

			CHECK(doc_int(id, &want));
			CHECK_INT(got[i++], want);
		}
	}
	vectors_count("accumulator_vectors", n, 30);
}
