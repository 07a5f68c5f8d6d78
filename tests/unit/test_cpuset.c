#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "cpu/cpuset.h"
#include "cpu/cpuset_expr.h"
#include "test.h"

static struct cpuset set(const char *list)
{
	struct err err = { 0 };
	struct cpuset s;

	CHECK_OK(cpuset_parse(str_from(list), &s, &err));
	return s;
}

static void check_list(struct test_at at, const struct cpuset *s, const char *want)
{
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	test_check_str(at, cpuset_format(s, &a), str_from(want));
}
#define CHECK_LIST(s, want) check_list(TEST_AT(#s), (s), (want))

TEST(lists_parse_to_canonical_text)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "", "" },
		{ "5", "5" },
		{ "007", "7" },
		{ "1,2,3,4,5", "1-5" },
		{ "5,4,3,2,1", "1-5" },
		{ "0-3,2-5", "0-5" },
		{ "3-3,5-5", "3,5" },
		{ "63-64", "63-64" },
		{ "0-127,256-259", "0-127,256-259" },
		{ "8191", "8191" },
		{ "0-8191", "0-8191" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct cpuset s = set(cases[i].text);

		TEST_ROW("\"%s\"", cases[i].text);
		CHECK_LIST(&s, cases[i].want);
	}
}

TEST(masks_of_the_kernel_parse_word_by_word)
{
	static const struct {
		const char *text, *want; /* NULL: refused */
	} cases[] = {
		{ "ff\n", "0-7" },
		{ "0", "" },
		{ "0000000f", "0-3" },
		{ "3,0000000f", "0-3,32-33" },
		{ "1,00000000,80000000", "31,64" },
		{ "", NULL },
		{ "fg", NULL },
		{ "1,f", NULL },
		{ ",0000000f", NULL },
		{ "100000000", NULL },
		{ "0-3", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = { 0 };
		struct cpuset s;

		TEST_ROW("\"%s\"", cases[i].text);
		CHECK((cpuset_parse_words(str_from(cases[i].text), &s, &err) == 0) ==
		      (cases[i].want != NULL));
		if (cases[i].want)
			CHECK_LIST(&s, cases[i].want);
	}
}

TEST(bad_lists_name_the_bad_item)
{
	static const struct {
		const char *text;
		int code;
		const char *sentence;
	} cases[] = {
		{ "3-1", EINVAL, "bad range \"3-1\": 3 is above 1" },
		{ "0,a", EINVAL, "bad item \"a\": not a CPU number or range" },
		{ "0-3\n", EINVAL, "bad item \"0-3\\n\": not a CPU number or range" },
		{ "1,2-,3", EINVAL, "bad item \"2-\": not a CPU number or range" },
		{ "-1", EINVAL, "bad item \"-1\": not a CPU number or range" },
		{ "+1", EINVAL, "bad item \"+1\": not a CPU number or range" },
		{ "0-+2", EINVAL, "bad item \"0-+2\": not a CPU number or range" },
		{ "0--3", EINVAL, "bad item \"0--3\": not a CPU number or range" },
		{ "1-2-3", EINVAL, "bad item \"1-2-3\": not a CPU number or range" },
		{ "0, 1", EINVAL, "bad item \" 1\": not a CPU number or range" },
		{ "0,,3", EINVAL, "empty item in CPU list \"0,,3\"" },
		{ ",", EINVAL, "empty item in CPU list \",\"" },
		{ "8192", ERANGE, "CPU \"8192\" is out of range: the last is 8191" },
		{ "0-8192", ERANGE, "CPU \"8192\" is out of range: the last is 8191" },
		{ "9999-1", ERANGE, "CPU \"9999\" is out of range: the last is 8191" },
		{ "0-99999999999999999999", ERANGE,
		  "CPU \"99999999999999999999\" is out of range: the last is 8191" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct cpuset s = { { 42 } };
		struct err err = { 0 };

		TEST_ROW("\"%s\"", cases[i].text);
		CHECK_ERR(cpuset_parse(str_from(cases[i].text), &s, &err), cases[i].code,
			  cases[i].sentence);
		CHECK_UINT(s.w[0], 42);
	}
}

TEST(signs_are_for_state_files_only)
{
	struct err err = { 0 };
	struct cpuset s;

	CHECK_OK(cpuset_parse_lenient(STR("+3,5-+7"), &s, &err));
	CHECK_LIST(&s, "3,5-7");
	CHECK_ERR(cpuset_parse_lenient(STR("0--3"), &s, &err), EINVAL,
		  "bad range \"0--3\": 0 is above -3");
	CHECK_INT(cpuset_parse_lenient(STR("-1"), &s, &err), -EINVAL);
	CHECK_INT(cpuset_parse_lenient(STR("++1"), &s, &err), -EINVAL);
	CHECK_INT(cpuset_parse_lenient(STR("+"), &s, &err), -EINVAL);
}

TEST(kernel_text_ends_in_a_newline)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "\n", "" },
		{ "0\n", "0" },
		{ "0-3,8\n", "0-3,8" },
		{ "  (null)\n", "" },
	};
	struct err err = { 0 };
	struct cpuset s;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CHECK_OK(cpuset_parse_kernel(str_from(cases[i].text), &s, &err));
		CHECK_LIST(&s, cases[i].want);
	}
	CHECK_INT(cpuset_parse_kernel(STR("0-3\n4\n"), &s, &err), -EINVAL);
}

