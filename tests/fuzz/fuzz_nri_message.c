/* NRI's messages: a message that decodes is unchanged after being encoded and decoded again. The
 * first byte chooses the message. */

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "nri/nri_messages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct pb_message *const messages[] = {
	&nri_register_message,	   &nri_runtime_message, &nri_configured_message,
	&nri_sync_message,	   &nri_call_message,	 &nri_pod_call_message,
	&nri_state_change_message, &nri_created_message, &nri_updated_message,
};

static struct str encode(const struct pb_message *m, const void *value, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	pb_encode(m, value, &b);
	if (strbuf_str(&b).n != pb_size(m, value))
		abort();
	return strbuf_str(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(arena_done) struct arena a;
	const struct pb_message *m;
	struct err err = { 0 };
	struct str first, second;
	void *value, *again;
	int r;

	arena_init(&a, (size_t)16 << 20);
	if (size == 0)
		return 0;
	m = messages[data[0] % ARRAY_LEN(messages)];
	value = arena_alloc(&a, m->size, 16);
	again = arena_alloc(&a, m->size, 16);
	pb_clear(m, value);
	pb_clear(m, again);
	r = pb_decode(m, (struct str){ (const char *)data + 1, size - 1 }, &a, value, &err);
	if (r < 0) {
		if (err.code != -r || !err.msg[0])
			abort();
		return 0;
	}
	first = encode(m, value, &a);
	if (a.failed)
		return 0;
	if (pb_decode(m, first, &a, again, &err) < 0) {
		if (!a.failed)
			abort();
		return 0;
	}
	second = encode(m, again, &a);
	if (!a.failed && !str_eq(first, second))
		abort();
	return 0;
}
