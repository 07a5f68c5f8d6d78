#pragma once

/* Finds one string in JSON text that cannot be parsed: too large, cut off, too deep or not valid
 * after some point. It reads no further than the value, in constant memory. It does not check the
 * text that it skips; doc.h reads documents. */

#include <stdbool.h>

#include "base/str.h"

/* The string at keys[0].keys[1]..., as it is written. False when it is missing or has escapes. */
bool json_scan_str(struct str text, const struct str *keys, size_t n_keys, struct str *ret);
