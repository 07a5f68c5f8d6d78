/* AdmissionReviews as bytes: those that cannot be read, and those that try to come past a decision.
 */

#include <errno.h>

#include "admission_cluster.h"
#include "kube/pod.h"

#define ENVELOPE(uid, object, old)                                                                 \
	"{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{" uid   \
	"\"resource\":{\"group\":\"\",\"version\":\"v1\",\"resource\":\"pods\"},"                  \
	"\"namespace\":\"m\",\"operation\":\"CREATE\",\"userInfo\":{},\"object\":" object          \
	",\"oldObject\":" old "}}"
#define UID "\"uid\":\"u-1\","

struct answer {
	struct review_outcome facts;
	struct str text;
	struct err err;
	int r;
};

static struct answer answer_to(enum review_hook hook, struct str body, struct arena *a)
{
	struct state_manifests m;
	struct answer got = { .text = STR("") };

	cluster(&m, a);
	got.r = review_respond(&m.state, hook, body, a, &got.text, &got.facts, &got.err);
	return got;
}

/* Under failurePolicy Ignore the API server admits the pod when the call fails. */
TEST(attack_a_review_that_cannot_be_read_is_refused)
{
	static const struct {
		const char *what, *body;
		bool has_uid;
	} rows[] = {
		{ "cut off", "{\"kind\":\"AdmissionReview\",\"request\":{" UID "\"object\":{\"a",
		  true },
		{ "not JSON", ENVELOPE(UID, "{\"a\":tru}", "null"), true },
		{ "half a surrogate pair", ENVELOPE(UID, "{\"a\":\"\\ud800\"}", "null"), true },
		{ "the uid after other fields",
		  "{ \"x\" : [{\"request\":{\"uid\":\"no\"}}, \"}\\\"\"],\n\"request\" : { \"y\" : "
		  "{}, "
		  "\"uid\" :\t\"u-1\" , bad",
		  true },
		{ "no uid", ENVELOPE("", "{\"a\":tru}", "null"), false },
		{ "the uid in an object", "{\"request\":{\"object\":{" UID "\"a\":tru}}}", false },
		{ "an escaped uid", "{\"request\":{\"uid\":\"u\\u002d1\",bad}}", false },
		{ "nothing", "", false },
		{ "brackets", "[[[[[[[[", false },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (enum review_hook hook = REVIEW_MUTATE; hook <= REVIEW_VALIDATE; hook++) {
			struct answer got = answer_to(hook, str_from(rows[i].body), &a);

			TEST_ROW("%s", rows[i].what);
			CHECK_INT(got.r, rows[i].has_uid ? 0 : -EINVAL);
			if (!rows[i].has_uid)
				continue;
			CHECK(got.facts.is_malformed && !got.facts.allowed);
			CHECK(str_has(got.text, STR("\"uid\":\"u-1\",\"allowed\":false")));
			CHECK(str_has(got.text, STR("\"code\":400")));
			CHECK(str_has(got.text, STR("the review cannot be read: review:")));
		}
}

static struct str replace_once(struct str text, const char *from, struct str to, struct arena *a)
{
	const char *at = memmem(text.p, text.n, from, strlen(from));
	struct strbuf b;

	CHECK(at != NULL);
	strbuf_init(&b, a);
	strbuf_add(&b, (struct str){ text.p, (size_t)(at - text.p) });
	strbuf_add(&b, to);
	strbuf_add(&b, str_skip(text, (size_t)(at - text.p) + strlen(from)));
	return strbuf_str(&b);
}

static struct str repeated(const char *open, const char *close, size_t n, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < n; i++)
		strbuf_add(&b, str_from(open));
	for (size_t i = 0; i < n; i++)
		strbuf_add(&b, str_from(close));
	return strbuf_str(&b);
}

/* The author of a pod chooses managedFields; a client of the port chooses everything. */
TEST(attack_nesting_of_any_depth_does_not_keep_a_review_from_being_read)
{
	enum { DEPTH = 1000000 };
	static const struct {
		const char *what, *body;
		bool is_changed;
	} rows[] = {
#define MANAGED                                                                                    \
	",\"spec\":{\"containers\":[" CONTAINER("\"cpu\":\"1\",\"memory\":\"1Gi\"", "") "]}}"
		{ "managedFields",
		  ENVELOPE(UID,
			   "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"managedFields\":[{"
			   "\"fieldsV1\":@}],\"annotations\":{" TARGET "}}" MANAGED,
			   "null"),
		  true },
		{ "managedFields of the old object",
		  ENVELOPE(UID, "{\"kind\":\"Pod\"," META(TARGET) MANAGED,
			   "{\"metadata\":{\"managedFields\":@}}"),
		  true },
		{ "an annotation", ENVELOPE(UID, "{" META("\"x\":@," TARGET) MANAGED, "null"),
		  true },
		{ "a workload annotation",
		  ENVELOPE(UID, "{" META("\"target.workload.openshift.io/management\":@") MANAGED,
			   "null"),
		  false },
		{ "a label",
		  ENVELOPE(
			  UID,
			  "{\"metadata\":{\"labels\":{\"workload.openshift.io/target\":@}}" MANAGED,
			  "null"),
		  false },
		{ "a request", ENVELOPE(UID, POD(TARGET, CONTAINER("\"cpu\":@", "")), "null"),
		  false },
		{ "a container", ENVELOPE(UID, POD(TARGET, "@"), "null"), true },
		{ "the user", "{\"request\":{" UID "\"userInfo\":@}}", false },
	};
	CLEANUP(arena_done) struct arena texts;
	struct str deep;

	arena_init(&texts, 0);
	deep = repeated("[", "]", DEPTH, &texts);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (enum review_hook hook = REVIEW_MUTATE; hook <= REVIEW_VALIDATE; hook++) {
			CLEANUP(arena_done) struct arena a;
			struct answer got;

			TEST_ROW("%s", rows[i].what);
			arena_init(&a, 0);
			got = answer_to(hook, replace_once(str_from(rows[i].body), "@", deep, &a),
					&a);
			CHECK_INT(got.r, 0);
			CHECK(str_has(got.text, STR("\"uid\":\"u-1\"")));
			if (hook == REVIEW_MUTATE)
				CHECK(got.facts.is_changed == rows[i].is_changed);
		}
}

