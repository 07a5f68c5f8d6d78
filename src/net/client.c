/* The client's side of HTTP/2: name resolution, TCP, TLS, then one nghttp2 session. The states
 * follow that order. Every failure goes through begin_close() and one tear-down, which ends the
 * calls and lets the next one connect again. */

#include "client.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/macro.h"
#include "http2_session.h"

#define TICK_MS 1000
#define CONNECT_MS 10000 /* each for name resolution, TCP and TLS handshake */
#define PING_MS 10000	 /* the server gets a PING this often... */
#define SILENCE_MS 30000 /* ...and is given up: TCP alone detects a dead peer after minutes */
#define LEAVE_MS 1000	 /* after GOAWAY, for responses in flight; watches are ended */
#define READ_BYTES 16384 /* one TLS record */
#define STREAM_WINDOW_BYTES (1 << 20)
#define CONNECTION_WINDOW_BYTES (4 << 20)

static void connect_now(struct http_client *c);

static void set_state(struct http_client *c, enum http_client_state state)
{
	c->state = state;
	c->since_ms = loop_now_ms(c->loop);
}

/* Starts closing the connection. The teardown runs in a later turn of the loop, so this may be
 * called from anywhere, also from nghttp2's callbacks. */
static void begin_close(struct http_client *c, const struct err *reason)
{
	if (c->state == HTTP_CLIENT_CLOSING || c->state == HTTP_CLIENT_IDLE)
		return;
	c->reason = *reason;
	set_state(c, HTTP_CLIENT_CLOSING);
	timer_start(&c->tick, 0, 0);
}

static void send_output(struct http_client *c)
{
	struct str out = tls_conn_output(&c->tls);

	if (!out.n)
		return;
	stream_write(&c->stream, out);
	buffer_consume(&c->tls.out, out.n);
}

/* Not from nghttp2's callbacks: nghttp2 does not allow re-entry. */
static void send_frames(struct http_client *c)
{
	struct str bytes;
	struct err err;

	c->is_busy = true;
	while (http2_session_output(c->session, &bytes))
		if (tls_conn_write(&c->tls, bytes, &err) < 0) {
			begin_close(c, &err);
			break;
		}
	c->is_busy = false;
	send_output(c);
	/* After a GOAWAY and the last response nghttp2 wants to neither read nor write. */
	if (http2_session_is_finished(c->session)) {
		(void)err_set(&err, ECONNRESET, "the server closed the connection");
		begin_close(c, &err);
	}
}

static void end_call(struct http_call *call, const struct err *err)
{
	struct http_client *c = call->client;

	/* The call is off the client before its callback, which may free it or start it again. */
	TAILQ_REMOVE(&c->calls, call, link);
	call->client = NULL;
	call->id = 0;
	call->on_end(call, err);
}

/* Ends the calls of the lost connection. Calls that the callbacks start, and calls that waited for
 * a new connection because this one accepted no more, stay. The list may change with every
 * callback, so the calls are marked first and the search restarts after each. */
static void end_lost_calls(struct http_client *c, bool was_open, const struct err *reason)
{
	struct http_call *call;

	for (call = TAILQ_FIRST(&c->calls); call; call = TAILQ_NEXT(call, link))
		call->is_lost = call->id || !was_open;
	for (;;) {
		for (call = TAILQ_FIRST(&c->calls); call; call = TAILQ_NEXT(call, link))
			if (call->is_lost)
				break;
		if (!call || c->is_done)
			return;
		end_call(call, reason);
	}
}

static void on_closed(struct stream *s)
{
	struct http_client *c = container_of(s, struct http_client, stream);

	if (c->is_done)
		return;
	/* Calls that were started while the connection was closing waited in the list for this. */
	set_state(c, HTTP_CLIENT_IDLE);
	timer_stop(&c->tick);
	if (!TAILQ_EMPTY(&c->calls))
		connect_now(c);
}

static void free_session(struct http_client *c)
{
	nghttp2_session_del(c->session);
	c->session = NULL;
	tls_conn_done(&c->tls);
}

