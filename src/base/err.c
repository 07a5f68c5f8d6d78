#include "err.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char CUT_MARK[] = "...";

static void mark_if_cut(struct err *err, int wanted)
{
	size_t room = sizeof(err->msg);

	if (wanted >= 0 && (size_t)wanted >= room)
		memcpy(err->msg + room - sizeof(CUT_MARK), CUT_MARK, sizeof(CUT_MARK));
}

int err_set(struct err *err, int code, const char *fmt, ...)
{
	va_list ap;

	assert(code > 0);
	if (!err)
		return -code;
	err->code = code;
	va_start(ap, fmt);
	mark_if_cut(err, vsnprintf(err->msg, sizeof(err->msg), fmt, ap));
	va_end(ap);
	return -code;
}

int err_wrap(struct err *err, const char *fmt, ...)
{
	char inner[sizeof(err->msg)];
	va_list ap;
	int n;

	if (!err)
		return -1;
	memcpy(inner, err->msg, sizeof(inner));
	va_start(ap, fmt);
	n = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(err->msg))
		n += snprintf(err->msg + n, sizeof(err->msg) - (size_t)n, ": %s", inner);
	mark_if_cut(err, n);
	return -err->code;
}
