/* Every connection is one request and one response, then it is closed: clients are short-lived
 * commands, hooks, probes and a scraper. When all connections of a local socket are in use, new
 * clients, which are root's, wait for one of them to end; a new client of a port takes the place of
 * the one that is easiest to spare, because any pod may hold connections open. */

#include "small_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "base/peer.h"
#include "http1.h"

#define FIRST_BYTES 2048
#define RESPONSE_MS 10000 /* until the client has read the response */
#define DEFERRED_MS 60000 /* until there is one, if it is deferred */

struct small_connection {
	struct stream stream;
	struct timer deadline;
	struct small_server *server;
	unsigned char peer[PEER_KEY_BYTES]; /* all 0 on the Unix socket */
	struct http1_parser parser;
	char *bytes;
	size_t n, cap;
	uint64_t id;
	bool has_response;
	bool is_stream; /* stays open after the response */
	bool is_deferred;
	unsigned n_open; /* libuv handles that are not closed yet */
};

/* libuv closes asynchronously and still uses a handle until its callback: the memory is freed with
 * the last of the two. */
static void on_handle_closed(struct small_connection *c)
{
	if (--c->n_open)
		return;
	free(c->bytes);
	free(c);
}

static void on_stream_closed(struct stream *s)
{
	on_handle_closed(container_of(s, struct small_connection, stream));
}

static void on_timer_closed(struct timer *t)
{
	on_handle_closed(container_of(t, struct small_connection, deadline));
}

static void remove_connection(struct small_server *s, const struct small_connection *c)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->connections[i] == c) {
			s->n--;
			for (; i < s->n; i++)
				s->connections[i] = s->connections[i + 1];
			break;
		}
	if (s->is_open && s->listener.paused)
		listener_resume(&s->listener);
}

static void close_connection(struct small_connection *c)
{
	if (stream_is_closing(&c->stream))
		return;
	remove_connection(c->server, c);
	stream_close(&c->stream, on_stream_closed);
	timer_close(&c->deadline, on_timer_closed);
}

/* The connection that a new client may replace: the oldest one of the address that has the most. So
 * a client with many connections replaces its own, and a probe or a scraper keeps its one. */
static struct small_connection *choose_victim(const struct small_server *s)
{
	unsigned most = 0, victim = 0;

	for (unsigned i = 0; i < s->n; i++) {
		unsigned same = 0;

		for (unsigned k = 0; k < s->n; k++)
			same += memcmp(s->connections[i]->peer, s->connections[k]->peer,
				       PEER_KEY_BYTES) == 0;
		if (same > most) {
			most = same;
			victim = i;
		}
	}
	return s->connections[victim];
}

size_t small_server_unread(const struct small_server *s)
{
	size_t sum = 0;

	for (unsigned i = 0; i < s->n; i++)
		sum += stream_queued(&s->connections[i]->stream);
	return sum;
}

/* The client that has most to read; NULL when all have read everything. */
static struct small_connection *find_slowest(const struct small_server *s)
{
	struct small_connection *slowest = NULL;
	size_t most = 0;

	for (unsigned i = 0; i < s->n; i++) {
		const size_t unread = stream_queued(&s->connections[i]->stream);

		if (unread > most) {
			most = unread;
			slowest = s->connections[i];
		}
	}
	return slowest;
}

/* Clients that do not read would fill the memory together: the slowest are closed until `more`
 * bytes fit beside what the others have to read. */
static void make_room(const struct small_server *s, size_t more)
{
	struct small_connection *slowest = find_slowest(s);

	while (slowest && small_server_unread(s) + more > SMALL_SERVER_MAX_UNREAD_SUM) {
		close_connection(slowest);
		slowest = find_slowest(s);
	}
}

