#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct test *tests;
static char row[512];
static char skipped[512]; /* why the running test was skipped; empty when it was not */
static FILE *tap;	  /* what meson reads; all else goes to stderr, which it shows on failure */

void test_register(struct test *t)
{
	struct test **end = &tests;

	while (*end)
		end = &(*end)->next;
	*end = t;
}

void test_fail(struct test_at at, const char *fmt, ...)
{
	va_list ap;

	(void)fprintf(stderr, "%s:%d: %s%s%s: ", at.file, at.line, row, row[0] ? ": " : "",
		      at.what);
	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)fputs("\n", stderr);
	_fail(at.file, at.line);
	abort(); /* _fail() jumps back into cmocka */
}

void test_not_so(struct test_at at)
{
	test_fail(at, "does not hold");
}

void test_check_int(struct test_at at, intmax_t got, intmax_t want)
{
	if (got != want)
		test_fail(at, "got %" PRIdMAX ", want %" PRIdMAX, got, want);
}

void test_check_uint(struct test_at at, uintmax_t got, uintmax_t want)
{
	if (got != want)
		test_fail(at, "got %" PRIuMAX ", want %" PRIuMAX, got, want);
}

void test_check_str(struct test_at at, struct str got, struct str want)
{
	if (!str_eq(got, want))
		test_fail(at, "got \"" PRI_STR "\", want \"" PRI_STR "\"", FMT_STR(got),
			  FMT_STR(want));
}

void test_check_ok(struct test_at at, int got, const struct err *err)
{
	if (got < 0)
		test_fail(at, "failed with %d: %s", got, err->msg);
}

void test_check_err(struct test_at at, int got, int code, const struct err *err,
		    const char *sentence)
{
	if (got >= 0)
		test_fail(at, "got %d, want failure \"%s\"", got, sentence);
	if (got != -code)
		test_fail(at, "got %d (%s), want %d", got, err->msg, -code);
	test_check_str(at, str_from(err->msg), str_from(sentence));
}

void test_row(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(row, sizeof(row), fmt, ap);
	va_end(ap);
}

void test_note(const char *fmt, ...)
{
	va_list ap;

	(void)fputs("# ", tap);
	va_start(ap, fmt);
	(void)vfprintf(tap, fmt, ap);
	va_end(ap);
	(void)fputs("\n", tap);
}

void test_skip(struct test_at at, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(skipped, sizeof(skipped), fmt, ap);
	va_end(ap);
	_skip(at.file, at.line);
}

struct str test_str_id(struct str s)
{
	return s;
}

const char *test_data(const char *path)
{
	const char *dir = getenv("TESTS_DIR");
	static char text[4096];

	(void)snprintf(text, sizeof(text), "%s/%s", dir && *dir ? dir : TESTS_DIR, path);
	return text;
}

static bool is_wanted(const struct test *t, char **words)
{
	if (!*words)
		return true;
	for (; *words; words++)
		if (strstr(t->name, *words))
			return true;
	return false;
}

/* One cmocka group per test: its own TAP calls a skipped test "not ok". */
static bool run(const struct test *t, unsigned n)
{
	const struct CMUnitTest one = { t->name, t->run, NULL, NULL, NULL };
	bool ok;

	row[0] = skipped[0] = '\0';
	ok = _cmocka_run_group_tests(t->name, &one, 1, NULL, NULL) == 0;
	(void)fprintf(tap, "%sok %u - %s%s%s\n", ok ? "" : "not ", n, t->name,
		      skipped[0] ? " # SKIP " : "", skipped);
	return ok;
}

int main(int argc, char **argv)
{
	unsigned n = 0, n_failed = 0;

	(void)argc;
	tap = fdopen(dup(STDOUT_FILENO), "w");
	if (!tap || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		abort();
	(void)setvbuf(tap, NULL, _IOLBF, 0);
	cmocka_set_message_output(CM_OUTPUT_TAP);

	for (struct test *t = tests; t; t = t->next)
		if (is_wanted(t, argv + 1))
			n_failed += !run(t, ++n);
	(void)fprintf(tap, "1..%u\n", n);
	(void)fclose(tap);
	return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
