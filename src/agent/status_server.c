/* Every connection is one request and one response, then it is closed: clients are short-lived
 * commands, hooks and a scraper. When all connections of an endpoint are in use, new clients of the
 * socket, which are root's, wait for one of them to end; a new client of the port takes the place
 * of the one that is easiest to spare, because any pod may hold connections open. */

#include "status_server.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "base/peer.h"
#include "codec/doc.h"
#include "net/http1.h"
#include "net/prometheus.h"
#include "oci/oci_containers.h"
#include "oci/oci_record.h"
#include "pin/manager.h"
#include "status.h"

#define MAX_REQUEST 8192  /* requests have no body: a hook's record is a file */
#define REQUEST_MS 2000	  /* from accept to the end of the request; below the timeout of hooks */
#define RESPONSE_MS 10000 /* until the client has read the response */

struct peer_address {
	char bytes[sizeof(struct in6_addr)]; /* all 0 on the Unix socket */
};

struct connection {
	struct stream stream;
	struct timer deadline;
	struct status_endpoint *endpoint;
	struct peer_address peer;
	struct http1_parser parser;
	char bytes[MAX_REQUEST];
	size_t n;
	bool has_response;
	unsigned n_open; /* libuv handles that are not closed yet */
};

/* libuv closes asynchronously and still uses a handle until its callback: the memory is freed with
 * the last of the two. */
static void on_handle_closed(struct connection *c)
{
	if (--c->n_open == 0)
		free(c);
}

static void on_stream_closed(struct stream *s)
{
	on_handle_closed(container_of(s, struct connection, stream));
}

static void on_timer_closed(struct timer *t)
{
	on_handle_closed(container_of(t, struct connection, deadline));
}

static void remove_connection(struct status_endpoint *e, const struct connection *c)
{
	for (unsigned i = 0; i < e->n; i++)
		if (e->connections[i] == c) {
			memmove(&e->connections[i], &e->connections[i + 1],
				(e->n - i - 1) * sizeof(*e->connections));
			e->n--;
			break;
		}
	if (e->is_open && e->listener.paused)
		listener_resume(&e->listener);
}

static void close_connection(struct connection *c)
{
	if (stream_is_closing(&c->stream))
		return;
	remove_connection(c->endpoint, c);
	stream_close(&c->stream, on_stream_closed);
	timer_close(&c->deadline, on_timer_closed);
}

/* The connection that a new client may replace: the oldest one of the address that has the most. So
 * a client with many connections replaces its own, and a probe or a scraper keeps its one. */
static struct connection *choose_victim(const struct status_endpoint *e)
{
	unsigned most = 0, victim = 0;

	for (unsigned i = 0; i < e->n; i++) {
		unsigned same = 0;

		for (unsigned k = 0; k < e->n; k++)
			same += memcmp(&e->connections[i]->peer, &e->connections[k]->peer,
				       sizeof(struct peer_address)) == 0;
		if (same > most) {
			most = same;
			victim = i;
		}
	}
	return e->connections[victim];
}

static void send_response(struct connection *c, const char *status, const char *type,
			  struct str body)
{
	char head[256];

	(void)snprintf(head, sizeof(head),
		       "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
		       "Connection: close\r\n\r\n",
		       status, type, body.n);
	c->has_response = true;
	timer_start(&c->deadline, RESPONSE_MS, 0);
	stream_write(&c->stream, str_from(head));
	stream_write(&c->stream, body);
	/* The kernel may have accepted everything at once; otherwise on_drained() closes. */
	if (stream_queued(&c->stream) == 0)
		close_connection(c);
}

static void send_status(struct connection *c, struct arena *a)
{
	yyjson_mut_doc *doc = doc_build(a);
	struct str text;

	if (doc_write(status_describe(c->endpoint->server->manager, doc, a), true, a, &text, NULL) <
	    0)
		text = STR("{}");
	send_response(c, "200 OK", "application/json", text);
}

