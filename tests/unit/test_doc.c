#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "codec/doc.h"
#include "codec/problems.h"
#include "test.h"

static struct doc parse(struct arena *a, const char *text)
{
	struct err err = { 0 };
	struct doc doc = { 0 };

	CHECK_OK(doc_parse(str_from(text), STR("f.json"), NULL, a, &doc, &err));
	return doc;
}

/* `open` n times and `close` n times, with `inner` between. */
static struct str nested(struct arena *a, const char *open, const char *inner, const char *close,
			 size_t n)
{
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < n; i++)
		strbuf_add(&b, str_from(open));
	strbuf_add(&b, str_from(inner));
	for (size_t i = 0; i < n; i++)
		strbuf_add(&b, str_from(close));
	return strbuf_str(&b);
}

TEST(json_is_unchanged_after_reading_and_writing)
{
	static const char *const texts[] = {
		"null",
		"true",
		"\"\"",
		"[]",
		"{}",
		"0",
		"-0",
		"0.10",
		"1e400",
		"1E+5",
		"-1.50e-10",
		"12345678901234567890",
		"123456789012345678901234567890123456789012345678901234567890123456789012345",
		"[1,[2,[3]],{\"a\":[]}]",
		"{\"b\":1,\"a\":{\"c\":null,\"b\":false}}",
		"{\"\":\"\"}",
		"\"a\\u0000b\\\"\\\\\\n\"",
		"\"\xc3\xa4\xf0\x9f\x98\x80\"",
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct doc doc = parse(&a, texts[i]);
		yyjson_mut_doc *m = doc_build(&a);
		struct err err = { 0 };
		struct str out;

		TEST_ROW("%s", texts[i]);
		CHECK_OK(doc_write_val(doc.root, false, &a, &out, &err));
		CHECK_STR(out, texts[i]);
		CHECK_OK(doc_write(yyjson_val_mut_copy(m, doc.root), false, &a, &out, &err));
		CHECK_STR(out, texts[i]);
	}
}

