#pragma once

/* All problems of an input in one list, each with its position in a file, its field and a sentence.
 * A struct err ends the work at the first failure; a checker appends to this list and continues, so
 * that a user sees all problems of a file at once. The caller decides what to do, from n_errors. */

#include <stddef.h>

#include "base/str.h"
#include "doc.h"

struct arena;
struct err;

enum problem_level {
	PROBLEM_ERROR,	 /* the input is refused */
	PROBLEM_WARNING, /* accepted, but probably a mistake */
	PROBLEM_NOTE,	 /* information: a setting has no effect */
	PROBLEM__COUNT
};

struct problem {
	enum problem_level level;
	struct str file; /* empty when no file is concerned */
	struct doc_pos pos;
	struct str field; /* "spec.cpu.reserved"; may be empty */
	struct str text;
};

struct problem_list {
	struct arena *a;
	struct problem *items;
	size_t n, cap;
	size_t n_errors, n_warnings;
};

/* The location of a problem. `doc` may be NULL (no file), `value` too (the whole file). */
struct problem_at {
	const struct doc *doc;
	yyjson_val *value;
	const char *field;
};

#define PROBLEM_AT(doc, value, field) ((struct problem_at){ (doc), (value), (field) })

void problem_list_init(struct problem_list *p, struct arena *a);

/* All texts are copied. */
void problem_add(struct problem_list *p, enum problem_level level, struct problem_at at,
		 const char *fmt, ...) __attribute__((format(printf, 4, 5)));

#define problem_error(p, at, ...) problem_add((p), PROBLEM_ERROR, (at), __VA_ARGS__)
#define problem_warn(p, at, ...) problem_add((p), PROBLEM_WARNING, (at), __VA_ARGS__)
#define problem_note(p, at, ...) problem_add((p), PROBLEM_NOTE, (at), __VA_ARGS__)

/* A failure whose message already starts with "file:line:column: ". */
void problem_from_err(struct problem_list *p, const struct err *err);

/* Sorts by position within each file; the order of files, and problems without a position, stay. */
void problem_list_sort(struct problem_list *p);

/* One line each: "file:line:column: warning: field: text"; errors have no level. */
struct str problem_list_format(const struct problem_list *p, struct arena *a);

/* [{"level","file","line","column","field","text"}...] */
yyjson_mut_val *problem_list_to_doc(const struct problem_list *p, yyjson_mut_doc *m);
