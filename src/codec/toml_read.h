#pragma once

/* TOML 1.0 in, a document of doc.h out: tables become objects, arrays of tables arrays. Dates and
 * times stay text. Repeated keys and tables are refused, as in every TOML reader. Writing is
 * toml.h. Nothing here does I/O. */

#include "doc.h"

#define TOML_MAX_SIZE ((size_t)1 << 20)
#define TOML_MAX_DEPTH 64
#define TOML_MAX_TABLES 4096

/* Errors begin with "file:line:column: ". Texts of the result live in `a`. */
int toml_parse(struct str text, struct str file, struct arena *a, yyjson_val **ret,
	       struct err *err);