TEST(pretty_text_is_indented_by_two)
{
	static const char *const cases[][2] = {
		{ "1", "1" },
		{ "[]", "[]" },
		{ "{}", "{}" },
		{ "\"[{,:\\\"\\\\\"", "\"[{,:\\\"\\\\\"" },
		{ "[1.5,\"a\"]", "[\n  1.5,\n  \"a\"\n]" },
		{ "{\"a\":[1,{}],\"b\":{\"c\":[[]]}}",
		  "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": {\n    \"c\": [\n      []\n    "
		  "]\n  }\n}" },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct doc doc = parse(&a, cases[i][0]);
		struct err err = { 0 };
		struct str out;

		TEST_ROW("%s", cases[i][0]);
		CHECK_OK(doc_write_val(doc.root, true, &a, &out, &err));
		CHECK_STR(out, cases[i][1]);
		CHECK_OK(doc_write(yyjson_val_mut_copy(doc_build(&a), doc.root), true, &a, &out,
				   &err));
		CHECK_STR(out, cases[i][1]);
	}
}

TEST(bad_json_is_refused_with_its_position)
{
	static const struct {
		struct str text;
		const char *want;
	} cases[] = {
		{ STR_INIT(""), "f.json:1:1: " },
		{ STR_INIT("{"), "f.json:1:2: " },
		{ STR_INIT("{\n  \"a\": 1,\n  \"b\" 2\n}"), "f.json:3:7: " },
		{ STR_INIT("[1,]"), "f.json:1:3: " },
		{ STR_INIT("{\"a\":1,}"), "f.json:1:7: " },
		{ STR_INIT("[01]"), "f.json:1:" },
		{ STR_INIT("[+1]"), "f.json:1:2: " },
		{ STR_INIT("[.5]"), "f.json:1:2: " },
		{ STR_INIT("[1.]"), "f.json:1:" },
		{ STR_INIT("[NaN]"), "f.json:1:2: " },
		{ STR_INIT("[Infinity]"), "f.json:1:2: " },
		{ STR_INIT("[0x10]"), "f.json:1:" },
		{ STR_INIT("['a']"), "f.json:1:2: " },
		{ STR_INIT("{a:1}"), "f.json:1:2: " },
		{ STR_INIT("[1] // c"), "f.json:1:5: " },
		{ STR_INIT("[1]\n[2]"), "f.json:2:1: " },
		{ STR_INIT("[\"\xc3\xa4\xc3\xa4\", x]"),
		  "f.json:1:8: " }, /* characters, not bytes */
		{ STR_INIT("[\"a\nb\"]"), "f.json:1:" },
		{ STR_INIT("[\"\xff\"]"), "f.json:1:" },
		{ STR_INIT("[\"\\ud800\"]"), "f.json:1:" },
		{ STR_INIT("[\"\\x41\"]"), "f.json:1:" },
		{ STR_INIT("\xef\xbb\xbf[]"), "f.json:1:1: " },
		{ STR_INIT("[1]\0"), "f.json:1:4: " },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = { 0 };
		struct doc doc = { .n_values = 42 };

		TEST_ROW("row %zu", i);
		CHECK_INT(doc_parse(cases[i].text, STR("f.json"), NULL, &a, &doc, &err), -EINVAL);
		if (!str_starts(str_from(err.msg), str_from(cases[i].want)))
			CHECK_STR((const char *)err.msg, cases[i].want);
		CHECK(strlen(err.msg) > strlen(cases[i].want));
		CHECK_UINT(doc.n_values, 42);
	}
}

TEST(an_error_shows_the_known_parts_of_the_position)
{
	static const struct {
		struct str file;
		struct doc_pos pos;
		const char *want;
	} cases[] = {
		{ STR_INIT("f"), { 3, 4 }, "f:3:4: bad x" },
		{ STR_INIT("f"), { 0, 0 }, "f: bad x" },
		{ STR_INIT(""), { 3, 4 }, "3:4: bad x" },
		{ STR_INIT(""), { 0, 0 }, "bad x" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = { 0 };

		CHECK_ERR(doc_err_at(&err, ERANGE, cases[i].file, cases[i].pos, "bad %s", "x"),
			  ERANGE, cases[i].want);
	}
}

TEST(every_value_has_its_position)
{
	static const char text[] = "{\n"
				   "  \"a\": 1.5,\n"
				   "  \"\xc3\xa4\\n\": [true, \"\", \"x\"],\n"
				   "  \"o\": {\"\": null}\n"
				   "}";
	static const struct {
		const char *pointer;
		struct doc_pos want;
	} cases[] = {
		{ "", { 1, 1 } },
		{ "/a", { 2, 8 } },
		{ "/\xc3\xa4\n", { 3, 3 } }, /* the key, for a list */
		{ "/\xc3\xa4\n/0", { 3, 3 } },
		{ "/\xc3\xa4\n/1", { 3, 17 } }, /* an empty string has a place, too */
		{ "/\xc3\xa4\n/2", { 3, 21 } },
		{ "/o", { 4, 3 } },
		{ "/o/", { 4, 9 } },
		{ "/none", { 0, 0 } },
	};
	CLEANUP(arena_done) struct arena a;
	struct doc doc, other;

	arena_init(&a, 0);
	doc = parse(&a, text);
	other = parse(&a, "[1]");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct doc_pos pos = doc_position(&doc, doc_find(doc.root, cases[i].pointer));

		TEST_ROW("%s", cases[i].pointer);
		CHECK_UINT(pos.line, cases[i].want.line);
		CHECK_UINT(pos.column, cases[i].want.column);
	}
	CHECK_UINT(doc_position(&doc, other.root).line, 0);
	CHECK_UINT(doc_position(&other, doc.root).line, 0);
}

TEST(an_error_names_file_line_and_column)
{
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct doc doc;

	arena_init(&a, 0);
	doc = parse(&a, "{\n\t\"cpus\": 7}");
	CHECK_ERR(doc_err(&err, &doc, doc_get(doc.root, STR("cpus")), "want %s", "a list"), EINVAL,
		  "f.json:2:10: want a list");
	CHECK_ERR(doc_err(&err, &doc, NULL, "no cpus"), EINVAL, "f.json: no cpus");
}

TEST(depth_is_limited)
{
	static const struct {
		const char *open, *inner, *close;
		size_t levels, limit;
		const char *want; /* NULL: fine */
	} cases[] = {
		{ "[", "1", "]", 100, 0, NULL },
		{ "[", "1", "]", 101, 0, "f.json:1:1: nested deeper than 100 levels" },
		{ "[", "", "]", 101, 0, "f.json:1:1: nested deeper than 100 levels" },
		{ "[1,", "1", "]", 100, 0, NULL },
		{ "[1,", "1", "]", 101, 0, "f.json:1:299: nested deeper than 100 levels" },
		{ "{\"a\":", "1", "}", 100, 0, NULL },
		{ "{\"a\":", "1", "}", 101, 0, "f.json:1:497: nested deeper than 100 levels" },
		{ "[", "1", "]", 3, 3, NULL },
		{ "[", "1", "]", 4, 3, "f.json:1:1: nested deeper than 3 levels" },
		{ "[", "1", "]", 101, 1000000, "f.json:1:1: nested deeper than 100 levels" },
		{ "[[],[[]],", "1", "]", 3, 5, NULL },
		{ "[[],[[]],", "1", "]", 3, 4, "f.json:1:1: nested deeper than 4 levels" },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct str text =
			nested(&a, cases[i].open, cases[i].inner, cases[i].close, cases[i].levels);
		struct doc_limits limits = { .depth = cases[i].limit };
		struct err err = { 0 };
		struct doc doc;
		int r = doc_parse(text, STR("f.json"), &limits, &a, &doc, &err);

		TEST_ROW("row %zu", i);
		if (cases[i].want)
			CHECK_ERR(r, EINVAL, cases[i].want);
		else
			CHECK_OK(r);
	}
}

TEST(size_and_memory_are_limited)
{
	const struct doc_limits limits = { .size_bytes = 5 };
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct str out;
	struct doc doc;

	arena_init(&a, 0);
	CHECK_OK(doc_parse(STR("[1,2]"), STR("f"), &limits, &a, &doc, &err));
	CHECK_ERR(doc_parse(STR("[1,23]"), STR("f"), &limits, &a, &doc, &err), EFBIG,
		  "f: larger than 5 bytes");
	CHECK_ERR(doc_parse(STR("[1,23]"), STR(""), &limits, &a, &doc, &err), EFBIG,
		  "larger than 5 bytes");
	a.limit = a.used + 64;
	CHECK_ERR(doc_parse(nested(&a, "[", "", "]", 20), STR("f"), NULL, &a, &doc, &err), ENOMEM,
		  "f: not enough memory");
	CHECK_ERR(doc_write_val(doc.root, false, &a, &out, &err), ENOMEM,
		  "cannot write JSON: memory allocation failed");
}

/* With any memory limit there is a complete result or an error. */
/* With one byte of memory: the text is refused before it is copied. */
TEST(values_are_counted_before_memory_is_used)
{
	static const struct {
		const char *text;
		size_t limit;
		const char *want; /* NULL: enough values */
	} cases[] = {
		{ "[1,2,3]", 4, NULL },
		{ "[1,2,3]", 3, "f.json: more than 3 values" },
		{ "{\"a\":[true]}", 4, NULL },
		{ "{\"a\":[true]}", 3, "f.json: more than 3 values" },
		{ "[[[[[[[[", 5, "f.json: more than 5 values" },
		{ "[\"[[[[,,,,\"]", 2, NULL },
		{ "[\"\\\"[[[[,,,,\"]", 2, NULL },
		{ "[\"\\\\\",1,1,1]", 4, "f.json: more than 4 values" },
		{ "[\"cut off \\", 3, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct doc_limits limits = { .values = cases[i].limit };
		CLEANUP(arena_done) struct arena a;
		struct err err = { 0 };
		struct doc doc;
		int r;

		TEST_ROW("%s", cases[i].text);
		arena_init(&a, cases[i].want ? 1 : 0);
		r = doc_parse(str_from(cases[i].text), STR("f.json"), &limits, &a, &doc, &err);
		CHECK_INT(r == -EFBIG, cases[i].want != NULL);
		if (cases[i].want)
			CHECK_STR(err.msg, cases[i].want);
	}
}

TEST(problems_beyond_the_memory_limit_are_counted)
{
	CLEANUP(arena_done) struct arena a;
	struct problem_list p;

	arena_init(&a, 4096);
	problem_list_init(&p, &a);
	for (int i = 0; i < 1000; i++)
		problem_error(&p, PROBLEM_AT(NULL, NULL, "spec"), "problem %d", i);
	problem_from_err(&p, &(struct err){ .msg = "x" });
	CHECK(a.failed);
	CHECK_UINT(p.n_errors, 1001);
	CHECK(p.n > 0 && p.n < 1000);
}

TEST(every_memory_limit_gives_a_result_or_an_error)
{
	static const char text[] = "{\"a\":[1,2,{\"b\":\"text\"}],\"c\":\"\\u0041\"}";
	bool succeeded = false;

	for (size_t limit = 1; !succeeded; limit++) {
		CLEANUP(arena_done) struct arena a;
		struct err err = { 0 };
		struct doc doc;
		struct str out;
		int r;

		arena_init(&a, limit);
		r = doc_parse(str_from(text), STR("f"), NULL, &a, &doc, &err);
		if (r == 0)
			r = doc_check_keys(&doc, &a, &err);
		if (r == 0)
			r = doc_write_val(doc.root, false, &a, &out, &err);
		TEST_ROW("%zu bytes", limit);
		CHECK_INT(r, a.failed ? -ENOMEM : 0);
		succeeded = r == 0;
		if (succeeded)
			CHECK_STR(out, "{\"a\":[1,2,{\"b\":\"text\"}],\"c\":\"A\"}");
		CHECK(limit < 10000);
	}
}

TEST(a_duplicate_key_is_refused)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "{\"a\":1,\"b\":1,\"A\":1}", NULL },
		{ "{\"a\":{\"a\":{\"a\":1}},\"b\":[{\"a\":1},{\"a\":1}]}", NULL },
		{ "[]", NULL },
		{ "{\"a\":1,\n\"b\":2,\n \"a\":3}", "f.json:3:2: key \"a\" is given twice" },
		{ "{\"a\":1,\"\\u0061\":2}", "f.json:1:8: key \"a\" is given twice" },
		{ "{\"x\":[{\"\":1,\"\":1}]}", "f.json:1:13: key \"\" is given twice" },
		{ "{\"a\\n\":1,\"a\\n\":2}", "f.json:1:10: key \"a\\n\" is given twice" },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct doc doc = parse(&a, cases[i].text);
		struct err err = { 0 };
		int r = doc_check_keys(&doc, &a, &err);

		TEST_ROW("%s", cases[i].text);
		if (cases[i].want)
			CHECK_ERR(r, EINVAL, cases[i].want);
		else
			CHECK_OK(r);
	}
}

