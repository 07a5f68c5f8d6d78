#include "client.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

#include "base/macro.h"

#define TICK_MS 1000
#define CONNECT_MS 10000 /* from the name to the end of the handshake */
#define PING_MS 10000	 /* a silent server is asked whether it is there... */
#define SILENCE_MS 30000 /* ...and given up: half-open connections are found so, not by TCP */
#define LEAVE_MS 1000	 /* after GOAWAY, for answers under way; watches are cut */
#define READ_BYTES 16384 /* one TLS record */
#define STREAM_WINDOW_BYTES (1 << 20)
#define CONNECTION_WINDOW_BYTES (4 << 20)

static void connect_now(struct http_client *c);

static void enter(struct http_client *c, enum http_client_state state)
{
	c->state = state;
	c->since_ms = loop_now_ms(c->loop);
}

/* The connection is over. What follows happens in a turn of its own, so that this may be called
 * from anywhere, nghttp2's callbacks included. */
static void give_up(struct http_client *c, const struct err *reason)
{
	if (c->state == HTTP_CLIENT_CLOSING || c->state == HTTP_CLIENT_IDLE)
		return;
	c->reason = *reason;
	enter(c, HTTP_CLIENT_CLOSING);
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

/* Never inside nghttp2's callbacks. */
static void send_frames(struct http_client *c)
{
	const uint8_t *bytes;
	struct err err;
	ssize_t n;

	c->is_busy = true;
	while ((n = nghttp2_session_mem_send(c->session, &bytes)) > 0)
		if (tls_conn_write(&c->tls, (struct str){ (const char *)bytes, (size_t)n }, &err) <
		    0) {
			give_up(c, &err);
			break;
		}
	c->is_busy = false;
	send_output(c);
	if (!nghttp2_session_want_read(c->session) && !nghttp2_session_want_write(c->session)) {
		(void)err_set(&err, ECONNRESET, "the server ended the connection");
		give_up(c, &err);
	}
}

static void end_call(struct http_call *call, const struct err *err)
{
	struct http_client *c = call->client;

	TAILQ_REMOVE(&c->calls, call, link);
	call->client = NULL;
	call->id = 0;
	call->on_end(call, err);
}

/* Calls begun by the callbacks are not among the doomed, nor those that came when the connection
 * was no longer for new ones: they wait for the next. */
static void end_doomed(struct http_client *c, bool was_open, const struct err *reason)
{
	struct http_call *call;

	for (call = TAILQ_FIRST(&c->calls); call; call = TAILQ_NEXT(call, link))
		call->is_doomed = call->id || !was_open;
	for (;;) {
		for (call = TAILQ_FIRST(&c->calls); call; call = TAILQ_NEXT(call, link))
			if (call->is_doomed)
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
	enter(c, HTTP_CLIENT_IDLE);
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
	end_doomed(c, was_open, &reason);
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
		fields[(*n)++] = (nghttp2_nv){ (uint8_t *)name, (uint8_t *)value, strlen(name),
					       strlen(value), 0 };
}

static void submit(struct http_client *c, struct http_call *call)
{
	nghttp2_data_provider provider = { .read_callback = read_body };
	nghttp2_nv fields[9];
	char authority[300];
	size_t n = 0;

	(void)snprintf(authority, sizeof(authority),
		       strchr(c->config.host, ':') ? "[%s]:%u" : "%s:%u", c->config.host,
		       c->config.port);
	add_field(fields, &n, ":method", call->method);
	add_field(fields, &n, ":scheme", "https");
	add_field(fields, &n, ":authority", authority);
	add_field(fields, &n, ":path", call->path);
	add_field(fields, &n, "user-agent", c->config.user_agent);
	add_field(fields, &n, "accept", call->accept);
	add_field(fields, &n, "content-type", call->content_type);
	add_field(fields, &n, "authorization", c->authorization);
	if (c->authorization)
		fields[n - 1].flags = NGHTTP2_NV_FLAG_NO_INDEX; /* keeps it out of the table */
	call->id = nghttp2_submit_request(c->session, NULL, fields, n,
					  call->body.n ? &provider : NULL, call);
	if (call->id <= 0) { /* stream numbers are used up, after a billion calls */
		struct err err;

		call->id = 0;
		(void)err_set(&err, ECONNRESET, "connection is used up");
		give_up(c, &err);
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

	if (frame->hd.type == NGHTTP2_GOAWAY && c->state == HTTP_CLIENT_OPEN)
		enter(c, HTTP_CLIENT_LEAVING);
	if (frame->hd.type != NGHTTP2_HEADERS)
		return 0;
	call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
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
	(void)nghttp2_session_set_stream_user_data(session, id, NULL);
	if (error == NGHTTP2_NO_ERROR && call->status) {
		end_call(call, NULL);
		return 0;
	}
	(void)err_set(&err, ECONNRESET, "the server ended the request: %s",
		      nghttp2_http2_strerror(error));
	end_call(call, &err);
	return 0;
}

static nghttp2_session *make_session(struct http_client *c)
{
	static const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW_BYTES },
	};
	nghttp2_session_callbacks *callbacks;
	nghttp2_session *session;

	if (nghttp2_session_callbacks_new(&callbacks) != 0)
		abort();
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_field);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_body);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
	if (nghttp2_session_client_new(&session, callbacks, c) != 0)
		abort();
	nghttp2_session_callbacks_del(callbacks);
	(void)nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, ARRAY_LEN(settings));
	(void)nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0,
						    CONNECTION_WINDOW_BYTES);
	return session;
}

