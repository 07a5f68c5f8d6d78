#pragma once

/* Times in objects: RFC 3339 in UTC, "2026-11-16T01:34:14Z". */

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct arena;

struct str object_time(int64_t s, struct arena *a);
bool object_time_read(struct str text, int64_t *ret_s); /* false: not such a text, *ret_s is kept */