static void send_response(struct small_connection *c, const struct small_response *response)
{
	const struct http_response *http = &response->http;
	char head[256], length[48] = "";

	/* A stream ends with its connection, so it has no length (RFC 9112 section 6.3). */
	if (!response->is_stream)
		(void)snprintf(length, sizeof(length), "Content-Length: %zu\r\n", http->body.n);
	(void)snprintf(head, sizeof(head),
		       "HTTP/1.1 %u %s\r\nContent-Type: %s\r\n%sConnection: close\r\n",
		       http->status, http_status_text(http->status), http->content_type, length);
	c->has_response = true;
	c->is_deferred = false;
	c->is_stream = response->is_stream;
	timer_stop(&c->deadline);
	if (!c->is_stream)
		timer_start(&c->deadline, RESPONSE_MS, 0);
	make_room(c->server, http->body.n);
	stream_write(&c->stream, str_from(head));
	stream_write(&c->stream, str_from(response->headers));
	stream_write(&c->stream, STR("\r\n"));
	stream_write(&c->stream, http->body);
	/* The kernel may have accepted everything at once; otherwise on_drained() closes. */
	if (stream_queued(&c->stream) == 0 && !c->is_stream)
		close_connection(c);
}

static void handle_request(struct small_connection *c, const struct http1_request *received)
{
	CLEANUP(arena_done) struct arena a;
	struct small_request request = { .http = { .method = received->method,
						   .body = received->body,
						   .arena = &a,
						   .is_trusted = c->server->is_local },
					 .head = received->head,
					 .connection = c->id };
	struct small_response response = { .http = { .status = 404,
						     .content_type = "text/plain" } };

	arena_init(&a, 0);
	http_split_target(received->target, &request.http.path, &request.http.query);
	if (received->is_truncated)
		http_response_status(&response.http, 413, &a);
	else
		c->server->handler(&request, &response, c->server->context);
	if (!response.is_deferred) {
		send_response(c, &response);
		return;
	}
	c->is_deferred = true;
	timer_start(&c->deadline, DEFERRED_MS, 0);
}

/* False when the request is too large. */
static bool keep_bytes(struct small_connection *c, struct str bytes)
{
	const size_t max = c->server->max_request_bytes ? c->server->max_request_bytes :
							  SMALL_SERVER_MAX_REQUEST;
	size_t cap = c->cap ? c->cap : FIRST_BYTES;

	if (bytes.n > max - c->n)
		return false;
	while (cap < c->n + bytes.n)
		cap *= 2;
	if (cap != c->cap) {
		c->bytes = realloc(c->bytes, cap);
		if (!c->bytes)
			abort(); /* D21 */
		c->cap = cap;
	}
	memcpy(c->bytes + c->n, bytes.p, bytes.n);
	c->n += bytes.n;
	return true;
}

static void on_data(struct stream *s, struct str bytes)
{
	struct small_connection *c = container_of(s, struct small_connection, stream);
	struct http1_request request;
	int64_t r;

	/* Further bytes of a client that does not wait are dropped. */
	if (c->has_response || c->is_deferred)
		return;
	if (!keep_bytes(c, bytes)) {
		close_connection(c);
		return;
	}
	r = http1_parse(&c->parser, c->bytes, c->n, &request);
	if (r < 0)
		send_response(c, &(struct small_response){ .http = { .status = 400,
								     .content_type = "text/plain",
								     .body = STR("not HTTP\n") } });
	else if (r > 0)
		handle_request(c, &request);
}

static void on_end(struct stream *s, int error)
{
	(void)error;
	close_connection(container_of(s, struct small_connection, stream));
}

static void on_drained(struct stream *s)
{
	struct small_connection *c = container_of(s, struct small_connection, stream);

	if (c->has_response && !c->is_stream)
		close_connection(c);
}

/* Also for a client that sends its request slowly: bytes do not extend the deadline. */
static void on_deadline(struct timer *t)
{
	close_connection(container_of(t, struct small_connection, deadline));
}

static const struct stream_events events = {
	.on_data = on_data,
	.on_end = on_end,
	.on_drained = on_drained,
};

