#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "base/quote.h"
#include "test.h"

TEST(strings_compare_bytewise_and_the_shorter_first)
{
	static const struct {
		struct str a, b;
		int want;
	} cases[] = {
		{ STR_INIT(""), STR_INIT(""), 0 },	{ STR_INIT("a"), STR_INIT("a"), 0 },
		{ STR_INIT("a"), STR_INIT("b"), -1 },	{ STR_INIT("a"), STR_INIT("aa"), -1 },
		{ STR_INIT(""), STR_INIT("a"), -1 },	{ STR_INIT("b"), STR_INIT("aa"), 1 },
		{ STR_INIT("\xff"), STR_INIT("a"), 1 }, { STR_INIT("a\0b"), STR_INIT("a\0c"), -1 },
		{ STR_INIT("a\0"), STR_INIT("a"), 1 },	{ { NULL, 0 }, STR_INIT(""), 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int r = str_cmp(cases[i].a, cases[i].b);

		TEST_ROW("row %zu", i);
		CHECK_INT((r > 0) - (r < 0), cases[i].want);
		CHECK(str_eq(cases[i].a, cases[i].b) == (cases[i].want == 0));
	}
}

TEST(prefixes_suffixes_and_parts_are_found)
{
	static const struct {
		const char *s, *part;
		bool starts, ends, has;
	} cases[] = {
		{ "", "", true, true, true },		{ "abc", "", true, true, true },
		{ "", "a", false, false, false },	{ "abc", "abc", true, true, true },
		{ "abc", "abcd", false, false, false }, { "abc", "ab", true, false, true },
		{ "abc", "bc", false, true, true },	{ "abcd", "bc", false, false, true },
		{ "aab", "ab", false, true, true },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct str s = str_from(cases[i].s), part = str_from(cases[i].part);

		TEST_ROW("\"%s\" in \"%s\"", cases[i].part, cases[i].s);
		CHECK(str_starts(s, part) == cases[i].starts);
		CHECK(str_ends(s, part) == cases[i].ends);
		CHECK(str_has(s, part) == cases[i].has);
	}
	CHECK_STR(str_from(NULL), "");
}

TEST(skip_and_trim_stay_inside_the_text)
{
	static const char *const trims[][2] = {
		{ "", "" },	     { " \t\n\v\f\r", "" },	 { "a", "a" },
		{ " a b\n", "a b" }, { "\xc2\xa0", "\xc2\xa0" },
	};

	for (size_t i = 0; i < ARRAY_LEN(trims); i++)
		CHECK_STR(str_trim(str_from(trims[i][0])), trims[i][1]);
	CHECK_STR(str_skip(STR("abc"), 0), "abc");
	CHECK_STR(str_skip(STR("abc"), 2), "c");
	CHECK_STR(str_skip(STR("abc"), 3), "");
	CHECK_STR(str_skip(STR("abc"), SIZE_MAX), "");
}

TEST(a_split_has_one_item_more_than_separators)
{
	static const struct {
		const char *text, *items[4];
		size_t n;
	} cases[] = {
		{ "", { "" }, 1 },	    { "a", { "a" }, 1 },	   { ",", { "", "" }, 2 },
		{ "a,b", { "a", "b" }, 2 }, { "a,,", { "a", "", "" }, 3 }, { ",a", { "", "a" }, 2 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct str_split split = str_split(str_from(cases[i].text));
		struct str item;
		size_t n = 0;

		TEST_ROW("\"%s\"", cases[i].text);
		for (; str_next(&split, ',', &item); n++) {
			CHECK(n < cases[i].n);
			CHECK_STR(item, cases[i].items[n]);
		}
		CHECK_UINT(n, cases[i].n);
	}
}

TEST(numbers_are_decimal_digits_up_to_a_limit)
{
	static const struct {
		const char *text;
		uint64_t max;
		bool ok;
		uint64_t want;
	} cases[] = {
		{ "0", 0, true, 0 },
		{ "007", 7, true, 7 },
		{ "8", 7, false, 0 },
		{ "18446744073709551615", UINT64_MAX, true, UINT64_MAX },
		{ "18446744073709551616", UINT64_MAX, false, 0 },
		{ "99999999999999999999", UINT64_MAX, false, 0 },
		{ "", 9, false, 0 },
		{ "-1", 9, false, 0 },
		{ "+1", 9, false, 0 },
		{ " 1", 9, false, 0 },
		{ "1 ", 9, false, 0 },
		{ "0x1", 9, false, 0 },
		{ "1/", 99, false, 0 },
		{ "1:", 99, false, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint64_t got = 42;

		TEST_ROW("\"%s\"", cases[i].text);
		CHECK(str_to_u64(str_from(cases[i].text), cases[i].max, &got) == cases[i].ok);
		CHECK_UINT(got, cases[i].ok ? cases[i].want : 42);
	}
}

TEST(copies_end_in_a_nul_and_may_contain_nuls)
{
	CLEANUP(arena_done) struct arena a;
	struct str copy;

	arena_init(&a, 0);
	copy = str_dup(&a, STR("a\0b"));
	CHECK_STR(copy, STR("a\0b"));
	CHECK_INT(copy.p[3], 0);
	CHECK_STR(str_cstr(&a, (struct str){ "abc", 2 }), "ab");
	CHECK_STR(str_dup(&a, (struct str){ NULL, 0 }), "");
	CHECK_STR(str_printf(&a, "%d-%s", 5, "x"), "5-x");
	CHECK_STR(str_printf(&a, "%s", ""), "");
}

TEST(a_printed_text_may_have_any_length)
{
	for (int n = 250; n < 262; n++) { /* short texts go through a buffer of 256 bytes */
		CLEANUP(arena_done) struct arena a;
		struct str s;

		arena_init(&a, 0);
		s = str_printf(&a, "%*d", n, 7);
		CHECK_UINT(s.n, (size_t)n);
		CHECK_INT(s.p[n - 1], '7');
		CHECK_INT(s.p[n], 0);
	}
}

TEST(a_strbuf_grows)
{
	CLEANUP(arena_done) struct arena a;
	struct strbuf b;

	arena_init(&a, 0);
	strbuf_init(&b, &a);
	CHECK_STR(strbuf_str(&b), "");
	for (unsigned i = 0; i < 1000; i++) {
		strbuf_printf(&b, "%03u", i);
		strbuf_addc(&b, ',');
		strbuf_add(&b, STR(""));
		(void)arena_alloc(&a, 1, 1); /* so that it has to move */
	}
	CHECK_UINT(b.n, 4000);
	CHECK(str_starts(strbuf_str(&b), STR("000,001,")));
	CHECK(str_ends(strbuf_str(&b), STR("998,999,")));
	CHECK(!b.failed);
}

TEST(a_strbuf_that_failed_stays_failed)
{
	CLEANUP(arena_done) struct arena a;
	struct strbuf b;

	arena_init(&a, 100);
	strbuf_init(&b, &a);
	strbuf_add(&b, STR("short"));
	CHECK(!strbuf_reserve(&b, 1000));
	strbuf_addc(&b, 'x');
	strbuf_printf(&b, "%d", 7);
	CHECK(b.failed);
	CHECK_STR(strbuf_str(&b), "short");
	strbuf_init(&b, &a);
	CHECK(!strbuf_reserve(&b, SIZE_MAX));
	CHECK(b.failed);
}

TEST(untrusted_bytes_in_an_error_are_escaped_and_truncated)
{
	static const struct {
		struct str text;
		const char *want;
	} cases[] = {
		{ STR_INIT(""), "\"\"" },
		{ STR_INIT("2-"), "\"2-\"" },
		{ STR_INIT("a\"\\\n"), "\"a\\\"\\\\\\n\"" },
		{ STR_INIT("\0\x1b[\xff"), "\"\\x00\\x1b[\\xff\"" },
	};
	char text[200];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		CHECK_STR((const char *)quote(cases[i].text).text, cases[i].want);
	for (int c = '\n'; c < 256; c += 'x' - '\n') { /* escapes of two, of one and of four */
		memset(text, c, sizeof(text));
		for (size_t n = 0; n < sizeof(text); n++) {
			struct quoted q = quote((struct str){ text, n });

			TEST_ROW("%zu times %d", n, c);
			CHECK(strlen(q.text) < sizeof(q.text));
			CHECK(str_ends(str_from(q.text), n > 60 ? STR("...\"") : STR("\"")));
		}
	}
}
