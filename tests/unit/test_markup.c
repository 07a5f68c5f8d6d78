#include "base/arena.h"
#include "base/macro.h"
#include "picture/markup.h"
#include "test.h"

#define BAD "\xef\xbf\xbd"

TEST(whatever_a_text_contains_it_stays_text)
{
	static const struct {
		struct str text;
		const char *want;
	} rows[] = {
		{ STR_INIT("ran/vdu-0"), "ran/vdu-0" },
		{ STR_INIT(""), "" },
		{ STR_INIT("<script>alert('x')</script>"),
		  "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;" },
		{ STR_INIT("\" onload=\"x"), "&quot; onload=&quot;x" },
		{ STR_INIT("&amp;"), "&amp;amp;" },
		{ STR_INIT("]]>"), "]]&gt;" },
		{ STR_INIT("a\0b"), "a" BAD "b" },
		{ STR_INIT("a\x1b[2J\x7f\x01"), "a" BAD "[2J" BAD BAD },
		{ STR_INIT("tab\tline\n"), "tab\tline\n" },
		{ STR_INIT("gr\xc3\xbc\xc3\x9f" /* two letters */), "gr\xc3\xbc\xc3\x9f" },
		{ STR_INIT("\xf0\x9f\x90\x91"), "\xf0\x9f\x90\x91" },
		/* No UTF-8: a byte alone, cut off, too long, a surrogate, beyond the last one. */
		{ STR_INIT("\xff"), BAD },
		{ STR_INIT("\xc3"), BAD },
		{ STR_INIT("\xe2\x82"), BAD BAD },
		{ STR_INIT("\xc0\xbc"), BAD BAD },
		{ STR_INIT("\xed\xa0\x80"), BAD BAD BAD },
		{ STR_INIT("\xf4\x90\x80\x80"), BAD BAD BAD BAD },
		/* Directions, a mark of byte order, and what is no character. */
		{ STR_INIT("\xe2\x80\xae<\xe2\x80\xac"), BAD "&lt;" BAD },
		{ STR_INIT("\xe2\x81\xa6<\xe2\x81\xa9"), BAD "&lt;" BAD },
		{ STR_INIT("\xef\xbb\xbf\xef\xbf\xbf"), BAD BAD },
		{ STR_INIT("\xc2\x85"), BAD },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a;
		struct strbuf b;

		arena_init(&a, 0);
		TEST_ROW("row %zu", i);
		strbuf_init(&b, &a);
		markup_text(&b, rows[i].text);
		CHECK_STR(strbuf_str(&b), rows[i].want);
	}
}

TEST(a_long_text_is_cut_at_a_character)
{
	static const struct {
		struct str text;
		size_t max;
		const char *want;
	} rows[] = {
		{ STR_INIT("abc"), 3, "abc" },
		{ STR_INIT("abcd"), 3, "ab\xe2\x80\xa6" },
		{ STR_INIT("\xc3\xbc\xc3\xbc\xc3\xbc"), 3, "\xc3\xbc\xc3\xbc\xc3\xbc" },
		{ STR_INIT("\xc3\xbc\xc3\xbc\xc3\xbc"), 2, "\xc3\xbc\xe2\x80\xa6" },
		{ STR_INIT("<<<<"), 2, "&lt;\xe2\x80\xa6" },
		{ STR_INIT("ab"), 0, "\xe2\x80\xa6" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(arena_done) struct arena a;
		struct strbuf b;

		arena_init(&a, 0);
		TEST_ROW("row %zu", i);
		strbuf_init(&b, &a);
		markup_cut(&b, rows[i].text, rows[i].max);
		CHECK_STR(strbuf_str(&b), rows[i].want);
	}
}
