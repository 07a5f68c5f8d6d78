#pragma once

/* Printing for people and programs: text, JSON, YAML, tables; colour only on a terminal. A failed
 * write is an error like any other, so that a full disk is not taken for success. */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/str.h"
#include "codec/doc.h"

struct arena;
struct err;

enum output_format { OUTPUT_TABLE, OUTPUT_JSON, OUTPUT_YAML, OUTPUT_SVG, OUTPUT_HTML };

/* From the value of -o; NULL is the table. */
enum output_format output_format_of(const char *name);

/* The row for an option table: OUTPUT_OPTION(struct cpuset_options, output). */
#define OUTPUT_OPTION(type, field)                                                                 \
	{                                                                                          \
		OPT_ENUM, 'o', "output", "FORMAT", "print json, yaml or a table (default: table)", \
			"json|yaml|table", offsetof(type, field)                                   \
	}

/* The same for a command that also draws: a picture, or a page with it. */
#define PICTURE_OUTPUT_OPTION(type, field)                                                         \
	{                                                                                          \
		OPT_ENUM, 'o', "output", "FORMAT",                                                 \
			"print json, yaml, a table, a picture or a page (default: table)",         \
			"json|yaml|table|svg|html", offsetof(type, field)                          \
	}

/* Bytes as they are: documents, pictures, scripts, archives. */
int output_text(struct str text, struct err *err);

/* For people. Names, messages and versions come from objects that others write, so control
 * characters other than colours, tabs and newlines are printed as \x1b: they could move the cursor,
 * hide lines or set the title of the terminal. */
int output_readable(struct str text, struct err *err);
struct str output_printable(struct str text, struct arena *a);

/* A document as JSON (indented) or YAML, with a newline. `format` is not the table. */
int output_doc(yyjson_mut_val *v, enum output_format format, struct arena *a, struct err *err);

/* The same to another stream than standard output. */
int output_text_to(FILE *to, struct str text, struct err *err);
int output_doc_to(FILE *to, yyjson_mut_val *v, enum output_format format, struct arena *a,
		  struct err *err);

/* True on a terminal, unless NO_COLOR is set (to anything but "") or TERM is "dumb". */
bool output_wants_colour(void);

/* Columns for drawings: COLUMNS, or those of the terminal, or 80; from 50 to 240. */
size_t output_width(void);

/* Rows of cells, padded to the widest of each column; the last column is never padded. Cells may
 * hold UTF-8 and colour sequences: neither counts wrongly in the width. */
struct table {
	struct arena *a;
	size_t n_columns;
	struct str *cells;
	size_t n, cap;
};

void table_init(struct table *t, size_t n_columns, struct arena *a);
void table_add(struct table *t, const struct str *cells); /* n_columns of them */
struct str table_format(const struct table *t);
struct str table_or_dash(struct str s); /* an empty cell would look like a missing one */

/* Columns a text takes on a terminal. */
size_t text_width(struct str s);
