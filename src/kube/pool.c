/* The names of the pools in annotations, JSON, metrics and logs. Nodes read stamps that an older
 * webhook wrote, so a name cannot change. */

#include "pool.h"

#include "base/macro.h"
#include "names.h"

static const char *const pool_names[] = {
	[POOL_MANAGEMENT] = "management",
	[POOL_SHARED] = NAME_POOL_SHARED,
	[POOL_GUARANTEED] = NAME_POOL_GUARANTEED,
};
_Static_assert(ARRAY_LEN(pool_names) == POOL__COUNT, "every pool has a name");

const char *pool_name(enum pool pool)
{
	return pool_names[pool];
}