/* The hook waits for the response before the container starts. */
static void handle_hook(struct connection *c, struct str method, struct str id, struct arena *a)
{
	struct oci_containers *oci = c->endpoint->server->oci;
	struct err err = { 0 };
	struct str text = STR("{}");

	if (!oci || !oci_record_id_is_valid(id)) {
		send_response(c, "404 Not Found", "text/plain", STR("no such container\n"));
	} else if (str_eq(method, STR("DELETE"))) {
		oci_containers_remove(oci, id);
		send_response(c, "200 OK", "application/json", text);
	} else if (!str_eq(method, STR("POST"))) {
		send_response(c, "405 Method Not Allowed", "text/plain", STR("POST or DELETE\n"));
	} else if (oci_containers_add(oci, id, a, &text, &err) < 0) {
		/* The client reports this status as a refusal, with the text as its reason. */
		send_response(c, "409 Conflict", "text/plain", str_from(err.msg));
	} else {
		send_response(c, "200 OK", "application/json", text);
	}
}

static void send_metrics(struct connection *c, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	status_metrics(c->endpoint->server->manager, &b);
	send_response(c, "200 OK", PROMETHEUS_CONTENT_TYPE, strbuf_str(&b));
}

static void send_alive(struct connection *c, struct arena *a)
{
	(void)a;
	send_response(c, "200 OK", "text/plain", STR("ok\n"));
}

static void send_ready(struct connection *c, struct arena *a)
{
	(void)a;
	if (c->endpoint->server->manager->runtime.is_connected)
		send_response(c, "200 OK", "text/plain", STR("ok\n"));
	else
		send_response(c, "503 Service Unavailable", "text/plain",
			      STR("not connected to the container runtime\n"));
}

static const struct {
	struct str target;
	bool is_local; /* names pods: not on the port */
	void (*send)(struct connection *c, struct arena *a);
} routes[] = {
	{ STR_INIT("/status"), true, send_status },
	{ STR_INIT("/metrics"), false, send_metrics },
	{ STR_INIT("/healthz"), false, send_alive },
	{ STR_INIT("/readyz"), false, send_ready },
};

static void handle_get(struct connection *c, struct str target, struct arena *a)
{
	for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
		if (!str_eq(target, routes[i].target))
			continue;
		if (routes[i].is_local && !c->endpoint->is_local)
			send_response(c, "403 Forbidden", "text/plain",
				      STR("served on the agent's Unix socket only\n"));
		else
			routes[i].send(c, a);
		return;
	}
	send_response(c, "404 Not Found", "text/plain",
		      STR("paths: /status, /metrics, /healthz, /readyz\n"));
}

static void handle_request(struct connection *c, const struct http1_request *request)
{
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	if (c->endpoint->is_local && str_starts(request->target, STR("/oci/")))
		handle_hook(c, request->method, str_skip(request->target, 5), &a);
	else if (!str_eq(request->method, STR("GET")))
		send_response(c, "405 Method Not Allowed", "text/plain", STR("GET only\n"));
	else
		handle_get(c, request->target, &a);
}

static void on_data(struct stream *s, struct str bytes)
{
	struct connection *c = container_of(s, struct connection, stream);
	struct http1_request request;
	int64_t r;

	if (c->has_response) /* further bytes of a client that does not wait are dropped */
		return;
	if (bytes.n > sizeof(c->bytes) - c->n) {
		close_connection(c);
		return;
	}
	memcpy(c->bytes + c->n, bytes.p, bytes.n);
	c->n += bytes.n;
	r = http1_parse(&c->parser, c->bytes, c->n, &request);
	if (r < 0)
		send_response(c, "400 Bad Request", "text/plain", STR("not HTTP\n"));
	else if (r > 0)
		handle_request(c, &request);
}

static void on_end(struct stream *s, int error)
{
	(void)error;
	close_connection(container_of(s, struct connection, stream));
}

