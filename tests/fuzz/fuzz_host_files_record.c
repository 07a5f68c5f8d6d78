/* The record of host files: never a crash; what is accepted encodes to something that reads back
 * the same. */

#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "hostfiles/files_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(arena_done) struct arena a;
	struct files_record r;
	struct err err = { 0 };
	struct str once, twice;

	arena_init(&a, 0);
	if (files_record_decode((struct str){ (const char *)data, size }, STR("boot"), &a, &r,
				&err) < 0) {
		require(err.code > 0 && *err.msg);
		return 0;
	}
	require(files_record_encode(&r, &a, &once, &err) == 0);
	require(files_record_decode(once, STR("boot"), &a, &r, &err) == 0);
	require(files_record_encode(&r, &a, &twice, &err) == 0);
	require(str_eq(once, twice));
	return 0;
}
