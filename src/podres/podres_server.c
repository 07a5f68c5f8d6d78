/* The path of a call: on_accept() creates the connection, on_data() gives bytes to its HTTP/2
 * session, on_call() appends a query to `waiting`, query_kubelet() sends one request for all of
 * them, on_kubelet() responds. Without a kubelet socket on_call() responds at once. A query points
 * to its connection, and closing a connection drops its queries, so the connection of a waiting
 * query is always open. */

#include "podres_server.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "podres_messages.h"
#include "rpc/grpc.h"

#define ARENA_LIMIT ((size_t)64 << 20) /* the kubelet's response, decoded and encoded again */

struct podres_conn {
	TAILQ_ENTRY(podres_conn) link;
	struct stream stream;
	struct podres_server *server;
	struct grpc *grpc;
	bool is_serving; /* inside nghttp2: nothing may be sent */
};

/* A call that waits for the kubelet. */
struct podres_query {
	struct podres_query *next;
	struct podres_conn *conn;
	int32_t call;
	const char *path; /* one of the PODRES_ constants */
	char *request;
	size_t n_request;
	bool is_requested; /* from the kubelet */
};

static void free_query(struct podres_query *q)
{
	free(q->request);
	free(q);
}

/* Drops all queries of a closed connection. */
static void drop_queries(struct podres_server *s, const struct podres_conn *c)
{
	struct podres_query **at = &s->waiting;

	while (*at) {
		struct podres_query *q = *at;

		if (q->conn != c) {
			at = &q->next;
			continue;
		}
		*at = q->next;
		free_query(q);
	}
}

static void on_conn_closed(struct stream *stream)
{
	struct podres_conn *c = container_of(stream, struct podres_conn, stream);

	c->server->n_connections--;
	free(c);
}

static void close_conn(struct podres_conn *c)
{
	if (stream_is_closing(&c->stream))
		return;
	/* The kubelet may still be working on a query of this connection: its response is
	 * ignored. */
	drop_queries(c->server, c);
	TAILQ_REMOVE(&c->server->conns, c, link);
	grpc_free(c->grpc);
	c->grpc = NULL;
	stream_close(&c->stream, on_conn_closed);
}

static void send_frames(struct podres_conn *c)
{
	struct str bytes;

	/* The session must not be used for sending inside its own callbacks, nor be freed by
	 * close_conn(); on_data() sends when grpc_receive() has returned. */
	if (c->is_serving)
		return;
	while (grpc_send(c->grpc, &bytes))
		stream_write(&c->stream, bytes);
	if (grpc_is_finished(c->grpc))
		close_conn(c);
}

static void respond(struct podres_conn *c, const struct podres_query *q,
		    const struct kubelet_result *kubelet)
{
	const bool is_there = kubelet && kubelet->outcome == KUBELET_RESPONDED;
	const struct podres_settings *settings = &c->server->settings;
	const struct str request = { q->request, q->n_request };
	struct grpc_response out = { .code = GRPC_OK };
	CLEANUP(arena_done) struct arena a;
	struct podres_snapshot snapshot;
	struct err err = { 0 };
	int r;

	arena_init(&a, ARENA_LIMIT);
	/* Read now and not when the call arrived: the agent's state may have changed while the
	 * kubelet was queried. */
	settings->snapshot(settings->user, &a, &snapshot);
	if (strcmp(q->path, PODRES_LIST) == 0)
		r = podres_list(&snapshot, is_there ? &kubelet->messages[KUBELET_LIST] : NULL, &a,
				&out.message, &err);
	else if (strcmp(q->path, PODRES_GET) == 0)
		r = podres_get(&snapshot, request,
			       is_there ? &kubelet->messages[KUBELET_LIST] : NULL, &a, &out.message,
			       &err);
	else
		r = podres_allocatable(&snapshot,
				       is_there ? &kubelet->messages[KUBELET_ALLOCATABLE] : NULL,
				       &a, &out.message, &err);
	/* Clients of the kubelet know UNKNOWN for a pod that does not exist. The arena's limit is
	 * reported as RESOURCE_EXHAUSTED. */
	if (r < 0)
		out = (struct grpc_response){ .code = r == -ENOENT  ? GRPC_UNKNOWN :
						      r == -EBADMSG ? GRPC_INTERNAL :
								      GRPC_RESOURCE_EXHAUSTED,
					      .text = str_from(err.msg) };
	grpc_respond(c->grpc, q->call, &out);
	send_frames(c);
}

static void respond_error(const struct podres_query *q, enum grpc_code code, struct str text)
{
	grpc_respond(q->conn->grpc, q->call, &(struct grpc_response){ .code = code, .text = text });
	send_frames(q->conn);
}

/* One request serves all queries that wait now. Later queries wait for the next one, so that a
 * response is never older than its query. */
