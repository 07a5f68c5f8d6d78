#pragma once

/* What went wrong, as a value on the caller's stack: an errno and one sentence for a human. Nothing
 * is allocated, nothing leaks, and ignoring it costs nothing. It is not a log: whoever handles the
 * failure decides whether anybody is told. */

#include <stddef.h>

struct err {
	int code; /* positive errno, 0 when nothing failed */
	char msg[244];
};

/* Records a failure and returns -code, so that failing is one line. `err` may be NULL.
 * A sentence that does not fit is cut and ends in "...". */
int err_set(struct err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), cold));

/* Puts what the caller was doing in front: "isolated cpus: bad range 3-1". Returns -code. */
int err_wrap(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3), cold));
