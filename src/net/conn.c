/* A connection: received bytes are decrypted and given to HTTP/1.1 (here) or HTTP/2 (http2.c),
 * responses are encrypted and sent. */

#include "conn.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/macro.h"
#include "limits.h"

#define RECORD_BYTES 16384 /* the most one TLS record holds */

static void on_data(struct stream *s, struct str bytes);
static void on_end(struct stream *s, int error);
static void on_drained(struct stream *s);
static void serve_http1(struct conn *c);

static const struct stream_events events = {
	.on_data = on_data,
	.on_end = on_end,
	.on_drained = on_drained,
};

static void leave_list(struct conn *c)
{
	if (c->state < CONN_CLOSING)
		TAILQ_REMOVE(&c->worker->lists[c->state], c, link);
	if (c->state == CONN_ACTIVE)
		stat_add(&c->worker->stats.active, UINT64_MAX); /* one less */
}

void conn_move(struct conn *c, enum conn_state state)
{
	if (c->state == CONN_CLOSING)
		return;
	leave_list(c);
	c->state = state;
	c->since_ms = loop_now_ms(&c->worker->loop);
	c->waited_ms = 0;
	if (state == CONN_ACTIVE)
		stat_add(&c->worker->stats.active, 1);
	TAILQ_INSERT_TAIL(&c->worker->lists[state], c, link);
}

static struct peer *peer_of(struct worker *w, int fd)
{
	struct sockaddr_storage address = { .ss_family = AF_UNSPEC };
	socklen_t size = sizeof(address);

	/* Fails when the client is gone already; the connection then ends with its first read. */
	(void)getpeername(fd, (struct sockaddr *)&address, &size);
	return peer_join(&w->shares->peers, &address);
}

int conn_open(struct worker *w, int fd)
{
	struct conn *c = calloc(1, sizeof(*c));
	struct err err;
	int r;

	if (!c)
		abort();
	c->worker = w;
	c->peer = peer_of(w, fd);
	c->state = CONN_CLOSING; /* in no list, so that a failure below can abort it */
	w->n_conns++;
	stat_add(&w->stats.open, 1);
	r = stream_open(&c->stream, &w->loop, fd, &events, &err);
	if (r >= 0)
		r = tls_conn_init_server(&c->tls, w->config->tls, &err);
	if (r < 0) {
		conn_abort(c, SERVER_CLOSE_TLS);
		return r;
	}
	c->state = CONN_NEW;
	c->since_ms = loop_now_ms(&w->loop);
	TAILQ_INSERT_TAIL(&w->lists[CONN_NEW], c, link);
	return 0;
}

static void on_closed(struct stream *s)
{
	struct conn *c = container_of(s, struct conn, stream);
	struct worker *w = c->worker;

	http2_free(c->http2);
	tls_conn_done(&c->tls);
	buffer_done(&c->in);
	conn_forget(c);
	peer_leave(&w->shares->peers, c->peer);
	free(c);
	w->n_conns--;
	stat_add(&w->stats.open, UINT64_MAX); /* one less */
	/* The last connection of a worker that shuts down ends its loop; a paused listener can
	 * accept again now that a descriptor is free. */
	if (w->phase == WORKER_CLOSING && !w->n_conns)
		loop_stop(&w->loop);
	else if (w->phase < WORKER_CLOSING && w->listener.paused)
		listener_resume(&w->listener);
}

void conn_abort(struct conn *c, enum server_close_reason reason)
{
	if (stream_is_closing(&c->stream))
		return;
	/* The reason of a planned end was decided earlier; the client's FIN that follows it is no
	 * reason of its own. */
	stat_add(&c->worker->stats.closed[c->is_last ? c->reason : reason], 1);
	leave_list(c);
	c->state = CONN_CLOSING;
	stream_close(&c->stream, on_closed);
}

void conn_put(struct conn *c, struct str plain)
{
	struct err err;

	if (tls_conn_write(&c->tls, plain, &err) < 0)
		conn_finish(c, SERVER_CLOSE_TLS);
}

/* Half-closes and keeps reading: closing with unread bytes makes the kernel send RST, and the
 * client would lose the response. */