static void on_drained(struct stream *s)
{
	struct connection *c = container_of(s, struct connection, stream);

	if (c->has_response)
		close_connection(c);
}

/* Also for a client that sends its request slowly: bytes do not extend the deadline. */
static void on_deadline(struct timer *t)
{
	close_connection(container_of(t, struct connection, deadline));
}

static const struct stream_events events = {
	.on_data = on_data,
	.on_end = on_end,
	.on_drained = on_drained,
};

/* IPv4 and IPv6 of one host count as two. */
static struct peer_address address_of(int fd)
{
	struct peer_address ret = { 0 };
	union {
		struct sockaddr any;
		struct sockaddr_in in4;
		struct sockaddr_in6 in6;
		struct sockaddr_storage space;
	} address = { 0 };
	socklen_t size = sizeof(address);

	if (getpeername(fd, &address.any, &size) < 0)
		return ret;
	if (address.any.sa_family == AF_INET6)
		memcpy(ret.bytes, &address.in6.sin6_addr, sizeof(address.in6.sin6_addr));
	else if (address.any.sa_family == AF_INET)
		memcpy(ret.bytes, &address.in4.sin_addr, sizeof(address.in4.sin_addr));
	return ret;
}

static void on_accept(struct listener *l, int fd)
{
	struct status_endpoint *e = container_of(l, struct status_endpoint, listener);
	struct connection *c;
	struct err err = { 0 };

	if (e->is_local && !peer_is_trusted(fd)) {
		(void)close(fd);
		return;
	}
	if (e->n == ARRAY_LEN(e->connections))
		close_connection(choose_victim(e));
	c = calloc(1, sizeof(*c));
	if (!c)
		abort(); /* D21 */
	c->endpoint = e;
	c->peer = address_of(fd);
	c->n_open = 2; /* stream and timer */
	e->connections[e->n++] = c;
	if (e->is_local && e->n == ARRAY_LEN(e->connections))
		listener_pause(l); /* until remove_connection() */
	timer_init(&c->deadline, e->server->loop, on_deadline);
	timer_start(&c->deadline, REQUEST_MS, 0);
	if (stream_open(&c->stream, e->server->loop, fd, &events, &err) < 0)
		close_connection(c);
}

static void on_accept_error(struct listener *l, int error)
{
	(void)l;
	(void)error; /* the listener pauses and retries */
}

static int open_endpoint(struct status_endpoint *e, int fd, struct err *err)
{
	int r;

	if (fd < 0)
		return fd;
	r = listener_init(&e->listener, e->server->loop, fd, on_accept, on_accept_error, err);
	e->is_open = r == 0;
	return r;
}

int status_server_init(struct status_server *s, struct loop *loop, const struct manager *m,
		       const char *path, const char *address, struct err *err)
{
	struct sockaddr_storage where;
	int r;

	*s = (struct status_server){ .loop = loop,
				     .manager = m,
				     .socket = { .server = s, .is_local = true },
				     .port = { .server = s } };
	/* A socket at `path` is stale: this agent holds the lock of the run directory. */
	r = open_endpoint(&s->socket, net_listen_unix(path, STATUS_SERVER_MAX_CONNECTIONS, err),
			  err);
	if (r < 0)
		return r;
	s->path = strdup(path);
	r = address ? net_address_parse(str_from(address), &where, err) : 0;
	if (r < 0 || !address)
		return r;
	r = open_endpoint(&s->port, net_listen(&where, false, err), err);
	return r < 0 ? err_wrap(err, "--listen %s", address) : r;
}

static void close_endpoint(struct status_endpoint *e)
{
	if (e->is_open)
		listener_close(&e->listener);
	e->is_open = false;
	while (e->n > 0)
		close_connection(e->connections[e->n - 1]);
}

void status_server_done(struct status_server *s)
{
	close_endpoint(&s->socket);
	close_endpoint(&s->port);
	if (s->path)
		(void)unlink(s->path);
	free(s->path);
}
