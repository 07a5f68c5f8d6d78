#pragma once

/* /etc/os-release: KEY=value lines in the quoting of shells. Pure. */

#include "base/str.h"

/* The value of a key without quotes, or "". Escapes inside quotes are left as they are. */
struct str os_release_get(struct str text, struct str key);