TEST(accessors_accept_values_of_another_type)
{
	static const struct {
		const char *text, *str, *as_text, *type;
		bool is_number, audit;
	} cases[] = {
		{ "null", "", "", "null", false, false },
		{ "true", "", "", "a boolean", false, true },
		{ "false", "", "", "a boolean", false, false },
		{ "1.50", "", "1.50", "a number", true, false },
		{ "\"x\"", "x", "x", "a string", false, false },
		{ "[\"x\"]", "", "", "a list", false, false },
		{ "{\"k\":\"x\"}", "", "", "an object", false, false },
	};
	CLEANUP(arena_done) struct arena a;
	int64_t n = 5;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		yyjson_val *v = parse(&a, cases[i].text).root;

		TEST_ROW("%s", cases[i].text);
		CHECK_STR(doc_str(v), cases[i].str);
		CHECK_STR(doc_text(v), cases[i].as_text);
		CHECK_STR(doc_type(v), cases[i].type);
		CHECK(doc_is_number(v) == cases[i].is_number);
		CHECK(doc_bool(v, false) == cases[i].audit);
		CHECK(!doc_get(v, STR("none")) && !doc_find(v, "/none/1"));
		CHECK(!doc_int(v, &n));
	}
	CHECK_STR(doc_str(NULL), "");
	CHECK_STR(doc_text(NULL), "");
	CHECK_STR(doc_type(NULL), "nothing");
	CHECK(doc_bool(NULL, true) && !doc_is_number(NULL) && !doc_get(NULL, STR("k")));
	CHECK(!doc_find(NULL, "/k") && !doc_int(NULL, &n));
	CHECK_INT(n, 5);
}

