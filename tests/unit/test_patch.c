#include <errno.h>

#include "base/arena.h"
#include "base/macro.h"
#include "kube/patch.h"
#include "test.h"

static yyjson_val *parse(const char *text, struct arena *a)
{
	struct err err = { 0 };
	struct doc doc = { 0 };

	CHECK_OK(doc_parse(str_from(text), STR("test"), NULL, a, &doc, &err));
	return doc.root;
}

TEST(a_key_is_one_escaped_step_of_a_path)
{
	static const struct {
		const char *base, *key, *want;
	} cases[] = {
		{ "", "spec", "/spec" },
		{ "/metadata/annotations", "target.workload.openshift.io/management",
		  "/metadata/annotations/target.workload.openshift.io~1management" },
		{ "", "~1/", "/~01~1" },
		{ "/a", "", "/a/" },
	};
	struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		CHECK_STR(patch_path(&a, str_from(cases[i].base), str_from(cases[i].key)),
			  cases[i].want);
	CHECK_STR(patch_path_index(&a, STR("/spec/containers"), 12), "/spec/containers/12");
	arena_done(&a);
}

TEST(a_difference_names_only_what_changed)
{
	static const struct {
		const char *from, *to, *want;
	} cases[] = {
		{ "{\"a\":1}", "{\"a\":1}", "[]" },
		{ "{\"a\":1}", "{\"a\":2}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":2}]" },
		{ "{\"a\":1}", "{}", "[{\"op\":\"remove\",\"path\":\"/a\"}]" },
		{ "{}", "{\"a/b\":{}}", "[{\"op\":\"add\",\"path\":\"/a~1b\",\"value\":{}}]" },
		{ "{\"l\":[{\"x\":1},{\"x\":2}]}", "{\"l\":[{\"x\":1},{\"x\":3}]}",
		  "[{\"op\":\"replace\",\"path\":\"/l/1/x\",\"value\":3}]" },
		{ "{\"l\":[1,2]}", "{\"l\":[1]}",
		  "[{\"op\":\"replace\",\"path\":\"/l\",\"value\":[1]}]" },
		{ "1", "\"1\"", "[{\"op\":\"replace\",\"path\":\"\",\"value\":\"1\"}]" },
		{ "{\"n\":null}", "{\"n\":false}",
		  "[{\"op\":\"replace\",\"path\":\"/n\",\"value\":false}]" },
	};
	struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		yyjson_val *from = parse(cases[i].from, &a), *to = parse(cases[i].to, &a), *got;
		struct err err = { 0 };
		struct patch p;
		struct str text;

		TEST_ROW("%s -> %s", cases[i].from, cases[i].to);
		CHECK(patch_init(&p, &a));
		patch_diff(&p, STR(""), from, to);
		CHECK_OK(patch_write(&p, &a, &text, &err));
		CHECK_STR(text, cases[i].want);
		CHECK_OK(patch_apply(&p, from, &a, &got, &err));
		CHECK(yyjson_equals(got, to));
	}
	arena_done(&a);
}

TEST(a_patch_with_a_missing_path_is_refused)
{
	yyjson_val *before, *after = NULL;
	struct err err = { 0 };
	struct patch p;
	struct arena a;

	arena_init(&a, 0);
	before = parse("{\"a\":1}", &a);
	CHECK(patch_init(&p, &a));
	CHECK(patch_is_empty(&p));
	patch_add_str(&p, STR("/missing/key"), STR("x"));
	CHECK(!patch_is_empty(&p));
	CHECK_INT(patch_apply(&p, before, &a, &after, &err), -EINVAL);
	CHECK(after == NULL);
	arena_done(&a);
}
