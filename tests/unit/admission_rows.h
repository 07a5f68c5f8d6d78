#pragma once

/* Helpers for admission vectors: a state and a review made from a row, the response's patch
 * applied, and pods compared as the rows expect: quantities by value, "*" for any text, no
 * annotations equal to an empty map. */

#include <string.h>

#include "admission/admission_state.h"
#include "admission/review.h"
#include "base/arena.h"
#include "base/macro.h"
#include "codec/base64.h"
#include "codec/doc.h"
#include "kube/names.h"
#include "kube/patch.h"
#include "kube/pod.h"
#include "kube/quantity.h"
#include "test.h"

static inline yyjson_val *row_doc(struct str text, struct arena *a)
{
	struct err err = { 0 };
	struct doc doc;

	CHECK_OK(doc_parse(text, STR("row"), NULL, a, &doc, &err));
	return doc.root;
}

static inline struct str row_text(yyjson_val *v, struct arena *a)
{
	struct err err = { 0 };
	struct str text = STR("");

	CHECK_OK(doc_write_val(v, false, a, &text, &err));
	return text;
}

/* Quantities are compared by value, everything else literally. */
static inline bool same_amounts(yyjson_val *want, yyjson_val *got)
{
	yyjson_val *key, *value;

	if (yyjson_obj_size(want) != yyjson_obj_size(got))
		return false;
	DOC_EACH_PAIR (want, key, value) {
		struct quantity x, y;

		if (resource_get(want, doc_str(key), &x, NULL) != 1 ||
		    resource_get(got, doc_str(key), &y, NULL) != 1 || quantity_cmp(&x, &y) != 0)
			return false;
	}
	(void)value;
	return true;
}

static inline bool is_nothing(yyjson_val *v)
{
	return !v || yyjson_is_null(v) || (yyjson_is_obj(v) && yyjson_obj_size(v) == 0);
}

static inline bool same_object(yyjson_val *want, yyjson_val *got);

static inline bool same_field(struct str key, yyjson_val *want, yyjson_val *got)
{
	if (str_eq(key, STR("annotations")) && is_nothing(want) && is_nothing(got))
		return true;
	if (!want || !got)
		return false;
	if (str_eq(key, STR("requests")) || str_eq(key, STR("limits")))
		return same_amounts(want, got);
	return same_object(want, got);
}

static inline bool same_object(yyjson_val *want, yyjson_val *got)
{
	yyjson_val *key, *value;

	if (str_eq(doc_str(want), STR("*")))
		return yyjson_is_str(got) && doc_str(got).n > 0;
	if (yyjson_is_arr(want) && yyjson_is_arr(got) &&
	    yyjson_arr_size(want) == yyjson_arr_size(got)) {
		yyjson_arr_iter it = yyjson_arr_iter_with(got);

		DOC_EACH_ITEM (want, value)
			if (!same_object(value, yyjson_arr_iter_next(&it)))
				return false;
		return true;
	}
	if (!yyjson_is_obj(want) || !yyjson_is_obj(got))
		return yyjson_equals(want, got);
	DOC_EACH_PAIR (want, key, value)
		if (!same_field(doc_str(key), value, doc_get(got, doc_str(key))))
			return false;
	DOC_EACH_PAIR (got, key, value)
		if (!same_field(doc_str(key), doc_get(want, doc_str(key)), value))
			return false;
	return true;
}

static inline void check_same_pod(yyjson_val *want, yyjson_val *got, struct arena *a)
{
	if (!same_object(want, got))
		test_fail(TEST_AT("same pod"), "want " PRI_STR "\n     got " PRI_STR,
			  FMT_STR(row_text(want, a)), FMT_STR(row_text(got, a)));
}

/* More nodes than any row has. */
static inline struct cores_count row_cores_everywhere(const void *owner, struct str type)
{
	(void)owner;
	(void)type;
	return (struct cores_count){ 1000, 1000 };
}

