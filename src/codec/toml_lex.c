/* Characters, strings, keys and numbers of TOML 1.0. Strict where the specification is: a file that
 * the runtime refuses must not be accepted here with another meaning. */

#include "toml_lex.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/quote.h"
#include "doc.h"

int toml_fail(struct toml_lexer *l, size_t at, const char *what)
{
	return doc_err_at(l->err, EINVAL, l->file, doc_position_at(l->text, at), "%s", what);
}

int toml_fail_name(struct toml_lexer *l, size_t at, const char *what, struct str name)
{
	return doc_err_at(l->err, EINVAL, l->file, doc_position_at(l->text, at), "%s %s", what,
			  quote(name).text);
}

int toml_no_memory(struct toml_lexer *l)
{
	return err_set(l->err, ENOMEM, "out of memory");
}

int toml_peek(const struct toml_lexer *l)
{
	return l->at < l->text.n ? (unsigned char)l->text.p[l->at] : -1;
}

bool toml_take(struct toml_lexer *l, const char *token)
{
	const size_t n = strlen(token);

	if (l->text.n - l->at < n || memcmp(l->text.p + l->at, token, n) != 0)
		return false;
	l->at += n;
	return true;
}

void toml_skip_blanks(struct toml_lexer *l)
{
	while (toml_peek(l) == ' ' || toml_peek(l) == '\t')
		l->at++;
}

static int skip_comment(struct toml_lexer *l)
{
	if (toml_peek(l) != '#')
		return 0;
	while (toml_peek(l) >= 0 && toml_peek(l) != '\n') {
		const int c = toml_peek(l);

		if ((c < 0x20 && c != '\t' && c != '\r') || c == 0x7f)
			return toml_fail(l, l->at, "control character in a comment");
		l->at++;
	}
	return 0;
}

int toml_end_line(struct toml_lexer *l)
{
	int e;

	toml_skip_blanks(l);
	e = skip_comment(l);
	if (e < 0)
		return e;
	if (toml_take(l, "\r\n") || toml_take(l, "\n") || toml_peek(l) < 0)
		return 0;
	return toml_fail(l, l->at, "unexpected text before the end of the line");
}

int toml_skip_space(struct toml_lexer *l)
{
	for (;;) {
		int e;

		toml_skip_blanks(l);
		e = skip_comment(l);
		if (e < 0)
			return e;
		if (!toml_take(l, "\r\n") && !toml_take(l, "\n"))
			return 0;
	}
}

static void put_utf8(struct strbuf *b, uint32_t c)
{
	if (c < 0x80) {
		strbuf_addc(b, (char)c);
		return;
	}
	if (c >= 0x10000) {
		strbuf_addc(b, (char)(0xf0 | c >> 18));
		strbuf_addc(b, (char)(0x80 | (c >> 12 & 0x3f)));
	} else if (c >= 0x800) {
		strbuf_addc(b, (char)(0xe0 | c >> 12));
	}
	if (c >= 0x800)
		strbuf_addc(b, (char)(0x80 | (c >> 6 & 0x3f)));
	else
		strbuf_addc(b, (char)(0xc0 | c >> 6));
	strbuf_addc(b, (char)(0x80 | (c & 0x3f)));
}

static int read_unicode(struct toml_lexer *l, unsigned digits, struct strbuf *b)
{
	const size_t from = l->at;
	uint32_t c = 0;

	while (digits-- > 0) {
		/* The end of the text is -1, which is no digit as a character either. */
		const int d = str_hex_digit((char)toml_peek(l));

		if (d < 0)
			return toml_fail(l, l->at, "a hexadecimal digit is missing");
		c = c << 4 | (uint32_t)d;
		l->at++;
	}
	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return toml_fail(l, from, "not a Unicode character");
	put_utf8(b, c);
	return 0;
}

/* A backslash at the end of a line removes the line end and the white space after it. */
static bool skip_line_end(struct toml_lexer *l)
{
	const size_t from = l->at;

	toml_skip_blanks(l);
	if (!toml_take(l, "\r\n") && !toml_take(l, "\n")) {
		l->at = from;
		return false;
	}
	while (toml_peek(l) == ' ' || toml_peek(l) == '\t' || toml_peek(l) == '\n' ||
	       toml_peek(l) == '\r')
		l->at++;
	return true;
}

static int read_escape(struct toml_lexer *l, bool is_long, struct strbuf *b)
{
	static const char names[] = "btnfr\"\\", values[] = "\b\t\n\f\r\"\\";
	const char *found;
	int c;

	if (is_long && skip_line_end(l))
		return 0;
	c = toml_peek(l);
	found = c > 0 ? strchr(names, c) : NULL;
	if (found) {
		l->at++;
		strbuf_addc(b, values[found - names]);
		return 0;
	}
	if (c == 'u' || c == 'U') {
		l->at++;
		return read_unicode(l, c == 'u' ? 4 : 8, b);
	}
	return toml_fail(l, l->at, "unknown escape");
}

/* Up to two quotes directly before the closing three belong to the string. */
static bool take_long_end(struct toml_lexer *l, char quote_char, struct strbuf *b)
{
	const char end[] = { quote_char, quote_char, quote_char, 0 };

	if (!toml_take(l, end))
		return false;
	for (int i = 0; i < 2 && toml_peek(l) == quote_char; i++, l->at++)
		strbuf_addc(b, quote_char);
	return true;
}

