/* HTTP/2 on a server connection, with nghttp2: frames to requests, responses to frames. */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "conn.h"
#include "http2_session.h"
#include "limits.h"

/* A request while it is received, then its response while it is sent. */
struct http2_stream {
	TAILQ_ENTRY(http2_stream) link; /* in the order in which they began */
	int32_t id;
	uint64_t begun_ms;
	struct buffer method, target, body;
	struct buffer response;
	size_t field_bytes;   /* of the header, as SETTINGS_MAX_HEADER_LIST_SIZE counts them */
	size_t counted_bytes; /* of http2.bytes */
	bool head_too_large;
	bool is_served; /* it has its response */
};

/* nghttp2 keeps about this much for a stream. */
#define STREAM_OVERHEAD_BYTES (sizeof(struct http2_stream) + 512)

struct http2 {
	struct conn *conn;
	nghttp2_session *session;
	TAILQ_HEAD(http2_streams, http2_stream) streams;
	size_t bytes; /* that the streams hold */
	unsigned resets;
	uint64_t served; /* complete requests */
	bool is_closing;
	bool peer_is_closing; /* it sent GOAWAY */
};

static void count_stream(struct http2 *h, struct http2_stream *s)
{
	size_t now = STREAM_OVERHEAD_BYTES + s->method.cap + s->target.cap + s->body.end +
		     s->response.cap;

	h->bytes += now - s->counted_bytes;
	s->counted_bytes = now;
}

static void free_stream(struct http2 *h, struct http2_stream *s)
{
	TAILQ_REMOVE(&h->streams, s, link);
	h->bytes -= s->counted_bytes;
	buffer_done(&s->method);
	buffer_done(&s->target);
	buffer_done(&s->body);
	buffer_done(&s->response);
	free(s);
}

static int on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct http2 *h = user;
	struct http2_stream *s;

	/* A second HEADERS frame of a stream has trailers, which belong to the same request. */
	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		abort();
	s->id = frame->hd.stream_id;
	s->begun_ms = loop_now_ms(&h->conn->worker->loop);
	TAILQ_INSERT_TAIL(&h->streams, s, link);
	count_stream(h, s);
	(void)nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, s);
	return 0;
}

/* nghttp2 checks names, values and their order. SETTINGS_MAX_HEADER_LIST_SIZE is only advice to the
 * client, so the length is checked here. */
static int on_field(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		    size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags, void *user)
{
	struct http2_stream *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	struct str key = { (const char *)name, name_n };
	struct str text = { (const char *)value, value_n };
	bool is_method = str_eq(key, STR(":method")), is_path = str_eq(key, STR(":path"));

	(void)flags;
	if (!s)
		return 0;
	s->field_bytes += name_n + value_n + 32; /* RFC 9113 section 6.5.2 */
	if (s->field_bytes > LIMIT_HEAD_BYTES ||
	    (is_method && value_n > LIMIT_HTTP2_METHOD_BYTES) ||
	    (is_path && value_n > LIMIT_HTTP2_TARGET_BYTES))
		s->head_too_large = true;
	else if (is_method)
		buffer_add(&s->method, text);
	else if (is_path)
		buffer_add(&s->target, text);
	count_stream(user, s);
	return 0;
}

static void serve_request(struct http2 *h, struct http2_stream *s, bool is_truncated);

static int on_body(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
		   size_t n, void *user)
{
	struct http2_stream *s = nghttp2_session_get_stream_user_data(session, id);
	struct http2 *h = user;

	(void)flags;
	/* nghttp2 keeps the flow-control window open by itself, so LIMIT_BODY_BYTES and the budget,
	 * which conn_settle() checks after each read, are the only bounds. */
	if (!s || s->is_served || s->head_too_large)
		return 0;
	if (buffer_len(&s->body) + n > LIMIT_BODY_BYTES || !h->conn->is_trusted) {
		/* The response comes at once; the rest is discarded. */
		serve_request(h, s, true);
		return 0;
	}
	buffer_add(&s->body, (struct str){ (const char *)data, n });
	count_stream(h, s);
	return 0;
}