static void read_peer(int fd, unsigned char *ret)
{
	struct sockaddr_storage address = { 0 };
	socklen_t size = sizeof(address);

	(void)getpeername(fd, (struct sockaddr *)&address, &size);
	peer_key(&address, ret);
}

static bool is_admitted(struct small_server *s, int fd, const unsigned char *peer)
{
	return s->is_local ? peer_is_trusted(fd) :
			     peer_rate_allow(&s->rate, peer, loop_now_ms(s->loop));
}

static void on_accept(struct listener *l, int fd)
{
	struct small_server *s = container_of(l, struct small_server, listener);
	unsigned char peer[PEER_KEY_BYTES];
	struct small_connection *c;
	struct err err = { 0 };

	read_peer(fd, peer);
	if (!is_admitted(s, fd, peer)) {
		(void)close(fd);
		return;
	}
	if (s->n == ARRAY_LEN(s->connections))
		close_connection(choose_victim(s));
	c = calloc(1, sizeof(*c));
	if (!c)
		abort(); /* D21 */
	c->server = s;
	c->id = ++s->last_id;
	memcpy(c->peer, peer, sizeof(c->peer));
	c->n_open = 2; /* stream and timer */
	s->connections[s->n++] = c;
	if (s->is_local && s->n == ARRAY_LEN(s->connections))
		listener_pause(l); /* until remove_connection() */
	timer_init(&c->deadline, s->loop, on_deadline);
	timer_start(&c->deadline, s->request_ms, 0);
	if (stream_open(&c->stream, s->loop, fd, &events, &err) < 0)
		close_connection(c);
}

static void on_accept_error(struct listener *l, int error)
{
	(void)l;
	(void)error; /* the listener pauses and retries */
}

int small_server_open(struct small_server *s, struct loop *loop, int fd, struct err *err)
{
	int r;

	if (fd < 0)
		return fd;
	s->loop = loop;
	s->request_ms = s->is_local ? SMALL_SERVER_LOCAL_REQUEST_MS : SMALL_SERVER_PORT_REQUEST_MS;
	r = listener_init(&s->listener, loop, fd, on_accept, on_accept_error, err);
	s->is_open = r == 0;
	return r;
}

int small_server_listen(struct small_server *s, struct loop *loop, const char *address,
			struct err *err)
{
	struct sockaddr_storage where;
	int r = net_address_parse(str_from(address), &where, err);

	if (r < 0)
		return r;
	r = small_server_open(s, loop, net_listen(&where, false, err), err);
	return r < 0 ? err_wrap(err, "--listen %s", address) : r;
}

void small_server_close(struct small_server *s)
{
	if (s->is_open)
		listener_close(&s->listener);
	s->is_open = false;
	while (s->n > 0)
		close_connection(s->connections[s->n - 1]);
}

static struct small_connection *find_connection(const struct small_server *s, uint64_t id)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->connections[i]->id == id)
			return s->connections[i];
	return NULL;
}

void small_server_respond(struct small_server *s, uint64_t connection,
			  const struct small_response *response)
{
	struct small_connection *c = find_connection(s, connection);

	if (c && c->is_deferred)
		send_response(c, response);
}

void small_server_broadcast(struct small_server *s, struct str text)
{
	make_room(s, small_server_streams(s) * text.n);
	/* From the end: closing a connection moves those after it. */
	for (unsigned i = s->n; i-- > 0;) {
		struct small_connection *c = s->connections[i];

		if (!c->is_stream)
			continue;
		if (stream_queued(&c->stream) + text.n > SMALL_SERVER_MAX_UNREAD)
			close_connection(c); /* it connects again, and reads everything anew */
		else
			stream_write(&c->stream, text);
	}
}

void small_server_end(struct small_server *s, uint64_t connection)
{
	struct small_connection *c = find_connection(s, connection);

	if (c && c->is_stream)
		close_connection(c);
}

size_t small_server_streams(const struct small_server *s)
{
	size_t n = 0;

	for (unsigned i = 0; i < s->n; i++)
		n += s->connections[i]->is_stream;
	return n;
}
