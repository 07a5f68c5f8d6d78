/* Readers keep a partial header between calls, because a socket may split the bytes anywhere.
 * Payload is passed on, or collected as one message; a message that is too long is counted through
 * and dropped, so that the stream stays usable and the peer gets a status. */

#include "ttrpc.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "pb.h"

#define KEEP_BYTES 65536 /* a larger buffer is freed after its message */

int header_fill(unsigned char *header, size_t size, size_t *n, struct str *bytes)
{
	const size_t missing = size - *n;
	const size_t take = bytes->n < missing ? bytes->n : missing;

	if (take > 0)
		memcpy(header + *n, bytes->p, take);
	*n += take;
	*bytes = str_skip(*bytes, take);
	return *n == size;
}

int mux_read(struct mux_reader *m, struct str *bytes, struct mux_piece *ret, struct err *err)
{
	size_t take;

	while (m->left == 0) { /* a frame may be empty */
		uint32_t length;

		if (!header_fill(m->header, MUX_HEADER_SIZE, &m->n_header, bytes))
			return 0;
		length = be32_get(m->header + 4);
		/* Such a length is no frame but a sign that the reader lost its position in the
		 * stream. */
		if (length > MUX_MAX_PAYLOAD)
			return err_set(err, EMSGSIZE, "a frame of %u bytes, more than %u", length,
				       MUX_MAX_PAYLOAD);
		m->n_header = 0;
		m->conn = be32_get(m->header);
		m->left = length;
	}
	if (bytes->n == 0)
		return 0;
	take = bytes->n < m->left ? bytes->n : m->left;
	*ret = (struct mux_piece){ m->conn, { bytes->p, take } };
	*bytes = str_skip(*bytes, take);
	m->left -= take;
	return 1;
}

int mux_is_inside(const struct mux_reader *m)
{
	return m->n_header > 0 || m->left > 0;
}

void mux_write(struct strbuf *out, uint32_t conn, struct str payload)
{
	unsigned char header[MUX_HEADER_SIZE];

	assert(payload.n <= MUX_MAX_PAYLOAD);
	be32_put(header, conn);
	be32_put(header + 4, (uint32_t)payload.n);
	strbuf_add(out, (struct str){ (const char *)header, sizeof(header) });
	strbuf_add(out, payload);
}

static const struct pb_field request_fields[] = {
	PB_FIELD(struct ttrpc_request, 1, PB_STRING, service),
	PB_FIELD(struct ttrpc_request, 2, PB_STRING, method),
	PB_FIELD(struct ttrpc_request, 3, PB_BYTES, payload),
	PB_FIELD(struct ttrpc_request, 4, PB_INT64, timeout_ns),
};
const struct pb_message ttrpc_request_message = PB_TABLE(struct ttrpc_request, request_fields);

static const struct pb_field status_fields[] = {
	PB_FIELD(struct ttrpc_status, 1, PB_INT32, code),
	PB_FIELD(struct ttrpc_status, 2, PB_STRING, message),
};
static const struct pb_message status_message = PB_TABLE(struct ttrpc_status, status_fields);

static const struct pb_field response_fields[] = {
	PB_SUB(struct ttrpc_response, 1, status, &status_message),
	PB_FIELD(struct ttrpc_response, 2, PB_BYTES, payload),
};
static const struct pb_message response_message = PB_TABLE(struct ttrpc_response, response_fields);

void ttrpc_reader_done(struct ttrpc_reader *t)
{
	free(t->data);
	*t = (struct ttrpc_reader){ 0 };
}

static void forget_data(struct ttrpc_reader *t)
{
	/* A synchronization can be megabytes and happens once per connection; requests are small.
	 */
	if (t->cap > KEEP_BYTES) {
		free(t->data);
		t->data = NULL;
		t->cap = 0;
	}
	t->n = 0;
	t->is_done = false;
}

void ttrpc_release(struct ttrpc_reader *t)
{
	if (t->is_done)
		forget_data(t);
}

