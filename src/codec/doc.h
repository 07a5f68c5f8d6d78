#pragma once

/* Documents: JSON text read by yyjson into an arena, plus what yyjson does not provide: limits,
 * string views, and the position of a value in the file. yyjson's own types are the document model:
 * yyjson_val for parsed documents, yyjson_mut_val for documents being built. Numbers stay text
 * until they are converted, so quantities and big integers survive a round trip. yaml.h reads YAML
 * into the same documents. No I/O. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yyjson.h>

#include "base/err.h"
#include "base/str.h"

struct arena;

/* Limits for one text, which may come from an untrusted client. Zero means the default below. */
struct doc_limits {
	size_t size_bytes;
	size_t depth;
	size_t nodes;  /* YAML only */
	size_t values; /* JSON only, counted before any memory is used; 0: bounded by the size */
	size_t alias_nodes; /* YAML anchors, and nodes that aliases and merge keys add */
	size_t documents;   /* in one YAML stream */
	size_t tree_bytes;  /* YAML: memory for building one document; 0: no limit */
	bool first_only;    /* JSON only: ignore everything after the first value */
	bool any_depth;	    /* JSON only, for readers that never recurse over the document */
};

/* With these, a malicious file of 1 MB needs at most 100 ms and 32 MB (tests/bench/bench_bombs.c).
 */
#define DOC_MAX_SIZE ((size_t)16 << 20)
#define DOC_MAX_DEPTH 100
#define DOC_MAX_NODES 100000 /* 1 MB of CRDs with short lines has 95000 */
#define DOC_MAX_ALIAS_NODES 10000
#define DOC_MAX_DOCUMENTS 5000

struct doc_limits doc_limits_fill(const struct doc_limits *limits); /* NULL gives the defaults */

struct doc_pos {
	uint32_t line, column; /* from 1; 0 when unknown */
};

struct doc {
	yyjson_val *root;
	struct str file;	     /* for messages; may be empty */
	struct str text;	     /* JSON: the original text */
	const char *strings;	     /* JSON: the buffer that string values point into */
	const struct doc_pos *marks; /* YAML: position of root[i] */
	size_t n_values;
};

struct doc_list {
	struct doc *items;
	size_t n;
};

/* Reads one JSON text (strict RFC 8259). Error messages start with `file`. */
int doc_parse(struct str text, struct str file, const struct doc_limits *limits, struct arena *a,
	      struct doc *ret, struct err *err);

/* Refuses an object with a duplicate key: JSON readers differ in which value they use. */
int doc_check_keys(const struct doc *doc, struct arena *a, struct err *err);

/* The position of a value: exact for YAML; for JSON that of the nearest string or number at or
 * before it. Columns count characters. */
struct doc_pos doc_position(const struct doc *doc, yyjson_val *v);

struct doc_pos doc_position_at(struct str text, size_t offset);

/* err_set with the prefix "file:line:column: ", as far as the position is known. */
#define doc_err_at(err, code, file, pos, ...)                                                      \
	err_negative(doc_err_record_at((err), (code), (file), (pos), __VA_ARGS__))

/* The same for a value, with -EINVAL. */
#define doc_err(err, doc, v, ...) err_negative(doc_err_record((err), (doc), (v), __VA_ARGS__))

int doc_err_record_at(struct err *err, int code, struct str file, struct doc_pos pos,
		      const char *fmt, ...) __attribute__((format(printf, 5, 6), cold));
int doc_err_record(struct err *err, const struct doc *doc, yyjson_val *v, const char *fmt, ...)
	__attribute__((format(printf, 4, 5), cold));

/* Access. All of these accept NULL and values of another type. */
yyjson_val *doc_get(yyjson_val *object, struct str key);
yyjson_val *doc_find(yyjson_val *v, const char *pointer); /* JSON pointer: "/spec/cpu" */
struct str doc_str(yyjson_val *v);			  /* text of a string, "" otherwise */
struct str doc_text(yyjson_val *v); /* text of a string or a number, "" otherwise */
bool doc_is_number(yyjson_val *v);
bool doc_int(yyjson_val *v, int64_t *ret); /* whole numbers only */
bool doc_bool(yyjson_val *v, bool otherwise);
const char *doc_type(yyjson_val *v); /* "a string", "an object"...: for messages */

#define DOC_EACH_ITEM(array, item)                                                                 \
	for (yyjson_arr_iter item##_iter = yyjson_arr_iter_with(array);                            \
	     ((item) = yyjson_arr_iter_next(&item##_iter));)
#define DOC_EACH_PAIR(object, key, value)                                                          \
	for (yyjson_obj_iter key##_iter = yyjson_obj_iter_with(object);                            \
	     ((key) = yyjson_obj_iter_next(&key##_iter)) &&                                        \
	     ((value) = yyjson_obj_iter_get_val(key), true);)

#define DOC_EACH_BUILT_ITEM(array, item)                                                           \
	for (yyjson_mut_arr_iter item##_iter = yyjson_mut_arr_iter_with(array);                    \
	     ((item) = yyjson_mut_arr_iter_next(&item##_iter));)

/* Building. The document and its values live in the arena; strings are not copied. */
yyjson_mut_doc *doc_build(struct arena *a);
yyjson_mut_val *doc_new_str(yyjson_mut_doc *m, struct str s);
yyjson_mut_val *doc_new_int(yyjson_mut_doc *m, int64_t n);
bool doc_put(yyjson_mut_doc *m, yyjson_mut_val *object, struct str key, yyjson_mut_val *value);
bool doc_put_str(yyjson_mut_doc *m, yyjson_mut_val *object, struct str key, struct str value);
bool doc_put_int(yyjson_mut_doc *m, yyjson_mut_val *object, struct str key, int64_t value);
bool doc_put_bool(yyjson_mut_doc *m, yyjson_mut_val *object, struct str key, bool value);
yyjson_mut_val *doc_put_obj(yyjson_mut_doc *m, yyjson_mut_val *object, struct str key);
yyjson_mut_val *doc_put_arr(yyjson_mut_doc *m, yyjson_mut_val *object, struct str key);
struct str doc_mut_str(yyjson_mut_val *v); /* as doc_str */

/* Converts a built value to the type that parsed documents have. NULL when memory ran out. */
yyjson_val *doc_freeze(yyjson_mut_val *v, struct arena *a);

/* Writing. Compact unless `pretty`, which indents by two. No newline at the end. */
int doc_write(yyjson_mut_val *v, bool pretty, struct arena *a, struct str *ret, struct err *err);
int doc_write_val(yyjson_val *v, bool pretty, struct arena *a, struct str *ret, struct err *err);
