/* tests/vectors/admission.json and node-admission.json: every row as an AdmissionReview, as the
 * webhook and `pinfold admit --review` get it. */

#include "admission/defaults.h"
#include "admission_rows.h"
#include "vectors.h"

static void check_refusal(yyjson_val *row, yyjson_val *response)
{
	yyjson_val *expect = doc_get(row, STR("expect")), *status, *warning;
	struct str message, part = doc_str(doc_get(expect, STR("errorContains")));
	int64_t code = 0, want = 0;

	if (!part.n)
		part = doc_str(doc_get(expect, STR("error")));
	CHECK(!doc_bool(doc_get(response, STR("allowed")), true));
	status = doc_get(response, STR("status"));
	message = doc_str(doc_get(status, STR("message")));
	if (!str_has(message, part))
		CHECK_STR(message, part);
	CHECK(doc_int(doc_get(status, STR("code")), &code));
	CHECK(doc_int(doc_get(expect, STR("code")), &want));
	CHECK_INT(code, want);
	CHECK_STR(doc_str(doc_get(status, STR("reason"))), doc_str(doc_get(expect, STR("reason"))));
	CHECK(!doc_get(response, STR("patch")));
	DOC_EACH_ITEM (doc_get(expect, STR("apiWarnings")), warning)
		CHECK_STR(doc_str(yyjson_arr_get_first(doc_get(response, STR("warnings")))),
			  doc_str(warning));
}

static struct row_request request_of(yyjson_val *row, struct arena *a)
{
	yyjson_val *rq = doc_get(row, STR("request"));

	return (struct row_request){
		.operation = str_cstr(a, doc_str(doc_get(rq, STR("operation")))),
		.resource = str_cstr(a, doc_str(doc_get(rq, STR("resource")))),
		.subresource = str_cstr(a, doc_str(doc_get(rq, STR("subresource")))),
	};
}

/* Returns false when the request was refused; the refusal has been checked. */
static bool ask(yyjson_val *row, const struct admission_state *state, enum review_hook hook,
		struct row_request *rq, struct arena *a)
{
	yyjson_val *response = row_ask(state, hook, rq, a);

	if (!doc_bool(doc_get(response, STR("allowed")), false)) {
		if (!doc_get(doc_get(row, STR("expect")), STR("code")))
			test_fail(TEST_AT("allowed"), "refused: " PRI_STR,
				  FMT_STR(row_text(response, a)));
		check_refusal(row, response);
		return false;
	}
	rq->object = row_patched(rq->object, response, a);
	return true;
}

static void check_pod_row(yyjson_val *row, struct arena *a)
{
	struct str phase = doc_str(doc_get(row, STR("phase")));
	yyjson_val *expect = doc_get(row, STR("expect"));
	struct row_request rq = request_of(row, a);
	struct state_manifests m;
	struct err err = { 0 };
	int64_t passes = 1;

	row_state(row, &m, a);
	(void)doc_int(doc_get(row, STR("passes")), &passes);
	rq.object = doc_get(row, STR("pod"));
	rq.old_object = rq.operation[0] == 'U' ? rq.object : NULL;
	/* A pod is static only when a node creates it (D9), so a node sends the rows about static
	 * pods. */
	rq.by_node = doc_get(object_annotations(rq.object), STR(NAME_CONFIG_SOURCE)) != NULL;
	if (str_eq(doc_str(doc_get(row, STR("pipeline"))), STR("defaults+hook")))
		CHECK_OK(pod_default_resources(rq.object, a, &rq.object, &err));
	if (str_has(phase, STR("admit")))
		for (int64_t i = 0; i < passes; i++)
			if (!ask(row, &m.state, REVIEW_MUTATE, &rq, a))
				return;
	if (str_has(phase, STR("validate")) && !ask(row, &m.state, REVIEW_VALIDATE, &rq, a))
		return;
	CHECK(!doc_get(expect, STR("code")));
	check_same_pod(doc_get(expect, STR("pod")), rq.object, a);
}

TEST(every_pod_row_gives_the_expected_decision)
{
	CLEANUP(arena_done) struct arena a;
	CLEANUP(arena_done) struct arena scratch;
	yyjson_val *rows, *row;
	size_t n = 0;

	arena_init(&a, 0);
	arena_init(&scratch, 0);
	rows = vectors_load("vectors/admission.json", &a);
	DOC_EACH_ITEM (rows, row) {
		TEST_ROW(PRI_STR, FMT_STR(doc_str(doc_get(row, STR("name")))));
		arena_reset(&scratch);
		check_pod_row(row, &scratch);
		n++;
	}
	vectors_count("pod admission", n, 98);
}

TEST(every_node_row_gives_the_expected_decision)
{
	CLEANUP(arena_done) struct arena a;
	yyjson_val *rows, *row;
	size_t n = 0;

	arena_init(&a, 0);
	rows = vectors_load("vectors/node-admission.json", &a);
	DOC_EACH_ITEM (rows, row) {
		yyjson_val *expect = doc_get(row, STR("expect")), *response;
		struct row_request rq = request_of(row, &a);
		struct state_manifests m;

		TEST_ROW(PRI_STR, FMT_STR(doc_str(doc_get(row, STR("name")))));
		row_state(row, &m, &a);
		rq.object = doc_get(row, STR("node"));
		response = row_ask(&m.state, REVIEW_VALIDATE, &rq, &a);
		if (doc_bool(doc_get(expect, STR("allowed")), false))
			CHECK(doc_bool(doc_get(response, STR("allowed")), false));
		else
			check_refusal(row, response);
		n++;
	}
	vectors_count("node admission", n, 14);
}
