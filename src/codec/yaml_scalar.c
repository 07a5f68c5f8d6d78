/* Scalars are matched by hand-written scanners and not by regular expressions or strtod(): a number
 * becomes JSON text without being converted, so no digit is lost. */

#include "yaml_scalar.h"

#include <ctype.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"

static const struct {
	struct str text;
	enum yaml_kind kind;
	bool boolean;
} words[] = {
	{ STR_INIT(""), YAML_NULL, false },	 { STR_INIT("~"), YAML_NULL, false },
	{ STR_INIT("null"), YAML_NULL, false },	 { STR_INIT("Null"), YAML_NULL, false },
	{ STR_INIT("NULL"), YAML_NULL, false },	 { STR_INIT("y"), YAML_BOOL, true },
	{ STR_INIT("Y"), YAML_BOOL, true },	 { STR_INIT("yes"), YAML_BOOL, true },
	{ STR_INIT("Yes"), YAML_BOOL, true },	 { STR_INIT("YES"), YAML_BOOL, true },
	{ STR_INIT("true"), YAML_BOOL, true },	 { STR_INIT("True"), YAML_BOOL, true },
	{ STR_INIT("TRUE"), YAML_BOOL, true },	 { STR_INIT("on"), YAML_BOOL, true },
	{ STR_INIT("On"), YAML_BOOL, true },	 { STR_INIT("ON"), YAML_BOOL, true },
	{ STR_INIT("n"), YAML_BOOL, false },	 { STR_INIT("N"), YAML_BOOL, false },
	{ STR_INIT("no"), YAML_BOOL, false },	 { STR_INIT("No"), YAML_BOOL, false },
	{ STR_INIT("NO"), YAML_BOOL, false },	 { STR_INIT("false"), YAML_BOOL, false },
	{ STR_INIT("False"), YAML_BOOL, false }, { STR_INIT("FALSE"), YAML_BOOL, false },
	{ STR_INIT("off"), YAML_BOOL, false },	 { STR_INIT("Off"), YAML_BOOL, false },
	{ STR_INIT("OFF"), YAML_BOOL, false },
};

/* JSON has no such numbers, so they are a kind of their own that the reader refuses. */
static const char *const not_finite[] = {
	".nan",	 ".NaN",  ".NAN",  ".inf",  ".Inf",  ".INF",
	"+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF",
};

static bool is_not_finite(struct str text)
{
	for (size_t i = 0; i < ARRAY_LEN(not_finite); i++)
		if (str_eq(text, str_from(not_finite[i])))
			return true;
	return false;
}

/* strchr() would find the NUL at the end of the set. */
static bool is_one_of(char c, const char *set)
{
	return c && strchr(set, c);
}

static bool begins_like_number(struct str text)
{
	return text.n && (str_is_digit(text.p[0]) || is_one_of(text.p[0], "+-."));
}

/* Underscores between digits are ignored. */
static struct str without_underscores(struct str text, struct arena *a)
{
	struct strbuf b;

	if (!str_has(text, STR("_")))
		return text;
	strbuf_init(&b, a);
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] != '_')
			strbuf_addc(&b, text.p[i]);
	return strbuf_str(&b);
}

static int base_of(struct str *digits)
{
	char second = digits->n > 1 ? (char)tolower((unsigned char)digits->p[1]) : '\0';
	int base = 10;

	if (digits->n < 2 || digits->p[0] != '0')
		return 10;
	base = second == 'x' ? 16 : second == 'b' ? 2 : second == 'o' ? 8 : 0;
	*digits = str_skip(*digits, base ? 2 : 1); /* a leading 0 alone means octal */
	return base ? base : 8;
}

/* Integers of at most 64 bits, in the bases that Go's strconv.ParseInt accepts. */
static bool parse_whole(struct str plain, bool *ret_negative, uint64_t *ret)
{
	bool negative = str_starts(plain, STR("-"));
	struct str digits = str_skip(plain, negative || str_starts(plain, STR("+")));
	int base = base_of(&digits);
	uint64_t value = 0;

	if (!digits.n)
		return false;
	for (size_t i = 0; i < digits.n; i++) {
		int d = str_hex_digit(digits.p[i]);

		if (d < 0 || d >= base || __builtin_mul_overflow(value, (uint64_t)base, &value) ||
		    __builtin_add_overflow(value, (uint64_t)d, &value))
			return false;
	}
	/* Values from 2^63 to 2^64 - 1 are accepted only as positive numbers. */
	if (negative && value > (uint64_t)INT64_MAX + 1)
		return false;
	/* "-0x0" is 0: integers have no negative zero. */
	*ret_negative = negative && value;
	*ret = value;
	return true;
}

static size_t span_digits(struct str s)
{
	size_t n = 0;

	while (n < s.n && str_is_digit(s.p[n]))
		n++;
	return n;
}

/* Parts of [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)? */
struct decimal {
	bool negative;
	struct str whole, fraction, exponent; /* exponent with its sign, without the e */
};

