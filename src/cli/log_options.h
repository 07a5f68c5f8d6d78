#pragma once

/* The options of daemons that say what is logged, and how. */

#include "base/options.h"

struct log_options {
	const char *level, *format; /* NULL: the default */
};

#define LOG_OPTIONS(type, field)                                                                   \
	{ OPT_GROUP, 0, NULL, NULL, "Log", NULL, 0 },                                              \
		{ OPT_ENUM,                                                                        \
		  0,                                                                               \
		  "log-level",                                                                     \
		  "LEVEL",                                                                         \
		  "lowest level that is logged (default: info)",                                   \
		  "error|warning|info|debug",                                                      \
		  offsetof(type, field.level) },                                                   \
	{                                                                                          \
		OPT_ENUM, 0, "log-format", "FORMAT", "text (default) or JSON lines", "text|json",  \
			offsetof(type, field.format)                                               \
	}

void log_options_apply(const struct log_options *o);
