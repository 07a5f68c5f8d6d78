#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "codec/yaml.h"
#include "test.h"

static struct doc_list parse(struct arena *a, struct str text)
{
	struct err err = { 0 };
	struct doc_list docs = { 0 };

	CHECK_OK(yaml_parse(text, STR("f.yaml"), NULL, a, &docs, &err));
	return docs;
}

/* All documents as compact JSON, a blank between. */
static struct str as_json(struct arena *a, const struct doc_list *docs)
{
	struct err err = { 0 };
	struct strbuf b;
	struct str text;

	strbuf_init(&b, a);
	for (size_t i = 0; i < docs->n; i++) {
		CHECK_OK(doc_write_val(docs->items[i].root, false, a, &text, &err));
		strbuf_printf(&b, "%s" PRI_STR, i ? " " : "", FMT_STR(text));
	}
	return strbuf_str(&b);
}

struct reading {
	const char *yaml, *json;
};

static void check_readings(const struct reading *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		CLEANUP(arena_done) struct arena a;
		struct doc_list docs;

		arena_init(&a, 0);
		TEST_ROW("%s", cases[i].yaml);
		docs = parse(&a, str_from(cases[i].yaml));
		CHECK_STR(as_json(&a, &docs), cases[i].json);
	}
}

struct refusal {
	const char *yaml, *want;
};

static void check_refusals(const struct refusal *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		CLEANUP(arena_done) struct arena a;
		struct doc_list docs = { .n = 42 };
		struct err err = { 0 };

		arena_init(&a, 0);
		TEST_ROW("%s", cases[i].yaml);
		CHECK_ERR(yaml_parse(str_from(cases[i].yaml), STR("f.yaml"), NULL, &a, &docs, &err),
			  EINVAL, cases[i].want);
		CHECK_UINT(docs.n, 42);
	}
}

TEST(every_shape_becomes_the_same_document_as_json)
{
	static const struct reading cases[] = {
		{ "a: 1\nb: [x, 'y', \"z\"]\n", "{\"a\":1,\"b\":[\"x\",\"y\",\"z\"]}" },
		{ "- a\n- - b\n  - c\n- {d: e}\n", "[\"a\",[\"b\",\"c\"],{\"d\":\"e\"}]" },
		{ "a:\n- b\n- c\n", "{\"a\":[\"b\",\"c\"]}" },
		{ "a: |\n  x\n   y\n\n  z\n", "{\"a\":\"x\\n y\\n\\nz\\n\"}" },
		{ "a: |-\n  x\n", "{\"a\":\"x\"}" },
		{ "a: >\n  x\n  y\n", "{\"a\":\"x y\\n\"}" },
		{ "a: x\n  y\n", "{\"a\":\"x y\"}" },
		{ "a: \"\\x41\\u00e4\\U0001F600\\t\"", "{\"a\":\"A\xc3\xa4\xf0\x9f\x98\x80\\t\"}" },
		{ "a: 'it''s'", "{\"a\":\"it's\"}" },
		{ "a: # nothing\nb: ~", "{\"a\":null,\"b\":null}" },
		{ "{}", "{}" },
		{ "[]", "[]" },
		{ "just text", "\"just text\"" },
		{ "{a: b, c}", "{\"a\":\"b\",\"c\":null}" },
		{ "[a: b]", "[{\"a\":\"b\"}]" },
		{ "\xef\xbb\xbf"
		  "a: b",
		  "{\"a\":\"b\"}" },
		{ "%YAML 1.1\n---\na: b", "{\"a\":\"b\"}" },
		{ "a: b\r\nc: d\r\n", "{\"a\":\"b\",\"c\":\"d\"}" },
	};

	check_readings(cases, ARRAY_LEN(cases));
}

