/* The lifecycle of an nghttp2 session, without any I/O: the owner gives it received bytes and sends
 * its output. */

#include "http2_session.h"

#include <stdlib.h>
#include <string.h>

#include "buffer.h"

nghttp2_session *http2_session_new(const struct http2_session_config *config, void *user)
{
	nghttp2_session_callbacks *callbacks;
	nghttp2_session *session = NULL;

	if (nghttp2_session_callbacks_new(&callbacks) != 0)
		abort();
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, config->on_begin);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, config->on_field);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, config->on_body);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, config->on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, config->on_stream_close);
	if ((config->is_server ? nghttp2_session_server_new :
				 nghttp2_session_client_new)(&session, callbacks, user) != 0)
		abort();
	nghttp2_session_callbacks_del(callbacks);
	/* The first frame of each side must be SETTINGS (RFC 9113 section 3.4). nghttp2 only queues
	 * it. */
	(void)nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, config->settings,
				      config->n_settings);
	/* SETTINGS change the windows of streams only; that of the connection stays at 64 KiB
	 * without a WINDOW_UPDATE (RFC 9113 section 6.9.2). */
	(void)nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0,
						    config->window_bytes);
	return session;
}

bool http2_session_output(nghttp2_session *session, struct str *ret)
{
	const uint8_t *bytes;
	const ssize_t n = nghttp2_session_mem_send(session, &bytes);

	if (n <= 0)
		return false;
	*ret = (struct str){ (const char *)bytes, (size_t)n };
	return true;
}

bool http2_session_is_finished(nghttp2_session *session)
{
	return !nghttp2_session_want_read(session) && !nghttp2_session_want_write(session);
}

nghttp2_nv http2_field(const char *name, const char *value)
{
	return (nghttp2_nv){ (uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), 0 };
}

ssize_t http2_take_body(struct buffer *from, uint8_t *frame, size_t cap, uint32_t *flags)
{
	struct str rest = buffer_str(from);
	size_t n = rest.n < cap ? rest.n : cap;

	memcpy(frame, rest.p, n);
	buffer_consume(from, n);
	if (n == rest.n)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)n;
}