static void linger(struct conn *c)
{
	uv_os_fd_t fd;

	if (uv_fileno(&c->stream.uv.handle, &fd) < 0 || shutdown(fd, SHUT_WR) < 0) {
		conn_abort(c, c->reason);
		return;
	}
	conn_move(c, CONN_LINGERING);
	stream_resume(&c->stream);
}

void conn_flush(struct conn *c)
{
	struct str out = tls_conn_output(&c->tls);

	if (c->state == CONN_CLOSING || c->state == CONN_LINGERING)
		return;
	stream_write(&c->stream, out);
	buffer_consume(&c->tls.out, out.n);
	buffer_trim(&c->tls.out, 0);
	if (c->state == CONN_CLOSING) /* the write failed */
		return;
	/* The kernel has everything: on_drained() will not be called for this write. */
	if (!stream_queued(&c->stream)) {
		if (c->is_last)
			linger(c);
		return;
	}
	if (!c->unread_ms)
		c->unread_ms = loop_now_ms(&c->worker->loop);
	/* Not idle while a response waits for the client: the shorter limit of ACTIVE applies to
	 * it. */
	if (c->state == CONN_IDLE)
		conn_move(c, CONN_ACTIVE);
	/* Backpressure: a client that does not read its responses cannot send more requests. */
	if (stream_queued(&c->stream) > LIMIT_UNREAD_BYTES)
		stream_pause(&c->stream);
}

static void on_drained(struct stream *s)
{
	struct conn *c = container_of(s, struct conn, stream);

	c->unread_ms = 0;
	if (c->is_last) {
		linger(c);
		return;
	}
	if (!c->waiting_ms)
		stream_resume(s);
	/* Pipelined requests that were received and not served, because the client did not read. */
	if (!c->http2 && buffer_len(&c->in)) {
		serve_http1(c);
		conn_flush(c);
	}
	if (c->state == CONN_ACTIVE && (c->http2 ? http2_is_idle(c->http2) : !buffer_len(&c->in)))
		conn_move(c, CONN_IDLE);
	conn_settle(c);
}

void conn_finish(struct conn *c, enum server_close_reason reason)
{
	if (c->is_last || c->state == CONN_CLOSING)
		return;
	c->is_last = true;
	c->reason = reason;
	tls_conn_shutdown(&c->tls);
}

void conn_announce_end(struct conn *c)
{
	if (c->http2)
		http2_announce_end(c->http2);
	conn_flush(c);
}

void conn_handle(struct conn *c, struct http_request *request, struct http_response *ret)
{
	struct worker *w = c->worker;

	request->arena = &w->arena;
	request->thread = w->index;
	request->is_trusted = c->is_trusted;
	*ret = (struct http_response){ .status = 500 };
	w->config->handler(request, ret, w->config->context);
	stat_add(&w->stats.requests, 1);
}

/* Begins with the end of the previous line: a field without a value leaves no empty line. */
static void put_field(struct buffer *b, const char *name, const char *value)
{
	if (!value)
		return;
	buffer_add(b, STR("\r\n"));
	buffer_add(b, str_from(name));
	buffer_add(b, STR(": "));
	buffer_add(b, str_from(value));
}

static void put_response(struct conn *c, const struct http_response *response, bool without_body)
{
	struct buffer *b = &c->worker->head;
	char line[80];
	int n;

	n = snprintf(line, sizeof(line), "HTTP/1.1 %u %s\r\nContent-Length: %zu", response->status,
		     http_status_text(response->status), response->body.n);
	buffer_add(b, (struct str){ line, (size_t)n });
	put_field(b, "Date", c->worker->date);
	put_field(b, "Content-Type", response->content_type);
	put_field(b, "Allow", response->allow);
	put_field(b, "Connection", c->is_last ? "close" : NULL);
	buffer_add(b, STR("\r\n\r\n"));
	if (!without_body)
		buffer_add(b, response->body);
	conn_put(c, buffer_str(b));
	buffer_consume(b, buffer_len(b));
	buffer_trim(b, LOOP_READ_BYTES);
}

/* The response says "Connection: close", so the end is decided before it; close_notify follows the
 * body. */