TEST(masks_print_as_node_tuning_prints_them)
{
	static const struct {
		const char *list, *hex, *words;
	} cases[] = {
		{ "", "0", "00000000" },
		{ "0", "1", "00000001" },
		{ "2-3", "c", "0000000c" },
		{ "1,3-7", "fa", "000000fa" },
		{ "32", "100000000", "00000001,00000000" },
		{ "1-3,5,32", "10000002e", "00000001,0000002e" },
		{ "3,4,53-55,61-63", "e0e0000000000018", "e0e00000,00000018" },
		{ "0-127", "ffffffffffffffffffffffffffffffff",
		  "ffffffff,ffffffff,ffffffff,ffffffff" },
		{ "0,1,256,257",
		  "30000000000000000000000000000000000000000000000000000000000000003",
		  "00000003,00000000,00000000,00000000,00000000,00000000,00000000,00000000,"
		  "00000003" },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct cpuset s = set(cases[i].list);

		TEST_ROW("\"%s\"", cases[i].list);
		CHECK_STR(cpuset_format_hex(&s, &a), cases[i].hex);
		CHECK_STR(cpuset_format_words(&s, &a), cases[i].words);
	}
}

TEST(the_expanded_list_has_no_ranges)
{
	CLEANUP(arena_done) struct arena a;
	struct cpuset s = set("0-3,8"), none = { 0 };

	arena_init(&a, 0);
	CHECK_STR(cpuset_format_expanded(&s, &a), "0,1,2,3,8");
	CHECK_STR(cpuset_format_expanded(&none, &a), "");
}

TEST(searches_find_the_ends_of_a_set)
{
	static const struct {
		const char *list;
		unsigned first, last, next_64, count;
	} cases[] = {
		{ "", CPUSET_NONE, CPUSET_NONE, CPUSET_NONE, 0 },
		{ "0", 0, 0, CPUSET_NONE, 1 },
		{ "63,65", 63, 65, 65, 2 },
		{ "64", 64, 64, 64, 1 },
		{ "5-6,8191", 5, 8191, 8191, 3 },
		{ "0-8191", 0, 8191, 64, 8192 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct cpuset s = set(cases[i].list);

		TEST_ROW("\"%s\"", cases[i].list);
		CHECK_UINT(cpuset_first(&s), cases[i].first);
		CHECK_UINT(cpuset_last(&s), cases[i].last);
		CHECK_UINT(cpuset_next(&s, 64), cases[i].next_64);
		CHECK_UINT(cpuset_next(&s, CPUSET_MAX), CPUSET_NONE);
		CHECK_UINT(cpuset_count(&s), cases[i].count);
		CHECK(cpuset_is_empty(&s) == !cases[i].count);
	}
}

TEST(no_cpu_beyond_the_last_is_in_any_set)
{
	struct cpuset all = set("0-8191");

	CHECK(cpuset_has(&all, 8191));
	CHECK(!cpuset_has(&all, 8192));
	CHECK(!cpuset_has(&all, UINT32_MAX));
}

TEST(a_loop_over_a_set_may_remove_the_current_cpu)
{
	struct cpuset s = set("0,63-65,8191");
	unsigned seen = 0;

	CPUSET_FOREACH (cpu, &s) {
		cpuset_del(&s, cpu);
		seen++;
	}
	CHECK_UINT(seen, 5);
	CHECK(cpuset_is_empty(&s));
}

TEST(expressions_are_evaluated_from_left_to_right)
{
	static const struct {
		const char *expr, *want;
	} cases[] = {
		{ "", "" },
		{ "  ", "" },
		{ "0-7,16-23 - 2,3", "0-1,4-7,16-23" },
		{ "0-3 + 8", "0-3,8" },
		{ "0-3 & 2-5", "2-3" },
		{ "0-3 ^ 2-5", "0-1,4-5" },
		{ "0-7 - 0-3 + 1", "1,4-7" },
		{ "0 + 1 & 1", "1" },
		{ "\t0-3  -\t1 \n", "0,2-3" },
	};
	struct err err = { 0 };
	struct cpuset s;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		TEST_ROW("\"%s\"", cases[i].expr);
		CHECK_OK(cpuset_expr_eval(str_from(cases[i].expr), &s, &err));
		CHECK_LIST(&s, cases[i].want);
	}
}

TEST(bad_expressions_say_what_is_missing)
{
	static const struct {
		const char *expr, *sentence;
	} cases[] = {
		{ "0-3 -", "no CPU list after operator \"-\"" },
		{ "- 3", "expected a CPU list, not operator \"-\"" },
		{ "0 + - 3", "expected a CPU list, not operator \"-\"" },
		{ "0-3 5", "expected one of + - & ^ before \"5\"" },
		{ "0-3 * 5", "expected one of + - & ^ before \"*\"" },
		{ "0-3 +5", "expected one of + - & ^ before \"+5\"" },
		{ "0-3 - 5-4", "bad range \"5-4\": 5 is above 4" },
		{ "x + 1", "bad item \"x\": not a CPU number or range" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct cpuset s = { { 42 } };
		struct err err = { 0 };

		TEST_ROW("\"%s\"", cases[i].expr);
		CHECK_ERR(cpuset_expr_eval(str_from(cases[i].expr), &s, &err), EINVAL,
			  cases[i].sentence);
		CHECK_UINT(s.w[0], 42);
	}
}
