#pragma once

/* What went wrong, as a value on the caller's stack: an errno and one sentence for a human. Nothing
 * is allocated, nothing leaks, and ignoring it costs nothing. It is not a log: whoever handles the
 * failure decides whether anybody is told. */

#include <stddef.h>

#define ERR_MSG_SIZE 244

struct err {
	int code; /* positive errno, 0 when nothing failed */
	char msg[ERR_MSG_SIZE];
};

/* Records a failure and returns -code, so that failing is one line. `err` may be NULL; `code` is
 * above zero. A sentence that does not fit is cut and ends in "...". */
#define err_set(err, code, ...) err_negative(err_record((err), (code), __VA_ARGS__))

/* Puts what the caller was doing in front: "isolated cpus: bad range 3-1". Returns -code. */
#define err_wrap(err, ...) err_negative(err_prefix((err), __VA_ARGS__))

int err_record(struct err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), cold));
int err_prefix(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3), cold));

/* Tells compilers and analyzers what they cannot see: a recorded failure is below zero, so code
 * that goes on after `if (r < 0) return r` has its outputs. */
static inline int err_negative(int r)
{
	if (r >= 0)
		__builtin_unreachable();
	return r;
}
