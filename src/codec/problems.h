#pragma once

/* Everything that is wrong with an input, all at once: a list of findings, each with its place in
 * a file, the field it is about and a sentence. Where a struct err ends the work at the first
 * failure, a checker adds to this and goes on, so that a person fixes a file once. It decides
 * nothing: whoever asked looks at n_errors. */

#include <stddef.h>

#include "base/str.h"
#include "doc.h"

struct arena;
struct err;

enum problem_level {
	PROBLEM_ERROR,	 /* the input is refused */
	PROBLEM_WARNING, /* accepted, but likely not what was meant */
	PROBLEM_NOTE,	 /* worth knowing: something given was not acted on */
	PROBLEM__COUNT
};

struct problem {
	enum problem_level level;
	struct str file; /* empty when it is about no file */
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

/* Where a problem stands. `doc` may be NULL (about no file), `value` too (about the whole file). */
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

/* A failure somebody else reported with its own "file:line:column: " in front. */
void problem_from_err(struct problem_list *p, const struct err *err);

/* In the order of files as they came, then of lines; a finding without a place keeps its own. */
void problem_list_sort(struct problem_list *p);

/* One line each: "file:line:column: warning: field: text"; errors have no word in front. */
struct str problem_list_format(const struct problem_list *p, struct arena *a);

/* [{"level","file","line","column","field","text"}...] */
yyjson_mut_val *problem_list_to_doc(const struct problem_list *p, yyjson_mut_doc *m);
