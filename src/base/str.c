/* Views and the text builder. An empty view may have a null pointer, and the mem* functions do not
 * accept one even with length 0: that is why lengths are checked before them. */

#include "str.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "arena.h"

struct str str_from(const char *text)
{
	return text ? (struct str){ text, strlen(text) } : STR("");
}

bool str_eq(struct str a, struct str b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

int str_cmp(struct str a, struct str b)
{
	size_t common = a.n < b.n ? a.n : b.n;
	int r = common ? memcmp(a.p, b.p, common) : 0;

	if (r)
		return r;
	return (a.n > b.n) - (a.n < b.n);
}

int str_order(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

bool str_starts(struct str s, struct str prefix)
{
	return s.n >= prefix.n && str_eq((struct str){ s.p, prefix.n }, prefix);
}

bool str_ends(struct str s, struct str suffix)
{
	return s.n >= suffix.n && str_eq((struct str){ s.p + (s.n - suffix.n), suffix.n }, suffix);
}

bool str_has(struct str s, struct str part)
{
	return part.n == 0 || (s.n && memmem(s.p, s.n, part.p, part.n));
}

struct str str_skip(struct str s, size_t n)
{
	if (n >= s.n)
		return STR("");
	return (struct str){ s.p + n, s.n - n };
}

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

struct str str_trim(struct str s)
{
	while (s.n && is_space(s.p[s.n - 1]))
		s.n--;
	while (s.n && is_space(s.p[0]))
		s = str_skip(s, 1);
	return s;
}

struct str_split str_split(struct str s)
{
	return (struct str_split){ s, false };
}

bool str_next(struct str_split *split, char sep, struct str *ret)
{
	const char *hit;

	if (split->ended)
		return false;
	hit = split->rest.n ? memchr(split->rest.p, sep, split->rest.n) : NULL;
	if (!hit) {
		*ret = split->rest;
		split->ended = true;
		return true;
	}
	*ret = (struct str){ split->rest.p, (size_t)(hit - split->rest.p) };
	/* After a separator at the very end `rest` is empty but `ended` is not set: "a," has two
	 * items. */
	split->rest = str_skip(split->rest, ret->n + 1);
	return true;
}

bool str_to_u64(struct str s, uint64_t max, uint64_t *ret)
{
	uint64_t value = 0;

	if (!s.n)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		unsigned digit = (unsigned)(unsigned char)s.p[i] - '0';

		/* A character below '0' wraps around to a large number, so one comparison finds
		 * both kinds. */
		if (digit > 9 || value > (UINT64_MAX - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	if (value > max)
		return false;
	*ret = value;
	return true;
}

int str_hex_digit(char c)
{
	if (str_is_digit(c))
		return c - '0';
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

struct str str_dup(struct arena *a, struct str s)
{
	char *p = arena_alloc(a, s.n + 1, 1);

	if (!p)
		return STR("");
	if (s.n)
		memcpy(p, s.p, s.n);
	p[s.n] = '\0';
	return (struct str){ p, s.n };
}

const char *str_cstr(struct arena *a, struct str s)
{
	return str_dup(a, s).p;
}

struct str str_printf(struct arena *a, const char *fmt, ...)
{
	struct strbuf b;
	va_list ap;

	strbuf_init(&b, a);
	va_start(ap, fmt);
	strbuf_vprintf(&b, fmt, ap);
	va_end(ap);
	return strbuf_str(&b);
}

void strbuf_init(struct strbuf *b, struct arena *a)
{
	*b = (struct strbuf){ .a = a };
}

char *strbuf_reserve(struct strbuf *b, size_t n)
{
	size_t cap = b->cap ? b->cap : 64;
	char *p;

	/* With this bound doubling the capacity below cannot overflow. */
	if (b->failed || n > SIZE_MAX / 4 - b->n) {
		b->failed = true;
		return NULL;
	}
	if (b->n + n <= b->cap)
		return b->p + b->n;
	while (cap < b->n + n)
		cap *= 2;
	p = arena_realloc(b->a, b->p, b->cap, cap);
	if (!p) {
		b->failed = true;
		return NULL;
	}
	b->p = p;
	b->cap = cap;
	return p + b->n;
}

struct str str_count(struct arena *a, uint64_t n, const char *one, const char *many)
{
	return str_printf(a, "%" PRIu64 " %s", n, n == 1 ? one : many);
}

void strbuf_add(struct strbuf *b, struct str s)
{
	char *space = s.n ? strbuf_reserve(b, s.n) : NULL;

	if (!space)
		return;
	memcpy(space, s.p, s.n);
	b->n += s.n;
}

void strbuf_addc(struct strbuf *b, char c)
{
	if (b->n < b->cap && !b->failed)
		b->p[b->n++] = c;
	else
		strbuf_add(b, (struct str){ &c, 1 });
}

void strbuf_add_u64(struct strbuf *b, uint64_t n)
{
	char digits[20]; /* UINT64_MAX has 20 */
	size_t i = sizeof(digits);

	do
		digits[--i] = (char)('0' + n % 10);
	while (n /= 10);
	strbuf_add(b, (struct str){ digits + i, sizeof(digits) - i });
}

/* Most texts are short: they are printed once and copied, instead of printed twice, first to
 * measure them. */
void strbuf_vprintf(struct strbuf *b, const char *fmt, va_list ap)
{
	va_list again;
	char text[256];
	char *space;
	int n;

	va_copy(again, ap);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	/* One byte more for vsnprintf's NUL, which does not count as part of the text. */
	space = n >= 0 ? strbuf_reserve(b, (size_t)n + 1) : NULL;
	if (space && (size_t)n < sizeof(text))
		memcpy(space, text, (size_t)n + 1);
	else if (space)
		(void)vsnprintf(space, (size_t)n + 1, fmt, again);
	if (space)
		b->n += (size_t)n;
	va_end(again);
}

void strbuf_printf(struct strbuf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	strbuf_vprintf(b, fmt, ap);
	va_end(ap);
}

struct str strbuf_str(const struct strbuf *b)
{
	return b->n ? (struct str){ b->p, b->n } : STR("");
}
