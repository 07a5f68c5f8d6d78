#pragma once

/* Untrusted bytes inside an error sentence: escaped so that they stay on one line, and truncated so
 * that the rest of the sentence fits. Not for output that a program parses. */

#include "str.h"

struct quoted {
	char text[68];
};

/* Use as err_set(err, EINVAL, "bad item %s", quote(item).text): "bad item \"2-\"". */
struct quoted quote(struct str s);