static void begin_frame(struct ttrpc_reader *t)
{
	t->frame = (struct ttrpc_frame){
		.size = be32_get(t->header),
		.stream = be32_get(t->header + 4),
		.type = t->header[8],
		.flags = t->header[9],
	};
	t->frame.is_oversized = t->frame.size > TTRPC_MAX_DATA;
	t->left = t->frame.size;
}

static void keep_data(struct ttrpc_reader *t, struct str piece)
{
	if (t->n + piece.n > t->cap) {
		/* By doubling, and only for bytes that have arrived: ten bytes of header could
		 * otherwise claim 4 MiB. */
		size_t cap = t->cap ? t->cap : 4096;

		while (cap < t->n + piece.n)
			cap *= 2;
		t->data = realloc(t->data, cap);
		if (!t->data)
			abort(); /* out of memory: as in arena.c */
		t->cap = cap;
	}
	memcpy(t->data + t->n, piece.p, piece.n);
	t->n += piece.n;
}

int ttrpc_read_piece(struct ttrpc_reader *t, struct str *bytes, struct ttrpc_piece *ret)
{
	size_t n;

	if (t->n_header < TTRPC_HEADER_SIZE) {
		if (!header_fill(t->header, TTRPC_HEADER_SIZE, &t->n_header, bytes))
			return 0;
		begin_frame(t);
	}
	if (t->left > 0 && bytes->n == 0)
		return 0;
	n = bytes->n < t->left ? bytes->n : t->left;
	*ret = (struct ttrpc_piece){
		.frame = &t->frame,
		.bytes = { bytes->p, n },
		.is_first = t->left == t->frame.size,
		.is_last = n == t->left,
	};
	*bytes = str_skip(*bytes, n);
	t->left -= n;
	if (t->left == 0)
		t->n_header = 0;
	return 1;
}

int ttrpc_read(struct ttrpc_reader *t, struct str *bytes, struct ttrpc_frame *ret)
{
	struct ttrpc_piece piece;

	/* The previous message is valid until here. */
	ttrpc_release(t);
	if (!ttrpc_read_piece(t, bytes, &piece))
		return 0;
	if (piece.bytes.n > 0 && !t->frame.is_oversized)
		keep_data(t, piece.bytes);
	if (!piece.is_last)
		return 0; /* the piece was all there is */
	t->is_done = true;
	t->frame.data = (struct str){ t->data, t->n };
	*ret = t->frame;
	return 1;
}

int ttrpc_response_decode(struct str data, struct arena *a, struct ttrpc_response *ret,
			  struct err *err)
{
	pb_clear(&response_message, ret);
	return pb_decode(&response_message, data, a, ret, err);
}

struct outgoing {
	uint32_t conn, stream;
	uint8_t type;
	const struct pb_message *message;
	const void *value;
};

static int write_frames(struct strbuf *out, const struct outgoing *o, struct arena *scratch)
{
	unsigned char header[TTRPC_HEADER_SIZE] = { 0 };
	struct strbuf data;

	strbuf_init(&data, scratch);
	pb_encode(o->message, o->value, &data);
	if (data.failed || data.n > TTRPC_MAX_DATA)
		return -EMSGSIZE;
	/* Length, stream, type, flags; the flags stay 0. */
	be32_put(header, (uint32_t)data.n);
	be32_put(header + 4, o->stream);
	header[8] = o->type;
	mux_write(out, o->conn, (struct str){ (const char *)header, sizeof(header) });
	/* Without data the header is the whole message (docs/reference/nri.md#ttrpc). */
	if (data.n > 0)
		mux_write(out, o->conn, strbuf_str(&data));
	return 0;
}

int ttrpc_write_request(struct strbuf *out, uint32_t conn, uint32_t stream,
			const struct ttrpc_request *request, struct arena *scratch)
{
	const struct outgoing o = { conn, stream, TTRPC_REQUEST, &ttrpc_request_message, request };

	return write_frames(out, &o, scratch);
}

int ttrpc_write_response(struct strbuf *out, uint32_t conn, uint32_t stream,
			 const struct ttrpc_response *response, struct arena *scratch)
{
	const struct outgoing o = { conn, stream, TTRPC_RESPONSE, &response_message, response };

	return write_frames(out, &o, scratch);
}
