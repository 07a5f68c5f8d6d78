/* Label selectors with kubectl's syntax. */

#include "base/arena.h"
#include "base/macro.h"
#include "codec/doc.h"
#include "kube/label_query.h"
#include "test.h"

TEST(a_label_query_selects_like_kubectl)
{
	static const struct {
		const char *query;
		bool matches; /* {"app":"web","tier":"front","empty":""}, then {"pod":"x","app":"y"}
			       */
	} rows[] = {
		{ "", true },
		{ "app=web", true },
		{ "app==web", true },
		{ "app=y", false }, /* the first object wins */
		{ "pod=x", true },
		{ "app=web,tier=front", true },
		{ "app=web, tier=back", false },
		{ "app!=web", false },
		{ "app!=db", true },
		{ "missing!=x", true },
		{ "app", true },
		{ "missing", false },
		{ "!missing", true },
		{ "!app", false },
		{ "tier in (back, front)", true },
		{ "tier in (back),app", false },
		{ "tier notin (back,middle)", true },
		{ "tier notin (front),app=web", false },
		{ "empty=", true },
		{ "app=", false },
	};
	CLEANUP(arena_done) struct arena a;
	struct doc first, second;
	struct err err = { 0 };

	arena_init(&a, 0);
	CHECK_OK(doc_parse(STR("{\"app\":\"web\",\"tier\":\"front\",\"empty\":\"\"}"), STR(""),
			   NULL, &a, &first, &err));
	CHECK_OK(doc_parse(STR("{\"pod\":\"x\",\"app\":\"y\"}"), STR(""), NULL, &a, &second, &err));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		TEST_ROW("%s", rows[i].query);
		CHECK_OK(label_query_check(str_from(rows[i].query), &err));
		CHECK(label_query_matches(str_from(rows[i].query), first.root, second.root) ==
		      rows[i].matches);
	}
}

TEST(a_bad_label_query_is_refused)
{
	static const char *const rows[] = { "=x",      "a=b,", ",",	"a in b",
					    "a in (b", "a b",  "a=b c", "a==b=c" };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err = { 0 };

		TEST_ROW("%s", rows[i]);
		CHECK(label_query_check(str_from(rows[i]), &err) < 0);
		CHECK(str_starts(str_from(err.msg), STR("bad label selector ")));
	}
}
