/* Static pod manifests: no crash; a converted manifest is stable when it is decided again, keeps
 * its original, and converting the original gives the same text. The input is a manifest, or a
 * manifest and its original with a zero byte in between. */

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "staticpod/static_manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *zero = size ? memchr(data, 0, size) : NULL;
	struct str text = { (const char *)data, zero ? (size_t)(zero - (const char *)data) : size };
	struct str original = { zero ? zero + 1 : NULL, zero ? size - text.n - 1 : 0 };
	CLEANUP(arena_done) struct arena a;
	struct static_decision d, again;

	arena_init(&a, (size_t)64 << 20);
	if (static_manifest_decide(text, zero ? &original : NULL, STR("m"), zero, &a, &d) < 0)
		return 0; /* the arena's limit */
	require((d.verdict == STATIC_REFUSED || d.verdict == STATIC_BROKEN) == (d.why.code != 0));
	require(d.verdict == STATIC_CONVERT ? d.text.n > 0 : d.text.n == 0);
	if (d.verdict != STATIC_CONVERT)
		return 0;
	if (d.keep == STATIC_ORIGINAL_WRITE)
		original = d.original;
	if (static_manifest_decide(d.text, &original, STR("m"), zero, &a, &again) < 0)
		return 0;
	require(again.verdict == STATIC_CONVERTED || again.verdict == STATIC_UNMANAGED);
	return 0;
}
