#pragma once

/* The tokens of TOML: white space, comments, strings, keys and numbers. For toml_read.c, which
 * reads the tables. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct arena;
struct err;

struct toml_lexer {
	struct str text, file;
	size_t at;
	struct arena *a;
	struct err *err;
};

/* Failures, with the position in the file. */
int toml_fail(struct toml_lexer *l, size_t at, const char *what);
int toml_fail_name(struct toml_lexer *l, size_t at, const char *what, struct str name);
int toml_no_memory(struct toml_lexer *l);

int toml_peek(const struct toml_lexer *l);		 /* the next byte; -1 at the end */
bool toml_take(struct toml_lexer *l, const char *token); /* skips it; false when it is not next */
void toml_skip_blanks(struct toml_lexer *l);

/* Skips a comment and the end of the line; fails on anything else. */
int toml_end_line(struct toml_lexer *l);

/* Blanks, comments and newlines, inside arrays. */
int toml_skip_space(struct toml_lexer *l);

bool toml_is_bare(int c); /* allowed in a key without quotes */
int toml_read_key(struct toml_lexer *l, struct str *ret);
int toml_read_string(struct toml_lexer *l, struct str *ret);

/* Parse a complete token; false when it is not a number. inf and nan become 0: JSON has neither. */
bool toml_parse_int(struct str s, int64_t *ret);
bool toml_parse_float(struct toml_lexer *l, struct str s, double *ret);
