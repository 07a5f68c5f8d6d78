#pragma once

/* Options of a command as one table: flags, environment variables, configuration file, help,
 * completion and man page are generated from it. Values are stored in the command's options struct
 * at the offset that the table names. Precedence, highest first: command line, environment,
 * configuration file, initial value of the struct. */

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
	OPT_GROUP, /* not an option: a heading in the help */
};

struct option_list {
	const char **items;
	size_t n;
};

struct option_desc {
	enum option_kind kind;
	char letter; /* 0 when there is no short form */
	const char *name;
	const char *value;   /* what the help calls the value: "FILE" */
	const char *help;    /* NULL: a former spelling, accepted and not shown */
	const char *choices; /* "json|yaml|table", for OPT_ENUM */
	size_t offset;
};

struct options {
	const struct option_desc *table; /* ends with { 0 }; at most 64 rows */
	void *target;
	struct arena *arena;
	uint64_t lists_seen; /* bit per row: the current source has already set this list */
};

#define OPTION_ENV_MAX 96

/* True for the row { 0 } that ends a table. */
bool option_is_end(const struct option_desc *d);

/* An option that help, completion and man pages list: no heading, no former spelling. */
bool option_is_listed(const struct option_desc *d);

/* "PINFOLD_LOG_LEVEL" for "log-level". */
void option_env_name(const struct option_desc *d, char ret[OPTION_ENV_MAX]);

/* Reads the environment first, then argv[1..]. Operands are stored in *ret_rest. Accepted forms:
 * "--name=value", "--name value", "-nvalue"; "--" ends the options and "-" is an operand. */
int options_parse(struct options *o, int argc, char **argv, struct option_list *ret_rest,
		  struct err *err);

/* Sets one option by name, for configuration files: call it before options_parse(), so that
 * environment and command line take precedence. Error messages start with `source`. */
int options_set(struct options *o, const char *name, const char *value, const char *source,
		struct err *err);
