#pragma once

/* Findings of a linter, printed for people, for programs (JSON, YAML), or for code review tools
 * (SARIF 2.1.0). */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "admission/lint.h"
#include "base/str.h"
#include "codec/doc.h"

struct arena;
struct err;

struct reported {
	struct str file;
	struct doc_pos pos;
	struct lint_finding finding;
};

struct lint_report {
	struct arena *a;
	struct reported *items;
	size_t n, cap;
};

void lint_report_init(struct lint_report *r, struct arena *a);
void lint_report_add(struct lint_report *r, const struct doc *doc,
		     const struct lint_finding *finding);
bool lint_report_is_bad(const struct lint_report *r); /* more than notes */

/* `format` is the value of -o; NULL is for people. */
int lint_report_print(const struct lint_report *r, const char *format, FILE *to, struct err *err);
