#pragma once

/* The command table and what a command is given. A command is a row in commands.c and a file
 * cmd_<name>.c; flags, environment, help, completion and man page all come from its tables. */

#include <stdbool.h>
#include <stddef.h>

#include "base/options.h"
#include "base/str.h"

struct arena;
struct err;

/* Exit status (D20). */
enum {
	EXIT_YES = 0,	  /* success, or yes */
	EXIT_FINDING = 1, /* a negative finding: drift, violations, a rejected pod */
	EXIT_BAD = 2,	  /* bad usage or bad input */
};

struct invocation {
	const struct command *command;
	void *options;		 /* the command's own struct, filled in */
	struct option_list args; /* operands */
	struct arena *arena;	 /* lives until the command returns */
	bool is_quiet;		 /* -q: no line on success */
};

/* Returns EXIT_YES or EXIT_FINDING, or a negative errno with a sentence in `err`. */
typedef int (*command_fn)(struct invocation *inv, struct err *err);

struct command_example {
	const char *line; /* what to type, without a prompt */
	const char *what; /* what it does */
};

enum command_group { COMMAND_TOOL, COMMAND_DAEMON, COMMAND_OTHER, COMMAND__COUNT };

struct command {
	const char *name; /* "cpuset"; a family has two words: "profile check" */
	enum command_group group;
	const char *summary;  /* one line, no capital, no full stop */
	const char *operands; /* "EXPR", "[FILE...]", or "" */
	const char *about;    /* a paragraph or two for --help and the man page */
	const struct option_desc *options;
	size_t options_size;
	const void *defaults;			/* NULL: all zero */
	const struct command_example *examples; /* ends with { 0 } */
	bool hidden;
	bool reports_success; /* calls command_success(), so it has -q */
	command_fn run;
};

extern const struct command *const commands[]; /* ends with NULL */

/* The command argv[1] (and, for a family, argv[2]) names; NULL when there is none. */
const struct command *command_find(int argc, char **argv, int *ret_words);

/* "profile check" is of the family "profile". */
bool command_is_of_family(const struct command *c, const char *word);

/* True when commands of two words begin with this one: "profile". */
bool command_is_family(const char *word);

/* -EINVAL with a sentence when there is an operand. */
int command_no_operands(const struct invocation *inv, struct err *err);

/* One line about what was done and what comes next, on standard error, unless -q was given. */
void command_success(const struct invocation *inv, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Parses the options, runs the command, prints the error if any. Returns the exit status. */
int command_main(int argc, char **argv);
