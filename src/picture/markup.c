#include "markup.h"

#include <stdint.h>

#define REPLACEMENT STR("\xef\xbf\xbd")

/* One character at the beginning of a text that is not empty; the number of bytes, or 0. */
static size_t decode(struct str s, uint32_t *ret)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char first = (unsigned char)s.p[0];
	const size_t n = first < 0x80		? 1 :
			 (first & 0xe0) == 0xc0 ? 2 :
			 (first & 0xf0) == 0xe0 ? 3 :
			 (first & 0xf8) == 0xf0 ? 4 :
						  0;
	uint32_t c = n == 1 ? first : first & (0x7fu >> n);

	if (n == 0 || n > s.n)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if (((unsigned char)s.p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | ((unsigned char)s.p[i] & 0x3f);
	}
	/* Forms that are too long, surrogates, and beyond the last character. */
	if (c < least[n] || (c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff)
		return 0;
	*ret = c;
	return n;
}

/* XML has no control characters but these. Marks of direction could make a name look like another
 * one, and the last two characters of a plane are none. */
static bool is_shown(uint32_t c)
{
	if (c < 0x20)
		return c == '\t' || c == '\n';
	return !(c >= 0x7f && c < 0xa0) && !(c >= 0x200e && c <= 0x200f) &&
	       !(c >= 0x2028 && c <= 0x202e) && !(c >= 0x2066 && c <= 0x2069) && c != 0xfeff &&
	       (c & 0xfffe) != 0xfffe;
}

static void add_character(struct strbuf *b, uint32_t c, struct str bytes)
{
	switch (c) {
	case '&':
		strbuf_add(b, STR("&amp;"));
		break;
	case '<':
		strbuf_add(b, STR("&lt;"));
		break;
	case '>':
		strbuf_add(b, STR("&gt;"));
		break;
	case '"':
		strbuf_add(b, STR("&quot;"));
		break;
	case '\'':
		strbuf_add(b, STR("&#39;"));
		break;
	default:
		strbuf_add(b, is_shown(c) ? bytes : REPLACEMENT);
		break;
	}
}

/* Returns the rest after `max` characters. */
static struct str add_characters(struct strbuf *b, struct str s, size_t max)
{
	for (size_t i = 0; s.n && i < max; i++) {
		uint32_t c = 0;
		const size_t n = decode(s, &c);

		if (n)
			add_character(b, c, (struct str){ s.p, n });
		else
			strbuf_add(b, REPLACEMENT);
		s = str_skip(s, n ? n : 1);
	}
	return s;
}

void markup_text(struct strbuf *b, struct str s)
{
	(void)add_characters(b, s, s.n);
}

static size_t count_characters(struct str s)
{
	size_t count = 0;

	for (; s.n; count++) {
		uint32_t c;
		const size_t n = decode(s, &c);

		s = str_skip(s, n ? n : 1);
	}
	return count;
}

void markup_cut(struct strbuf *b, struct str s, size_t max)
{
	if (count_characters(s) <= max) {
		markup_text(b, s);
		return;
	}
	(void)add_characters(b, s, max ? max - 1 : 0);
	strbuf_add(b, STR("\xe2\x80\xa6"));
}
