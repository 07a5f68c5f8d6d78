/* The kubelet's checkpoint: never a crash, entries always sorted and found again. */

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "pool/checkpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size };
	CLEANUP(arena_done) struct arena a;
	struct checkpoint_machine machine = { .cpus = { { 0xff } }, .reserved = { { 1 } } };
	struct checkpoint c = { .version = 42 };
	struct err err = { 0 };
	struct cpuset set;
	int r;

	arena_init(&a, 0);
	r = checkpoint_decode(text, STR("state"), &a, &c, &err);
	if (r < 0) {
		require(err.code == -r && err.msg[0] && !strchr(err.msg, '\n'));
		require(c.version == 42);
		return 0;
	}
	require(c.version >= 1 && c.version <= 4);
	(void)checkpoint_check(&c, &machine, &set, &err);
	return 0;
}