TEST(a_stream_holds_several_documents_and_empty_ones_are_left_out)
{
	static const struct reading cases[] = {
		{ "", "" },
		{ "# only a comment\n", "" },
		{ "---\n", "" },
		{ "null\n", "" },
		{ "---\n---\n---\n", "" },
		{ "a: 1\n---\nb: 2\n", "{\"a\":1} {\"b\":2}" },
		{ "---\na: 1\n...\n---\n# nothing\n---\nb: 2\n", "{\"a\":1} {\"b\":2}" },
		{ "--- a\n--- b\n--- c\n--- d\n--- e\n", "\"a\" \"b\" \"c\" \"d\" \"e\"" },
		{ "{\"a\": 1}\n---\n{\"a\": 2}\n", "{\"a\":1} {\"a\":2}" },
		{ "a: &x 1\n---\nb: &x 2\nc: *x\n", "{\"a\":1} {\"b\":2,\"c\":2}" },
	};

	check_readings(cases, ARRAY_LEN(cases));
}

TEST(scalars_resolve_as_in_kubernetes)
{
	static const struct reading cases[] = {
		{ "[yes, no, on, off, y, n]", "[true,false,true,false,true,false]" },
		{ "[010, 0o14, 0x1F, 0b11, 1_000, 08]", "[8,12,31,3,1000,8]" },
		{ "[12:30, 2001-01-01, .5, +.5, ~]", "[\"12:30\",\"2001-01-01\",0.5,0.5,null]" },
		{ "['no', \"010\", '~', '']", "[\"no\",\"010\",\"~\",\"\"]" },
		{ "- |-\n  no\n- >-\n  010\n", "[\"no\",\"010\"]" },
		{ "[1e400, 0.10, 12345678901234567890]", "[1e400,0.10,12345678901234567890]" },
		{ "{yes: 1, 010: 2, 1.5: 3, 'no': 4}", "{\"true\":1,\"8\":2,\"1.5\":3,\"no\":4}" },
	};

	check_readings(cases, ARRAY_LEN(cases));
}

TEST(json_is_read_as_json)
{
	static const struct reading cases[] = {
		{ "{\"a\": \"\\ud83d\\ude00\"}", "{\"a\":\"\xf0\x9f\x98\x80\"}" },
		{ " \n[\"\\ud83d\\ude00\", 1E5, -0]", "[\"\xf0\x9f\x98\x80\",1E5,-0]" },
		{ "{\"a\":\t1}", "{\"a\":1}" },	 /* a tab, which YAML may not like */
		{ "{\"a\": 1, }", "{\"a\":1}" }, /* not JSON, but YAML */
		{ "{\"yes\": yes}", "{\"yes\":true}" },
	};

	check_readings(cases, ARRAY_LEN(cases));
}

TEST(tags_choose_the_kind_of_a_value)
{
	static const struct reading cases[] = {
		{ "!!str 5", "\"5\"" },
		{ "! 5", "\"5\"" },
		{ "!!str", "\"\"" },
		{ "!!int '0x10'", "16" },
		{ "!!float 1", "1" },
		{ "!!bool 'yes'", "true" },
		{ "a: !!null ''", "{\"a\":null}" },
		{ "!!map {a: !!seq [b]}", "{\"a\":[\"b\"]}" },
		{ "!<tag:yaml.org,2002:str> 5", "\"5\"" },
		{ "{!!str 5: a, !!str <<: b}", "{\"5\":\"a\",\"<<\":\"b\"}" },
	};
	static const struct refusal refusals[] = {
		{ "a: !thing 5", "f.yaml:1:4: unknown tag" },
		{ "a: !!binary aGk=", "f.yaml:1:4: unknown tag" },
		{ "a: !thing {b: c}", "f.yaml:1:4: unknown tag" },
		{ "a: !!set {b}", "f.yaml:1:4: unknown tag" },
		{ "a: !!map [b]", "f.yaml:1:4: unknown tag" },
		{ "a: !!int x", "f.yaml:1:4: value does not fit its tag" },
		{ "a: !!bool 1", "f.yaml:1:4: value does not fit its tag" },
		{ "a: !!null x", "f.yaml:1:4: value does not fit its tag" },
	};

	check_readings(cases, ARRAY_LEN(cases));
	check_refusals(refusals, ARRAY_LEN(refusals));
}

