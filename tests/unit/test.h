#pragma once

/* Unit tests on top of cmocka. The name of a test states a behaviour; a test registers itself:
 *
 *	TEST(a_range_may_hold_one_cpu)
 *	{
 *		struct err err = { 0 };
 *		struct cpuset s;
 *
 *		CHECK_OK(cpuset_parse(STR("3-3"), &s, &err));
 *		CHECK_UINT(cpuset_count(&s), 1);
 *	}
 *
 * A check that fails ends its test. Inside loops over a table, call TEST_ROW() first so that the
 * failure names the row. Arguments of the program select the tests whose name contains one of them.
 */

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/str.h"

struct test {
	const char *name;
	void (*run)(void **state);
	struct test *next;
};

void test_register(struct test *t);

#define TEST(sentence)                                                                             \
	static void sentence(void **state);                                                        \
	static struct test sentence##_test = { #sentence, sentence, NULL };                        \
	__attribute__((constructor)) static void sentence##_register(void)                         \
	{                                                                                          \
		test_register(&sentence##_test);                                                   \
	}                                                                                          \
	static void sentence(void **state __attribute__((unused)))

/* The location of a check: file, line and the checked expression. */
struct test_at {
	const char *file;
	int line;
	const char *what;
};

#define TEST_AT(what) ((struct test_at){ __FILE__, __LINE__, what })

/* The call must return >= 0. It must use a variable named `err`. */
#define CHECK_OK(call) test_check_ok(TEST_AT(#call), (call), &err)

/* The call must return -code with exactly this message in `err`. */
#define CHECK_ERR(call, code, sentence) test_check_err(TEST_AT(#call), (call), code, &err, sentence)

#define CHECK(cond) ((cond) ? (void)0 : test_not_so(TEST_AT(#cond)))
#define CHECK_INT(got, want) test_check_int(TEST_AT(#got), (got), (want))
#define CHECK_UINT(got, want) test_check_uint(TEST_AT(#got), (got), (want))

/* `want` is a struct str or a C string. */
#define CHECK_STR(got, want) test_check_str(TEST_AT(#got), TEST_STR(got), TEST_STR(want))
#define TEST_STR(s)                                                                                \
	_Generic((s), struct str : test_str_id, char * : str_from, const char * : str_from)(s)

#define TEST_ROW(...) test_row(__VA_ARGS__)   /* names the row in the messages of later checks */
#define TEST_NOTE(...) test_note(__VA_ARGS__) /* a line in the log: row counts, seeds */
#define TEST_SKIP(...) test_skip(TEST_AT(""), __VA_ARGS__) /* ends the test, with the reason */

_Noreturn void test_not_so(struct test_at at);
void test_check_int(struct test_at at, intmax_t got, intmax_t want);
void test_check_uint(struct test_at at, uintmax_t got, uintmax_t want);
void test_check_str(struct test_at at, struct str got, struct str want);
void test_check_ok(struct test_at at, int got, const struct err *err);
void test_check_err(struct test_at at, int got, int code, const struct err *err,
		    const char *sentence);
void test_fail(struct test_at at, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), noreturn));
void test_row(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void test_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void test_skip(struct test_at at, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
struct str test_str_id(struct str s);

/* A path below tests/. Static storage, overwritten by the next call. */
const char *test_data(const char *path);