static void on_ready(struct http_client *c)
{
	struct http_call *call;
	struct err err;

	if (!str_eq(tls_conn_alpn(&c->tls), STR("h2"))) {
		(void)err_set(&err, EPROTONOSUPPORT, "%s:%u does not speak HTTP/2", c->config.host,
			      c->config.port);
		give_up(c, &err);
		return;
	}
	enter(c, HTTP_CLIENT_OPEN);
	c->connections++;
	c->pinged_ms = c->since_ms;
	c->session = make_session(c);
	for (call = TAILQ_FIRST(&c->calls); call; call = TAILQ_NEXT(call, link))
		submit(c, call);
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
		(void)err_set(&err, EPROTO, "bad HTTP/2 from the server: %s",
			      nghttp2_strerror((int)n));
		give_up(c, &err);
	}
}

static void on_data(struct stream *s, struct str bytes)
{
	struct http_client *c = container_of(s, struct http_client, stream);
	char buf[READ_BYTES];
	struct err err;
	ssize_t n;

	c->heard_ms = loop_now_ms(c->loop);
	tls_conn_feed(&c->tls, bytes);
	do {
		n = tls_conn_read(&c->tls, buf, sizeof(buf), &err);
		if (c->state == HTTP_CLIENT_HANDSHAKE && tls_conn_is_ready(&c->tls))
			on_ready(c);
		if (n > 0 && c->session && c->state != HTTP_CLIENT_CLOSING)
			receive(c, (struct str){ buf, (size_t)n });
	} while (n > 0 && c->state != HTTP_CLIENT_CLOSING);
	if (n == -ESHUTDOWN)
		(void)err_set(&err, ECONNRESET, "the server closed the connection");
	if (n < 0)
		give_up(c, &err);
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
	give_up(c, &err);
}

