#pragma once

/* The runtime's side of NRI for tests: encodes its calls and decodes the session's responses. */

#include <stdio.h>

#include "base/arena.h"
#include "nri/nri_messages.h"
#include "nri/session.h"
#include "rpc/ttrpc.h"
#include "test.h"

#define RUNTIME_PLUGIN_SERVICE "nri.pkg.api.v1alpha1.Plugin"

static inline struct str runtime_hex(const char *text, struct arena *a)
{
	struct strbuf b;
	unsigned byte;

	strbuf_init(&b, a);
	for (; *text && *text != '\n'; text += 2) {
		CHECK(sscanf(text, "%2x", &byte) == 1);
		strbuf_addc(&b, (char)byte);
	}
	return strbuf_str(&b);
}

static inline struct str runtime_to_hex(struct str bytes, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < bytes.n; i++)
		strbuf_printf(&b, "%02x", (unsigned char)bytes.p[i]);
	return strbuf_str(&b);
}

/* One request as frames. `payload` is an encoded message. */
static inline struct str runtime_request(const char *method, uint32_t stream, struct str payload,
					 struct arena *a)
{
	const struct ttrpc_request request = { RUNTIME_PLUGIN_SERVICE, method, payload,
					       2000000000 };
	struct strbuf b;

	strbuf_init(&b, a);
	CHECK(ttrpc_write_request(&b, MUX_CONN_PLUGIN, stream, &request, a) == 0);
	return strbuf_str(&b);
}

static inline struct str runtime_encode(const struct pb_message *m, const void *value,
					struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	pb_encode(m, value, &b);
	return strbuf_str(&b);
}

/* The bytes of one connection without the frames around them. */
static inline struct str runtime_stream(struct str wire, uint32_t conn, struct arena *a)
{
	struct mux_reader mux = { 0 };
	struct mux_piece piece;
	struct strbuf b;

	strbuf_init(&b, a);
	while (mux_read(&mux, &wire, &piece, NULL) > 0)
		if (piece.conn == conn)
			strbuf_add(&b, piece.bytes);
	CHECK(!mux_is_inside(&mux));
	return strbuf_str(&b);
}

/* Takes all bytes that the session has queued. */
static inline struct str runtime_take(struct session *s, uint32_t conn, struct arena *a)
{
	const struct str out = str_dup(a, session_pending(s));

	session_sent(s, out.n);
	return runtime_stream(out, conn, a);
}

/* The next response of the plugin's. */
static inline struct ttrpc_response runtime_response(struct session *s, uint32_t stream,
						     struct arena *a)
{
	struct ttrpc_reader reader = { 0 };
	struct ttrpc_response response;
	struct ttrpc_frame frame;
	struct err err = { 0 };
	struct str bytes = runtime_take(s, MUX_CONN_PLUGIN, a);

	CHECK(ttrpc_read(&reader, &bytes, &frame));
	CHECK_UINT(bytes.n, 0);
	CHECK_UINT(frame.type, TTRPC_RESPONSE);
	CHECK_UINT(frame.stream, stream);
	frame.data = str_dup(a, frame.data);
	ttrpc_reader_done(&reader);
	CHECK_OK(ttrpc_response_decode(frame.data, a, &response, &err));
	return response;
}
