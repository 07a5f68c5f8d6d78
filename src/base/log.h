#pragma once

/* The log of daemons and tools: one line per event on standard error, as text
 * (level=info msg="..." key=value) or JSON. Messages are constant; variable parts are fields.
 * Library code never logs: it returns a struct err, and the daemon that handles it logs once. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "str.h"

enum log_level {
	LOG_LEVEL_ERROR,
	LOG_LEVEL_WARNING,
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG,
	LOG_LEVEL__COUNT
};
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

struct log_field {
	const char *key;
	struct str text; /* used when is_number is not set */
	int64_t number;
	bool is_number;
};

#define LOG_STR(k, s) ((struct log_field){ .key = (k), .text = (s) })
#define LOG_INT(k, n) ((struct log_field){ .key = (k), .number = (int64_t)(n), .is_number = true })
#define LOG_ERR(err) LOG_STR("error", str_from((err)->msg))

#define log_at(level, msg, ...)                                                                    \
	log_write((level), (msg), (const struct log_field[]){ { 0 }, ##__VA_ARGS__ },              \
		  sizeof((const struct log_field[]){ { 0 }, ##__VA_ARGS__ }) /                     \
			  sizeof(struct log_field))
#define log_error(msg, ...) log_at(LOG_LEVEL_ERROR, (msg), ##__VA_ARGS__)
#define log_warning(msg, ...) log_at(LOG_LEVEL_WARNING, (msg), ##__VA_ARGS__)
#define log_info(msg, ...) log_at(LOG_LEVEL_INFO, (msg), ##__VA_ARGS__)
#define log_debug(msg, ...) log_at(LOG_LEVEL_DEBUG, (msg), ##__VA_ARGS__)

/* Process-wide, set once before threads start. */
void log_setup(enum log_level level, enum log_format format);
bool log_level_parse(struct str name, enum log_level *ret);

/* fields[0] is an unused sentinel, so that the macros work without any field. */
void log_write(enum log_level level, const char *msg, const struct log_field *fields, size_t n);

#define LOG_LINE_MIN 128

/* The line log_write would print, without the journal prefix and the newline. `cap` is at least
 * LOG_LINE_MIN; a line that does not fit loses its last fields but remains valid JSON. */
size_t log_format_line(char *buf, size_t cap, enum log_level level, const char *msg,
		       const struct log_field *fields, size_t n);
