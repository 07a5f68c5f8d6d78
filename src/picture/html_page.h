#pragma once

/* A page: HTML that is also well-formed XML, in one file, without scripts and without anything from
 * elsewhere; a policy in its head forbids both. All texts are escaped here. Pure. */

#include <stddef.h>

#include "base/str.h"

void page_begin(struct strbuf *b, struct str title);
void page_end(struct strbuf *b);

void page_heading(struct strbuf *b, unsigned level, struct str text); /* 2 or 3 */
void page_paragraph(struct strbuf *b, struct str text);
void page_note(struct strbuf *b, struct str text); /* in a muted colour; each line by itself */

/* How a word is shown; the word itself says the same. */
enum page_mood { PAGE_PLAIN, PAGE_OK, PAGE_WARNING, PAGE_BAD };

void page_verdict(struct strbuf *b, enum page_mood mood, struct str text);

struct page_table {
	struct strbuf *b;
	size_t n_columns;
};

/* `headings` has n_columns texts. */
struct page_table page_table_begin(struct strbuf *b, struct str caption,
				   const char *const *headings, size_t n_columns);
/* The mood is that of the first cell. */
void page_table_row(const struct page_table *t, enum page_mood mood, const struct str *cells);
void page_table_end(const struct page_table *t);

/* A text that is folded until it is opened. */
void page_folded(struct strbuf *b, struct str summary, struct str text);