static void on_connected(struct stream *s, int error)
{
	struct http_client *c = container_of(s, struct http_client, stream);
	const char *name = c->config.tls_name ? c->config.tls_name : c->config.host;
	struct err err;

	if (error) {
		(void)err_set(&err, -error, "cannot connect to %s:%u: %s", c->config.host,
			      c->config.port, uv_strerror(error));
		c->next_address++;
		give_up(c, &err);
		return;
	}
	if (c->state != HTTP_CLIENT_CONNECTING)
		return;
	enter(c, HTTP_CLIENT_HANDSHAKE);
	c->heard_ms = c->since_ms;
	if (tls_conn_init_client(&c->tls, c->config.tls, name, &err) < 0)
		give_up(c, &err);
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

	enter(c, HTTP_CLIENT_CONNECTING);
	if (stream_connect(&c->stream, c->loop, (const struct sockaddr *)address, &events, &err) <
	    0) {
		c->next_address++;
		give_up(c, &err);
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
			give_up(c, &err);
		}
	}
	uv_freeaddrinfo(list);
}

/* An address is used as it is; a name is asked for anew with every connection. */
static void connect_now(struct http_client *c)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&c->addresses[0];
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&c->addresses[0];
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
	struct err err;
	char port[8];
	int r;

	enter(c, HTTP_CLIENT_RESOLVING);
	timer_start(&c->tick, TICK_MS, TICK_MS);
	if (uv_ip4_addr(c->config.host, c->config.port, v4) == 0 ||
	    uv_ip6_addr(c->config.host, c->config.port, v6) == 0) {
		c->n_addresses = 1;
		connect_address(c);
		return;
	}
	if (c->is_resolving)
		return; /* an earlier question; its answer is as good */
	(void)snprintf(port, sizeof(port), "%u", c->config.port);
	r = uv_getaddrinfo(&c->loop->uv, &c->resolve, on_resolved, c->config.host, port, &hints);
	c->is_resolving = r >= 0;
	if (r < 0) {
		(void)err_set(&err, -r, "cannot resolve %s: %s", c->config.host, uv_strerror(r));
		give_up(c, &err);
	}
}

static void end_late(struct http_client *c, uint64_t now_ms)
{
	struct http_call *call, *next;
	struct err err;

	for (call = TAILQ_FIRST(&c->calls); call; call = next) {
		next = TAILQ_NEXT(call, link);
		if (!call->deadline_ms || now_ms < call->deadline_ms)
			continue;
		http_call_cancel(call);
		(void)err_set(&err, ETIMEDOUT, "no answer within %llu s",
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
		(void)err_set(&err, ECONNRESET, "the server is going away");
	else if (c->session && now_ms - c->heard_ms >= SILENCE_MS)
		(void)err_set(&err, ETIMEDOUT, "the server is silent");
	if (err.code) {
		give_up(c, &err);
		return;
	}
	if (c->session && now_ms - c->pinged_ms >= PING_MS) {
		c->pinged_ms = now_ms;
		(void)nghttp2_submit_ping(c->session, NGHTTP2_FLAG_NONE, NULL);
		send_frames(c);
	}
	end_late(c, now_ms);
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

	c->is_done = true;
	while ((call = TAILQ_FIRST(&c->calls))) {
		TAILQ_REMOVE(&c->calls, call, link);
		call->client = NULL;
	}
	free_session(c);
	if (c->stream.events && !stream_is_closing(&c->stream))
		stream_close(&c->stream, on_closed);
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
	call->is_doomed = false;
	call->deadline_ms = call->timeout_ms ? loop_now_ms(c->loop) + call->timeout_ms : 0;
	TAILQ_INSERT_TAIL(&c->calls, call, link);
	if (c->state == HTTP_CLIENT_IDLE) {
		connect_now(c);
	} else if (c->state == HTTP_CLIENT_OPEN) {
		submit(c, call);
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
	(void)nghttp2_session_set_stream_user_data(c->session, call->id, NULL);
	(void)nghttp2_submit_rst_stream(c->session, NGHTTP2_FLAG_NONE, call->id, NGHTTP2_CANCEL);
	if (!c->is_busy && c->state != HTTP_CLIENT_CLOSING)
		send_frames(c);
}

void http_client_drop(struct http_client *c, const char *reason)
{
	struct err err;

	(void)err_set(&err, ECONNRESET, "%s", reason);
	give_up(c, &err);
}
