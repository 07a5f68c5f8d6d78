#pragma once

/* Reads and writes YAML, as documents of doc.h. Reading takes a whole stream (several documents per
 * file), keeps the position of every value, and refuses input on which Kubernetes' tools disagree:
 * duplicate keys, complex keys, unknown tags. The number of values from aliases is limited, which
 * bounds "billion laughs" files. JSON is accepted as well. No I/O. */

#include "doc.h"

/* Empty documents are left out. Errors start with "file:line:column: ". */
int yaml_parse(struct str text, struct str file, const struct doc_limits *limits, struct arena *a,
	       struct doc_list *ret, struct err *err);

/* Block style, indented by two, keys in the given order, strings quoted where a YAML 1.1 reader
 * would read another type; ends with a newline. No "---" at the start. */
int yaml_write(yyjson_mut_val *v, struct arena *a, struct str *ret, struct err *err);
int yaml_write_val(yyjson_val *v, struct arena *a, struct str *ret, struct err *err);
