/* Members are added, replaced and removed in YAML text, and everything else stays. */

#include "base/arena.h"
#include "base/macro.h"
#include "cli/yaml_edit.h"
#include "codec/yaml.h"
#include "test.h"

/* What an operation makes of a text; NULL: the text cannot be edited in place. */
struct edit_row {
	const char *what, *text, *op, *path, *value, *result;
};

static void check_rows(const struct edit_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct edit_row *row = &rows[i];
		CLEANUP(arena_done) struct arena a;
		struct err err = { 0 };
		struct doc_list docs;
		struct patch p;
		struct doc value;
		struct str got = STR("");
		bool ok;

		TEST_ROW("%s", row->what);
		arena_init(&a, 0);
		CHECK_OK(yaml_parse(str_from(row->text), STR("t"), NULL, &a, &docs, &err));
		CHECK(patch_init(&p, &a));
		if (row->value)
			CHECK_OK(doc_parse(str_from(row->value), STR("v"), NULL, &a, &value, &err));
		if (*row->op == '+')
			patch_add(&p, str_from(row->path), yyjson_val_mut_copy(p.doc, value.root));
		else if (*row->op == '=')
			patch_replace(&p, str_from(row->path),
				      yyjson_val_mut_copy(p.doc, value.root));
		else
			patch_remove(&p, str_from(row->path));
		ok = yaml_edit_text(str_from(row->text), &docs, &p, &a, &got);
		CHECK(ok == (row->result != NULL));
		if (ok)
			CHECK_STR(got, row->result);
	}
}

TEST(members_are_added_without_touching_the_rest)
{
	static const struct edit_row rows[] = {
		{ "block", "# top\na: 1 # one\nb:\n  c: 2\n", "+", "/b/x", "\"v\"",
		  "# top\na: 1 # one\nb:\n  x: v\n  c: 2\n" },
		{ "a mapping in block", "b:\n  c: 2 # two\n", "+", "/b/x", "{\"k\":\"z\"}",
		  "b:\n  x:\n    k: z\n  c: 2 # two\n" },
		{ "first member of a list item", "l:\n- c: 2 # two\n  d: 3\n", "+", "/l/0/x",
		  "\"v\"", "l:\n- x: v\n  c: 2 # two\n  d: 3\n" },
		{ "flow", "m: {name: p} # why\n", "+", "/m/x", "{\"a.b/c\":\"{\\\"e\\\":1}\"}",
		  "m: {x: {\"a.b/c\":\"{\\\"e\\\":1}\"}, name: p} # why\n" },
		{ "empty flow", "m: {} # why\n", "+", "/m/x", "\"v\"", "m: {x: \"v\"} # why\n" },
		{ "flow over lines", "m: {\n  # first\n  name: p\n}\n", "+", "/m/x", "\"v\"",
		  "m: {x: \"v\", \n  # first\n  name: p\n}\n" },
		{ "quoted keys stay quoted", "{\"m\": {\"a\": 1}} # json\n", "+", "/m/x", "\"v\"",
		  "{\"m\": {\"x\": \"v\", \"a\": 1}} # json\n" },
		{ "after a character of several bytes", "m: {ä: {b: 1}}\n", "+", "/m/ä/x", "\"v\"",
		  "m: {ä: {x: \"v\", b: 1}}\n" },
		{ "to a scalar", "m: 1\n", "+", "/m/x", "\"v\"", NULL },
	};

	check_rows(rows, ARRAY_LEN(rows));
}

TEST(scalars_are_replaced_without_touching_the_rest)
{
	static const struct edit_row rows[] = {
		{ "plain", "a: b c # why\n", "=", "/a", "\"x,y\"", "a: \"x,y\" # why\n" },
		{ "double quotes", "a: \"b \\\" # c\" # why\n", "=", "/a", "\"x\"",
		  "a: \"x\" # why\n" },
		{ "single quotes", "a: 'it''s' # why\n", "=", "/a", "\"x\"", "a: \"x\" # why\n" },
		{ "flow", "{a: b, c: d}\n", "=", "/a", "\"x\"", "{a: \"x\", c: d}\n" },
		{ "nothing", "a: # why\nb: 1\n", "=", "/a", "{\"x\":\"y\"}",
		  "a: {\"x\":\"y\"} # why\nb: 1\n" },
		{ "block scalar", "a: |\n  x\n", "=", "/a", "\"y\"", NULL },
		{ "alias", "b: &x 1\na: *x\n", "=", "/a", "\"y\"", NULL },
		{ "mapping", "a:\n  b: 1\n", "=", "/a", "\"y\"", NULL },
	};

	check_rows(rows, ARRAY_LEN(rows));
}

TEST(members_are_removed_without_touching_the_rest)
{
	static const struct edit_row rows[] = {
		{ "line", "a: 1\nb: 2 # two\nc: 3 # three\n", "-", "/b", NULL,
		  "a: 1\nc: 3 # three\n" },
		{ "first of a list item", "l:\n- b: 2\n  # three\n  c: 3\n", "-", "/l/0/b", NULL,
		  "l:\n- c: 3\n" },
		{ "list in block", "a: 1\nb:\n- x\n# inside\n- y\n# after\nc: 3\n", "-", "/b", NULL,
		  "a: 1\n# after\nc: 3\n" },
		{ "mapping in block", "a: 1\nb:\n  x: y\n\nc: 3\n", "-", "/b", NULL,
		  "a: 1\n\nc: 3\n" },
		{ "block scalar", "a: 1\nb: |\n  x\n  y\nc: 3\n", "-", "/b", NULL, "a: 1\nc: 3\n" },
		{ "only member", "a:\n  b: 1\nc: 2 # two\n", "-", "/a/b", NULL,
		  "a: {}\nc: 2 # two\n" },
		{ "first in flow", "m: {a: 1, b: 2} # why\n", "-", "/m/a", NULL,
		  "m: {b: 2} # why\n" },
		{ "last in flow", "m: {a: 1, b: \"x, y\"} # why\n", "-", "/m/b", NULL,
		  "m: {a: 1} # why\n" },
		{ "only one in flow", "m: {a: 1} # why\n", "-", "/m/a", NULL, "m: {} # why\n" },
		{ "flow mapping", "m: {a: {x: [1, \"}\"]}, b: 2} # why\n", "-", "/m/a", NULL,
		  "m: {b: 2} # why\n" },
	};

	check_rows(rows, ARRAY_LEN(rows));
}
