/* NRI's messages: a message that decodes is unchanged after being encoded and decoded again, and
 * decoding it in pieces of any size, as it comes from a socket, gives the same as decoding it at
 * once, with and without a filter. The first byte chooses the message, the second the pieces. */

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "nri/nri_messages.h"
#include "rpc/pb_stream.h"

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

static bool wants_some(void *user, unsigned map, struct str key)
{
	(void)user;
	return (map + key.n) % 2 == 0;
}

static const struct pb_filter filter = { wants_some, NULL, 24 };

/* The encoded result, or no pointer when it fails. */
static struct str stream_decode(const struct pb_message *m, struct str bytes, size_t piece,
				const struct pb_filter *by, struct arena *a)
{
	struct pb_stream s = { .filter = by };
	void *value = arena_alloc(a, m->size, 16);
	struct err err = { 0 };
	int r = 0;

	pb_clear(m, value);
	pb_stream_start(&s, m, value, a, bytes.n);
	while (r == 0 && bytes.n > 0) {
		const size_t n = bytes.n < piece ? bytes.n : piece;

		r = pb_stream_feed(&s, (struct str){ bytes.p, n }, &err);
		bytes = str_skip(bytes, n);
	}
	pb_stream_done(&s);
	if (r < 0 && (err.code != -r || !err.msg[0]))
		abort();
	if (r < 0)
		return (struct str){ 0 };
	return encode(m, value, a);
}

static void compare(struct str x, struct str y, const struct arena *a)
{
	if (!a->failed && (!x.p != !y.p || !str_eq(x, y)))
		abort();
}

static void check_pieces(const struct pb_message *m, struct str bytes, size_t piece,
			 struct str whole)
{
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, (size_t)16 << 20);
	compare(stream_decode(m, bytes, piece, NULL, &a), whole, &a);
	compare(stream_decode(m, bytes, piece, &filter, &a),
		stream_decode(m, bytes, bytes.n + 1, &filter, &a), &a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(arena_done) struct arena a;
	const struct pb_message *m;
	struct err err = { 0 };
	struct str bytes, first, second;
	size_t piece;
	void *value, *again;
	int r;

	arena_init(&a, (size_t)16 << 20);
	if (size < 2)
		return 0;
	bytes = (struct str){ (const char *)data + 2, size - 2 };
	piece = 1 + data[1] % 40u;
	m = messages[data[0] % ARRAY_LEN(messages)];
	value = arena_alloc(&a, m->size, 16);
	again = arena_alloc(&a, m->size, 16);
	pb_clear(m, value);
	pb_clear(m, again);
	r = pb_decode(m, bytes, &a, value, &err);
	if (r < 0) {
		if (err.code != -r || !err.msg[0])
			abort();
		if (!a.failed)
			check_pieces(m, bytes, piece, (struct str){ 0 });
		return 0;
	}
	first = encode(m, value, &a);
	if (a.failed)
		return 0;
	check_pieces(m, bytes, piece, first);
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
