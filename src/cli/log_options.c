#include "log_options.h"

#include <string.h>

#include "base/log.h"

void log_options_apply(const struct log_options *o)
{
	enum log_level level = LOG_LEVEL_INFO;

	if (o->level)
		(void)log_level_parse(str_from(o->level), &level); /* one of the choices */
	log_setup(level,
		  o->format && strcmp(o->format, "json") == 0 ? LOG_FORMAT_JSON : LOG_FORMAT_TEXT);
}
