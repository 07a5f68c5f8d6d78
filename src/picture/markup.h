#pragma once

/* Text inside markup. Names and messages come from pods and other machines: whatever they contain,
 * they stay text, and the result is well-formed XML. Pure. */

#include <stddef.h>

#include "base/str.h"

/* Escapes what has a meaning in elements and quoted attributes. Bytes that are no UTF-8, control
 * characters and characters that change the direction of text become U+FFFD. */
void markup_text(struct strbuf *b, struct str s);

/* The same with at most `max` characters; the last one is then an ellipsis. */
void markup_cut(struct strbuf *b, struct str s, size_t max);