/* The state that a row's "cluster" and "namespace" describe. */
static inline void row_state(yyjson_val *row, struct state_manifests *m, struct arena *a)
{
	yyjson_val *cluster = doc_get(row, STR("cluster")), *namespace, *node;
	yyjson_val *synced = doc_get(cluster, STR("cacheSynced"));
	struct err err = { 0 };

	state_manifests_init(m, a);
	if (doc_bool(doc_get(cluster, STR("infrastructurePresent")), false)) {
		struct str status = row_text(doc_get(cluster, STR("infrastructureStatus")), a);

		CHECK_OK(state_manifests_add(
			m,
			row_doc(str_printf(a,
					   "{\"kind\":\"Infrastructure\",\"metadata\":{\"name\":"
					   "\"cluster\"},\"status\":" PRI_STR "}",
					   FMT_STR(status)),
				a),
			&err));
	}
	namespace = doc_get(row, STR("namespace"));
	if (yyjson_is_obj(namespace))
		CHECK_OK(state_manifests_add(m, namespace, &err));
	DOC_EACH_ITEM (doc_get(cluster, STR("nodes")), node) {
		struct str text = str_skip(row_text(node, a), 1);

		CHECK_OK(state_manifests_add(
			m, row_doc(str_printf(a, "{\"kind\":\"Node\"," PRI_STR, FMT_STR(text)), a),
			&err));
	}
	state_manifests_seal(m);
	/* OpenShift does not look at the nodes of a partitioned cluster; Pinfold does (D19). */
	if (m->state.infrastructure.is_partitioned)
		m->state.count_cores = row_cores_everywhere;
	m->state.is_synced = doc_bool(synced, true);
}

struct row_request {
	const char *operation, *resource, *subresource;
	yyjson_val *object, *old_object;
	bool by_node;
};

static inline struct str row_review(const struct row_request *rq, struct arena *a)
{
	struct str object = row_text(rq->object, a);
	struct str namespace = doc_str(doc_find(rq->object, "/metadata/namespace"));
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_printf(&b,
		      "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\","
		      "\"request\":{\"uid\":\"705ab4f5\",\"operation\":\"%s\",\"resource\":{"
		      "\"group\":\"\",\"version\":\"v1\",\"resource\":\"%s\"},\"subResource\":"
		      "\"%s\",\"namespace\":\"" PRI_STR "\",\"userInfo\":{\"groups\":[\"%s\"]},"
		      "\"object\":" PRI_STR,
		      rq->operation, rq->resource, rq->subresource ? rq->subresource : "",
		      FMT_STR(namespace), rq->by_node ? "system:nodes" : "system:authenticated",
		      FMT_STR(object));
	if (rq->old_object) {
		struct str old = row_text(rq->old_object, a);

		strbuf_printf(&b, ",\"oldObject\":" PRI_STR, FMT_STR(old));
	}
	strbuf_printf(&b, "}}");
	return strbuf_str(&b);
}

/* The "response" member of the hook's result for one review. */
static inline yyjson_val *row_ask(const struct admission_state *state, enum review_hook hook,
				  const struct row_request *rq, struct arena *a)
{
	struct review_outcome facts;
	struct str review;
	struct err err = { 0 };
	yyjson_val *response;

	CHECK_OK(review_respond(state, hook, row_review(rq, a), a, &review, &facts, &err));
	response = doc_get(row_doc(review, a), STR("response"));
	CHECK_STR(doc_str(doc_get(response, STR("uid"))), "705ab4f5");
	CHECK(doc_bool(doc_get(response, STR("allowed")), false) == facts.allowed);
	return response;
}

/* The object with the response's patch applied. */
static inline yyjson_val *row_patched(yyjson_val *object, yyjson_val *response, struct arena *a)
{
	struct str encoded = doc_str(doc_get(response, STR("patch"))), text;
	struct err err = { 0 };
	struct patch p;
	yyjson_val *patched;

	if (!encoded.n)
		return object;
	CHECK_STR(doc_str(doc_get(response, STR("patchType"))), "JSONPatch");
	CHECK_OK(base64_decode(encoded, a, &text, &err));
	CHECK(patch_init(&p, a));
	p.ops = yyjson_val_mut_copy(p.doc, row_doc(text, a));
	CHECK_OK(patch_apply(&p, object, a, &patched, &err));
	return patched;
}
