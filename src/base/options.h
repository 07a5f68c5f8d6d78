#pragma once

/* One table per command drives its flags, environment, configuration file, help, completion and
 * man page. Values land in the command's own options struct, at the offset the table names. The
 * order of authority is: command line, environment, configuration file, what the struct held. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "str.h"

struct arena;
struct err;

enum option_kind {
	OPT_FLAG,  /* bool */
	OPT_STR,   /* const char * */
	OPT_UINT,  /* unsigned */
	OPT_ENUM,  /* const char *, one of `choices` */
	OPT_STRS,  /* struct option_list; may be given several times */
	OPT_GROUP, /* no option: a heading in the help */
};

struct option_list {
	const char **items;
	size_t n;
};

struct option_desc {
	enum option_kind kind;
	char letter; /* 0 when there is no short form */
	const char *name;
	const char *value; /* what the help calls the value: "FILE" */
	const char *help;
	const char *choices; /* "json|yaml|table", for OPT_ENUM */
	size_t offset;
};

struct options {
	const struct option_desc *table; /* ends with { 0 }; at most 64 rows */
	void *target;
	struct arena *arena;
	uint64_t lists_seen; /* rows of lists that the present source has begun to fill */
};

#define OPTION_ENV_MAX 96

/* The end of a table. */
bool option_is_end(const struct option_desc *d);

/* "PINFOLD_LOG_LEVEL" for "log-level". */
void option_env_name(const struct option_desc *d, char ret[OPTION_ENV_MAX]);

/* Reads the environment first, then argv[1..]. What is not an option is left in *ret_rest.
 * "--" ends the options; "-" is an operand; "--name=value", "--name value", "-nvalue". */
int options_parse(struct options *o, int argc, char **argv, struct option_list *ret_rest,
		  struct err *err);

/* Sets one option by name, for configuration files: call it before options_parse, so that the
 * environment and the command line win. `source` stands in front of a complaint. */
int options_set(struct options *o, const char *name, const char *value, const char *source,
		struct err *err);
