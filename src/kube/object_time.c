#include "object_time.h"

#include <string.h>
#include <time.h>

#include "base/arena.h"

struct str object_time(int64_t s, struct arena *a)
{
	time_t t = (time_t)s;
	struct tm tm;

	(void)gmtime_r(&t, &tm);
	return str_printf(a, "%04d-%02d-%02dT%02d:%02d:%02dZ", tm.tm_year + 1900, tm.tm_mon + 1,
			  tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

bool object_time_read(struct str text, int64_t *ret_s)
{
	char copy[32] = "";
	struct tm tm = { 0 };
	const char *end;

	if (!text.n || text.n >= sizeof(copy))
		return false;
	memcpy(copy, text.p, text.n);
	end = strptime(copy, "%Y-%m-%dT%H:%M:%SZ", &tm);
	if (end != copy + text.n)
		return false;
	*ret_s = (int64_t)timegm(&tm);
	return true;
}
