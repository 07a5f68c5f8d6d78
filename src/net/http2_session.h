#pragma once

/* What the HTTP/2 server, the HTTP/2 client and gRPC share of nghttp2: a session with its callbacks
 * and settings, and the bytes that it wants to send. Streams and requests are the owner's. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <nghttp2/nghttp2.h>

#include "base/str.h"

struct buffer;

struct http2_session_config {
	bool is_server;
	nghttp2_on_begin_headers_callback on_begin; /* may be NULL */
	nghttp2_on_header_callback on_field;
	nghttp2_on_data_chunk_recv_callback on_body;
	nghttp2_on_frame_recv_callback on_frame;
	nghttp2_on_stream_close_callback on_stream_close;
	const nghttp2_settings_entry *settings;
	size_t n_settings;
	int32_t window_bytes; /* of the whole connection; that of a stream is a setting */
};

/* `user` is the callbacks' last argument. Freed with nghttp2_session_del(). */
nghttp2_session *http2_session_new(const struct http2_session_config *config, void *user);

/* The next bytes to send, valid until the next call. False when there are none. */
bool http2_session_output(nghttp2_session *session, struct str *ret);

/* Neither side has anything left to send: the connection can be closed. */
bool http2_session_is_finished(nghttp2_session *session);

nghttp2_nv http2_field(const char *name, const char *value);

/* For data providers: moves bytes from the buffer into a frame; sets EOF with the last of them. */
ssize_t http2_take_body(struct buffer *from, uint8_t *frame, size_t cap, uint32_t *flags);