static void tear_down(struct http_client *c)
{
	struct err reason = c->reason;
	bool was_open = c->session != NULL;

	free_session(c);
	if (c->stream.events)
		stream_close(&c->stream, on_closed);
	end_lost_calls(c, was_open, &reason);
	/* No stream was opened: the name was not resolved. Connecting again from here only starts
	 * the resolver, because the host is a name; an address would set `events`, which is cleared
	 * below. */
	if (!c->stream.events && !c->is_done)
		on_closed(&c->stream);
	c->stream.events = NULL;
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *buf, size_t cap,
			 uint32_t *flags, nghttp2_data_source *source, void *user)
{
	struct http_call *call = nghttp2_session_get_stream_user_data(session, id);
	struct str rest;
	size_t n;

	(void)user;
	(void)source;
	if (!call)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* cancelled */
	rest = str_skip(call->body, call->sent);
	n = rest.n < cap ? rest.n : cap;
	memcpy(buf, rest.p, n);
	call->sent += n;
	if (n == rest.n)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)n;
}

static void add_field(nghttp2_nv *fields, size_t *n, const char *name, const char *value)
{
	if (value)
		fields[(*n)++] = http2_field(name, value);
}

static void submit_request(struct http_client *c, struct http_call *call)
{
	nghttp2_data_provider provider = { .read_callback = read_body };
	nghttp2_nv fields[9];
	char authority[300];
	size_t n = 0;

	(void)snprintf(authority, sizeof(authority),
		       strchr(c->config.host, ':') ? "[%s]:%u" : "%s:%u", c->config.host,
		       c->config.port);
	/* nghttp2 copies the fields, so they may be on the stack. */
	add_field(fields, &n, ":method", call->method);
	add_field(fields, &n, ":scheme", "https");
	add_field(fields, &n, ":authority", authority);
	add_field(fields, &n, ":path", call->path);
	add_field(fields, &n, "user-agent", c->config.user_agent);
	add_field(fields, &n, "accept", call->accept);
	add_field(fields, &n, "content-type", call->content_type);
	add_field(fields, &n, "authorization", c->authorization);
	if (c->authorization)
		fields[n - 1].flags = NGHTTP2_NV_FLAG_NO_INDEX; /* secret: not in the HPACK table */
	call->id = nghttp2_submit_request(c->session, NULL, fields, n,
					  call->body.n ? &provider : NULL, call);
	if (call->id <= 0) { /* no stream id is left, after 2^30 calls */
		struct err err;

		call->id = 0;
		(void)err_set(&err, ECONNRESET, "no stream id is left on the connection");
		begin_close(c, &err);
	}
}

static int on_field(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		    size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags, void *user)
{
	struct http_call *call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	uint64_t status;

	(void)flags;
	(void)user;
	if (call && str_eq((struct str){ (const char *)name, name_n }, STR(":status")) &&
	    str_to_u64((struct str){ (const char *)value, value_n }, 999, &status))
		call->status = (unsigned)status;
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct http_client *c = user;
	struct http_call *call;

	/* Calls on the connection continue; new ones wait until it is closed (RFC 9113, 6.8). */
	if (frame->hd.type == NGHTTP2_GOAWAY && c->state == HTTP_CLIENT_OPEN)
		set_state(c, HTTP_CLIENT_LEAVING);
	if (frame->hd.type != NGHTTP2_HEADERS)
		return 0;
	call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	/* 1xx responses precede the final one and are ignored. */
	if (call && call->status >= 200 && call->on_head)
		call->on_head(call);
	return 0;
}

static int on_body(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
		   size_t n, void *user)
{
	struct http_call *call = nghttp2_session_get_stream_user_data(session, id);

	(void)flags;
	(void)user;
	if (call)
		call->on_data(call, (struct str){ (const char *)data, n });
	return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t error, void *user)
{
	struct http_call *call = nghttp2_session_get_stream_user_data(session, id);
	struct err err;

	(void)user;
	if (!call)
		return 0;
	/* The call may be gone after its callback, and nghttp2 still has the stream until this
	 * returns. */
	(void)nghttp2_session_set_stream_user_data(session, id, NULL);
	/* RST_STREAM may carry NO_ERROR, so a stream without a status has no response. */
	if (error == NGHTTP2_NO_ERROR && call->status) {
		end_call(call, NULL);
		return 0;
	}
	(void)err_set(&err, ECONNRESET, "the server reset the request: %s",
		      nghttp2_http2_strerror(error));
	end_call(call, &err);
	return 0;
}

