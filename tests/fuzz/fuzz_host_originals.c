/* The record of a host: never a crash; what is accepted encodes to something that reads back the
 * same. */

#include <stdlib.h>

#include "base/err.h"
#include "base/macro.h"
#include "host/originals.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(arena_done) struct arena a;
	CLEANUP(originals_done) struct originals o;
	struct err err = { 0 };
	struct str once, twice;

	arena_init(&a, 0);
	if (originals_decode((struct str){ (const char *)data, size }, STR("boot"), &o, &err) < 0) {
		require(err.code > 0 && *err.msg);
		return 0;
	}
	require(originals_encode(&o, &a, &once, &err) == 0);
	originals_done(&o);
	require(originals_decode(once, STR("boot"), &o, &err) == 0);
	require(originals_encode(&o, &a, &twice, &err) == 0);
	require(str_eq(once, twice));
	return 0;
}
