/* tests/vectors/static-pod.json: manifests as the node converts them, with the function of
 * `pinfold admit --static`. */

#include "admission/decision.h"
#include "admission/static_pod.h"
#include "admission_rows.h"
#include "vectors.h"

static void check_row(yyjson_val *row, struct arena *a)
{
	yyjson_val *expect = doc_get(row, STR("expect")), *pod = doc_get(row, STR("pod"));
	struct str error = doc_str(doc_get(expect, STR("error")));
	struct static_options options = { 0 };
	struct admission_result result;
	struct err err = { 0 };
	yyjson_val *got;

	CHECK_INT(static_pod_convert(pod, &options, a, &result), 0);
	CHECK(result.allowed == !error.n);
	CHECK_STR(result.message, error);
	CHECK(doc_bool(doc_get(expect, STR("managed")), false) == (result.rule != RULE_TARGET));
	CHECK_OK(patch_apply(&result.patch, pod, a, &got, &err));
	check_same_pod(doc_get(expect, STR("effectivePod")), got, a);
}

TEST(every_static_pod_row_gives_the_expected_conversion)
{
	CLEANUP(arena_done) struct arena a;
	yyjson_val *rows, *row;
	size_t n = 0;

	arena_init(&a, 0);
	rows = vectors_load("vectors/static-pod.json", &a);
	DOC_EACH_ITEM (rows, row) {
		TEST_ROW(PRI_STR, FMT_STR(doc_str(doc_get(row, STR("name")))));
		check_row(row, &a);
		n++;
	}
	vectors_count("static pod", n, 21);
}
