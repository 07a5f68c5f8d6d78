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
