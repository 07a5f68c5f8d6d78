/* TOML 1.0, as in the configuration files of container runtimes. */

#include <errno.h>

#include "base/arena.h"
#include "base/macro.h"
#include "codec/toml_read.h"
#include "test.h"

TEST(toml_is_read_into_the_equivalent_json)
{
	static const struct {
		const char *toml, *json;
	} rows[] = {
		{ "", "{}" },
		{ "# nothing\n\n  \t\r\n", "{}" },
		{ "a = 1", "{\"a\":1}" },
		{ "a = 1 # one\nb = -2\nc = +3", "{\"a\":1,\"b\":-2,\"c\":3}" },
		{ "a = 0xff\nb = 0o17\nc = 0b101\nd = 1_000",
		  "{\"a\":255,\"b\":15,\"c\":5,\"d\":1000}" },
		{ "a = 9223372036854775807\nb = -9223372036854775808",
		  "{\"a\":9223372036854775807,\"b\":-9223372036854775808}" },
		{ "a = true\nb = false", "{\"a\":true,\"b\":false}" },
		{ "a = 1.5\nb = 1e3\nc = -0.5", "{\"a\":1.5,\"b\":1000.0,\"c\":-0.5}" },
		{ "a = 1979-05-27T07:32:00Z\nb = 07:32:00",
		  "{\"a\":\"1979-05-27T07:32:00Z\",\"b\":\"07:32:00\"}" },
		{ "a = \"x\\ty\\u00e9\\U0001F600\\\"\"",
		  "{\"a\":\"x\\ty\xc3\xa9\xf0\x9f\x98\x80\\\"\"}" },
		{ "a = 'C:\\x'", "{\"a\":\"C:\\\\x\"}" },
		{ "a = \"\"\"\nx\n  y\"\"\"", "{\"a\":\"x\\n  y\"}" },
		{ "a = \"\"\"x \\\n   y\"\"\"", "{\"a\":\"x y\"}" },
		{ "a = '''\nx'y''''", "{\"a\":\"x'y'\"}" },
		{ "a.b.c = 1\na.b.d = 2", "{\"a\":{\"b\":{\"c\":1,\"d\":2}}}" },
		{ "\"a b\".'c' = 1", "{\"a b\":{\"c\":1}}" },
		{ "[a]\nx = 1\n[a.b]\ny = 2", "{\"a\":{\"x\":1,\"b\":{\"y\":2}}}" },
		{ "[a.b]\ny = 2\n[a]\nx = 1", "{\"a\":{\"b\":{\"y\":2},\"x\":1}}" },
		{ "[ a . \"b.c\" ]\nx = 1", "{\"a\":{\"b.c\":{\"x\":1}}}" },
		{ "[[a]]\nx = 1\n[[a]]\nx = 2\n[a.b]\ny = 3",
		  "{\"a\":[{\"x\":1},{\"x\":2,\"b\":{\"y\":3}}]}" },
		{ "a = { b = 1, \"c\" = { d = 2 }, e.f = 3 }",
		  "{\"a\":{\"b\":1,\"c\":{\"d\":2},\"e\":{\"f\":3}}}" },
		{ "a = []\nb = [1, 2,]\nc = [\n 1, # one\n [\"x\"],\n]",
		  "{\"a\":[],\"b\":[1,2],\"c\":[1,[\"x\"]]}" },
	};
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		yyjson_val *root;
		struct str json;

		TEST_ROW("%s", rows[i].toml);
		CHECK_OK(toml_parse(str_from(rows[i].toml), STR("t"), &a, &root, &err));
		CHECK_OK(doc_write_val(root, false, &a, &json, &err));
		CHECK_STR(json, rows[i].json);
	}
}

TEST(bad_toml_is_refused_with_its_position)
{
	static const struct {
		const char *toml, *sentence;
	} rows[] = {
		{ "a", "t:1:2: '=' is missing" },
		{ "a =", "t:1:4: a value is missing" },
		{ "a = 1 2", "t:1:7: unexpected text before the end of the line" },
		{ "a = 01", "t:1:5: invalid value \"01\"" },
		{ "a = 1__0", "t:1:5: invalid value \"1__0\"" },
		{ "a = 9223372036854775808", "t:1:5: invalid value \"9223372036854775808\"" },
		{ "a = True", "t:1:5: invalid value \"True\"" },
		{ "a = \"x", "t:1:5: unterminated string" },
		{ "a = \"x\ny\"", "t:1:5: unterminated string" },
		{ "a = '''x", "t:1:5: unterminated string" },
		{ "a = \"\\q\"", "t:1:7: unknown escape" },
		{ "a = \"\\ud800\"", "t:1:8: not a Unicode character" },
		{ "a = \"\\u00\"", "t:1:10: a hexadecimal digit is missing" },
		{ "a = 1\na = 2", "t:2:1: already defined: \"a\"" },
		{ "[a]\n[a]", "t:2:2: already defined: \"a\"" },
		{ "a = 1\n[a]", "t:2:2: already defined: \"a\"" },
		{ "a = 1\n[a.b]", "t:2:2: already defined: \"a\"" },
		{ "a = {b = 1}\n[a.c]", "t:2:2: already defined: \"a\"" },
		{ "a = {b = 1}\na.c = 2", "t:2:1: already defined: \"a\"" },
		{ "[a]\nb = 1\n[a.c]\nd = 1\n[x]\n[a]", "t:6:2: already defined: \"a\"" },
		{ "a = [1]\n[[a]]", "t:2:3: already defined: \"a\"" },
		{ "[a", "t:1:3: ']' is missing" },
		{ "[]", "t:1:2: a key is missing" },
		{ "= 1", "t:1:1: a key is missing" },
		{ "a = [1 2]", "t:1:8: ',' or ']' is missing" },
		{ "a = {b = 1 c = 2}", "t:1:12: ',' or '}' is missing" },
		{ "a = {b = 1,}", "t:1:12: a key is missing" },
		{ "\"\"\"a\"\"\" = 1", "t:1:1: a key cannot be a multi-line string" },
		{ "a = \"\x01\"", "t:1:6: control character in a string" },
		{ "# \x01", "t:1:3: control character in a comment" },
	};
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	yyjson_val *root;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		TEST_ROW("%s", rows[i].toml);
		CHECK_ERR(toml_parse(str_from(rows[i].toml), STR("t"), &a, &root, &err), EINVAL,
			  rows[i].sentence);
	}
}

TEST(deep_nesting_is_refused)
{
	CLEANUP(arena_done) struct arena a;
	struct err err = { 0 };
	struct strbuf b;
	yyjson_val *root;

	arena_init(&a, 0);
	strbuf_init(&b, &a);
	strbuf_add(&b, STR("a = "));
	for (int i = 0; i < 100000; i++)
		strbuf_addc(&b, '[');
	CHECK_ERR(toml_parse(strbuf_str(&b), STR("t"), &a, &root, &err), EINVAL,
		  "t:1:69: nested too deeply");
}
