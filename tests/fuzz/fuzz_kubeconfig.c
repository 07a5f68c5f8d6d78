/* Kubeconfig files: no crash; an accepted one has a host and a port. */

#include <stdlib.h>

#include "base/arena.h"
#include "base/macro.h"
#include "cluster/kubeconfig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(arena_done) struct arena a;
	struct kubeconfig got;

	arena_init(&a, (size_t)64 << 20);
	if (kubeconfig_parse((struct str){ (const char *)data, size }, STR("config"), "/d", NULL,
			     &a, &got, NULL) >= 0 &&
	    (!got.host || !*got.host || !got.port))
		abort();
	return 0;
}
