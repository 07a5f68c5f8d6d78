/* Reviews: no crash; the response is a review with the same uid; a patch applies to its object;
 * mutating the result changes nothing more. The first byte selects settings and hook. */

#include <stdlib.h>
#include <string.h>

#include "admission/admission_state.h"
#include "admission/review.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "codec/base64.h"
#include "codec/doc.h"
#include "kube/patch.h"
#include "kube/pod.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

static bool find_namespace(const void *owner, struct str name, struct namespace_permission *ret)
{
	(void)owner;
	if (str_eq(name, STR("ghost")))
		return false;
	*ret = (struct namespace_permission){ 0 };
	if (!str_eq(name, STR("plain"))) {
		ret->has_allowed = true;
		ret->allowed = STR("management,test");
	}
	return true;
}

static struct cores_count count_cores(const void *owner, struct str type)
{
	const size_t n = str_eq(type, STR("management"));

	(void)owner;
	return (struct cores_count){ n, n };
}

static struct admission_state state_of(uint8_t choice)
{
	static const struct profile_ref profiles[] = {
		{ STR_INIT("other"), STR_INIT("node-role.kubernetes.io/worker=") }
	};

	return (struct admission_state){
		.settings = { .pools = choice & 1,
			      .legacy = choice & 2,
			      .nodes = choice & 4 ? NODE_MODE_TAINT : NODE_MODE_REFUSE },
		.infrastructure = { .is_present = true,
				    .has_status = true,
				    .is_single = choice & 8,
				    .is_partitioned = !(choice & 16) },
		.nodes = { .n = 1, .n_reporting = 1, .n_available = 1, .n_shared = 1 },
		.profiles = profiles,
		.n_profiles = ARRAY_LEN(profiles),
		.has_profiles = true,
		.is_synced = true,
		.find_namespace = find_namespace,
		.count_cores = count_cores,
	};
}

/* Parsers disagree about repeated keys, so patches may as well; the API server sends none. */
static bool is_plain(struct str body, struct arena *a, yyjson_val **ret)
{
	struct doc doc;

	if (doc_parse(body, STR(""), NULL, a, &doc, NULL) < 0 || doc_check_keys(&doc, a, NULL) < 0)
		return false;
	*ret = doc.root;
	return true;
}

static bool names_are_unique(yyjson_val *object)
{
	struct pod pod = { .spec = doc_get(object, STR("spec")) };
	struct container_iter x = container_iter(&pod, false);
	struct container c, d;

	while (container_next(&x, &c)) {
		struct container_iter y = x;

		while (container_next(&y, &d))
			if (str_eq(c.name, d.name))
				return false;
	}
	return true;
}

/* The object with the response's patch applied; NULL when there is no patch. */
static yyjson_val *patched(struct str response, yyjson_val *object, struct arena *a)
{
	struct doc doc, ops;
	yyjson_val *patch, *after;
	struct patch p;
	struct str text;

	require(doc_parse(response, STR(""), NULL, a, &doc, NULL) == 0);
	patch = doc_find(doc.root, "/response/patch");
	if (!patch)
		return NULL;
	require(base64_decode(doc_str(patch), a, &text, NULL) == 0);
	require(doc_parse(text, STR(""), NULL, a, &ops, NULL) == 0);
	require(patch_init(&p, a));
	p.ops = yyjson_val_mut_copy(p.doc, ops.root);
	require(patch_apply(&p, object, a, &after, NULL) == 0);
	return after;
}

/* The same review with another object. */
static struct str review_of(yyjson_val *review, yyjson_val *object, struct arena *a)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *copy = yyjson_val_mut_copy(m, review);
	struct str text;

	doc_put(m, yyjson_mut_obj_get(copy, "request"), STR("object"),
		yyjson_val_mut_copy(m, object));
	require(doc_write(copy, false, a, &text, NULL) == 0);
	return text;
}

static void check_mutation(const struct admission_state *state, struct str body,
			   struct str response, struct arena *a)
{
	yyjson_val *review, *object, *after;
	struct review_outcome facts;
	struct str second;

	if (!is_plain(body, a, &review))
		return;
	object = doc_find(review, "/request/object");
	if (!names_are_unique(object))
		return;
	after = patched(response, object, a);
	if (!after)
		return;
	require(review_respond(state, REVIEW_MUTATE, review_of(review, after, a), a, &second,
			       &facts, NULL) == 0);
	require(facts.allowed && !facts.is_changed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(arena_done) struct arena a;
	enum review_hook hook;
	struct admission_state state;
	struct review_outcome facts;
	struct err err = { 0 };
	struct str body, response;
	int r;

	arena_init(&a, (size_t)64 << 20);
	if (!size)
		return 0;
	state = state_of(data[0]);
	hook = data[0] & 32 ? REVIEW_VALIDATE : REVIEW_MUTATE;
	body = (struct str){ (const char *)data + 1, size - 1 };
	r = review_respond(&state, hook, body, &a, &response, &facts, &err);
	if (r < 0) {
		require(err.code == -r && err.msg[0]);
		return 0;
	}
	require(facts.is_malformed ? !facts.allowed : facts.allowed || facts.code >= 400);
	if (hook == REVIEW_MUTATE && facts.is_changed)
		check_mutation(&state, body, response, &a);
	return 0;
}