TEST(aliases_copy_and_merge_keys_do_not_override)
{
	static const struct reading cases[] = {
		{ "a: &x [1, {b: c}]\nd: *x\ne: *x",
		  "{\"a\":[1,{\"b\":\"c\"}],\"d\":[1,{\"b\":\"c\"}],\"e\":[1,{\"b\":\"c\"}]}" },
		{ "[&a x, &a z, *a]", "[\"x\",\"z\",\"z\"]" },
		{ "&k a: 1\nb: *k", "{\"a\":1,\"b\":\"a\"}" },
		{ "- &k a\n- *k : 1\n", "[\"a\",{\"a\":1}]" },
		{ "a: &e\nb: *e", "{\"a\":null,\"b\":null}" },
		{ "[&m {a: 1, b: 2}, {<<: *m, b: 3}]", "[{\"a\":1,\"b\":2},{\"b\":3,\"a\":1}]" },
		{ "[&m {a: 1}, {b: 2, <<: *m}, {a: 0, <<: *m}]",
		  "[{\"a\":1},{\"b\":2,\"a\":1},{\"a\":0}]" },
		{ "[&m {a: 1}, &n {a: 2, b: 2}, {<<: [*m, *n]}]",
		  "[{\"a\":1},{\"a\":2,\"b\":2},{\"a\":1,\"b\":2}]" },
		{ "{<<: {a: {b: c}}}", "{\"a\":{\"b\":\"c\"}}" },
		{ "[{<<: &m {a: 1}}, {<<: *m}, *m]", "[{\"a\":1},{\"a\":1},{\"a\":1}]" },
		{ "{<<: [], a: 1}", "{\"a\":1}" },
		{ "{\"<<\": {a: 1}}", "{\"<<\":{\"a\":1}}" },
		{ "{a: <<}", "{\"a\":\"<<\"}" },
	};
	static const struct refusal refusals[] = {
		{ "a: *x", "f.yaml:1:4: alias to an unknown anchor" },
		{ "a: &x 1\n---\nb: *x", "f.yaml:3:4: alias to an unknown anchor" },
		{ "&x [a, *x]", "f.yaml:1:8: alias to a value that contains it" },
		{ "a: &x\n  b: {c: *x}", "f.yaml:2:10: alias to a value that contains it" },
		{ "&x {<<: *x}", "f.yaml:1:9: alias to a value that contains it" },
		{ "{<<: 1}", "f.yaml:1:6: only a mapping can be merged" },
		{ "{<<: [{a: 1}, b]}", "f.yaml:1:15: only a mapping can be merged" },
		{ "{<<: {a: 1}, <<: {b: 1}}", "f.yaml:1:14: key \"<<\" is given twice" },
		{ "[&x [a], {*x : 1}]", "f.yaml:1:11: a key must be a string" },
	};

	check_readings(cases, ARRAY_LEN(cases));
	check_refusals(refusals, ARRAY_LEN(refusals));
}

TEST(ambiguous_yaml_is_refused_with_its_position)
{
	static const struct refusal cases[] = {
		{ "a: 1\nb: 2\na: 3\n", "f.yaml:3:1: key \"a\" is given twice" },
		{ "x:\n- {k: 1, k: 2}", "f.yaml:2:10: key \"k\" is given twice" },
		{ "{yes: 1, true: 2}", "f.yaml:1:10: key \"true\" is given twice" },
		{ "{010: 1, 8: 2}", "f.yaml:1:10: key \"8\" is given twice" },
		{ "{\"a\": 1, \"a\": 2}", "f.yaml:1:10: key \"a\" is given twice" },
		{ "a: 1\n---\nb: 1\nb: 1\n", "f.yaml:4:1: key \"b\" is given twice" },
		{ "{[a]: b}", "f.yaml:1:2: a key must be a string" },
		{ "? {a: b}\n: c", "f.yaml:1:3: a key must be a string" },
		{ "~: a", "f.yaml:1:1: a key may not be null" },
		{ "?\n: a", "f.yaml:1:2: a key may not be null" },
		{ "a: .inf", "f.yaml:1:4: not a finite number" },
		{ "a: [-.Inf]", "f.yaml:1:5: not a finite number" },
		{ "a: .nan", "f.yaml:1:4: not a finite number" },
		{ "\xc3\xa4: [.nan]", "f.yaml:1:5: not a finite number" }, /* characters */
	};

	check_refusals(cases, ARRAY_LEN(cases));
}