static void on_handshake_done(struct http_client *c)
{
	static const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW_BYTES },
	};
	static const struct http2_session_config config = {
		.on_field = on_field,
		.on_body = on_body,
		.on_frame = on_frame,
		.on_stream_close = on_stream_close,
		.settings = settings,
		.n_settings = ARRAY_LEN(settings),
		.window_bytes = CONNECTION_WINDOW_BYTES,
	};
	struct http_call *call;
	struct err err;

	/* A server without ALPN speaks HTTP/1.1, which this client does not implement: a watch
	 * would need a connection of its own there. */
	if (!str_eq(tls_conn_alpn(&c->tls), STR("h2"))) {
		(void)err_set(&err, EPROTONOSUPPORT, "%s:%u does not speak HTTP/2", c->config.host,
			      c->config.port);
		begin_close(c, &err);
		return;
	}
	set_state(c, HTTP_CLIENT_OPEN);
	c->is_unreached = false;
	c->connections++;
	c->pinged_ms = c->since_ms;
	c->session = http2_session_new(&config, c);
	for (call = TAILQ_FIRST(&c->calls); call; call = TAILQ_NEXT(call, link))
		submit_request(c, call);
	send_frames(c);
}

static void receive(struct http_client *c, struct str plain)
{
	struct err err;
	ssize_t n;

	c->is_busy = true;
	n = nghttp2_session_mem_recv(c->session, (const uint8_t *)plain.p, plain.n);
	c->is_busy = false;
	if (n < 0) {
		(void)err_set(&err, EPROTO, "invalid HTTP/2 from the server: %s",
			      nghttp2_strerror((int)n));
		begin_close(c, &err);
	}
}

static void on_data(struct stream *s, struct str bytes)
{
	struct http_client *c = container_of(s, struct http_client, stream);
	char buf[READ_BYTES];
	struct err err;
	ssize_t n;

	/* libuv may read several times before the teardown, which is in a later turn. */
	if (c->state == HTTP_CLIENT_CLOSING)
		return;
	c->received_ms = loop_now_ms(c->loop);
	tls_conn_feed(&c->tls, bytes);
	/* One read of the socket may hold several TLS records, and the one that ends the handshake
	 * may be followed by frames. */
	do {
		n = tls_conn_read(&c->tls, buf, sizeof(buf), &err);
		if (c->state == HTTP_CLIENT_HANDSHAKE && tls_conn_is_ready(&c->tls))
			on_handshake_done(c);
		if (n > 0 && c->session && c->state != HTTP_CLIENT_CLOSING)
			receive(c, (struct str){ buf, (size_t)n });
	} while (n > 0 && c->state != HTTP_CLIENT_CLOSING);
	c->tls.in.n = 0; /* the rest is in the loop's read buffer, which the next read overwrites */
	if (n == -ESHUTDOWN)
		(void)err_set(&err, ECONNRESET, "the server closed the connection");
	if (n < 0)
		begin_close(c, &err);
	if (c->session && c->state != HTTP_CLIENT_CLOSING)
		send_frames(c);
	else
		send_output(c);
}

static void on_end(struct stream *s, int error)
{
	struct http_client *c = container_of(s, struct http_client, stream);
	struct err err;

	if (error)
		(void)err_set(&err, -error, "%s:%u: %s", c->config.host, c->config.port,
			      uv_strerror(error));
	else
		(void)err_set(&err, ECONNRESET, "the server closed the connection");
	begin_close(c, &err);
}

