/* Which profile a node has: by its labels, with the precedence of machine config pools. */

#include "base/arena.h"
#include "base/macro.h"
#include "partition/profile_select.h"
#include "test.h"

#define ROLE "node-role.kubernetes.io/"

static yyjson_val *parse(struct str text, struct arena *a)
{
	struct err err = { 0 };
	struct doc doc;

	CHECK_OK(doc_parse(text, STR(""), NULL, a, &doc, &err));
	return doc.root;
}

static yyjson_val *profile(const char *selector, struct arena *a)
{
	return parse(str_printf(a, "{\"spec\":{\"nodeSelector\":%s}}", selector), a);
}

TEST(the_profile_whose_selector_matches_is_selected)
{
	static const struct {
		const char *selectors[3]; /* NULL: no further profile */
		const char *labels;
		const char *want; /* the indexes */
	} cases[] = {
		{ { "{\"" ROLE "worker\":\"\"}" }, "{\"" ROLE "worker\":\"\"}", "0" },
		{ { "{\"" ROLE "worker\":\"\"}" }, "{\"" ROLE "infra\":\"\"}", "" },
		{ { "{\"" ROLE "worker\":\"\"}" }, "{\"" ROLE "worker\":\"x\"}", "" },
		{ { "{\"" ROLE "worker\":\"\"}" }, "{}", "" },
		{ { "{}" }, "{\"" ROLE "worker\":\"\"}", "" },
		{ { "null" }, "{\"" ROLE "worker\":\"\"}", "" },
		{ { "{\"a/b\":\"1\",\"c/d\":\"2\"}" }, "{\"a/b\":\"1\"}", "" },
		{ { "{\"a/b\":\"1\",\"c/d\":\"2\"}" }, "{\"a/b\":\"1\",\"c/d\":\"2\"}", "0" },
		/* No conflict: the pools of a node have an order. */
		{ { "{\"" ROLE "worker\":\"\"}", "{\"" ROLE "worker-cnf\":\"\"}" },
		  "{\"" ROLE "worker\":\"\",\"" ROLE "worker-cnf\":\"\"}",
		  "1" },
		{ { "{\"" ROLE "master\":\"\"}", "{\"" ROLE "worker-cnf\":\"\"}",
		    "{\"" ROLE "worker\":\"\"}" },
		  "{\"" ROLE "worker\":\"\",\"" ROLE "worker-cnf\":\"\",\"" ROLE "master\":\"\"}",
		  "0" },
		{ { "{\"" ROLE "worker\":\"\"}", "{\"" ROLE "control-plane\":\"\"}" },
		  "{\"" ROLE "control-plane\":\"\",\"" ROLE "worker\":\"\"}",
		  "1" },
		/* Conflicts. */
		{ { "{\"" ROLE "worker\":\"\"}", "{\"" ROLE "worker\":\"\"}" },
		  "{\"" ROLE "worker\":\"\"}",
		  "01" },
		{ { "{\"" ROLE "a\":\"\"}", "{\"" ROLE "worker\":\"\"}", "{\"x/y\":\"\"}" },
		  "{\"" ROLE "a\":\"\",\"" ROLE "worker\":\"\",\"x/y\":\"\"}",
		  "02" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(arena_done) struct arena a;
		yyjson_val *profiles[3];
		size_t found[3], n = 0;
		struct strbuf b;

		arena_init(&a, 0);
		TEST_ROW("%zu", i);
		while (n < 3 && cases[i].selectors[n]) {
			profiles[n] = profile(cases[i].selectors[n], &a);
			n++;
		}
		n = profile_select(profiles, n, parse(str_from(cases[i].labels), &a), found);
		strbuf_init(&b, &a);
		for (size_t j = 0; j < n; j++)
			strbuf_add_u64(&b, found[j]);
		CHECK_STR(strbuf_str(&b), cases[i].want);
	}
}

TEST(a_node_without_labels_has_no_profile)
{
	CLEANUP(arena_done) struct arena a;
	yyjson_val *one;
	size_t found;

	arena_init(&a, 0);
	one = profile("{\"" ROLE "worker\":\"\"}", &a);
	CHECK_UINT(profile_select(&one, 1, NULL, &found), 0);
	CHECK_UINT(profile_select(NULL, 0, NULL, NULL), 0);
}
