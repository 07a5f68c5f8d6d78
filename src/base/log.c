#include "log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "macro.h"

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

struct line {
	char *p;
	size_t n, cap;
};

static void put(struct line *l, char c)
{
	if (l->n < l->cap)
		l->p[l->n++] = c;
}

static void put_text(struct line *l, const char *s)
{
	while (*s)
		put(l, *s++);
}

/* Quoted and escaped, so that a value from outside can neither end the line nor forge a field. */
static void put_quoted(struct line *l, struct str s)
{
	static const char hex[] = "0123456789abcdef";

	put(l, '"');
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c == '"' || c == '\\') {
			put(l, '\\');
			put(l, (char)c);
		} else if (c == '\n') {
			put_text(l, "\\n");
		} else if (c < 0x20 || c == 0x7f) {
			put_text(l, "\\u00");
			put(l, hex[c >> 4]);
			put(l, hex[c & 15]);
		} else {
			put(l, (char)c);
		}
	}
	put(l, '"');
}

static void put_field(struct line *l, const struct log_field *f)
{
	bool json = chosen_format == LOG_FORMAT_JSON;
	char number[24];

	put(l, json ? ',' : ' ');
	if (json)
		put_quoted(l, str_from(f->key));
	else
		put_text(l, f->key);
	put(l, json ? ':' : '=');
	if (f->is_number) {
		(void)snprintf(number, sizeof(number), "%lld", (long long)f->number);
		put_text(l, number);
	} else {
		put_quoted(l, f->text);
	}
}

static void put_time(struct line *l)
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
	struct line l = { buf, 0, cap };
	bool json = chosen_format == LOG_FORMAT_JSON;

	put_text(&l, json ? "{\"time\":\"" : "time=");
	put_time(&l);
	put_text(&l, json ? "\",\"level\":\"" : " level=");
	put_text(&l, level_names[level]);
	put_text(&l, json ? "\",\"msg\":" : " msg=");
	put_quoted(&l, str_from(msg));
	for (size_t i = 1; i < n; i++)
		put_field(&l, &fields[i]);
	if (json)
		put(&l, '}');
	return l.n;
}

void log_write(enum log_level level, const char *msg, const struct log_field *fields, size_t n)
{
	char buf[LOG_LINE_MAX];
	size_t len = 0;

	if (level > threshold)
		return;
	if (getenv("JOURNAL_STREAM")) {
		buf[0] = '<';
		buf[1] = level_priorities[level];
		buf[2] = '>';
		len = 3;
	}
	len += log_format_line(buf + len, sizeof(buf) - len - 1, level, msg, fields, n);
	buf[len++] = '\n';
	/* One write per line keeps lines of several threads whole. */
	(void)!write(STDERR_FILENO, buf, len);
}