TEST(integers_are_read_without_loss)
{
	static const struct {
		const char *text;
		bool ok;
		int64_t want;
	} cases[] = {
		{ "0", true, 0 },
		{ "-0", true, 0 },
		{ "-1", true, -1 },
		{ "9223372036854775807", true, INT64_MAX },
		{ "-9223372036854775808", true, INT64_MIN },
		{ "9223372036854775808", false, 0 },
		{ "-9223372036854775809", false, 0 },
		{ "1.0", false, 0 },
		{ "1e3", false, 0 },
		{ "\"1\"", false, 0 },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int64_t got = 42;

		TEST_ROW("%s", cases[i].text);
		CHECK(doc_int(parse(&a, cases[i].text).root, &got) == cases[i].ok);
		CHECK_INT(got, cases[i].ok ? cases[i].want : 42);
	}
}

TEST(loops_visit_everything_in_order)
{
	CLEANUP(arena_done) struct arena a;
	yyjson_val *key, *value, *item;
	struct strbuf b;

	arena_init(&a, 0);
	strbuf_init(&b, &a);
	DOC_EACH_PAIR (parse(&a, "{\"b\":1,\"a\":2}").root, key, value)
		strbuf_printf(&b, PRI_STR "=" PRI_STR " ", FMT_STR(doc_str(key)),
			      FMT_STR(doc_text(value)));
	DOC_EACH_ITEM (parse(&a, "[3,4]").root, item)
		strbuf_printf(&b, PRI_STR " ", FMT_STR(doc_text(item)));
	DOC_EACH_ITEM (parse(&a, "{\"x\":1}").root, item)
		strbuf_add(&b, STR("wrong type"));
	CHECK_STR(strbuf_str(&b), "b=1 a=2 3 4 ");
}

