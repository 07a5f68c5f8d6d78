/* The reviews behind --user-tokens: what is asked, and what counts as an answer. */

#include <errno.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "codec/doc.h"
#include "dashboard/user_review.h"
#include "test.h"

static yyjson_val *parse(const char *json, struct arena *a)
{
	struct err err = { 0 };
	struct doc doc = { 0 };

	CHECK_OK(doc_parse(str_from(json), STR("json"), NULL, a, &doc, &err));
	return doc.root;
}

TEST(a_token_is_reviewed_as_text)
{
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	CHECK_STR(user_token_review(STR("a\"b"), &a),
		  "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenReview\","
		  "\"spec\":{\"token\":\"a\\\"b\"}}");
}

TEST(attack_a_token_that_was_not_authenticated_is_accepted)
{
	static const struct {
		const char *review, *user; /* NULL: refused */
	} rows[] = {
		{ "{\"status\":{\"authenticated\":true,\"user\":{\"username\":\"ann\",\"groups\":["
		  "\"g\"],"
		  "\"uid\":\"1\",\"extra\":{\"k\":[\"v\"]}}}}",
		  "{\"user\":\"ann\",\"uid\":\"1\",\"groups\":[\"g\"],\"extra\":{\"k\":[\"v\"]}}" },
		{ "{\"status\":{\"authenticated\":true,\"user\":{\"username\":\"ann\"}}}",
		  "{\"user\":\"ann\"}" },
		{ "{\"status\":{\"authenticated\":false,\"user\":{\"username\":\"ann\"}}}", NULL },
		{ "{\"status\":{\"authenticated\":\"true\",\"user\":{\"username\":\"ann\"}}}",
		  NULL },
		{ "{\"status\":{\"authenticated\":true,\"user\":{}}}", NULL },
		{ "{\"status\":{\"error\":\"expired\"}}", NULL },
		{ "{}", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a;
		struct err err = { 0 };
		struct str user = STR("");

		arena_init(&a, 0);
		TEST_ROW("%s", rows[i].review);
		CHECK_INT(user_of_review(parse(rows[i].review, &a), &a, &user, &err),
			  rows[i].user ? 0 : -EACCES);
		CHECK_STR(user, rows[i].user ? rows[i].user : "");
	}
}

TEST(a_user_is_asked_about_everything_that_is_shown)
{
	static const char *const resources[] = { "nodes", "pods", "nodepartitions",
						 "performanceprofiles" };
	CLEANUP(arena_done) struct arena a;
	const struct str user = STR("{\"user\":\"ann\",\"groups\":[\"g\"]}");

	arena_init(&a, 0);
	CHECK_STR(user_question(user, 2, &a),
		  "{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SubjectAccessReview\","
		  "\"spec\":{\"user\":\"ann\",\"groups\":[\"g\"],\"resourceAttributes\":{\"verb\":"
		  "\"list\",\"group\":\"pinfold.io\",\"resource\":\"nodepartitions\"}}}");
	for (unsigned i = 0; i < ARRAY_LEN(resources); i++) {
		yyjson_val *v = parse(str_cstr(&a, user_question(user, i, &a)), &a);

		CHECK_STR(doc_str(doc_find(v, "/spec/resourceAttributes/resource")), resources[i]);
		/* No namespace means all of them. */
		CHECK(!doc_find(v, "/spec/resourceAttributes/namespace"));
	}
	CHECK_STR(user_question(user, ARRAY_LEN(resources), &a), "");
}

TEST(attack_an_answer_that_does_not_allow_is_taken_as_permission)
{
	static const struct {
		const char *review;
		int want;
	} rows[] = {
		{ "{\"spec\":{\"user\":\"ann\"},\"status\":{\"allowed\":true}}", 0 },
		{ "{\"spec\":{\"user\":\"ann\"},\"status\":{\"allowed\":false}}", -EACCES },
		{ "{\"spec\":{\"user\":\"ann\"},\"status\":{\"allowed\":1}}", -EACCES },
		{ "{\"spec\":{\"user\":\"ann\"},\"status\":{}}", -EACCES },
		{ "{\"spec\":{\"user\":\"ann\"}}", -EACCES },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a;
		struct err err = { 0 };

		arena_init(&a, 0);
		TEST_ROW("%s", rows[i].review);
		CHECK_INT(user_answer(parse(rows[i].review, &a), 2, &err), rows[i].want);
		if (rows[i].want)
			CHECK_STR(str_from(err.msg),
				  "user ann may not list nodepartitions.pinfold.io in all "
				  "namespaces");
	}
}
