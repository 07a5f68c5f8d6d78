#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "codec/yaml.h"
#include "readers.h"
#include "test.h"

static struct doc parse_json(struct arena *a, struct str text)
{
	struct err err = { 0 };
	struct doc doc = { 0 };

	CHECK_OK(doc_parse(text, STR("json"), NULL, a, &doc, &err));
	return doc;
}

static struct str write_json(struct arena *a, yyjson_val *v)
{
	struct err err = { 0 };
	struct str text = STR("");

	CHECK_OK(doc_write_val(v, false, a, &text, &err));
	return text;
}

static struct str write_yaml(struct arena *a, yyjson_val *v)
{
	struct err err = { 0 };
	struct str text = STR("");

	CHECK_OK(yaml_write_val(v, a, &text, &err));
	return text;
}

TEST(documents_are_written_in_block_style)
{
	static const struct {
		const char *json, *yaml;
	} cases[] = {
		{ "{}", "{}\n" },
		{ "[]", "[]\n" },
		{ "null", "null\n" },
		{ "\"x\"", "x\n" },
		{ "{\"b\":1,\"a\":true,\"c\":null}", "b: 1\na: true\nc: null\n" },
		{ "{\"a\":{\"b\":[1,{\"c\":2,\"d\":[]}]},\"e\":{}}",
		  "a:\n  b:\n  - 1\n  - c: 2\n    d: []\ne: {}\n" },
		{ "[[1,2],[3]]", "- - 1\n  - 2\n- - 3\n" },
		{ "[1e400,0.10,12345678901234567890,-0]",
		  "- 1e400\n- 0.10\n- 12345678901234567890\n- -0\n" },
		{ "{\"a\":\"no\",\"no\":\"a b\"}", "a: \"no\"\n\"no\": a b\n" },
		{ "{\"run\":\"#!/bin/sh\\nset -e\\n\\nexec x\\n\"}",
		  "run: |\n  #!/bin/sh\n  set -e\n\n  exec x\n" },
		{ "{\"a\":\"x\\ny\"}", "a: |-\n  x\n  y\n" },
		{ "{\"a\":\"x\\ny\\n\\n\",\"b\":1}", "a: \"x\\ny\\n\\n\"\nb: 1\n" },
		{ "{\"a\":\"  x\\ny\"}", "a: |2-\n    x\n  y\n" },
		{ "{\"a\":\"x\\n\"}", "a: \"x\\n\"\n" },
		{ "[\"x\\ny\\u0085z\",\"x\\ny\\u2028z\",\"x\\ny\\u2029z\"]",
		  "- \"x\\ny\\Nz\"\n- \"x\\ny\\Lz\"\n- \"x\\ny\\Pz\"\n" },
		{ "{\"a\":\"\xc3\xa4\"}", "a: \"\xc3\xa4\"\n" },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		TEST_ROW("%s", cases[i].json);
		CHECK_STR(write_yaml(&a, parse_json(&a, str_from(cases[i].json)).root),
			  cases[i].yaml);
	}
}

/* Strings that some reader of YAML 1.1 or 1.2 would read as another type if they were not quoted.
 */
