#pragma once

/* A failure as a value on the caller's stack: an errno and one sentence for a human. Nothing is
 * allocated and nothing needs to be freed. It is not a log: the code that handles the failure
 * decides whether to log it. */

#include <stddef.h>

#define ERR_MSG_SIZE 244

struct err {
	int code; /* positive errno, 0 when nothing failed */
	char msg[ERR_MSG_SIZE];
};

/* Records a failure and returns -code, for `return err_set(...)`. `err` may be NULL; `code` is
 * positive. A sentence that does not fit is truncated and ends in "...". */
#define err_set(err, code, ...) err_negative(err_record((err), (code), __VA_ARGS__))

/* Prefixes what the caller was doing: "isolated cpus: bad range 3-1". Returns -code. */
#define err_wrap(err, ...) err_negative(err_prefix((err), __VA_ARGS__))

int err_record(struct err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), cold));
int err_prefix(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3), cold));

/* For compilers and analyzers, which do not see the body of err_record(): a recorded failure is
 * negative, so the outputs are set after `if (r < 0) return r`. */
static inline int err_negative(int r)
{
	if (r >= 0)
		__builtin_unreachable();
	return r;
}