/* The texts are libyaml's; the positions are computed here. */
TEST(bad_syntax_is_refused_with_its_position)
{
	static const struct {
		struct str text;
		const char *where;
	} cases[] = {
		{ STR_INIT("a: [1, 2"), "f.yaml:2:1: " },
		{ STR_INIT("a: 1\n b: 2"), "f.yaml:2:3: " },
		{ STR_INIT("a:\n\t- b"), "f.yaml:2:1: " },
		{ STR_INIT("a: \"x"), "f.yaml:1:6: " },
		{ STR_INIT("a: 'x\n--- b"), "f.yaml:2:1: " },
		{ STR_INIT("- a\nb: c"), "f.yaml:2:1: " },
		{ STR_INIT("a: @b"), "f.yaml:1:4: " },
		{ STR_INIT("a: `b"), "f.yaml:1:4: " },
		{ STR_INIT("a: &x &y b"), "f.yaml:1:7: " },
		{ STR_INIT("a: \"\\q\""), "f.yaml:1:" },
		{ STR_INIT("a: \"\\ud800\""), "f.yaml:1:" },
		{ STR_INIT("a: b\nc: x\xff"), "f.yaml:2:5: " },
		{ STR_INIT("a: \x01"), "f.yaml:1:4: " },
		{ STR_INIT("a: b\0c"), "f.yaml:1:" },
		{ STR_INIT("\xff\xfe"
			   "a\0:\0 \0b\0"),
		  "f.yaml:1:1: " }, /* UTF-16 */
		{ STR_INIT("%YAML 2.0\n--- a"), "f.yaml:1:1: " },
		{ STR_INIT("!x!y z"), "f.yaml:1:1: " },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(arena_done) struct arena a;
		struct doc_list docs;
		struct err err = { 0 };

		arena_init(&a, 0);
		TEST_ROW("row %zu", i);
		CHECK_INT(yaml_parse(cases[i].text, STR("f.yaml"), NULL, &a, &docs, &err), -EINVAL);
		if (!str_starts(str_from(err.msg), str_from(cases[i].where)))
			CHECK_STR((const char *)err.msg, cases[i].where);
		CHECK(strlen(err.msg) > strlen(cases[i].where));
	}
}

TEST(every_value_has_its_position)
{
	static const char text[] = "# first\n"
				   "a:\n"
				   "  - x\n"
				   "  - {k: v, l: true}\n"
				   "b: &b {c: 1}\n"
				   "d: *b\n"
				   "e:\n"
				   "  <<: *b\n"
				   "  f: 2\n"
				   "\xc3\xa4: {g: null}\n";
	static const struct {
		const char *pointer;
		struct doc_pos want;
	} cases[] = {
		{ "", { 2, 1 } },
		{ "/a", { 3, 3 } },
		{ "/a/0", { 3, 5 } },
		{ "/a/1", { 4, 5 } },
		{ "/a/1/k", { 4, 9 } },
		{ "/a/1/l", { 4, 15 } },
		{ "/b", { 5, 4 } },
		{ "/b/c", { 5, 11 } },
		{ "/d", { 5, 4 } },
		{ "/d/c", { 5, 11 } },
		{ "/e/f", { 9, 6 } },
		{ "/e/c", { 5, 11 } },
		{ "/\xc3\xa4/g", { 10, 8 } },
		{ "/none", { 0, 0 } },
	};
	CLEANUP(arena_done) struct arena a;
	struct doc_list docs;

	arena_init(&a, 0);
	docs = parse(&a, str_from(text));
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		yyjson_val *v = doc_find(docs.items[0].root, cases[i].pointer);
		struct doc_pos pos = doc_position(&docs.items[0], v);

		TEST_ROW("%s", cases[i].pointer);
		CHECK_UINT(pos.line, cases[i].want.line);
		CHECK_UINT(pos.column, cases[i].want.column);
	}
}

