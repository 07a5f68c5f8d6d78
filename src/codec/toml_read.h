#pragma once

/* Reads TOML 1.0 into a document of doc.h: tables become objects, arrays of tables arrays, dates
 * and times strings. Duplicate keys and tables are refused, as TOML demands. Writing is toml.h. No
 * I/O. */

#include "doc.h"

#define TOML_MAX_SIZE ((size_t)1 << 20)
#define TOML_MAX_DEPTH 64
#define TOML_MAX_TABLES 4096

/* Errors start with "file:line:column: ". The result is allocated in `a`. */
int toml_parse(struct str text, struct str file, struct arena *a, yyjson_val **ret,
	       struct err *err);
