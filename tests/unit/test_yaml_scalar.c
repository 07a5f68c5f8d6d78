#include "base/arena.h"
#include "base/macro.h"
#include "codec/yaml_scalar.h"
#include "test.h"

/* The rules of sigs.k8s.io/yaml, that is of go-yaml v2: resolve.go, then Go's strconv. */
TEST(plain_scalars_resolve_as_in_kubernetes)
{
	static const struct {
		const char *text;
		enum yaml_kind kind;
		const char *want; /* booleans: "true" or "false" */
	} cases[] = {
		{ "", YAML_NULL, "" },
		{ "~", YAML_NULL, "~" },
		{ "null", YAML_NULL, "null" },
		{ "Null", YAML_NULL, "Null" },
		{ "NULL", YAML_NULL, "NULL" },
		{ "nULL", YAML_STRING, "nULL" },
		{ "nil", YAML_STRING, "nil" },
		{ "y", YAML_BOOL, "true" },
		{ "Y", YAML_BOOL, "true" },
		{ "yes", YAML_BOOL, "true" },
		{ "Yes", YAML_BOOL, "true" },
		{ "YES", YAML_BOOL, "true" },
		{ "yEs", YAML_STRING, "yEs" },
		{ "on", YAML_BOOL, "true" },
		{ "On", YAML_BOOL, "true" },
		{ "ON", YAML_BOOL, "true" },
		{ "true", YAML_BOOL, "true" },
		{ "TRUE", YAML_BOOL, "true" },
		{ "n", YAML_BOOL, "false" },
		{ "N", YAML_BOOL, "false" },
		{ "no", YAML_BOOL, "false" },
		{ "NO", YAML_BOOL, "false" },
		{ "off", YAML_BOOL, "false" },
		{ "Off", YAML_BOOL, "false" },
		{ "False", YAML_BOOL, "false" },
		{ "tRUE", YAML_STRING, "tRUE" },
		{ "t", YAML_STRING, "t" },
		{ "0", YAML_NUMBER, "0" },
		{ "00", YAML_NUMBER, "0" },
		{ "7", YAML_NUMBER, "7" },
		{ "+7", YAML_NUMBER, "7" },
		{ "-7", YAML_NUMBER, "-7" },
		{ "-0", YAML_NUMBER, "-0" },
		{ "+0", YAML_NUMBER, "0" },
		{ "010", YAML_NUMBER, "8" },
		{ "-010", YAML_NUMBER, "-8" },
		{ "0o14", YAML_NUMBER, "12" },
		{ "0O14", YAML_NUMBER, "12" },
		{ "08", YAML_NUMBER, "8" }, /* no octal, so a decimal fraction */
		{ "-08", YAML_NUMBER, "-8" },
		{ "0009.50", YAML_NUMBER, "9.50" },
		{ "0x1F", YAML_NUMBER, "31" },
		{ "0X1f", YAML_NUMBER, "31" },
		{ "-0x1F", YAML_NUMBER, "-31" },
		{ "0b11", YAML_NUMBER, "3" },
		{ "-0b11", YAML_NUMBER, "-3" },
		{ "0x", YAML_STRING, "0x" },
		{ "0b", YAML_STRING, "0b" },
		{ "0b12", YAML_STRING, "0b12" },
		{ "0o8", YAML_STRING, "0o8" },
		{ "0xg", YAML_STRING, "0xg" },
		{ "1_000", YAML_NUMBER, "1000" },
		{ "1__0_", YAML_NUMBER, "10" },
		{ "0_10", YAML_NUMBER, "8" },
		{ "0x_1F", YAML_NUMBER, "31" },
		{ "_1", YAML_STRING, "_1" },
		{ "1_000.5", YAML_NUMBER, "1000.5" },
		{ "18446744073709551615", YAML_NUMBER, "18446744073709551615" },
		{ "12345678901234567890", YAML_NUMBER, "12345678901234567890" },
		{ "123456789012345678901234567890", YAML_NUMBER, "123456789012345678901234567890" },
		{ "0xffffffffffffffff", YAML_NUMBER, "18446744073709551615" },
		{ "-0x8000000000000000", YAML_NUMBER, "-9223372036854775808" },
		{ "0x10000000000000000", YAML_STRING, "0x10000000000000000" },
		{ "1.5", YAML_NUMBER, "1.5" },
		{ "0.10", YAML_NUMBER, "0.10" },
		{ "1.", YAML_NUMBER, "1" },
		{ ".5", YAML_NUMBER, "0.5" },
		{ "+.5", YAML_NUMBER, "0.5" },
		{ "-.5", YAML_NUMBER, "-0.5" },
		{ "1e3", YAML_NUMBER, "1e3" },
		{ "1E3", YAML_NUMBER, "1E3" },
		{ "+1E+3", YAML_NUMBER, "1e+3" },
		{ "1.e-3", YAML_NUMBER, "1e-3" },
		{ ".5e10", YAML_NUMBER, "0.5e10" },
		{ "1e400", YAML_NUMBER, "1e400" }, /* numbers stay text */
		{ ".", YAML_STRING, "." },
		{ "+", YAML_STRING, "+" },
		{ "-", YAML_STRING, "-" },
		{ "--1", YAML_STRING, "--1" },
		{ "+-1", YAML_STRING, "+-1" },
		{ "1e", YAML_STRING, "1e" },
		{ "1e+", YAML_STRING, "1e+" },
		{ "e3", YAML_STRING, "e3" },
		{ ".e3", YAML_STRING, ".e3" },
		{ "1.2.3", YAML_STRING, "1.2.3" },
		{ "1,000", YAML_STRING, "1,000" },
		{ "12:30", YAML_STRING, "12:30" },
		{ "190:20:30", YAML_STRING, "190:20:30" },
		{ "2001-01-01", YAML_STRING, "2001-01-01" },
		{ "2001-12-14t21:59:43.10-05:00", YAML_STRING, "2001-12-14t21:59:43.10-05:00" },
		{ "500m", YAML_STRING, "500m" },
		{ "0-3", YAML_STRING, "0-3" },
		{ "0,2", YAML_STRING, "0,2" },
		{ "8Gi", YAML_STRING, "8Gi" },
		{ "=", YAML_STRING, "=" },
		{ ".inf", YAML_NOT_FINITE, ".inf" },
		{ "-.INF", YAML_NOT_FINITE, "-.INF" },
		{ "+.Inf", YAML_NOT_FINITE, "+.Inf" },
		{ ".NaN", YAML_NOT_FINITE, ".NaN" },
		{ "inf", YAML_STRING, "inf" },
		{ "nan", YAML_STRING, "nan" },
		{ "+.nan", YAML_STRING, "+.nan" },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct yaml_scalar got = yaml_scalar_resolve(str_from(cases[i].text), &a);

		TEST_ROW("\"%s\"", cases[i].text);
		CHECK_INT(got.kind, cases[i].kind);
		if (got.kind == YAML_BOOL)
			CHECK_STR(got.boolean ? "true" : "false", cases[i].want);
		else
			CHECK_STR(got.text, cases[i].want);
	}
}