TEST(each_document_has_its_own_positions)
{
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct doc_list docs;

	arena_init(&a, 0);
	docs = parse(&a, STR("a: 1\n---\n---\nb:\n  c: 2\n"));
	CHECK_UINT(docs.n, 2);
	CHECK_ERR(doc_err(&err, &docs.items[1], doc_find(docs.items[1].root, "/b/c"), "no"), EINVAL,
		  "f.yaml:5:6: no");
	CHECK_UINT(doc_position(&docs.items[0], docs.items[1].root).line, 0);
}

/* Files that are small but expensive. Limits are counted here; tests/bench/bench_bombs.c measures
 * the time. */

static struct str repeated(struct arena *a, const char *head, const char *part, size_t n,
			   const char *tail)
{
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_add(&b, str_from(head));
	for (size_t i = 0; i < n; i++)
		strbuf_add(&b, str_from(part));
	strbuf_add(&b, str_from(tail));
	return strbuf_str(&b);
}

TEST(limits_are_exact)
{
	static const struct {
		const char *head, *part, *tail;
		struct doc_limits limits;
		size_t n; /* parts that are still fine */
		const char *want;
	} cases[] = {
		{ "[", "a,", "]", { .nodes = 10 }, 9, "f:1:20: more than 10 values" },
		{ "", "- a\n", "", { .nodes = 10 }, 9, "f:10:3: more than 10 values" },
		{ "", "--- a\n", "", { .nodes = 10 }, 10, "f:11:5: more than 10 values" },
		{ "", "---\n", "", { .nodes = 10 }, 10, "f:12:1: more than 10 values" },
		{ "", "--- a\n", "", { .documents = 5 }, 5, "f:6:1: too many documents" },
		{ "", "[", "", { .depth = 5 }, 0, NULL },
		{ "- &a [1, 2]\n",
		  "- *a\n",
		  "",
		  { .alias_nodes = 10 },
		  3,
		  "f:5:3: aliases expand to too many values" },
		{ "- &a 1\n",
		  "- *a\n",
		  "",
		  { .alias_nodes = 10 },
		  9,
		  "f:11:3: aliases expand to too many values" },
		{ "", "- &a 1\n", "", { .alias_nodes = 10 }, 10, "f:11:3: too many anchors" },
		{ "- &a {x: 1}\n",
		  "- {<<: *a}\n",
		  "",
		  { .alias_nodes = 11 },
		  2,
		  "f:4:8: aliases expand to too many values" },
		{ "",
		  "%TAG !a! tag:b,2000:\n--- a\n...\n",
		  "",
		  { .nodes = 1000 },
		  64,
		  "f:193:1: too many tag directives" },
		{ "", "a: b\n---\n", "", { .size_bytes = 18 }, 2, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		for (size_t more = 0; more < 2; more++) {
			CLEANUP(arena_done) struct arena a;
			struct err err = { 0 };
			struct doc_list docs;
			struct str text;
			int r;

			arena_init(&a, 0);
			text = repeated(&a, cases[i].head, cases[i].part, cases[i].n + more,
					cases[i].tail);
			r = yaml_parse(text, STR("f"), &cases[i].limits, &a, &docs, &err);
			TEST_ROW("row %zu with %zu parts", i, cases[i].n + more);
			if (!more)
				CHECK_OK(r);
			else if (cases[i].want)
				CHECK_ERR(r, EINVAL, cases[i].want);
			else
				CHECK(r < 0);
		}
}

TEST(depth_is_limited_for_nesting_aliases_and_merges)
{
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct doc_list docs;
	struct strbuf b;

	arena_init(&a, 0);
	CHECK_OK(yaml_parse(str_printf(&a, PRI_STR "x" PRI_STR,
				       FMT_STR(repeated(&a, "", "[", 100, "")),
				       FMT_STR(repeated(&a, "", "]", 100, ""))),
			    STR("f"), NULL, &a, &docs, &err));
	CHECK_ERR(yaml_parse(repeated(&a, "", "[", 100000, ""), STR("f"), NULL, &a, &docs, &err),
		  EINVAL, "f:1:101: nested deeper than 100 levels");
	CHECK_ERR(yaml_parse(repeated(&a, "", "- ", 100000, ""), STR("f"), NULL, &a, &docs, &err),
		  EINVAL, "f:1:201: nested deeper than 100 levels");
	CHECK_ERR(yaml_parse(repeated(&a, "", "{a: ", 100000, ""), STR("f"), NULL, &a, &docs, &err),
		  EINVAL, "f:1:401: nested deeper than 100 levels");

	/* Every step repeats the one before, forty levels deeper. */
	strbuf_init(&b, &a);
	strbuf_add(&b, STR("- &a0 x\n"));
	for (unsigned i = 1; i < 5; i++)
		strbuf_printf(&b, "- &a%u " PRI_STR "*a%u" PRI_STR "\n", i,
			      FMT_STR(repeated(&a, "", "[", 40, "")), i - 1,
			      FMT_STR(repeated(&a, "", "]", 40, "")));
	CHECK_ERR(yaml_parse(strbuf_str(&b), STR("f"), NULL, &a, &docs, &err), EINVAL,
		  "f:4:47: nested deeper than 100 levels");
}

TEST(a_billion_laughs_file_is_refused_early)
{
	CLEANUP(arena_done) struct arena a, text_arena;
	struct err err = { 0 };
	struct doc_list docs;
	struct strbuf b;

	arena_init(&text_arena, 0);
	arena_init(&a, 1 << 20); /* so much would ten thousand values take */
	strbuf_init(&b, &text_arena);
	strbuf_add(&b, STR("a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n"));
	for (unsigned i = 1; i < 10; i++)
		strbuf_printf(&b,
			      "a%u: &a%u [*a%u, *a%u, *a%u, *a%u, *a%u, *a%u, *a%u, *a%u, *a%u]\n",
			      i, i, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
	CHECK_ERR(yaml_parse(strbuf_str(&b), STR("f"), NULL, &a, &docs, &err), EINVAL,
		  "f:5:10: aliases expand to too many values");
}

/* The linear lookups would be quadratic in total without a limit of their own. */
TEST(lookups_of_anchors_and_merged_keys_are_limited)
{
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct doc_list docs;
	struct strbuf b;

	arena_init(&a, 0);
	strbuf_init(&b, &a);
	strbuf_add(&b, STR("- &first x\n"));
	for (unsigned i = 0; i < 5000; i++)
		strbuf_printf(&b, "- &a%u x\n", i);
	for (unsigned i = 0; i < 1000; i++)
		strbuf_add(&b, STR("- *first\n"));
	CHECK_ERR(yaml_parse(strbuf_str(&b), STR("f"), NULL, &a, &docs, &err), EINVAL,
		  "f:5202:3: too many anchors or merged keys");

	strbuf_init(&b, &a);
	for (unsigned i = 0; i < 5000; i++)
		strbuf_printf(&b, "k%u: 1\n", i);
	strbuf_add(&b, STR("<<:\n"));
	for (unsigned i = 0; i < 5000; i++)
		strbuf_printf(&b, "  k%u: 1\n", i);
	CHECK_ERR(yaml_parse(strbuf_str(&b), STR("f"), NULL, &a, &docs, &err), EINVAL,
		  "f:10002:1: too many anchors or merged keys");
}

TEST(a_large_regular_file_is_read)
{
	CLEANUP(arena_done) struct arena a;
	struct strbuf b;
	struct doc_list docs;

	arena_init(&a, 0);
	strbuf_init(&b, &a);
	for (unsigned i = 0; i < 100; i++) {
		strbuf_printf(
			&b, "---\nkind: CustomResourceDefinition\nmetadata: {name: crd%u}\nspec:\n",
			i);
		for (unsigned k = 0; k < 200; k++)
			strbuf_printf(&b, "  field%u:\n    type: string\n", k);
	}
	docs = parse(&a, strbuf_str(&b));
	CHECK_UINT(docs.n, 100);
	CHECK_UINT(docs.items[99].n_values, 809);
	CHECK_STR(doc_str(doc_find(docs.items[99].root, "/metadata/name")), "crd99");
}

/* The positions of a document are allocated for its own values only. */
TEST(many_documents_cost_no_more_than_their_sum)
{
	CLEANUP(arena_done) struct arena a, text_arena;
	struct err err = { 0 };
	struct doc_list docs;

	arena_init(&text_arena, 0);
	arena_init(&a, (size_t)4000 * 512);
	CHECK_OK(yaml_parse(repeated(&text_arena, "", "--- a\n", 4000, ""), STR("f"), NULL, &a,
			    &docs, &err));
	CHECK_UINT(docs.n, 4000);
	CHECK_UINT(doc_position(&docs.items[3999], docs.items[3999].root).line, 4000);
}

TEST(every_memory_limit_gives_a_result_or_an_error)
{
	static const char text[] = "a: &x [1, 0x10, 'a longer text']\n"
				   "b: *x\n"
				   "c: {<<: {d: yes}}\n"
				   "---\n"
				   "e: |\n  text\n";
	bool succeeded = false;

	for (size_t limit = 1; !succeeded; limit++) {
		CLEANUP(arena_done) struct arena a;
		struct err err = { 0 };
		struct doc_list docs;
		int r;

		arena_init(&a, limit);
		r = yaml_parse(str_from(text), STR("f"), NULL, &a, &docs, &err);
		TEST_ROW("%zu bytes", limit);
		CHECK_INT(r, a.failed ? -ENOMEM : 0);
		if (r < 0)
			CHECK_STR((const char *)err.msg, "f: not enough memory");
		succeeded = r == 0;
		a.limit = 0;
		if (succeeded)
			CHECK_STR(as_json(&a, &docs),
				  "{\"a\":[1,16,\"a longer text\"],\"b\":[1,16,\"a longer text\"],"
				  "\"c\":{\"d\":true}} {\"e\":\"text\\n\"}");
		CHECK(limit < 100000);
	}
}

TEST(memory_for_building_a_document_is_limited)
{
	static const char item[] = "- some text\n";
	const struct doc_limits limits = { .nodes = 1000000, .tree_bytes = 1 << 20 };
	CLEANUP(arena_done) struct arena a;
	struct doc_list docs;
	struct err err = { 0 };
	struct strbuf b;

	arena_init(&a, 0);
	strbuf_init(&b, &a);
	for (size_t i = 0; i < 100000; i++)
		strbuf_add(&b, STR("- some text\n"));
	CHECK_ERR(yaml_parse(strbuf_str(&b), STR("f"), &limits, &a, &docs, &err), ENOMEM,
		  "f: needs more than 1 MiB of memory: divide it into several documents");
	/* Each document has its own. */
	b.n = 0;
	for (size_t i = 0; i < 50000; i++) {
		strbuf_add(&b, i % 5000 ? STR("") : STR("---\n"));
		strbuf_add(&b, str_from(item));
	}
	CHECK_OK(yaml_parse(strbuf_str(&b), STR("f"), &limits, &a, &docs, &err));
	CHECK_UINT(docs.n, 10);
}
