#include "base/arena.h"
#include "base/macro.h"
#include "codec/toml.h"
#include "readers.h"
#include "test.h"

TEST(a_drop_in_is_written_in_plain_toml)
{
	static const struct str workloads[] = { STR_INIT("crio"), STR_INIT("runtime"),
						STR_INIT("workloads"), STR_INIT("management") };
	static const struct str resources[] = { STR_INIT("crio"), STR_INIT("a.b/c") };
	CLEANUP(arena_done) struct arena a;
	struct strbuf b;

	arena_init(&a, 0);
	strbuf_init(&b, &a);
	toml_table(&b, workloads, ARRAY_LEN(workloads));
	toml_str(&b, STR("annotation_prefix"), STR("resources.workload.openshift.io"));
	toml_int(&b, STR("cpushares"), 0);
	toml_table(&b, resources, ARRAY_LEN(resources));
	toml_bool(&b, STR("yes"), true);
	toml_bool(&b, STR("no"), false);
	CHECK_STR(strbuf_str(&b), "[crio.runtime.workloads.management]\n"
				  "annotation_prefix = \"resources.workload.openshift.io\"\n"
				  "cpushares = 0\n"
				  "\n"
				  "[crio.\"a.b/c\"]\n"
				  "yes = true\n"
				  "no = false\n");
}

TEST(a_first_table_has_no_blank_line_in_front)
{
	static const struct str name = STR_INIT("a");
	CLEANUP(arena_done) struct arena a;
	struct strbuf b;

	arena_init(&a, 0);
	strbuf_init(&b, &a);
	toml_table(&b, &name, 1);
	CHECK_STR(strbuf_str(&b), "[a]\n");
}

TEST(another_toml_reader_reads_the_same_values)
{
	static const struct str values[] = {
		STR_INIT(""),
		STR_INIT("a"),
		STR_INIT("a\"b"),
		STR_INIT("a\\b"),
		STR_INIT("a\nb\tc\r"),
		STR_INIT("'''"),
		STR_INIT("\"\"\""),
		STR_INIT("\x01\x1f\x7f"),
		STR_INIT("# c"),
		STR_INIT("a = 1"),
		STR_INIT("\xc3\xa4\xf0\x9f\x98\x80"),
		STR_INIT("\xc2\x85"),
		STR_INIT("\\u0041"),
	};
	static const struct str keys[] = {
		STR_INIT("plain"), STR_INIT("with-dash_1"), STR_INIT("1"),    STR_INIT(""),
		STR_INIT("a.b"),   STR_INIT("a b"),	    STR_INIT("a\"b"), STR_INIT("\xc3\xa4"),
		STR_INIT("#"),	   STR_INIT("="),	    STR_INIT("\n"),
	};
	static const struct str parts[] = { STR_INIT("t"), STR_INIT("x.y"), STR_INIT("") };
	CLEANUP(arena_done) struct arena a;
	struct strbuf b, json;

	arena_init(&a, 0);
	strbuf_init(&b, &a);
	strbuf_init(&json, &a);
	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		toml_str(&b, str_printf(&a, "v%zu", i), values[i]);
	toml_table(&b, parts, ARRAY_LEN(parts));
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		toml_int(&b, keys[i], i % 2 ? INT64_MIN : INT64_MAX);
	strbuf_add(&json,
		   STR("{\"v0\":\"\",\"v1\":\"a\",\"v2\":\"a\\\"b\",\"v3\":\"a\\\\b\",\"v4\":"
		       "\"a\\nb\\tc\\r\","
		       "\"v5\":\"'''\",\"v6\":\"\\\"\\\"\\\"\",\"v7\":\"\\u0001\\u001f\\u007f\","
		       "\"v8\":\"# c\",\"v9\":\"a = 1\",\"v10\":\"\xc3\xa4\xf0\x9f\x98\x80\","
		       "\"v11\":\"\\u0085\",\"v12\":\"\\\\u0041\","
		       "\"t\":{\"x.y\":{\"\":{"));
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		static const char *const escaped[] = { "plain", "with-dash_1", "1",	 "",
						       "a.b",	"a b",	       "a\\\"b", "\xc3\xa4",
						       "#",	"=",	       "\\n" };

		strbuf_printf(&json, "%s\"%s\":%s", i ? "," : "", escaped[i],
			      i % 2 ? "-9223372036854775808" : "9223372036854775807");
	}
	strbuf_add(&json, STR("}}}}"));
	readers_check("toml", strbuf_str(&b), strbuf_str(&json));
}
