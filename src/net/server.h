#pragma once

/* An HTTPS server: one event loop per thread, nothing shared between them but the certificate and
 * the handler's context. HTTP/1.1 with keep-alive and pipelining, HTTP/2 where the client asks for
 * it. Every peer is bounded by limits.h. It logs nothing: what happened is in the counters. */

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
	unsigned max_connections; /* 0: LIMIT_CONNECTIONS; less when descriptors are scarce */
	struct tls_context *tls;
	http_handler_fn handler; /* called by any of the threads */
	void *context;
};

/* Why a connection ended. */
#define SERVER_CLOSE_REASONS(X)                                                                    \
	X(PEER, "peer")		      /* the client closed it, or the network did */               \
	X(ASKED, "asked")	      /* the client asked for it with its request */               \
	X(DRAIN, "drain")	      /* we are going away */                                      \
	X(IDLE, "idle")		      /* nothing came for LIMIT_IDLE_MS */                         \
	X(SLOW, "slow")		      /* a request or its answer took too long */                  \
	X(HANDSHAKE, "handshake")     /* no request came of it in time */                          \
	X(TLS, "tls")		      /* broken TLS, or a client that does not trust us */         \
	X(NO_TLS, "no_tls")	      /* plain HTTP */                                             \
	X(BAD_REQUEST, "bad_request") /* broken HTTP */                                            \
	X(TOO_LARGE, "too_large")     /* head or body above the limit */                           \
	X(OVERLOAD, "overload")	      /* too many bytes in flight */                               \
	X(EVICTED, "evicted")	      /* made room for a new connection */

enum server_close_reason {
#define X(name, text) SERVER_CLOSE_##name,
	SERVER_CLOSE_REASONS(X)
#undef X
		SERVER_CLOSE__COUNT
};

const char *server_close_reason_text(enum server_close_reason reason);

/* Counted by each thread for itself, summed when somebody asks. */
struct server_stats {
	uint64_t accepted, accept_errors, requests, http2_connections;
	uint64_t open;	 /* connections at this moment */
	uint64_t active; /* of those, with a request under way */
	uint64_t in_flight_bytes;
	uint64_t closed[SERVER_CLOSE__COUNT];
};

/* Listens and serves from here on, in threads of its own; the handler may use *ret. */
int server_start(const struct server_config *config, struct server **ret, struct err *err);

unsigned server_port(const struct server *s);
void server_stats(const struct server *s, struct server_stats *ret);

/* Going away, in three steps. First, while new connections still come, clients are told not to use
 * theirs again; then nothing new is accepted, idle connections close, and requests in flight
 * finish; server_stop() waits for that, LIMIT_REQUEST_MS at most, and frees everything. */
void server_announce_end(struct server *s);
void server_close(struct server *s);
void server_stop(struct server *s);