static const struct str strings[] = {
	/* other types */
	STR_INIT(""),
	STR_INIT("~"),
	STR_INIT("null"),
	STR_INIT("Null"),
	STR_INIT("NULL"),
	STR_INIT("yes"),
	STR_INIT("Yes"),
	STR_INIT("YES"),
	STR_INIT("no"),
	STR_INIT("No"),
	STR_INIT("NO"),
	STR_INIT("on"),
	STR_INIT("On"),
	STR_INIT("off"),
	STR_INIT("OFF"),
	STR_INIT("y"),
	STR_INIT("Y"),
	STR_INIT("n"),
	STR_INIT("N"),
	STR_INIT("true"),
	STR_INIT("True"),
	STR_INIT("TRUE"),
	STR_INIT("false"),
	STR_INIT("False"),
	STR_INIT("0"),
	STR_INIT("1"),
	STR_INIT("-1"),
	STR_INIT("+1"),
	STR_INIT("010"),
	STR_INIT("0o14"),
	STR_INIT("0x1f"),
	STR_INIT("0X1F"),
	STR_INIT("0b11"),
	STR_INIT("1_000"),
	STR_INIT("1__0"),
	STR_INIT("_1"),
	STR_INIT("12:30"),
	STR_INIT("12:30:45"),
	STR_INIT("190:20:30.15"),
	STR_INIT("1.5"),
	STR_INIT("1."),
	STR_INIT(".5"),
	STR_INIT("+.5"),
	STR_INIT("-.5"),
	STR_INIT("1e3"),
	STR_INIT("1E3"),
	STR_INIT("1.5e+3"),
	STR_INIT("6.8523015e+5"),
	STR_INIT(".inf"),
	STR_INIT("-.Inf"),
	STR_INIT("+.INF"),
	STR_INIT(".nan"),
	STR_INIT(".NaN"),
	STR_INIT("2001-01-01"),
	STR_INIT("2001-12-14t21:59:43.10-05:00"),
	STR_INIT("2001-12-14 21:59:43.10 -5"),
	STR_INIT("2001-12-15T02:59:43Z"),
	STR_INIT("2001-12-14 21:59:43"),
	STR_INIT("<<"),
	STR_INIT("="),
	STR_INIT("1,000"),
	STR_INIT("08"),
	STR_INIT("0o8"),
	STR_INIT("0-3"),
	STR_INIT("0-3,8-11"),
	STR_INIT("1e"),
	/* other syntax */
	STR_INIT("-"),
	STR_INIT("- a"),
	STR_INIT("-a"),
	STR_INIT("---"),
	STR_INIT("--- a"),
	STR_INIT("..."),
	STR_INIT("... a"),
	STR_INIT("?"),
	STR_INIT("? a"),
	STR_INIT(":"),
	STR_INIT(": a"),
	STR_INIT(":a"),
	STR_INIT("a:"),
	STR_INIT("a: b"),
	STR_INIT("a :b"),
	STR_INIT("a:b"),
	STR_INIT("a::b"),
	STR_INIT("# c"),
	STR_INIT("#c"),
	STR_INIT("a #c"),
	STR_INIT("a#c"),
	STR_INIT("&a"),
	STR_INIT("*a"),
	STR_INIT("!a"),
	STR_INIT("!!int 1"),
	STR_INIT("|"),
	STR_INIT("|-"),
	STR_INIT(">"),
	STR_INIT("%a"),
	STR_INIT("%YAML 1.1"),
	STR_INIT("@a"),
	STR_INIT("`a"),
	STR_INIT("{"),
	STR_INIT("}"),
	STR_INIT("{a: b}"),
	STR_INIT("["),
	STR_INIT("]"),
	STR_INIT("[a]"),
	STR_INIT(","),
	STR_INIT("a, b"),
	STR_INIT("'"),
	STR_INIT("'a'"),
	STR_INIT("\""),
	STR_INIT("\"a\""),
	STR_INIT("\\"),
	STR_INIT("\\n"),
	STR_INIT("{{ .Values.x }}"),
	STR_INIT("${x}"),
	STR_INIT("$(x)"),
	/* blanks and lines */
	STR_INIT(" "),
	STR_INIT(" a"),
	STR_INIT("a "),
	STR_INIT("a  b"),
	STR_INIT("\t"),
	STR_INIT("\ta"),
	STR_INIT("a\t"),
	STR_INIT("a\tb"),
	STR_INIT("a:\tb"),
	STR_INIT("\n"),
	STR_INIT("\n\n"),
	STR_INIT("a\n"),
	STR_INIT("\na"),
	STR_INIT("\n a"),
	STR_INIT(" \na"),
	STR_INIT("a\nb"),
	STR_INIT("a\nb\n"),
	STR_INIT("a\nb\n\n"),
	STR_INIT("a \nb"),
	STR_INIT("a\n b"),
	STR_INIT(" a\nb"),
	STR_INIT("  a\nb\n"),
	STR_INIT("a\n\n b\n"),
	STR_INIT("a\nb "),
	STR_INIT("a\n "),
	STR_INIT("a\n \n"),
	STR_INIT("\r"),
	STR_INIT("a\rb"),
	STR_INIT("a\r\nb\r\n"),
	STR_INIT("# a\nb"),
	STR_INIT("- a\n- b\n"),
	STR_INIT("---\na: b\n...\n"),
	STR_INIT("a: b\nc: d\n"),
	STR_INIT("\ta\n\tb\n"),
	STR_INIT("#!/bin/sh\nif true; then\n\techo \"$x\"\nfi\n"),
	/* characters */
	STR_INIT("\x01"),
	STR_INIT("\x1b[0m"),
	STR_INIT("\x7f"),
	STR_INIT("a\0b"),
	STR_INIT("\0"),
	STR_INIT("\xc2\x80"),
	STR_INIT("\xc2\x85"),
	STR_INIT("a\xc2\x85"
		 "b"),
	STR_INIT("a\n\xc2\x85\nb"),
	STR_INIT("\xc2\xa0"),
	STR_INIT("\xc3\xa4"),
	STR_INIT("\xe2\x80\xa8"),
	STR_INIT("a\nb\xe2\x80\xa8"
		 "c"),
	STR_INIT("\xe2\x80\xa9\na"),
	STR_INIT("\xef\xbb\xbf"),
	STR_INIT("\xef\xbb\xbf"
		 "a"),
	STR_INIT("a\n\xef\xbb\xbf\n"),
	STR_INIT("\xef\xbf\xbd"),
	STR_INIT("\xef\xbf\xbe"),
	STR_INIT("\xef\xbf\xbf"),
	STR_INIT("\xf0\x9f\x98\x80"),
	STR_INIT("\xf4\x8f\xbf\xbf"),
	STR_INIT("\xe4\xb8\xad\n\xe6\x96\x87"),
	/* ordinary */
	STR_INIT("a"),
	STR_INIT("a b"),
	STR_INIT("500m"),
	STR_INIT("nginx:1.25"),
	STR_INIT("a word that is longer than the eighty columns at which a writer of YAML likes to "
		 "fold, twice as long indeed, so that it would fold if it could and had not been "
		 "told"),
};

