/* Formats a line in a buffer on the stack and writes it with one system call. Nothing is allocated,
 * so a process that is out of memory can still log. */

#include "log.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "macro.h"

/* On the stack of every thread that logs. A longer line is cut. */
#define LOG_LINE_MAX 4096

static const char *const level_names[] = {
	[LOG_LEVEL_ERROR] = "error",
	[LOG_LEVEL_WARNING] = "warning",
	[LOG_LEVEL_INFO] = "info",
	[LOG_LEVEL_DEBUG] = "debug",
};
_Static_assert(ARRAY_LEN(level_names) == LOG_LEVEL__COUNT, "every level has a name");

/* syslog priorities, which the journal reads from a "<N>" prefix */
static const char level_priorities[LOG_LEVEL__COUNT] = { '3', '4', '6', '7' };

static enum log_level threshold = LOG_LEVEL_INFO;
static enum log_format chosen_format = LOG_FORMAT_TEXT;

void log_setup(enum log_level level, enum log_format format)
{
	threshold = level;
	chosen_format = format;
}

bool log_level_parse(struct str name, enum log_level *ret)
{
	for (unsigned i = 0; i < LOG_LEVEL__COUNT; i++)
		if (str_eq(name, str_from(level_names[i]))) {
			*ret = (enum log_level)i;
			return true;
		}
	return false;
}

/* Ends a line that is too long; the line stays valid in either format. */
#define CUT_QUOTED "...\""
#define LINE_TAIL sizeof(CUT_QUOTED) /* the NUL's byte is used for a closing brace */

struct log_line {
	char *p;
	size_t n, cap; /* LINE_TAIL is not part of cap */
	bool full;
};

/* Adds all of `s` or nothing; after the first `s` that does not fit nothing more is added. */
static void put(struct log_line *l, struct str s)
{
	if (l->full || s.n > l->cap - l->n) {
		l->full = true;
		return;
	}
	memcpy(l->p + l->n, s.p, s.n);
	l->n += s.n;
}

static void put_text(struct log_line *l, const char *s)
{
	put(l, str_from(s));
}

/* The length of the UTF-8 character at the start (RFC 3629), or 0 when it is invalid.
 * The bounds of the second byte exclude overlong forms, surrogates and code points above U+10FFFF,
 * which JSON parsers refuse. */
static size_t utf8_span(struct str s)
{
	static const struct {
		unsigned char first, last, low, high; /* leading byte; bounds of the second one */
		size_t len;
	} forms[] = {
		{ 0x00, 0x7f, 0x00, 0x00, 1 }, { 0xc2, 0xdf, 0x80, 0xbf, 2 },
		{ 0xe0, 0xe0, 0xa0, 0xbf, 3 }, { 0xe1, 0xec, 0x80, 0xbf, 3 },
		{ 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 },
		{ 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 },
		{ 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};
	const unsigned char *p = (const unsigned char *)s.p;
	size_t i = 0;

	while (i < ARRAY_LEN(forms) && (p[0] < forms[i].first || p[0] > forms[i].last))
		i++;
	if (i == ARRAY_LEN(forms) || s.n < forms[i].len)
		return 0;
	if (forms[i].len > 1 && (p[1] < forms[i].low || p[1] > forms[i].high))
		return 0;
	for (size_t k = 2; k < forms[i].len; k++)
		if ((p[k] & 0xc0) != 0x80)
			return 0;
	return forms[i].len;
}

/* Puts one character and returns how many bytes it took. */
static size_t put_escaped(struct log_line *l, struct str s)
{
	size_t n = utf8_span(s);
	/* U+0080 to U+00BF: the second byte equals the code point */
	unsigned char c = (unsigned char)s.p[n == 2];
	char escape[8];

	if (n == 0)
		put_text(l, "\\ufffd");
	else if (s.p[0] == '"' || s.p[0] == '\\')
		put(l, (struct str){ s.p[0] == '"' ? "\\\"" : "\\\\", 2 });
	else if (s.p[0] == '\n')
		put_text(l, "\\n");
	else if ((n == 1 && (c < 0x20 || c == 0x7f)) || (s.p[0] == '\xc2' && c < 0xa0)) {
		(void)snprintf(escape, sizeof(escape), "\\u%04x", c);
		put_text(l, escape);
	} else
		put(l, (struct str){ s.p, n });
	return n ? n : 1;
}

/* The rest of a quoted text. Values may come from pods and clients: they are escaped so that they
 * cannot end the line, forge a field, or send control characters to a terminal. */
static void put_quoted(struct log_line *l, struct str s)
{
	while (s.n && !l->full)
		s = str_skip(s, put_escaped(l, s));
	put_text(l, "\"");
	if (!l->full)
		return;
	/* Uses the reserved LINE_TAIL. That happens once per line: when the line is full, no
	 * further field is begun. */
	memcpy(l->p + l->n, CUT_QUOTED, strlen(CUT_QUOTED));
	l->n += strlen(CUT_QUOTED);
}

/* A field whose key does not fit is left out. */
static void put_field(struct log_line *l, const struct log_field *f)
{
	bool json = chosen_format == LOG_FORMAT_JSON;
	char number[24], head[96];

	(void)snprintf(number, sizeof(number), "%lld", (long long)f->number);
	(void)snprintf(head, sizeof(head), json ? ",\"%s\":%s" : " %s=%s", f->key,
		       f->is_number ? number : "\"");
	put_text(l, head);
	if (!f->is_number && !l->full)
		put_quoted(l, f->text);
}

static void put_time(struct log_line *l)
{
	char stamp[40];
	struct timespec now;
	struct tm tm;
	size_t n;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)gmtime_r(&now.tv_sec, &tm);
	n = strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(stamp + n, sizeof(stamp) - n, ".%03ldZ", now.tv_nsec / 1000000);
	put_text(l, stamp);
}

size_t log_format_line(char *buf, size_t cap, enum log_level level, const char *msg,
		       const struct log_field *fields, size_t n)
{
	struct log_line l = { buf, 0, cap - LINE_TAIL, false };
	bool json = chosen_format == LOG_FORMAT_JSON;

	assert(cap >= LOG_LINE_MIN);
	put_text(&l, json ? "{\"time\":\"" : "time=");
	put_time(&l);
	put_text(&l, json ? "\",\"level\":\"" : " level=");
	put_text(&l, level_names[level]);
	put_text(&l, json ? "\",\"msg\":\"" : " msg=\"");
	put_quoted(&l, str_from(msg));
	for (size_t i = 1; i < n; i++)
		put_field(&l, &fields[i]);
	if (json)
		l.p[l.n++] = '}';
	return l.n;
}

void log_write(enum log_level level, const char *msg, const struct log_field *fields, size_t n)
{
	char buf[LOG_LINE_MAX];
	size_t len = 0;

	if (level > threshold)
		return;
	/* systemd sets this variable when standard error is connected to the journal. Elsewhere,
	 * for example in a container log, the prefix would be part of the text. */
	if (getenv("JOURNAL_STREAM")) {
		buf[0] = '<';
		buf[1] = level_priorities[level];
		buf[2] = '>';
		len = 3;
	}
	len += log_format_line(buf + len, sizeof(buf) - len - 1, level, msg, fields, n);
	buf[len++] = '\n';
	/* One write per line, so that lines of several threads do not mix. */
	(void)!write(STDERR_FILENO, buf, len);
}