int toml_read_string(struct toml_lexer *l, struct str *ret)
{
	const size_t from = l->at;
	const char mark = (char)toml_peek(l);
	const char three[] = { mark, mark, mark, 0 };
	const bool is_long = toml_take(l, three);
	struct strbuf b;

	strbuf_init(&b, l->a);
	if (!is_long)
		l->at++;
	/* A line end directly after the opening quotes is not part of the string. */
	else if (!toml_take(l, "\r\n"))
		(void)toml_take(l, "\n");
	for (;;) {
		const int c = toml_peek(l);
		int e;

		if (is_long ? take_long_end(l, mark, &b) : c == mark)
			break;
		if (c < 0 || (!is_long && c == '\n'))
			return toml_fail(l, from, "unterminated string");
		if ((c < 0x20 && c != '\t' && !(is_long && (c == '\n' || c == '\r'))) || c == 0x7f)
			return toml_fail(l, l->at, "control character in a string");
		l->at++;
		/* Strings in single quotes have no escapes. */
		if (c == '\\' && mark == '"') {
			e = read_escape(l, is_long, &b);
			if (e < 0)
				return e;
			continue;
		}
		strbuf_addc(&b, (char)c);
	}
	if (!is_long)
		l->at++;
	if (b.failed)
		return toml_no_memory(l);
	*ret = strbuf_str(&b);
	return 0;
}

bool toml_is_bare(int c)
{
	return (c > 0 && str_is_alnum((char)c)) || c == '_' || c == '-';
}

int toml_read_key(struct toml_lexer *l, struct str *ret)
{
	const size_t from = l->at;

	if (toml_peek(l) == '"' || toml_peek(l) == '\'') {
		if (str_starts(str_skip(l->text, l->at), STR("\"\"\"")) ||
		    str_starts(str_skip(l->text, l->at), STR("'''")))
			return toml_fail(l, from, "a key cannot be a multi-line string");
		return toml_read_string(l, ret);
	}
	while (toml_is_bare(toml_peek(l)))
		l->at++;
	if (l->at == from)
		return toml_fail(l, from, "a key is missing");
	*ret = (struct str){ l->text.p + from, l->at - from };
	return 0;
}

/* Digits of `base` with single underscores between them. */
static bool parse_digits(struct str s, unsigned base, uint64_t max, uint64_t *ret)
{
	uint64_t value = 0;
	bool after_digit = false;

	for (size_t i = 0; i < s.n; i++) {
		const int d = str_hex_digit(s.p[i]);

		if (s.p[i] == '_') {
			if (!after_digit || i + 1 == s.n)
				return false;
			after_digit = false;
			continue;
		}
		if (d < 0 || (unsigned)d >= base || value > (max - (unsigned)d) / base)
			return false;
		value = value * base + (unsigned)d;
		after_digit = true;
	}
	*ret = value;
	return s.n > 0;
}

bool toml_parse_int(struct str s, int64_t *ret)
{
	const bool is_signed = s.n > 0 && (s.p[0] == '+' || s.p[0] == '-');
	const bool is_negative = is_signed && s.p[0] == '-';
	/* The lowest number has no positive counterpart in int64_t. */
	const uint64_t max = (uint64_t)INT64_MAX + is_negative;
	unsigned base = 10;
	uint64_t value;

	if (is_signed)
		s = str_skip(s, 1);
	else if (s.n > 2 && s.p[0] == '0')
		base = s.p[1] == 'x' ? 16 : s.p[1] == 'o' ? 8 : s.p[1] == 'b' ? 2 : 10;
	if (base != 10)
		s = str_skip(s, 2);
	else if (s.n > 1 && s.p[0] == '0')
		return false; /* no leading zeros */
	if (!parse_digits(s, base, max, &value))
		return false;
	*ret = is_negative ? (int64_t)(0 - value) : (int64_t)value;
	return true;
}

bool toml_parse_float(struct toml_lexer *l, struct str s, double *ret)
{
	struct str bare = s;
	bool has_mark = false; /* what makes it a float */
	struct strbuf b;
	char *end;

	if (bare.n > 0 && (bare.p[0] == '+' || bare.p[0] == '-'))
		bare = str_skip(bare, 1);
	if (str_eq(bare, STR("inf")) || str_eq(bare, STR("nan"))) {
		*ret = 0; /* JSON has neither, and no setting that is read here uses them */
		return true;
	}
	/* 64 characters bound the work; the precision of a double ends long before. */
	if (bare.n == 0 || !str_is_digit(bare.p[0]) || bare.n > 64)
		return false;
	strbuf_init(&b, l->a);
	for (size_t i = 0; i < s.n; i++) {
		if (!strchr("0123456789.eE+-_", s.p[i]))
			return false;
		has_mark |= strchr(".eE", s.p[i]) != NULL;
		if (s.p[i] != '_')
			strbuf_addc(&b, s.p[i]);
	}
	strbuf_addc(&b, 0);
	if (b.failed || !has_mark)
		return false;
	*ret = strtod(b.p, &end);
	/* strtod() must have used all of it, up to the NUL that was added. */
	return end == b.p + b.n - 1 && isfinite(*ret);
}
