#pragma once

/* A plain HTTP/1.1 server on one loop, with one request per connection: for metrics, probes, the
 * agent's socket and the dashboard. It has no TLS; a local server accepts only root and the
 * process's own user, a port a limited number of connections a second of each address. The handler
 * responds from memory: at once, later (small_server_respond()), or with a stream that grows
 * (small_server_broadcast()). Admission uses server.h. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http.h"
#include "loop.h"
#include "peer_rate.h"

struct err;
struct small_connection;

#define SMALL_SERVER_MAX_CONNECTIONS 64
#define SMALL_SERVER_MAX_REQUEST 8192		  /* most have no body: a hook's record is a file */
#define SMALL_SERVER_MAX_UNREAD ((size_t)8 << 20) /* of a stream; its client is too slow then */
#define SMALL_SERVER_MAX_UNREAD_SUM ((size_t)32 << 20) /* of all clients */

/* From accept to the end of the request. On a local socket below the timeout of hooks, which wait
 * for a connection. On a port as long as the kubelet waits for a liveness probe: on an overloaded
 * node the server reads it late, and a probe that is cut off counts as failed. */
#define SMALL_SERVER_LOCAL_REQUEST_MS 2000
#define SMALL_SERVER_PORT_REQUEST_MS 30000

struct small_request {
	struct http_request http;
	struct str head;     /* request line and header, for http1_field() */
	uint64_t connection; /* for small_server_respond() */
};

struct small_response {
	struct http_response http;
	const char *headers; /* further header lines, each ended by CRLF; NULL: none */
	bool is_stream;	     /* the body only begins here: small_server_broadcast() continues it */
	bool is_deferred;    /* small_server_respond() answers later */
};

typedef void (*small_handler_fn)(const struct small_request *request, struct small_response *ret,
				 void *context);

struct small_server {
	small_handler_fn handler; /* set by the owner, like the next two */
	void *context;
	bool is_local;		  /* a Unix socket; requests are trusted */
	size_t max_request_bytes; /* header and body; 0: SMALL_SERVER_MAX_REQUEST */

	struct loop *loop;
	uint64_t request_ms; /* one of the two limits above */
	struct listener listener;
	struct small_connection *connections[SMALL_SERVER_MAX_CONNECTIONS]; /* oldest first */
	unsigned n;
	uint64_t last_id;
	struct peer_rate rate; /* of a port */
	bool is_open;
};

/* Owns the listening descriptor; a negative one is returned as the error that it is. */
int small_server_open(struct small_server *s, struct loop *loop, int fd, struct err *err);

/* At a TCP address, the value of --listen. */
int small_server_listen(struct small_server *s, struct loop *loop, const char *address,
			struct err *err);
void small_server_close(struct small_server *s);

/* The response to a deferred request. Nothing happens when its client is gone. */
void small_server_respond(struct small_server *s, uint64_t connection,
			  const struct small_response *response);

/* Sends a piece of text to every stream. */
void small_server_broadcast(struct small_server *s, struct str text);
size_t small_server_streams(const struct small_server *s);
void small_server_end(struct small_server *s, uint64_t connection); /* a stream, if it is open */

/* Bytes that were sent and not read by the clients. */
size_t small_server_unread(const struct small_server *s);
