#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/macro.h"
#include "codec/doc.h"
#include "test.h"

/* Untrusted strings, and what a reader of the line must get. */
static const struct {
	const char *name;
	struct str text;
	const char *shown; /* in the line, between quotes */
} values[] = {
	{ "plain", STR_INIT("abc"), "abc" },
	{ "empty", STR_INIT(""), "" },
	{ "forged field", STR_INIT("x\" level=\"error"), "x\\\" level=\\\"error" },
	{ "forged line", STR_INIT("x\nlevel=error"), "x\\nlevel=error" },
	{ "backslash", STR_INIT("a\\nb"), "a\\\\nb" },
	{ "terminal escape", STR_INIT("\x1b[31m\x7f"), "\\u001b[31m\\u007f" },
	{ "C1 control", STR_INIT("\xc2\x9b"), "\\u009b" },
	{ "nul", STR_INIT("a\0b"), "a\\u0000b" },
	{ "unicode", STR_INIT("\xc3\xa4\xc2\xa0\xe2\x82\xac\xf0\x9f\x98\x80"),
	  "\xc3\xa4\xc2\xa0\xe2\x82\xac\xf0\x9f\x98\x80" },
	{ "bad byte",
	  STR_INIT("a\xff"
		   "b"),
	  "a\\ufffd"
	  "b" },
	{ "cut character", STR_INIT("\xe2\x82"), "\\ufffd\\ufffd" },
	{ "overlong", STR_INIT("\xc0\x80"), "\\ufffd\\ufffd" },
	{ "overlong of three", STR_INIT("\xe0\x80\x80"), "\\ufffd\\ufffd\\ufffd" },
	{ "surrogate", STR_INIT("\xed\xa0\x80"), "\\ufffd\\ufffd\\ufffd" },
	{ "beyond unicode", STR_INIT("\xf4\x90\x80\x80"), "\\ufffd\\ufffd\\ufffd\\ufffd" },
	{ "broken tail", STR_INIT("\xf0\x9f\x98x"), "\\ufffd\\ufffd\\ufffdx" },
};

/* The line without the time, which is checked for its shape. */
static struct str format(struct arena *a, size_t cap, const struct log_field *fields, size_t n)
{
	char *buf = arena_alloc(a, cap, 1);
	size_t len = log_format_line(buf, cap, LOG_LEVEL_WARNING, "something happened", fields, n);

	CHECK(len <= cap);
	return (struct str){ buf, len };
}