static bool parse_decimal(struct str s, struct decimal *ret)
{
	struct decimal d = { .negative = str_starts(s, STR("-")) };

	s = str_skip(s, d.negative || str_starts(s, STR("+")));
	d.whole = (struct str){ s.p, span_digits(s) };
	s = str_skip(s, d.whole.n);
	if (str_starts(s, STR("."))) {
		s = str_skip(s, 1);
		d.fraction = (struct str){ s.p, span_digits(s) };
		s = str_skip(s, d.fraction.n);
	}
	if (!d.whole.n && !d.fraction.n)
		return false;
	if (s.n && (s.p[0] == 'e' || s.p[0] == 'E')) {
		s = str_skip(s, 1);
		d.exponent.p = s.p;
		d.exponent.n = s.n && (s.p[0] == '-' || s.p[0] == '+');
		if (!span_digits(str_skip(s, d.exponent.n)))
			return false;
		d.exponent.n += span_digits(str_skip(s, d.exponent.n));
		s = str_skip(s, d.exponent.n);
	}
	*ret = d;
	return s.n == 0;
}

/* JSON allows no plus sign and no leading zero, and needs digits on both sides of the point. */
static struct str decimal_as_json(const struct decimal *d, struct arena *a)
{
	struct str whole = d->whole;
	struct strbuf b;

	while (whole.n > 1 && whole.p[0] == '0')
		whole = str_skip(whole, 1);
	strbuf_init(&b, a);
	if (d->negative)
		strbuf_addc(&b, '-');
	strbuf_add(&b, whole.n ? whole : STR("0"));
	if (d->fraction.n) {
		strbuf_addc(&b, '.');
		strbuf_add(&b, d->fraction);
	}
	if (d->exponent.n) {
		strbuf_addc(&b, 'e');
		strbuf_add(&b, d->exponent);
	}
	return strbuf_str(&b);
}

/* The common case, and it keeps the text exactly as it was written: 1.50 stays 1.50. */
static bool is_json_number(struct str text)
{
	struct decimal d;

	return text.p[0] != '+' && parse_decimal(text, &d) && d.whole.n &&
	       (d.whole.n == 1 || d.whole.p[0] != '0') &&
	       str_has(text, STR(".")) == (d.fraction.n > 0);
}

static bool resolve_number(struct str text, struct arena *a, struct str *ret)
{
	struct str plain;
	struct decimal d;
	bool negative;
	uint64_t whole;

	if (!begins_like_number(text))
		return false;
	if (is_json_number(text)) {
		*ret = text;
		return true;
	}
	plain = without_underscores(text, a);
	if (parse_whole(plain, &negative, &whole)) {
		*ret = str_printf(a, "%s%llu", negative ? "-" : "", (unsigned long long)whole);
		return true;
	}
	if (!parse_decimal(plain, &d))
		return false;
	*ret = decimal_as_json(&d, a);
	return true;
}

struct yaml_scalar yaml_scalar_resolve(struct str text, struct arena *a)
{
	struct str number;

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (str_eq(text, words[i].text))
			return (struct yaml_scalar){ words[i].kind, words[i].boolean, text };
	if (is_not_finite(text))
		return (struct yaml_scalar){ .kind = YAML_NOT_FINITE, .text = text };
	if (resolve_number(text, a, &number))
		return (struct yaml_scalar){ .kind = YAML_NUMBER, .text = number };
	return (struct yaml_scalar){ .kind = YAML_STRING, .text = text };
}

/* YAML 1.1 reads 1_000, 12:30, 0o14, 1e3 and dates as numbers or times: a string that starts like a
 * number is quoted unless it contains other letters. */
static bool looks_numeric(struct str text)
{
	if (!begins_like_number(text))
		return false;
	for (size_t i = 0; i < text.n; i++)
		if (!isxdigit((unsigned char)text.p[i]) && !is_one_of(text.p[i], "+-._:,oOxX"))
			return false;
	return true;
}

bool yaml_scalar_is_plain_safe(struct str text)
{
	/* "@" is reserved, "," ends a scalar in flow style, and "-" may start a list item or "---".
	 */
	if (!text.n || text.p[0] == '-' || text.p[0] == ',' || text.p[0] == '@')
		return false;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (str_eq(text, words[i].text))
			return false;
	if (is_not_finite(text) || looks_numeric(text))
		return false;
	if (span_digits(text) == 4 && text.n > 4 && text.p[4] == '-')
		return false; /* a time: 2001-12-14t21:59:43.10-05:00 and its variants */
	for (size_t i = 0; i < text.n; i++) {
		bool inner_colon = text.p[i] == ':' && i + 1 < text.n && text.p[i + 1] != ' ';
		bool inner_blank = text.p[i] == ' ' && i && i + 1 < text.n &&
				   text.p[i + 1] != '#' && text.p[i + 1] != ' ';

		/* These have no special meaning in a plain scalar, in block and in flow style. */
		if (!isalnum((unsigned char)text.p[i]) && !is_one_of(text.p[i], "-_./@+,") &&
		    !inner_colon && !inner_blank)
			return false;
	}
	return text.p[0] != '.' || text.n > 3; /* "...", "." and ".." */
}
