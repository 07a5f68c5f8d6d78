#pragma once

/* Returns memory that is only used at startup: pages of code for dynamic linking, hardware
 * discovery and TLS handshakes (4 MB of libcrypto for one handshake) otherwise stay resident. Pages
 * that are used again are mapped from the page cache. */

#include <stddef.h>

#include "base/str.h"

struct trim_mapping {
	size_t start, end;
};

/* The mappings of /proc/self/smaps whose pages can be dropped: private, read-only, of a file, and
 * without anonymous pages. A mapping with relocations has anonymous pages and would lose them. */
size_t trim_parse(struct str smaps, struct trim_mapping *ret, size_t max);

void trim_memory(void);
