#pragma once

/* Foreign bytes inside an error sentence: escaped so that they stay on one line, and short enough
 * to leave room for the rest of the sentence. Not for output that somebody parses. */

#include "str.h"

struct quoted {
	char text[68];
};

/* Use as err_set(err, EINVAL, "bad item %s", quote(item).text): "bad item \"2-\"". */
struct quoted quote(struct str s);
