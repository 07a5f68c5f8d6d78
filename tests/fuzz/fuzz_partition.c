/* What a kernel says about a partition: never a crash, and a reason that fits. */

#include <stdlib.h>
#include <string.h>

#include "cgroup/partition.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct partition_status s;

	partition_parse((struct str){ (const char *)data, size }, &s);
	if (memchr(s.reason, 0, sizeof(s.reason)) == NULL ||
	    (s.state != PARTITION_INVALID && *s.reason))
		abort();
	return 0;
}
