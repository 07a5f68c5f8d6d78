/* Every connection is one request and one response, then it is closed: clients are short-lived
 * commands, hooks and a scraper, and without keep-alive no idle connection uses up the limit. */

#include "status_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "codec/doc.h"
#include "net/http1.h"
#include "net/prometheus.h"
#include "oci/oci_containers.h"
#include "oci/oci_record.h"
#include "pin/manager.h"
#include "status.h"

#define MAX_REQUEST 8192 /* requests have no body: a hook's record is a file */
#define REQUEST_MS 10000 /* from accept to the end of the response */

struct connection {
	struct stream stream;
	struct timer deadline;
	struct status_server *server;
	struct http1_parser parser;
	char bytes[MAX_REQUEST];
	size_t n;
	bool has_response;
	bool is_local;	 /* over the Unix socket, which only root can open */
	unsigned n_open; /* libuv handles that are not closed yet */
};

/* libuv closes asynchronously and still uses a handle until its callback: the memory is freed with
 * the last of the two. */
static void on_handle_closed(struct connection *c)
{
	if (--c->n_open > 0)
		return;
	c->server->n_connections--;
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

static void close_connection(struct connection *c)
{
	if (stream_is_closing(&c->stream))
		return;
	stream_close(&c->stream, on_stream_closed);
	timer_close(&c->deadline, on_timer_closed);
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

	if (doc_write(status_describe(c->server->manager, doc, a), true, a, &text, NULL) < 0)
		text = STR("{}");
	send_response(c, "200 OK", "application/json", text);
}

/* The hook waits for the response before the container starts. */
static void handle_hook(struct connection *c, struct str method, struct str id, struct arena *a)
{
	struct oci_containers *oci = c->server->oci;
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

static void handle_request(struct connection *c, const struct http1_request *request)
{
	CLEANUP(arena_done) struct arena a;
	const struct manager *m = c->server->manager;
	struct strbuf b;

	arena_init(&a, 0);
	strbuf_init(&b, &a);
	if (c->is_local && str_starts(request->target, STR("/oci/"))) {
		handle_hook(c, request->method, str_skip(request->target, 5), &a);
	} else if (!str_eq(request->method, STR("GET"))) {
		send_response(c, "405 Method Not Allowed", "text/plain", STR("GET only\n"));
	} else if (str_eq(request->target, STR("/status"))) {
		send_status(c, &a);
	} else if (str_eq(request->target, STR("/metrics"))) {
		status_metrics(m, &b);
		send_response(c, "200 OK", PROMETHEUS_CONTENT_TYPE, strbuf_str(&b));
	} else if (str_eq(request->target, STR("/healthz"))) {
		send_response(c, "200 OK", "text/plain", STR("ok\n"));
	} else if (str_eq(request->target, STR("/readyz"))) {
		if (m->runtime.is_connected)
			send_response(c, "200 OK", "text/plain", STR("ok\n"));
		else
			send_response(c, "503 Service Unavailable", "text/plain",
				      STR("not connected to the container runtime\n"));
	} else {
		send_response(c, "404 Not Found", "text/plain",
			      STR("paths: /status, /metrics, /healthz, /readyz\n"));
	}
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

static void on_deadline(struct timer *t)
{
	close_connection(container_of(t, struct connection, deadline));
}

static const struct stream_events events = {
	.on_data = on_data,
	.on_end = on_end,
	.on_drained = on_drained,
};

static void accept_connection(struct status_server *s, int fd, bool is_local)
{
	struct connection *c;
	struct err err = { 0 };

	if (s->n_connections == STATUS_SERVER_MAX_CONNECTIONS) {
		(void)close(fd);
		return;
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		abort(); /* D21 */
	c->server = s;
	c->is_local = is_local;
	c->n_open = 2; /* stream and timer */
	s->n_connections++;
	timer_init(&c->deadline, s->loop, on_deadline);
	timer_start(&c->deadline, REQUEST_MS, 0);
	if (stream_open(&c->stream, s->loop, fd, &events, &err) < 0)
		close_connection(c);
}

static void on_accept_unix(struct listener *l, int fd)
{
	accept_connection(container_of(l, struct status_server, listeners[0]), fd, true);
}

static void on_accept_tcp(struct listener *l, int fd)
{
	accept_connection(container_of(l, struct status_server, listeners[1]), fd, false);
}

static void on_accept_error(struct listener *l, int error)
{
	(void)l;
	(void)error; /* the listener pauses and retries */
}

int status_server_init(struct status_server *s, struct loop *loop, const struct manager *m,
		       const char *path, const char *address, struct err *err)
{
	struct sockaddr_storage where;
	int fd, r;

	*s = (struct status_server){ .loop = loop, .manager = m };
	/* A socket at `path` is stale: this agent holds the lock of the run directory. */
	fd = net_listen_unix(path, STATUS_SERVER_MAX_CONNECTIONS, err);
	if (fd < 0)
		return fd;
	s->path = strdup(path);
	r = listener_init(&s->listeners[0], loop, fd, on_accept_unix, on_accept_error, err);
	if (r < 0)
		return r;
	s->n_listeners = 1;
	if (!address)
		return 0;
	r = net_address_parse(str_from(address), &where, err);
	if (r < 0)
		return r;
	fd = net_listen(&where, false, err);
	if (fd < 0)
		return fd;
	r = listener_init(&s->listeners[1], loop, fd, on_accept_tcp, on_accept_error, err);
	if (r == 0)
		s->n_listeners = 2;
	return r;
}

void status_server_done(struct status_server *s)
{
	for (unsigned i = 0; i < s->n_listeners; i++)
		listener_close(&s->listeners[i]);
	if (s->path)
		(void)unlink(s->path);
	free(s->path);
}