static ssize_t read_response(nghttp2_session *session, int32_t id, uint8_t *buf, size_t cap,
			     uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct http2_stream *s = source->ptr;
	ssize_t n = http2_take_body(&s->response, buf, cap, flags);

	(void)user;
	/* After a response that did not wait for the end of the request, the client need not send
	 * the rest (RFC 9113 section 8.1). */
	if ((*flags & NGHTTP2_DATA_FLAG_EOF) &&
	    nghttp2_session_get_stream_remote_close(session, id) == 0)
		(void)nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, NGHTTP2_NO_ERROR);
	return n;
}

static void submit_response(struct http2 *h, struct http2_stream *s,
			    const struct http_response *response, bool without_body)
{
	nghttp2_data_provider provider = { .source.ptr = s, .read_callback = read_response };
	nghttp2_nv fields[5];
	char status[16], length[24];
	size_t n = 0;

	(void)snprintf(status, sizeof(status), "%u", response->status);
	(void)snprintf(length, sizeof(length), "%zu", response->body.n);
	/* nghttp2 copies the fields, so they may be on the stack. */
	fields[n++] = http2_field(":status", status);
	fields[n++] = http2_field("date", h->conn->worker->date);
	fields[n++] = http2_field("content-length", length);
	if (response->content_type)
		fields[n++] = http2_field("content-type", response->content_type);
	if (response->allow)
		fields[n++] = http2_field("allow", response->allow);
	/* Copied: the handler's response is in the worker's arena, which the next request resets,
	 * and flow control may delay the frames. */
	if (!without_body)
		buffer_add(&s->response, response->body);
	(void)nghttp2_submit_response(h->session, s->id, fields, n,
				      buffer_len(&s->response) ? &provider : NULL);
}

/* May run inside nghttp2_session_mem_recv(): a response may be submitted there, but frames are sent
 * only after it returned. */
static void serve_request(struct http2 *h, struct http2_stream *s, bool is_truncated)
{
	struct http_request request = { .method = buffer_str(&s->method),
					.body = buffer_str(&s->body),
					.is_truncated = is_truncated };
	bool is_head = str_eq(request.method, STR("HEAD"));
	struct arena *a = &h->conn->worker->arena;
	struct http_response response;

	h->served++;
	s->is_served = true;
	if (s->head_too_large) {
		http_response_status(&response, 431, a);
	} else {
		http_split_target(buffer_str(&s->target), &request.path, &request.query);
		if (is_head)
			request.method = STR("GET");
		conn_handle(h->conn, &request, &response);
	}
	submit_response(h, s, &response, is_head);
	arena_reset(a);
	buffer_done(&s->body);
	count_stream(h, s);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct http2 *h = user;
	struct http2_stream *s;

	h->peer_is_closing |= frame->hd.type == NGHTTP2_GOAWAY;
	if (frame->hd.type == NGHTTP2_RST_STREAM && ++h->resets > LIMIT_HTTP2_RESETS)
		return NGHTTP2_ERR_CALLBACK_FAILURE; /* rapid reset: a request costs the client
							nothing */
	if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
		return 0;
	if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
		return 0; /* the request is not complete */
	s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	if (s && !s->is_served)
		serve_request(h, s, false);
	return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t error, void *user)
{
	struct http2_stream *s = nghttp2_session_get_stream_user_data(session, id);

	(void)error;
	if (s)
		free_stream(user, s);
	return 0;
}

/* Gives pending frames to the connection, and closes it when neither side has more to send. */
static void send_frames(struct http2 *h)
{
	struct str bytes;

	/* conn_put() ends the connection when encryption fails, and then accepts nothing more. */
	while (!h->conn->is_last && http2_session_output(h->session, &bytes))
		conn_put(h->conn, bytes);
	if (http2_session_is_finished(h->session))
		conn_finish(h->conn, h->is_closing	? SERVER_CLOSE_DRAIN :
				     h->peer_is_closing ? SERVER_CLOSE_PEER :
							  SERVER_CLOSE_BAD_REQUEST);
}

