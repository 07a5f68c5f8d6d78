/* Errors as a code and one sentence in a fixed buffer: recording one allocates nothing, so it works
 * when memory is short. */

#include "err.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char CUT_MARK[] = "...";

/* A text that was cut silently could read as a complete but different sentence, or name another
 * file. */
static void mark_if_cut(struct err *err, int wanted)
{
	size_t at = ERR_MSG_SIZE - sizeof(CUT_MARK);

	if (wanted < 0 || (size_t)wanted < ERR_MSG_SIZE)
		return;
	while (at && ((unsigned char)err->msg[at] & 0xc0) == 0x80)
		at--; /* do not cut inside a UTF-8 character */
	memcpy(err->msg + at, CUT_MARK, sizeof(CUT_MARK));
}

int err_record(struct err *err, int code, const char *fmt, ...)
{
	va_list ap;

	assert(code > 0);
	if (!err)
		return -code;
	err->code = code;
	va_start(ap, fmt);
	mark_if_cut(err, vsnprintf(err->msg, ERR_MSG_SIZE, fmt, ap));
	va_end(ap);
	return -code;
}

int err_prefix(struct err *err, const char *fmt, ...)
{
	char inner[ERR_MSG_SIZE];
	va_list ap;
	int n;

	if (!err)
		return -EINVAL;
	assert(err->code > 0);
	/* The prefix is written into the same buffer. */
	memcpy(inner, err->msg, sizeof(inner));
	va_start(ap, fmt);
	n = vsnprintf(err->msg, ERR_MSG_SIZE, fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < ERR_MSG_SIZE)
		n += snprintf(err->msg + n, ERR_MSG_SIZE - (size_t)n, ": %s", inner);
	mark_if_cut(err, n);
	return -err->code;
}