/* The strings as items, as values and, unless they are duplicates, as keys. */
static yyjson_val *all_strings(struct arena *a)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m);
	yyjson_mut_val *items = doc_put_arr(m, root, STR("items"));
	yyjson_mut_val *lists = doc_put_arr(m, root, STR("lists"));
	yyjson_mut_val *values = doc_put_obj(m, root, STR("values"));
	yyjson_mut_val *keys = doc_put_obj(m, root, STR("keys"));

	for (size_t i = 0; i < ARRAY_LEN(strings); i++) {
		yyjson_mut_val *list = yyjson_mut_arr_add_arr(m, lists);

		(void)yyjson_mut_arr_append(items, doc_new_str(m, strings[i]));
		(void)yyjson_mut_arr_append(list, doc_new_str(m, strings[i]));
		(void)doc_put_str(m, values, str_printf(a, "v%zu", i), strings[i]);
		(void)doc_put_int(m, keys, strings[i], (int64_t)i);
	}
	return doc_freeze(root, a);
}

TEST(strings_stay_strings_when_read_by_yaml_parse)
{
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct doc_list docs;
	yyjson_val *v;

	arena_init(&a, 0);
	v = all_strings(&a);
	CHECK_OK(yaml_parse(write_yaml(&a, v), STR("yaml"), NULL, &a, &docs, &err));
	CHECK_UINT(docs.n, 1);
	CHECK_STR(write_json(&a, docs.items[0].root), write_json(&a, v));
}

TEST(a_document_of_one_string_stays_a_string)
{
	for (size_t i = 0; i < ARRAY_LEN(strings); i++) {
		CLEANUP(arena_done) struct arena a;
		struct err err = { 0 };
		struct doc_list docs;
		struct str text;

		arena_init(&a, 0);
		TEST_ROW("\"" PRI_STR "\"", FMT_STR(strings[i]));
		CHECK_OK(yaml_write(doc_new_str(doc_build(&a), strings[i]), &a, &text, &err));
		CHECK_OK(yaml_parse(text, STR("yaml"), NULL, &a, &docs, &err));
		CHECK_UINT(docs.n, 1);
		CHECK_STR(doc_str(docs.items[0].root), strings[i]);
	}
}

TEST(strings_stay_strings_for_a_yaml_1_1_reader)
{
	CLEANUP(arena_done) struct arena a;
	struct strbuf yaml, json;
	yyjson_val *v;

	arena_init(&a, 0);
	strbuf_init(&yaml, &a);
	strbuf_init(&json, &a);
	v = all_strings(&a);
	strbuf_printf(&yaml, "---\n" PRI_STR, FMT_STR(write_yaml(&a, v)));
	strbuf_printf(&json, PRI_STR "\n", FMT_STR(write_json(&a, v)));
	for (size_t i = 0; i < ARRAY_LEN(strings); i++) {
		v = doc_freeze(doc_new_str(doc_build(&a), strings[i]), &a);
		strbuf_printf(&yaml, "---\n" PRI_STR, FMT_STR(write_yaml(&a, v)));
		strbuf_printf(&json, PRI_STR "\n", FMT_STR(write_json(&a, v)));
	}
	readers_check("yaml", strbuf_str(&yaml), strbuf_str(&json));
}

TEST(numbers_booleans_and_nulls_keep_their_type_for_a_yaml_1_1_reader)
{
	static const char text[] =
		"{\"l\":[0,-1,1.5,1.0e+3,12345678901234567890,true,false,null,{},[]],"
		"\"n\":null,\"t\":true}\n";
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	readers_check("yaml", write_yaml(&a, parse_json(&a, str_from(text)).root), str_from(text));
}

TEST(native_numbers_of_a_built_document_are_written)
{
	CLEANUP(arena_done) struct arena a;
	yyjson_mut_doc *m;
	yyjson_mut_val *list;
	struct err err = { 0 };
	struct str text;

	arena_init(&a, 0);
	m = doc_build(&a);
	list = yyjson_mut_arr(m);
	(void)yyjson_mut_arr_add_sint(m, list, INT64_MIN);
	(void)yyjson_mut_arr_add_uint(m, list, UINT64_MAX);
	(void)yyjson_mut_arr_add_real(m, list, 1.5);
	CHECK_OK(yaml_write(list, &a, &text, &err));
	CHECK_STR(text, "- -9223372036854775808\n- 18446744073709551615\n- 1.5\n");
}

TEST(a_value_that_cannot_be_written_is_an_error)
{
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct str text = STR("untouched");
	yyjson_mut_val *bad;

	arena_init(&a, 0);
	bad = doc_new_str(doc_build(&a), STR("\xff"));
	CHECK_ERR(yaml_write(bad, &a, &text, &err), EINVAL,
		  "cannot write YAML: a string is not UTF-8");
	a.limit = a.used + 10;
	CHECK_ERR(yaml_write(doc_new_str(doc_build(&a), STR("x")), &a, &text, &err), ENOMEM,
		  "cannot write YAML: not enough memory");
	CHECK_STR(text, "untouched");
}
