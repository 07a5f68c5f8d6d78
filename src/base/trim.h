#pragma once

/* Gives back memory that only beginnings need: code of the dynamic linker, of the look at the
 * machine, of a TLS handshake (four megabytes of libcrypto for one of them) stays mapped for good
 * otherwise. What is needed again comes back from the page cache by itself. */

#include <stddef.h>

#include "base/str.h"

/* One mapping of /proc/self/smaps; false when it must not be touched: written to, or not a file's.
 * A mapping that had relocations is anonymous in part, and would lose them. Pure. */
struct trim_mapping {
	size_t start, end;
};
size_t trim_parse(struct str smaps, struct trim_mapping *ret, size_t max);

void trim_memory(void);