static void on_connected(struct stream *s, int error)
{
	struct http_client *c = container_of(s, struct http_client, stream);
	const char *name = c->config.tls_name ? c->config.tls_name : c->config.host;
	struct err err;

	/* The next attempt uses the next address of the name, so a dead one does not block. */
	if (error) {
		(void)err_set(&err, -error, "cannot connect to %s:%u: %s", c->config.host,
			      c->config.port, uv_strerror(error));
		c->next_address++;
		begin_close(c, &err);
		return;
	}
	if (c->state != HTTP_CLIENT_CONNECTING)
		return;
	set_state(c, HTTP_CLIENT_HANDSHAKE);
	/* The silence counts from here, not from the end of an earlier connection. */
	c->received_ms = c->since_ms;
	if (tls_conn_init_client(&c->tls, c->config.tls, name, &err) < 0)
		begin_close(c, &err);
	else
		send_output(c);
}

static void connect_address(struct http_client *c)
{
	static const struct stream_events events = { .on_data = on_data,
						     .on_end = on_end,
						     .on_connected = on_connected };
	const struct sockaddr_storage *address = &c->addresses[c->next_address % c->n_addresses];
	struct err err;

	set_state(c, HTTP_CLIENT_CONNECTING);
	if (stream_connect(&c->stream, c->loop, (const struct sockaddr *)address, &events, &err) <
	    0) {
		c->next_address++;
		begin_close(c, &err);
	}
}

static void keep_addresses(struct http_client *c, const struct addrinfo *list)
{
	c->n_addresses = 0;
	for (; list && c->n_addresses < HTTP_CLIENT_ADDRESSES; list = list->ai_next)
		if (list->ai_addrlen <= sizeof(c->addresses[0]))
			memcpy(&c->addresses[c->n_addresses++], list->ai_addr, list->ai_addrlen);
}

static void on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *list)
{
	struct http_client *c = container_of(request, struct http_client, resolve);
	struct err err;

	c->is_resolving = false;
	if (!c->is_done && c->state == HTTP_CLIENT_RESOLVING) {
		keep_addresses(c, list);
		if (c->n_addresses) {
			connect_address(c);
		} else {
			(void)err_set(&err, EHOSTUNREACH, "cannot resolve %s: %s", c->config.host,
				      status ? uv_strerror(status) : "no address");
			begin_close(c, &err);
		}
	}
	uv_freeaddrinfo(list);
}

/* The pending request of a name is for the address that it was started for. */
static void choose_address(struct http_client *c)
{
	const struct http_client_config was = c->config;

	if (c->is_unreached && was.other_host && !c->is_resolving) {
		c->config.host = was.other_host;
		c->config.port = was.other_port;
		c->config.other_host = was.host;
		c->config.other_port = was.port;
	}
	c->is_unreached = true;
}

/* An IP address is used as it is; a name is resolved again for every connection. */
static void connect_now(struct http_client *c)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&c->addresses[0];
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&c->addresses[0];
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
	struct err err;
	char port[8];
	int r;

	choose_address(c);
	set_state(c, HTTP_CLIENT_RESOLVING);
	timer_start(&c->tick, TICK_MS, TICK_MS);
	if (uv_ip4_addr(c->config.host, c->config.port, v4) == 0 ||
	    uv_ip6_addr(c->config.host, c->config.port, v6) == 0) {
		c->n_addresses = 1;
		connect_address(c);
		return;
	}
	/* libuv has one request in `resolve`, and it cannot be reused before its callback. */
	if (c->is_resolving)
		return; /* an earlier request is pending, and its result serves as well */
	(void)snprintf(port, sizeof(port), "%u", c->config.port);
	r = uv_getaddrinfo(&c->loop->uv, &c->resolve, on_resolved, c->config.host, port, &hints);
	c->is_resolving = r >= 0;
	if (r < 0) {
		(void)err_set(&err, -r, "cannot resolve %s: %s", c->config.host, uv_strerror(r));
		begin_close(c, &err);
	}
}

static void end_timed_out(struct http_client *c, uint64_t now_ms)
{
	struct http_call *call, *next;
	struct err err;

	for (call = TAILQ_FIRST(&c->calls); call; call = next) {
		next = TAILQ_NEXT(call, link);
		if (!call->deadline_ms || now_ms < call->deadline_ms)
			continue;
		/* Before the callback, so that the call may be started again from it, and so that a
		 * late response finds no call. */
		http_call_cancel(call);
		(void)err_set(&err, ETIMEDOUT, "no response within %llu s",
			      (unsigned long long)call->timeout_ms / 1000);
		call->on_end(call, &err);
		next = TAILQ_FIRST(&c->calls); /* the callback may have changed the list */
	}
}

