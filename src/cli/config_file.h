#pragma once

/* Daemons take their options from a file as well: --config FILE, a YAML mapping from option names
 * (without the dashes) to values; a list gives an option several times. The environment and the
 * command line win over it. */

#include <stdbool.h>

struct err;
struct option_desc;
struct options;

/* The row for an option table: CONFIG_OPTION(struct webhook_options, config_file). */
#define CONFIG_OPTION(type, field)                                                                 \
	{                                                                                          \
		OPT_STR, 0, "config", "FILE", "take options from this file (YAML: name: value)",   \
			NULL, offsetof(type, field)                                                \
	}

/* Looks for --config in the arguments and PINFOLD_CONFIG in the environment, if the table has that
 * option, and applies the file. To be called before options_parse(). */
int config_file_apply(struct options *o, int argc, char **argv, struct err *err);