TEST(a_built_document_can_be_written_and_frozen)
{
	CLEANUP(arena_done) struct arena a;
	yyjson_mut_doc *m;
	yyjson_mut_val *root, *list;
	struct err err = { 0 };
	struct str out;
	int64_t n = 0;

	arena_init(&a, 0);
	m = doc_build(&a);
	root = yyjson_mut_obj(m);
	CHECK(doc_put_str(m, root, STR("s"), STR("x")));
	CHECK(doc_put_str(m, root, STR("empty"), (struct str){ NULL, 0 }));
	CHECK(doc_put_int(m, root, STR("min"), INT64_MIN));
	CHECK(doc_put_bool(m, root, STR("yes"), true));
	CHECK(doc_put_bool(m, doc_put_obj(m, root, STR("o")), STR("no"), false));
	list = doc_put_arr(m, root, STR("l"));
	CHECK(yyjson_mut_arr_append(list, doc_new_int(m, 7)));
	CHECK(doc_put_str(m, root, STR("s"), STR("y"))); /* replaces */
	CHECK_OK(doc_write(root, false, &a, &out, &err));
	CHECK_STR(out, "{\"s\":\"y\",\"empty\":\"\",\"min\":-9223372036854775808,\"yes\":true,"
		       "\"o\":{\"no\":false},\"l\":[7]}");
	CHECK(doc_int(doc_find(doc_freeze(root, &a), "/min"), &n));
	CHECK_INT(n, INT64_MIN);
	CHECK_STR(doc_mut_str(yyjson_mut_obj_get(root, "s")), "y");
	CHECK_STR(doc_mut_str(root), "");
}

TEST(a_string_that_is_not_utf8_cannot_be_written)
{
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct str out;

	arena_init(&a, 0);
	CHECK_INT(doc_write(doc_new_str(doc_build(&a), STR("\xff")), false, &a, &out, &err),
		  -EINVAL);
	CHECK(str_starts(str_from(err.msg), STR("cannot write JSON: ")));
}
