#pragma once

/* An HTTPS server: one event loop per thread; the threads share only the certificate and the
 * handler's context. HTTP/1.1 with keep-alive and pipelining, HTTP/2 where the client selects it.
 * Every client is bounded by limits.h. It does not log; it counts. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "http.h"

struct err;
struct server;
struct tls_context;

struct server_config {
	struct sockaddr_storage address; /* port 0 picks one, see server_port() */
	unsigned threads;
	unsigned max_connections; /* 0: LIMIT_CONNECTIONS; fewer when descriptors or memory are
				     scarce */
	size_t memory_bytes;	  /* for connections and requests; 0: LIMIT_MEMORY_BYTES */
	struct tls_context *tls;
	bool needs_client_cert;	 /* clients without one are not trusted: no body is read */
	const char *client_name; /* the common name that it must have; may be NULL */
	http_handler_fn handler; /* called by any of the threads */
	void *context;
};

/* Why a connection ended. */
#define SERVER_CLOSE_REASONS(X)                                                                    \
	X(PEER, "peer")		      /* the client closed it, or the network did */               \
	X(REQUESTED, "requested")     /* by the client, "Connection: close" */                     \
	X(DRAIN, "drain")	      /* the server shuts down */                                  \
	X(IDLE, "idle")		      /* no request for LIMIT_IDLE_MS */                           \
	X(SLOW, "slow")		      /* a request or its response took too long */                \
	X(HANDSHAKE, "handshake")     /* no complete request in time */                            \
	X(TLS, "tls")		      /* invalid TLS, or the client rejects the certificate */     \
	X(NO_TLS, "no_tls")	      /* plain HTTP */                                             \
	X(BAD_REQUEST, "bad_request") /* invalid HTTP */                                           \
	X(TOO_LARGE, "too_large")     /* head or body above the limit */                           \
	X(OVERLOAD, "overload")	      /* there was no memory for it */                             \
	X(EVICTED, "evicted")	      /* closed in favour of others */

enum server_close_reason {
#define X(name, text) SERVER_CLOSE_##name,
	SERVER_CLOSE_REASONS(X)
#undef X
		SERVER_CLOSE__COUNT
};

const char *server_close_reason_text(enum server_close_reason reason);

/* Each thread counts separately; server_stats() adds them up. */
struct server_stats {
	uint64_t accepted, accept_errors, requests, http2_connections;
	uint64_t open;	 /* current connections */
	uint64_t active; /* of those, with a request in progress */
	uint64_t in_flight_bytes;
	uint64_t memory_bytes, memory_limit_bytes; /* of the budget for large requests */
	uint64_t given_up; /* requests that were slow, or took memory that others needed */
	uint64_t closed[SERVER_CLOSE__COUNT];
};

/* Listens and serves in its own threads. *ret is set before the handler is first called. */
int server_start(const struct server_config *config, struct server **ret, struct err *err);

unsigned server_port(const struct server *s);
void server_stats(const struct server *s, struct server_stats *ret);

/* Shutdown in three steps. First clients are asked to close their connections, while new ones are
 * still accepted. server_close() accepts nothing new, closes idle connections and lets requests in
 * flight finish. server_stop() waits for that, at most LIMIT_REQUEST_MS, and frees everything. */
void server_announce_end(struct server *s);
void server_close(struct server *s);
void server_stop(struct server *s);
