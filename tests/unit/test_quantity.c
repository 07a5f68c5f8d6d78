#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "kube/quantity.h"
#include "kube/shares.h"
#include "test.h"

#define FORMAT_WRONG                                                                               \
	"quantities must match the regular expression "                                            \
	"'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
#define SUFFIX "unable to parse quantity's suffix"
#define NUMERIC "unable to parse numeric part of quantity"

static struct quantity parse(const char *text)
{
	struct err err = { 0 };
	struct quantity q;

	CHECK_OK(quantity_parse(str_from(text), &q, &err));
	return q;
}

static void check_text(struct test_at at, struct quantity q, const char *want)
{
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	test_check_str(at, quantity_format(&q, &a), str_from(want));
}
#define CHECK_TEXT(q, want) check_text(TEST_AT(#q), (q), (want))

static int64_t milli(struct quantity q)
{
	struct err err = { 0 };
	int64_t m;

	CHECK_OK(quantity_milli(&q, &m, &err));
	return m;
}

TEST(quantities_print_as_the_api_server_prints_them)
{
	static const struct {
		const char *text, *want;
		int64_t value, milli; /* out of range, see below */
	} cases[] = {
		{ "0", "0", 0, 0 },
		{ "-0", "0", 0, 0 },
		{ "100.0m", "100m", 1, 100 },
		{ "1.0", "1", 1, 1000 },
		{ "02", "02", 2, 2000 },
		{ "1.500", "1.500", 2, 1500 },
		{ "1000", "1k", 1000, 1000000 },
		{ "1e+3", "1e+3", 1000, 1000000 },
		{ "250e-3", "250e-3", 1, 250 },
		{ "0.5m", "500u", 1, 1 },
		{ "1.5m", "1500u", 1, 2 },
		{ "0.00000000001", "1n", 1, 1 },
		{ "1.5Ki", "1536", 1536, 1536000 },
		{ "1023Ki", "1023Ki", 1047552, 1047552000 },
		{ "4096Ki", "4Mi", 4194304, 4194304000 },
		{ "1Pi", "1Pi", 1125899906842624, INT64_MAX },
		{ "04Ki", "04Ki", 4096, 4096000 },
		{ "08Ki", "8Ki", 8192, 8192000 },
		{ "012345678901Ki", "012345678901Ki", 12641975194624, INT64_MAX },
		{ "0123456789012Ki", "123456789012Ki", 126419751948288, INT64_MAX },
		{ "0123456789012345678", "0123456789012345678", 123456789012345678, INT64_MAX },
		{ "01234567890123456789", "1234567890123456789", 1234567890123456789, INT64_MAX },
		{ "1000P", "1E", 1000000000000000000, INT64_MAX },
		{ "0.05Gi", "53687091200m", 53687092, 53687091200 },
		{ "1.1E-9", "2e-9", 1, 1 },
		{ "1.3E+6", "1300e3", 1300000, 1300000000 },
		{ "9.01", "9010m", 10, 9010 },
		{ "-1", "-1", -1, -1000 },
		{ "-1536Mi", "-1536Mi", -1610612736, -1610612736000 },
		{ "-0.5Ki", "-512", -512, -512000 },
		{ "0.0000000001Ki", "103n", 1, 1 },
		{ "123456789012.123456789", "123456789012123456789n", 123456789013,
		  123456789012124 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct quantity q = parse(cases[i].text);

		TEST_ROW("\"%s\"", cases[i].text);
		CHECK_TEXT(q, cases[i].want);
		CHECK_INT(quantity_value(&q), cases[i].value);
		if (cases[i].milli <= QUANTITY_MILLI_MAX)
			CHECK_INT(milli(q), cases[i].milli);
	}
}

TEST(invalid_quantities_fail_with_the_api_servers_message)
{
	static const struct {
		const char *text;
		int code;
		const char *sentence;
	} cases[] = {
		{ "", EINVAL, FORMAT_WRONG },
		{ " 1", EINVAL, FORMAT_WRONG },
		{ "1_000", EINVAL, FORMAT_WRONG },
		{ "1+1.0M", EINVAL, FORMAT_WRONG },
		{ "aoeu", EINVAL, FORMAT_WRONG },
		{ "\xd9\xa3", EINVAL, FORMAT_WRONG },
		{ "--1", EINVAL, SUFFIX },
		{ "1e", EINVAL, SUFFIX },
		{ "1e9223372036854775808", EINVAL, SUFFIX },
		{ "1Kim", EINVAL, SUFFIX },
		{ "-", EINVAL, NUMERIC },
		{ "+", EINVAL, NUMERIC },
		{ ".", EINVAL, NUMERIC },
		{ "m", EINVAL, NUMERIC },
		{ "Ki", EINVAL, NUMERIC },
		{ "12E", ERANGE, "quantity \"12E\" is out of range" },
		{ "9Ei", ERANGE, "quantity \"9Ei\" is out of range" },
		{ "8Ei", ERANGE, "quantity \"8Ei\" is out of range" },
		{ "1e100", ERANGE, "quantity \"1e100\" is out of range" },
		{ "-1000E", ERANGE, "quantity \"-1000E\" is out of range" },
		{ "1e9223372036854775807", ERANGE,
		  "quantity \"1e9223372036854775807\" is out of range" },
		{ "9223372036854775808", ERANGE,
		  "quantity \"9223372036854775808\" is out of range" },
		{ "9223372036854775807.0000000001", ERANGE,
		  "quantity \"9223372036854775807.0000000001\" is out of range" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct quantity q = { .nano = 42 };
		struct err err = { 0 };

		TEST_ROW("\"%s\"", cases[i].text);
		CHECK_ERR(quantity_parse(str_from(cases[i].text), &q, &err), cases[i].code,
			  cases[i].sentence);
		CHECK(q.nano == 42);
	}
}

TEST(the_largest_and_smallest_quantities_are_exact)
{
	struct quantity max = parse("9223372036854775807"), min = parse("-9223372036854775807");
	struct quantity dust = parse("1e-9223372036854775808"), zero = parse("0e99999999");

	CHECK_INT(quantity_value(&max), INT64_MAX);
	CHECK_INT(quantity_value(&min), -INT64_MAX);
	CHECK_TEXT(max, "9223372036854775807");
	CHECK_TEXT(dust, "1e-9");
	CHECK_INT(quantity_sign(&zero), 0);
}

TEST(any_number_of_digits_below_nano_rounds_up)
{
	char text[400];
	struct err err = { 0 };
	struct quantity q;

	memset(text, '0', sizeof(text));
	memcpy(text, "2.", 2);
	CHECK_OK(quantity_parse((struct str){ text, sizeof(text) }, &q, &err));
	CHECK_TEXT(q, "2");
	text[sizeof(text) - 1] = '1';
	CHECK_OK(quantity_parse((struct str){ text, sizeof(text) }, &q, &err));
	CHECK_TEXT(q, "2000000001n");
	text[sizeof(text) - 3] = '1';
	memcpy(text + sizeof(text) - 2, "Gi", 2); /* 2^30 x 10^-395 is not zero */
	CHECK_OK(quantity_parse((struct str){ text, sizeof(text) }, &q, &err));
	CHECK_TEXT(q, "2147483648000000001n");
}

TEST(millicores_out_of_range_are_refused)
{
	static const char *const texts[] = {
		"9P", "10P", "9223372036854775807", "-9P", "9223372036854.776", "1Ei"
	};
	struct quantity fits = parse("9223372036854.775");

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct quantity q = parse(texts[i]);
		struct err err = { 0 };
		int64_t m = 42;

		TEST_ROW("\"%s\"", texts[i]);
		CHECK_INT(quantity_milli(&q, &m, &err), -ERANGE);
		CHECK_INT(m, 42);
	}
	CHECK_INT(milli(fits), QUANTITY_MILLI_MAX);
}

TEST(new_quantities_keep_the_format_they_were_derived_from)
{
	static const struct {
		int64_t n;
		enum quantity_format format;
		const char *want;
	} cases[] = {
		{ 0, QUANTITY_BINARY_SI, "0" },
		{ 250, QUANTITY_DECIMAL_SI, "250" },
		{ 1000, QUANTITY_DECIMAL_SI, "1k" },
		{ 112000, QUANTITY_DECIMAL_SI, "112k" },
		{ 1000000, QUANTITY_DECIMAL_SI, "1M" },
		{ 1000, QUANTITY_DECIMAL_EXPONENT, "1e3" },
		{ 500, QUANTITY_DECIMAL_EXPONENT, "500" },
		{ 1024000, QUANTITY_BINARY_SI, "1000Ki" },
		{ 1000, QUANTITY_BINARY_SI, "1k" },
		{ 1023, QUANTITY_BINARY_SI, "1023" },
		{ 1024, QUANTITY_BINARY_SI, "1Ki" },
		{ -1024, QUANTITY_BINARY_SI, "-1Ki" },
		{ INT64_C(1) << 60, QUANTITY_BINARY_SI, "1Ei" },
		{ INT64_C(1) << 62, QUANTITY_BINARY_SI, "4Ei" },
		{ INT64_MAX, QUANTITY_BINARY_SI, "9223372036854775807" },
		{ INT64_MIN, QUANTITY_BINARY_SI, "-8Ei" },
		{ INT64_MIN, QUANTITY_DECIMAL_SI, "-9223372036854775808" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		CHECK_TEXT(quantity_from_int(cases[i].n, cases[i].format), cases[i].want);
	CHECK_TEXT(quantity_from_milli(1500, QUANTITY_DECIMAL_SI), "1500m");
	CHECK_TEXT(quantity_from_milli(-2000, QUANTITY_DECIMAL_SI), "-2");
}

TEST(rounding_keeps_the_text_of_a_value_that_is_round)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "1.500", "1.500" }, { "100u", "1m" },	  { "1.001001", "1002m" },
		{ "1e-4", "1e-3" },   { "-100u", "-1m" }, { "0.0000001Ki", "1m" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct quantity q = parse(cases[i].text);

		TEST_ROW("\"%s\"", cases[i].text);
		CHECK_TEXT(quantity_round_up_milli(&q), cases[i].want);
	}
}

TEST(comparison_is_by_value_not_by_text)
{
	static const struct {
		const char *a, *b;
		int want;
	} cases[] = {
		{ "1", "1000m", 0 }, { "1Gi", "1024Mi", 0 }, { "1k", "1Ki", -1 },
		{ "1e3", "999", 1 }, { "-1", "1", -1 },	     { "1n", "0", 1 },
		{ "2", "1999m", 1 }, { "0", "-0", 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct quantity a = parse(cases[i].a), b = parse(cases[i].b);

		TEST_ROW("%s and %s", cases[i].a, cases[i].b);
		CHECK_INT(quantity_cmp(&a, &b), cases[i].want);
		CHECK_INT(quantity_cmp(&b, &a), -cases[i].want);
	}
}

TEST(sums_are_exact_or_an_error)
{
	struct quantity sum = parse("100m"), more = parse("0.2");
	struct quantity max = parse("9223372036854775807");
	struct err err = { 0 };

	CHECK_OK(quantity_add(&sum, &more, &err));
	CHECK_TEXT(sum, "300m");
	CHECK_ERR(quantity_add(&sum, &max, &err), ERANGE, "sum of quantities is out of range");
	CHECK_TEXT(sum, "300m");
}

TEST(shares_are_rounded_down_and_stay_within_the_limits_of_the_kernel)
{
	static const struct {
		int64_t milli;
		uint64_t want;
	} cases[] = {
		{ INT64_MIN, 2 },   { -1, 2 },		{ 0, 2 },
		{ 1, 2 },	    { 2, 2 },		{ 3, 3 },
		{ 10, 10 },	    { 100, 102 },	{ 250, 256 },
		{ 300, 307 },	    { 400, 409 },	{ 1500, 1536 },
		{ 255999, 262142 }, { 256000, 262144 }, { INT64_MAX, 262144 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		TEST_ROW("%" PRId64, cases[i].milli);
		CHECK_UINT(cpu_shares_from_milli(cases[i].milli), cases[i].want);
	}
}
