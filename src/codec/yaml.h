#pragma once

/* YAML in and out, over the documents of doc.h. Reading takes a whole stream (several documents
 * per file), keeps the position of every value, and refuses what Kubernetes' tools would not
 * agree on: repeated keys, complex keys, unknown tags. Aliases expand only within a budget, so a
 * billion-laughs file costs nothing. JSON is accepted as well. Nothing here does I/O. */

#include "doc.h"

/* Documents that hold nothing are left out. Errors begin with "file:line:column: ". */
int yaml_parse(struct str text, struct str file, const struct doc_limits *limits, struct arena *a,
	       struct doc_list *ret, struct err *err);

/* Block style, two blanks of indentation, keys in the given order, strings quoted wherever a
 * YAML 1.1 reader would see something else; ends with a newline. No "---" in front. */
int yaml_write(yyjson_mut_val *v, struct arena *a, struct str *ret, struct err *err);
int yaml_write_val(yyjson_val *v, struct arena *a, struct str *ret, struct err *err);
