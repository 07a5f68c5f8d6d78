#pragma once

/* The words of TOML, below its tables: blanks, comments, texts, keys and numbers. For toml_read.c.
 */

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

/* Failures, with the place in the file. */
int toml_fail(struct toml_lexer *l, size_t at, const char *what);
int toml_fail_name(struct toml_lexer *l, size_t at, const char *what, struct str name);
int toml_no_memory(struct toml_lexer *l);

int toml_peek(const struct toml_lexer *l); /* the next byte; -1 at the end */
bool toml_take(struct toml_lexer *l, const char *word);
void toml_skip_blanks(struct toml_lexer *l);

/* To the end of a line, or of the text. */
int toml_end_line(struct toml_lexer *l);

/* Blanks, comments and newlines, inside arrays. */
int toml_skip_space(struct toml_lexer *l);

bool toml_is_bare(int c); /* of a key without quotes */
int toml_read_key(struct toml_lexer *l, struct str *ret);
int toml_read_string(struct toml_lexer *l, struct str *ret);

/* Whole words; false when it is none. inf and nan become 0: JSON has neither. */
bool toml_parse_int(struct str s, int64_t *ret);
bool toml_parse_float(struct toml_lexer *l, struct str s, double *ret);