TEST(a_text_line_has_time_level_message_and_fields)
{
	struct log_field fields[] = { { 0 }, LOG_STR("name", STR("x y")), LOG_INT("count", -3) };
	CLEANUP(arena_done) struct arena a;
	struct str line;

	arena_init(&a, 0);
	log_setup(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	line = format(&a, 4096, fields, ARRAY_LEN(fields));
	for (size_t i = 0; i < strlen("time=2026-01-02T03:04:05.678Z"); i++) {
		char want = "time=dddd-dd-ddTdd:dd:dd.dddZ"[i];

		CHECK(want == 'd' && i > 4 ? line.p[i] >= '0' && line.p[i] <= '9' :
					     line.p[i] == want);
	}
	CHECK_STR(str_skip(line, strlen("time=2026-01-02T03:04:05.678Z")),
		  " level=warning msg=\"something happened\" name=\"x y\" count=-3");
}

TEST(untrusted_values_cannot_forge_a_text_line)
{
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	log_setup(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		struct log_field fields[] = { { 0 }, LOG_STR("v", values[i].text) };
		struct str want = str_printf(&a, "happened\" v=\"%s\"", values[i].shown);

		TEST_ROW("%s", values[i].name);
		CHECK(str_ends(format(&a, 4096, fields, 2), want));
	}
}

TEST(a_json_line_is_valid_json_for_any_value)
{
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	log_setup(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		struct log_field fields[] = { { 0 },
					      LOG_STR("v", values[i].text),
					      LOG_INT("n", 7) };
		struct err err = { 0 };
		struct doc doc, want;
		int64_t n = 0;

		TEST_ROW("%s", values[i].name);
		CHECK_OK(doc_parse(format(&a, 4096, fields, 3), STR("line"), NULL, &a, &doc, &err));
		CHECK_OK(doc_parse(str_printf(&a, "\"%s\"", values[i].shown), STR("want"), NULL, &a,
				   &want, &err));
		CHECK_STR(doc_str(doc_get(doc.root, STR("v"))), doc_str(want.root));
		CHECK_STR(doc_str(doc_get(doc.root, STR("level"))), "warning");
		CHECK_STR(doc_str(doc_get(doc.root, STR("msg"))), "something happened");
		CHECK(doc_int(doc_get(doc.root, STR("n")), &n));
		CHECK_INT(n, 7);
	}
}

/* A truncated line must still be JSON, or a log collector drops it. */
TEST(a_line_that_does_not_fit_is_truncated_and_stays_valid)
{
	CLEANUP(arena_done) struct arena a;
	bool seen_cut = false, seen_dropped = false;
	char text[200];

	memset(text, '\n', sizeof(text)); /* two bytes each when escaped */
	arena_init(&a, 0);
	for (size_t n = 0; n < sizeof(text); n++) {
		struct log_field fields[] = { { 0 },
					      LOG_STR("v", ((struct str){ text, n })),
					      LOG_INT("number", 12345),
					      LOG_STR("w", STR("x")) };
		struct err err = { 0 };
		struct str line, value;
		struct doc doc;

		TEST_ROW("%zu bytes", n);
		log_setup(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
		line = format(&a, 160, fields, ARRAY_LEN(fields));
		CHECK_OK(doc_parse(line, STR("line"), NULL, &a, &doc, &err));
		value = doc_str(doc_get(doc.root, STR("v")));
		seen_cut |= str_ends(value, STR("..."));
		seen_dropped |= !doc_get(doc.root, STR("number"));
		CHECK(value.n == n || str_ends(value, STR("\n...")));
		CHECK(!doc_get(doc.root, STR("w")) || doc_get(doc.root, STR("number")));

		log_setup(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
		line = format(&a, 160, fields, ARRAY_LEN(fields));
		CHECK(!str_has(line, STR("\n")));
		CHECK(str_ends(line, STR("\"")) || str_ends(line, STR("=12345")));
	}
	CHECK(seen_cut && seen_dropped);
}

TEST(levels_are_parsed_by_name)
{
	static const char *const names[] = { "error", "warning", "info", "debug" };
	enum log_level level;

	for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
		CHECK(log_level_parse(str_from(names[i]), &level));
		CHECK_UINT(level, i);
	}
	level = LOG_LEVEL_DEBUG;
	CHECK(!log_level_parse(STR("Error"), &level));
	CHECK(!log_level_parse(STR(""), &level));
	CHECK_UINT(level, LOG_LEVEL_DEBUG);
}

/* Captures standard error in a file. */
static struct str capture(struct arena *a, void (*call)(void))
{
	FILE *f = tmpfile();
	int saved = dup(STDERR_FILENO);
	char *buf = arena_alloc(a, 65536, 1);
	size_t n;

	CHECK(f && saved >= 0);
	(void)dup2(fileno(f), STDERR_FILENO);
	call();
	(void)dup2(saved, STDERR_FILENO);
	(void)close(saved);
	rewind(f);
	n = fread(buf, 1, 65536, f);
	(void)fclose(f);
	return (struct str){ buf, n };
}

static void log_all(void)
{
	static char huge[10000];

	memset(huge, 'x', sizeof(huge));
	log_debug("four");
	log_info("three", LOG_STR("huge", ((struct str){ huge, sizeof(huge) })));
	log_warning("two", LOG_INT("n", 2));
	log_error("one");
}

TEST(only_lines_at_or_above_the_level_are_written)
{
	static const struct {
		enum log_level level;
		size_t lines;
	} cases[] = {
		{ LOG_LEVEL_ERROR, 1 },
		{ LOG_LEVEL_WARNING, 2 },
		{ LOG_LEVEL_INFO, 3 },
		{ LOG_LEVEL_DEBUG, 4 },
	};
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	(void)unsetenv("JOURNAL_STREAM");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct str out, line;
		struct str_split lines;
		size_t n = 0;

		log_setup(cases[i].level, LOG_FORMAT_TEXT);
		out = capture(&a, log_all);
		TEST_ROW("level %u", cases[i].level);
		CHECK(str_ends(out, STR("\n")));
		lines = str_split((struct str){ out.p, out.n - 1 });
		for (; str_next(&lines, '\n', &line); n++)
			CHECK(str_starts(line, STR("time=")) && line.n < 4096);
		CHECK_UINT(n, cases[i].lines);
	}
}

TEST(lines_for_the_journal_start_with_the_priority)
{
	CLEANUP(arena_done) struct arena a;
	struct str out;

	arena_init(&a, 0);
	(void)setenv("JOURNAL_STREAM", "8:1", 1);
	log_setup(LOG_LEVEL_DEBUG, LOG_FORMAT_JSON);
	out = capture(&a, log_all);
	(void)unsetenv("JOURNAL_STREAM");
	CHECK(str_starts(out, STR("<7>{")));
	CHECK(str_has(out, STR("\n<6>{")));
	CHECK(str_has(out, STR("\n<4>{")));
	CHECK(str_has(out, STR("\n<3>{")));
}