void http2_new(struct conn *c)
{
	static const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, LIMIT_HTTP2_STREAMS },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, LIMIT_HTTP2_WINDOW_BYTES },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, LIMIT_HEAD_BYTES },
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
	};
	static const struct http2_session_config config = {
		.is_server = true,
		.on_begin = on_begin,
		.on_field = on_field,
		.on_body = on_body,
		.on_frame = on_frame,
		.on_stream_close = on_stream_close,
		.settings = settings,
		.n_settings = ARRAY_LEN(settings),
		.window_bytes = LIMIT_HTTP2_WINDOW_BYTES,
	};
	struct http2 *h = calloc(1, sizeof(*h));

	if (!h)
		abort();
	h->conn = c;
	TAILQ_INIT(&h->streams);
	h->session = http2_session_new(&config, h);
	c->http2 = h;
	stat_add(&c->worker->stats.http2_connections, 1);
	/* A connection that is accepted while the server drains learns at once that it will end. */
	if (c->worker->phase != WORKER_SERVING)
		(void)nghttp2_submit_shutdown_notice(h->session);
	send_frames(h);
}

void http2_free(struct http2 *h)
{
	struct http2_stream *s, *next;

	if (!h)
		return;
	/* nghttp2 does not call on_stream_close for the streams that are left. */
	nghttp2_session_del(h->session);
	for (s = TAILQ_FIRST(&h->streams); s; s = next) {
		next = TAILQ_NEXT(s, link);
		free_stream(h, s);
	}
	assert(!h->bytes);
	free(h);
}

bool http2_is_idle(const struct http2 *h)
{
	return TAILQ_EMPTY(&h->streams);
}

size_t http2_bytes(const struct http2 *h)
{
	return h->bytes;
}

uint64_t http2_oldest_ms(const struct http2 *h)
{
	const struct http2_stream *s = TAILQ_FIRST(&h->streams);

	return s ? s->begun_ms : 0;
}

/* After the first second a body has to arrive at the minimum rate. One that is small, or that has
 * not begun, holds little and has until the deadline. */
static bool is_too_slow(const struct http2_stream *s, uint64_t now_ms)
{
	uint64_t age_ms = now_ms - s->begun_ms;

	return !s->is_served && buffer_len(&s->body) > LIMIT_CONNECTION_BYTES &&
	       age_ms > LIMIT_RATE_GRACE_MS &&
	       buffer_len(&s->body) < (age_ms - LIMIT_RATE_GRACE_MS) * LIMIT_RATE_BYTES_PER_MS;
}

void http2_give_up(struct http2 *h, uint64_t until_ms, size_t min_bytes)
{
	uint64_t now_ms = loop_now_ms(&h->conn->worker->loop);
	struct http2_stream *s, *next;

	for (s = TAILQ_FIRST(&h->streams); s; s = next) {
		next = TAILQ_NEXT(s, link);
		if ((s->begun_ms > until_ms || s->counted_bytes < min_bytes) &&
		    !is_too_slow(s, now_ms))
			continue;
		stat_add(&h->conn->worker->stats.given_up, 1);
		if (s->is_served || s->head_too_large || !buffer_len(&s->target))
			(void)nghttp2_submit_rst_stream(h->session, NGHTTP2_FLAG_NONE, s->id,
							NGHTTP2_CANCEL);
		else
			serve_request(h, s, true);
	}
	send_frames(h);
}

void http2_receive(struct http2 *h, struct str bytes)
{
	uint64_t served = h->served;
	ssize_t n = nghttp2_session_mem_recv(h->session, (const uint8_t *)bytes.p, bytes.n);

	send_frames(h);
	if (n < 0)
		conn_finish(h->conn, SERVER_CLOSE_BAD_REQUEST);
	if (!h->served)
		return; /* stays CONN_NEW, with its short time limit */
	/* Only a request restarts the time of an idle connection; PING does not. The streams of an
	 * active one have deadlines of their own. */
	if (http2_is_idle(h) && (h->conn->state != CONN_IDLE || served != h->served))
		conn_move(h->conn, CONN_IDLE);
	else if (!http2_is_idle(h) && h->conn->state != CONN_ACTIVE)
		conn_move(h->conn, CONN_ACTIVE);
}

/* RFC 9113 section 6.8: the first GOAWAY names the highest stream there can be, so that requests
 * in flight are not lost; the second, later, names the last one that was accepted. */
void http2_announce_end(struct http2 *h)
{
	(void)nghttp2_submit_shutdown_notice(h->session);
	send_frames(h);
}

void http2_close(struct http2 *h)
{
	h->is_closing = true;
	(void)nghttp2_submit_goaway(h->session, NGHTTP2_FLAG_NONE,
				    nghttp2_session_get_last_proc_stream_id(h->session),
				    NGHTTP2_NO_ERROR, NULL, 0);
	send_frames(h);
}