static void on_tick(struct timer *t)
{
	struct http_client *c = container_of(t, struct http_client, tick);
	uint64_t now_ms = loop_now_ms(c->loop), in_state_ms = now_ms - c->since_ms;
	struct err err = { 0 };

	if (c->state == HTTP_CLIENT_CLOSING) {
		tear_down(c);
		return;
	}
	if (c->state < HTTP_CLIENT_OPEN && in_state_ms >= CONNECT_MS)
		(void)err_set(&err, ETIMEDOUT, "no connection to %s:%u within %d s", c->config.host,
			      c->config.port, CONNECT_MS / 1000);
	else if (c->state == HTTP_CLIENT_LEAVING && in_state_ms >= LEAVE_MS)
		(void)err_set(&err, ECONNRESET, "the server is shutting down");
	else if (c->session && now_ms - c->received_ms >= SILENCE_MS)
		(void)err_set(&err, ETIMEDOUT, "the server does not respond");
	if (err.code) {
		begin_close(c, &err);
		return;
	}
	/* The response to a PING counts as received bytes, so an idle watch does not look like a
	 * dead server. */
	if (c->session && now_ms - c->pinged_ms >= PING_MS) {
		c->pinged_ms = now_ms;
		(void)nghttp2_submit_ping(c->session, NGHTTP2_FLAG_NONE, NULL);
		send_frames(c);
	}
	end_timed_out(c, now_ms);
}

void http_client_init(struct http_client *c, struct loop *loop,
		      const struct http_client_config *config)
{
	*c = (struct http_client){ .loop = loop, .config = *config };
	TAILQ_INIT(&c->calls);
	timer_init(&c->tick, loop, on_tick);
}

void http_client_close(struct http_client *c)
{
	struct http_call *call;

	/* Not from a callback of a call: nghttp2 would continue in the session that is freed
	 * here. */
	c->is_done = true;
	while ((call = TAILQ_FIRST(&c->calls))) {
		TAILQ_REMOVE(&c->calls, call, link);
		call->client = NULL;
	}
	free_session(c);
	if (c->stream.events && !stream_is_closing(&c->stream))
		stream_close(&c->stream, on_closed);
	/* Whether it can still be cancelled or not, its callback comes before the loop is done. */
	if (c->is_resolving)
		(void)uv_cancel((uv_req_t *)&c->resolve);
	timer_close(&c->tick, NULL);
}

void http_client_start(struct http_client *c, struct http_call *call)
{
	assert(!call->client);
	call->client = c;
	call->id = 0;
	call->sent = 0;
	call->status = 0;
	call->is_lost = false;
	call->deadline_ms = call->timeout_ms ? loop_now_ms(c->loop) + call->timeout_ms : 0;
	TAILQ_INSERT_TAIL(&c->calls, call, link);
	if (c->state == HTTP_CLIENT_IDLE) {
		connect_now(c);
	} else if (c->state == HTTP_CLIENT_OPEN) {
		submit_request(c, call);
		if (!c->is_busy)
			send_frames(c);
	}
}

void http_call_cancel(struct http_call *call)
{
	struct http_client *c = call->client;

	if (!c)
		return;
	TAILQ_REMOVE(&c->calls, call, link);
	call->client = NULL;
	if (!call->id || !c->session)
		return;
	/* Frames of the stream may still arrive; without user data they reach no call. */
	(void)nghttp2_session_set_stream_user_data(c->session, call->id, NULL);
	(void)nghttp2_submit_rst_stream(c->session, NGHTTP2_FLAG_NONE, call->id, NGHTTP2_CANCEL);
	if (!c->is_busy && c->state != HTTP_CLIENT_CLOSING)
		send_frames(c);
}

void http_client_drop(struct http_client *c, const char *reason)
{
	struct err err;

	(void)err_set(&err, ECONNRESET, "%s", reason);
	begin_close(c, &err);
}