static void put_last_response(struct conn *c, const struct http_response *response,
			      bool without_body, enum server_close_reason reason)
{
	c->is_last = true;
	put_response(c, response, without_body);
	c->is_last = false;
	conn_finish(c, reason);
}

static void refuse_request(struct conn *c, unsigned status)
{
	struct http_response response;

	http_response_status(&response, status, &c->worker->arena);
	put_last_response(c, &response, false,
			  status == 413 || status == 431 ? SERVER_CLOSE_TOO_LARGE :
							   SERVER_CLOSE_BAD_REQUEST);
	arena_reset(&c->worker->arena);
}

/* `reason` is why the connection ends after a request that is not complete. */
static void serve_request(struct conn *c, const struct http1_request *got,
			  enum server_close_reason reason)
{
	struct http_request request = { .method = got->method,
					.body = got->body,
					.is_truncated = got->is_truncated };
	bool is_head = str_eq(got->method, STR("HEAD"));
	struct http_response response;

	http_split_target(got->target, &request.path, &request.query);
	/* Handlers need not know HEAD: it is a GET whose body is counted in Content-Length and not
	 * sent. */
	if (is_head)
		request.method = STR("GET");
	conn_handle(c, &request, &response);
	if (got->is_truncated)
		put_last_response(c, &response, is_head, reason);
	else if (!got->keep_alive)
		put_last_response(c, &response, is_head, SERVER_CLOSE_REQUESTED);
	else if (c->worker->phase != WORKER_SERVING)
		put_last_response(c, &response, is_head, SERVER_CLOSE_DRAIN);
	else
		put_response(c, &response, is_head);
	/* The response is encrypted: nothing points into the arena. Large memory is returned. */
	arena_reset(&c->worker->arena);
}

static void give_up_http1(struct conn *c, enum server_close_reason reason)
{
	struct http1_request partial;

	if (!tls_conn_is_ready(&c->tls) ||
	    !http1_partial(&c->http1, buffer_str(&c->in), &partial)) {
		conn_abort(c, reason);
		return;
	}
	serve_request(c, &partial, reason);
	buffer_done(&c->in);
	conn_flush(c);
}

void conn_give_up(struct conn *c, enum server_close_reason reason)
{
	const bool is_overload = reason == SERVER_CLOSE_OVERLOAD;

	if (c->is_last || c->state == CONN_CLOSING)
		return;
	if (!c->http2) {
		give_up_http1(c, reason);
	} else {
		/* A client has other requests on the connection: only large or slow ones end. */
		http2_give_up(c->http2,
			      is_overload ? UINT64_MAX :
					    loop_now_ms(&c->worker->loop) - LIMIT_PATIENCE_MS,
			      is_overload ? LIMIT_CONNECTION_BYTES / 4 : 0);
		conn_flush(c);
	}
	conn_release(c);
	if (c->http2 && c->taken_bytes)
		conn_abort(c, reason);
}

/* Part of a request, or none, is in the buffer. */
static void wait_for_more(struct conn *c, bool served)
{
	if (c->http1.expects_continue && !c->said_continue) {
		conn_put(c, STR("HTTP/1.1 100 Continue\r\n\r\n"));
		c->said_continue = true;
	}
	/* NEW stays NEW until a request was served, and ACTIVE is entered only by the first byte of
	 * a request: a client that sends one byte at a time does not restart its time limit. */
	if (!buffer_len(&c->in)) {
		if (c->state != CONN_NEW || served)
			conn_move(c, CONN_IDLE);
	} else if (c->state == CONN_IDLE || served) {
		conn_move(c, CONN_ACTIVE);
	}
}

/* False when responses wait for a client that does not read: on_drained() serves the rest of its
 * pipelined requests. */
static bool may_queue(struct conn *c)
{
	if (buffer_len(&c->tls.out) > LIMIT_UNREAD_BYTES)
		conn_flush(c);
	return c->state != CONN_CLOSING && stream_queued(&c->stream) <= LIMIT_UNREAD_BYTES;
}

