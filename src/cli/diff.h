#pragma once

/* The difference between two texts, line by line, in the unified format. For documents of a few
 * thousand lines: it compares every line with every other one. */

#include "base/str.h"

struct arena;

/* Empty when the texts are equal. `from` and `to` are the names in the heading. */
struct str diff_unified(struct str before, struct str after, const char *from, const char *to,
			struct arena *a);
