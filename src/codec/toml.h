#pragma once

/* TOML output, the subset that drop-ins for CRI-O and containerd need: tables, strings, integers,
 * booleans, lists of strings. Appends to a strbuf in the order of the calls. Reading is
 * toml_read.h.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* "[a.b.c]"; a part that is not a bare key is quoted. */
void toml_table(struct strbuf *b, const struct str *parts, size_t n);

void toml_str(struct strbuf *b, struct str key, struct str value);
void toml_int(struct strbuf *b, struct str key, int64_t value);
void toml_bool(struct strbuf *b, struct str key, bool value);