static void serve_http1(struct conn *c)
{
	struct http1_request request;
	bool served = false;
	int64_t n = 0;

	while (!c->is_last && buffer_len(&c->in) && may_queue(c)) {
		struct str bytes = buffer_str(&c->in);

		n = http1_parse(&c->http1, (char *)bytes.p, bytes.n, &request);
		if (n <= 0)
			break;
		/* The request points into c->in, so its bytes are consumed after the response. */
		serve_request(c, &request, SERVER_CLOSE_TOO_LARGE);
		buffer_consume(&c->in, (size_t)n);
		c->said_continue = false;
		served = true;
	}
	if (c->is_last || c->state == CONN_CLOSING)
		return;
	if (n < 0)
		refuse_request(c, (unsigned)-n);
	else if (!c->is_trusted && c->http1.state != HTTP1_HEAD)
		refuse_request(c, 403); /* nothing is kept for it */
	else
		wait_for_more(c, served);
}

/* A browser, or a probe with the wrong scheme: it can read only a response without TLS. */
static void respond_plain_http(struct conn *c)
{
	static const struct str response = STR_INIT("HTTP/1.0 400 Bad Request\r\n"
						    "Content-Type: text/plain\r\n\r\n"
						    "This port speaks HTTPS only.\n");

	buffer_consume(&c->tls.out, buffer_len(&c->tls.out)); /* drop the TLS alert */
	buffer_add(&c->tls.out, response);
	c->is_last = true;
	c->reason = SERVER_CLOSE_NO_TLS;
}

/* Decrypts straight into the request buffer, which grows with what is received: an announced length
 * costs the client nothing. Returns as tls_conn_read(). */
static ssize_t read_http1(struct conn *c, struct err *err)
{
	char *p = buffer_reserve(&c->in, RECORD_BYTES);
	ssize_t n = tls_conn_read(&c->tls, p, RECORD_BYTES, err);

	if (n > 0)
		buffer_grow(&c->in, (size_t)n);
	return n;
}

static ssize_t read_http2(struct conn *c, struct err *err)
{
	char buf[RECORD_BYTES];
	ssize_t n = tls_conn_read(&c->tls, buf, sizeof(buf), err);

	if (n > 0)
		http2_receive(c->http2, (struct str){ buf, (size_t)n });
	return n;
}

static void on_handshake_done(struct conn *c)
{
	const struct server_config *config = c->worker->config;

	c->is_trusted = !config->needs_client_cert ||
			tls_conn_has_client(&c->tls, config->client_name);
	if (str_eq(tls_conn_alpn(&c->tls), STR("h2")))
		http2_new(c);
}

static void on_data(struct stream *s, struct str bytes)
{
	struct conn *c = container_of(s, struct conn, stream);
	struct err err;
	ssize_t n = 0;

	/* Nothing is served after the last response. The stream still reads, to see the client's
	 * FIN. */
	if (c->state == CONN_LINGERING || c->is_last)
		return;
	tls_conn_feed(&c->tls, bytes);
	do {
		n = c->http2 ? read_http2(c, &err) : read_http1(c, &err);
		/* The protocol is known only now: ALPN is part of the handshake, which the read
		 * above advances. */
		if (c->state == CONN_NEW && !c->http2 && tls_conn_is_ready(&c->tls))
			on_handshake_done(c);
		/* The read that finished the handshake may have had the first frames. */
		if (n > 0 && c->http2 && buffer_len(&c->in)) {
			http2_receive(c->http2, buffer_str(&c->in));
			buffer_consume(&c->in, buffer_len(&c->in));
		}
	} while (n > 0 && !c->is_last);
	/* The rest, if the loop ended early, is in the loop's shared read buffer, which the next
	 * read overwrites. */
	c->tls.in.n = 0;
	if (!c->http2 && !c->is_last)
		serve_http1(c);
	buffer_trim(&c->in, 0);
	/* Also after an error there is output: OpenSSL's alert says to the client what is wrong. */
	if (n < 0 && c->tls.plain_http)
		respond_plain_http(c);
	else if (n < 0)
		conn_finish(c, n == -ESHUTDOWN ? SERVER_CLOSE_PEER : SERVER_CLOSE_TLS);
	conn_flush(c);
	conn_settle(c);
}

static void on_end(struct stream *s, int error)
{
	struct conn *c = container_of(s, struct conn, stream);

	(void)error;
	conn_abort(c, SERVER_CLOSE_PEER);
}
