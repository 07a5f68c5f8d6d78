#pragma once

/* "Did you mean": the word of a list that is most like a mistyped one. Pure. */

#include <stddef.h>

#include "str.h"

struct did_you_mean {
	struct str word; /* as typed */
	struct str best; /* "" when nothing is like it */
	size_t distance;
};

struct did_you_mean did_you_mean_of(struct str word);
void did_you_mean_offer(struct did_you_mean *s, struct str candidate);
