#pragma once

/* Strings are views: a pointer and a length, NUL-terminated only at system calls. struct strbuf
 * builds text inside an arena. Nothing here knows about encodings. */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

struct str {
	const char *p;
	size_t n;
};

#define STR(lit) ((struct str){ "" lit, sizeof(lit) - 1 })
#define STR_INIT(lit) /* the same, for static tables */                                            \
	{                                                                                          \
		"" lit, sizeof(lit) - 1                                                            \
	}
#define PRI_STR "%.*s"
#define FMT_STR(s) (int)(s).n, (s).p

struct str str_from(const char *text); /* NULL gives the empty string */
bool str_eq(struct str a, struct str b);
int str_cmp(struct str a, struct str b);     /* bytewise, shorter first: the order of sorted keys */
int str_order(const void *a, const void *b); /* the same for qsort() of struct str */
bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);
bool str_has(struct str s, struct str part);
struct str str_skip(struct str s, size_t n); /* without the first n bytes; "" if there are fewer */
struct str str_trim(struct str s);	     /* without ASCII white space at both ends */

/* Iterates over the items between separators. str_next() returns false after the last item; an
 * empty text has one empty item. */
struct str_split {
	struct str rest;
	bool ended;
};
struct str_split str_split(struct str s);
bool str_next(struct str_split *split, char sep, struct str *ret);

/* Decimal digits only: no sign, no blank. False when empty, not a digit, or above `max`. */
bool str_to_u64(struct str s, uint64_t max, uint64_t *ret);
int str_hex_digit(char c); /* 0 to 15; -1 when it is none */

/* ASCII, in every locale. */
static inline bool str_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline bool str_is_alnum(char c)
{
	return str_is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

struct str str_dup(struct arena *a, struct str s); /* with a NUL after the last byte */
const char *str_cstr(struct arena *a, struct str s);
struct str str_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "1 process", "2 processes". */
struct str str_count(struct arena *a, uint64_t n, const char *one, const char *many);

/* A growing text. After an allocation failed, further additions do nothing and `failed` stays set,
 * so one check at the end is enough. */
struct strbuf {
	struct arena *a;
	char *p;
	size_t n;
	size_t cap;
	bool failed;
};

void strbuf_init(struct strbuf *b, struct arena *a);
void strbuf_add(struct strbuf *b, struct str s);
void strbuf_addc(struct strbuf *b, char c);
void strbuf_add_u64(struct strbuf *b, uint64_t n); /* in decimal */
void strbuf_printf(struct strbuf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void strbuf_vprintf(struct strbuf *b, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));
char *strbuf_reserve(struct strbuf *b, size_t n); /* space for n bytes; NULL when failed */
struct str strbuf_str(const struct strbuf *b);