/* 3 MiB of '<', which the API server accepts, are 18 MiB in its review. */
TEST(attack_escaped_text_of_the_largest_request_is_still_read)
{
	static const char body[] = ENVELOPE(
		UID,
		"{\"kind\":\"Pod\"," META(TARGET) ",\"spec\":{\"containers\":[{\"name\":\"c\","
						  "\"env\":[{\"name\":\"x\",\"value\":\"@\"}],"
						  "\"resources\":{\"requests\":{"
						  "\"cpu\":\"1\",\"memory\":\"1Gi\"}}}]}}",
		"{\"old\":\"@\"}");
	CLEANUP(arena_done) struct arena a;
	struct answer got;
	struct str text;

	arena_init(&a, 0);
	text = replace_once(str_from(body), "@", repeated("\\u003c", "", 3 << 20, &a), &a);
	text = replace_once(text, "@", repeated("\\u003c", "", 3 << 19, &a), &a);
	got = answer_to(REVIEW_MUTATE, text, &a);
	CHECK_INT(got.r, 0);
	CHECK(got.facts.allowed && got.facts.is_changed);
	/* Beyond everything that can come it is refused, by its uid. */
	text = replace_once(str_from(body), "@", repeated("x", "", REVIEW_MAX_SIZE, &a), &a);
	got = answer_to(REVIEW_MUTATE, text, &a);
	CHECK_INT(got.r, 0);
	CHECK(!got.facts.allowed);
	CHECK(str_has(got.text, STR("\"code\":413")));
	CHECK(str_has(got.text, STR("RequestEntityTooLarge")));
}

/* As if the mutating hook had not been called. */
TEST(attack_annotations_that_came_past_the_mutating_hook_are_refused)
{
	static const char shares[] =
		"\"resources.workload.openshift.io/c\":\"{\\\"cpushares\\\":9}\"";
	static const struct {
		const char *what, *namespace, *annotations;
		bool allowed, is_legacy;
	} rows[] = {
		{ "a target with permission", "m", TARGET, true, false },
		{ "a target in a namespace without permission", "plain", TARGET, false, false },
		{ "a target in a namespace with the label of 2021", "legacy", TARGET, false,
		  false },
		{ "the same with the legacy setting", "legacy", TARGET, true, true },
		{ "a target of another type", "m", "\"target.workload.openshift.io/x\":\"{}\"",
		  false, false },
		{ "cpushares in a namespace without permission", "plain", shares, false, false },
		{ "nothing", "plain", "", true, false },
	};
	static const char others[] =
		"[{\"kind\":\"Namespace\",\"metadata\":{\"name\":\"plain\"}},"
		"{\"kind\":\"Namespace\",\"metadata\":{\"name\":\"legacy\",\"labels\":{"
		"\"workload.openshift.io/allowed\":\"management\"}}}]";
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct admission_request rq = { .operation = OPERATION_CREATE,
						.resource = STR("pods"),
						.namespace = str_from(rows[i].namespace) };
		struct admission_result result;
		struct state_manifests m;
		struct err err = { 0 };
		yyjson_val *object;

		TEST_ROW("%s", rows[i].what);
		cluster(&m, &a);
		DOC_EACH_ITEM (row_doc(str_from(others), &a), object)
			CHECK_OK(state_manifests_add(&m, object, &err));
		state_manifests_seal(&m);
		m.state.settings.legacy = rows[i].is_legacy;
		rq.object = row_doc(str_printf(&a,
					       "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\","
					       "\"annotations\":{%s}},\"spec\":{\"containers\":[{"
					       "\"name\":\"c\"}]}}",
					       rows[i].annotations),
				    &a);
		CHECK_INT(admit_validate(&m.state, &rq, &a, &result), 0);
		CHECK(result.allowed == rows[i].allowed);
		CHECK(rows[i].allowed || result.code == 422);
	}
}