TEST(ambiguous_strings_are_not_plain)
{
	static const struct str texts[] = {
		STR_INIT(""),
		STR_INIT("~"),
		STR_INIT("null"),
		STR_INIT("NULL"),
		STR_INIT("no"),
		STR_INIT("Yes"),
		STR_INIT("on"),
		STR_INIT("n"),
		STR_INIT("true"),
		STR_INIT("False"),
		STR_INIT("0"),
		STR_INIT("010"),
		STR_INIT("1_000"),
		STR_INIT("12:30"),
		STR_INIT("0x1f"),
		STR_INIT("0o14"),
		STR_INIT("0b1"),
		STR_INIT("1e3"),
		STR_INIT("1.5"),
		STR_INIT(".5"),
		STR_INIT("+1"),
		STR_INIT("-1"),
		STR_INIT("."),
		STR_INIT(".."),
		STR_INIT("..."),
		STR_INIT("---"),
		STR_INIT(".inf"),
		STR_INIT(".NaN"),
		STR_INIT("1,000"),
		STR_INIT("2001-01-01"),
		STR_INIT("2001-1-1T2:3:4Z"),
		STR_INIT("2001-01-01 02:03:04"),
		STR_INIT("-"),
		STR_INIT("- a"),
		STR_INIT("-a"),
		STR_INIT("? a"),
		STR_INIT("a: b"),
		STR_INIT("a:"),
		STR_INIT("a :"),
		STR_INIT("# c"),
		STR_INIT("a # c"),
		STR_INIT(" a"),
		STR_INIT("a "),
		STR_INIT("a  b"),
		STR_INIT("a\tb"),
		STR_INIT("a\nb"),
		STR_INIT("a\n"),
		STR_INIT("*a"),
		STR_INIT("&a"),
		STR_INIT("!a"),
		STR_INIT("|"),
		STR_INIT(">"),
		STR_INIT("@a"),
		STR_INIT("`a"),
		STR_INIT("%a"),
		STR_INIT("{a}"),
		STR_INIT("[a]"),
		STR_INIT("a]"),
		STR_INIT(",a"),
		STR_INIT("'a'"),
		STR_INIT("\"a\""),
		STR_INIT("<<"),
		STR_INIT("="),
		STR_INIT("a\0b"),
		STR_INIT("\x7f"),
		STR_INIT("\xc3\xa4"),
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		TEST_ROW("\"" PRI_STR "\"", FMT_STR(texts[i]));
		CHECK(!yaml_scalar_is_plain_safe(texts[i]));
	}
}

TEST(unambiguous_strings_are_plain)
{
	static const char *const texts[] = {
		"a",	       "nginx",
		"kube-system", "v1",
		"apps/v1",     "500m",
		"8Gi",	       "a b c",
		"a:b",	       "http://x/y",
		"nginx:1.2",   "1.2.3-rc1",
		"4194304k",    "0-3,8-11n",
		"user@host",   "/dev/null",
		"rw,nosuid",   "yesterday",
		"nothing",     "2nd",
		"x.y.z/w",     "management.workload.openshift.io/cores",
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		TEST_ROW("\"%s\"", texts[i]);
		CHECK(yaml_scalar_is_plain_safe(str_from(texts[i])));
	}
}

TEST(running_out_of_memory_sets_the_arenas_failed_flag)
{
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 1);
	(void)yaml_scalar_resolve(STR("0x1F"), &a);
	CHECK(a.failed);
}
