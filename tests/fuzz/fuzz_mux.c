/* Multiplexer and ttrpc frames: every split of the bytes gives the same messages. */

#include <stdlib.h>
#include <string.h>

#include "rpc/ttrpc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct digest {
	uint64_t sum;
	size_t n;
	int result;
};

static void digest_add(struct digest *d, const void *bytes, size_t n)
{
	const unsigned char *p = bytes;

	for (size_t i = 0; i < n; i++)
		d->sum = (d->sum ^ p[i]) * UINT64_C(0x100000001b3);
}

static void take_messages(struct ttrpc_reader *t, struct str bytes, struct digest *d)
{
	struct ttrpc_frame f;

	while (bytes.n > 0 && ttrpc_read(t, &bytes, &f)) {
		if (!f.is_oversized && f.data.n != f.size)
			abort();
		digest_add(d, &f.stream, sizeof(f.stream));
		digest_add(d, f.data.p, f.data.n);
		d->n++;
	}
}

static struct digest run(const uint8_t *data, size_t size, size_t cut)
{
	struct mux_reader m = { 0 };
	struct ttrpc_reader readers[2] = { 0 };
	struct digest d = { 0 };

	for (size_t at = 0; at < size && d.result >= 0; at += cut) {
		struct str part = { (const char *)data + at, size - at < cut ? size - at : cut };
		struct mux_piece piece;

		while ((d.result = mux_read(&m, &part, &piece, NULL)) > 0)
			if (piece.conn == MUX_CONN_PLUGIN || piece.conn == MUX_CONN_RUNTIME)
				take_messages(&readers[piece.conn - 1], piece.bytes, &d);
	}
	ttrpc_reader_done(&readers[0]);
	ttrpc_reader_done(&readers[1]);
	return d;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct digest whole = run(data, size, size ? size : 1);
	const struct digest pieces = run(data, size, 1);
	const struct digest odd = run(data, size, 7);

	if (whole.sum != pieces.sum || whole.n != pieces.n || whole.result != pieces.result ||
	    whole.sum != odd.sum || whole.n != odd.n || whole.result != odd.result)
		abort();
	return 0;
}
