/* NodePartition objects: decoding never crashes, and the status of an accepted object encodes to
 * something that decodes to the same. */

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "partition/node_partition.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

static int decode(struct str text, struct arena *a, struct node_partition *ret, struct err *err)
{
	struct doc doc;
	int r = doc_parse(text, STR("object"), NULL, a, &doc, err);

	return r < 0 ? r : node_partition_decode(doc.root, a, ret, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size }, once, again;
	CLEANUP(arena_done) struct arena a;
	struct node_partition in, back;
	struct err err = { 0 };
	int r;

	arena_init(&a, 0);
	r = decode(text, &a, &in, &err);
	if (r < 0) {
		require(err.code == -r && err.msg[0] && !strchr(err.msg, '\n'));
		return 0;
	}
	require(node_partition_status_encode(&in.status, &a, &once, &err) == 0);
	again = str_printf(&a, "{\"status\":" PRI_STR "}", FMT_STR(once));
	require(decode(again, &a, &back, &err) == 0);
	require(node_partition_compare(&in.status, &back.status) == STATUS_EQUAL);
	return 0;
}
