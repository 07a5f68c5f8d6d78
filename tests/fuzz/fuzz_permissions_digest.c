/* The digest of permissions: no crash, and what is accepted is written and read back the same. */

#include <stdlib.h>

#include "base/arena.h"
#include "base/macro.h"
#include "pin/namespace_allowlist.h"
#include "pin/permissions_digest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(namespace_allowlist_done) struct namespace_allowlist list = { 0 }, back = { 0 };
	CLEANUP(arena_done) struct arena a;
	struct str text, renewed;
	struct doc doc;

	arena_init(&a, (size_t)64 << 20);
	if (doc_parse((struct str){ (const char *)data, size }, STR("input"), NULL, &a, &doc,
		      NULL) < 0 ||
	    permissions_digest_read(doc.root, &list, &renewed, NULL) < 0)
		return 0;
	if (permissions_digest_write(&list, renewed, &a, &text, NULL) < 0)
		return 0;
	if (doc_parse(text, STR("output"), NULL, &a, &doc, NULL) < 0 ||
	    permissions_digest_read(doc.root, &back, &renewed, NULL) < 0 ||
	    !namespace_allowlist_allows_same(&list, &back))
		abort();
	return 0;
}