static void query_kubelet(struct podres_server *s)
{
	struct podres_query *q;
	unsigned queries = 0;

	if (s->kubelet.is_busy)
		return;
	for (q = s->waiting; q; q = q->next) {
		q->is_requested = true;
		queries |= 1u << (strcmp(q->path, PODRES_ALLOCATABLE) == 0 ? KUBELET_ALLOCATABLE :
									     KUBELET_LIST);
	}
	if (queries)
		kubelet_client_request(&s->kubelet, queries);
}

static void on_kubelet(struct kubelet_client *k, const struct kubelet_result *result)
{
	struct podres_server *s = container_of(k, struct podres_server, kubelet);
	struct podres_query *q;
	bool is_error = result->outcome == KUBELET_FAILED ||
			(result->outcome == KUBELET_ABSENT && s->has_kubelet);

	s->has_kubelet |= result->outcome == KUBELET_RESPONDED;
	/* Queries are appended, and a request includes all that wait at that time: the requested
	 * ones come first. */
	while ((q = s->waiting) && q->is_requested) {
		s->waiting = q->next; /* before respond(), which may close the connection */
		if (is_error)
			respond_error(q, result->code, result->why);
		else
			respond(q->conn, q, result);
		free_query(q);
	}
	(void)malloc_trim(0); /* the response of a full node is as large as the rest of the heap */
	query_kubelet(s);
}

static const char *find_method(struct str path)
{
	static const char *const paths[] = { PODRES_LIST, PODRES_GET, PODRES_ALLOCATABLE };

	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		if (str_eq(path, str_from(paths[i])))
			return paths[i];
	return NULL;
}

static void on_call(void *user, int32_t call, struct str path, struct str message)
{
	struct podres_conn *c = user;
	struct podres_query now = { .conn = c, .call = call, .path = find_method(path) };
	struct podres_query *q, **at;

	if (!now.path) {
		respond_error(&now, GRPC_UNIMPLEMENTED, STR("unknown service or method"));
		return;
	}
	/* The message is valid only during this callback. */
	now.request = malloc(message.n + 1);
	q = malloc(sizeof(*q));
	if (!now.request || !q)
		abort();
	memcpy(now.request, message.p, message.n);
	now.n_request = message.n;
	*q = now;
	/* Still inside grpc_receive(): respond() only hands the message to the session. */
	if (!c->server->settings.kubelet) {
		respond(c, q, NULL);
		free_query(q);
		return;
	}
	for (at = &c->server->waiting; *at; at = &(*at)->next)
		;
	*at = q;
	query_kubelet(c->server);
}

static void on_data(struct stream *s, struct str bytes)
{
	struct podres_conn *c = container_of(s, struct podres_conn, stream);
	int r;

	c->is_serving = true;
	r = grpc_receive(c->grpc, bytes, NULL);
	c->is_serving = false;
	if (r < 0)
		close_conn(c);
	else
		send_frames(c);
}

static void on_end(struct stream *s, int error)
{
	(void)error;
	close_conn(container_of(s, struct podres_conn, stream));
}

static const struct stream_events events = { .on_data = on_data, .on_end = on_end };

static void on_accept(struct listener *l, int fd)
{
	struct podres_server *s = container_of(l, struct podres_server, listener);
	struct podres_conn *c;

	/* Every connection has an HTTP/2 session; a client that leaks them must not exhaust the
	 * agent's memory. */
	if (s->n_connections == PODRES_MAX_CONNECTIONS) {
		(void)close(fd);
		return;
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		abort();
	c->server = s;
	c->grpc = grpc_server_new(on_call, c);
	s->n_connections++;
	TAILQ_INSERT_TAIL(&s->conns, c, link);
	if (stream_open(&c->stream, s->loop, fd, &events, NULL) < 0)
		close_conn(c);
	else
		send_frames(c);
}

static void on_accept_error(struct listener *l, int error)
{
	(void)l;
	(void)error; /* the listener pauses and retries */
}

int podres_server_init(struct podres_server *s, struct loop *loop,
		       const struct podres_settings *settings, struct err *err)
{
	int fd;

	*s = (struct podres_server){ .loop = loop, .settings = *settings };
	TAILQ_INIT(&s->conns);
	fd = net_listen_unix(settings->path, PODRES_MAX_CONNECTIONS, err);
	if (fd < 0)
		return fd;
	kubelet_client_init(&s->kubelet, loop, settings->kubelet, on_kubelet);
	return listener_init(&s->listener, loop, fd, on_accept, on_accept_error, err);
}

void podres_server_done(struct podres_server *s)
{
	struct podres_conn *c;

	while ((c = TAILQ_FIRST(&s->conns)))
		close_conn(c);
	kubelet_client_done(&s->kubelet);
	listener_close(&s->listener);
	(void)unlink(s->settings.path);
}
