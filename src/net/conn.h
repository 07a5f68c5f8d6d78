#pragma once

/* Internals of the server: one of its threads and one connection. Included by server.c, conn.c and
 * http2.c only; the public interface is server.h. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/arena.h"
#include "buffer.h"
#include "http1.h"
#include "loop.h"
#include "server.h"
#include "tls.h"

struct http2;

/* Each state has its own time limit and a list of the connections in it, in the order in which they
 * entered: the first one is the first to exceed the limit. */
enum conn_state {
	CONN_NEW,    /* no complete request received yet */
	CONN_IDLE,   /* between requests */
	CONN_ACTIVE, /* receiving a request, or sending a response that the client reads slowly */
	CONN_LINGERING, /* the last response is sent; what still arrives is discarded */
	CONN_CLOSING,	/* the descriptor is being closed; in no list */
	CONN__COUNT
};

struct conn {
	struct stream stream;
	struct tls_conn tls;
	struct worker *worker;
	TAILQ_ENTRY(conn) link;
	enum conn_state state;
	uint64_t since_ms; /* when it entered the state */
	struct buffer in;  /* HTTP/1.1: what was received of the current request */
	struct http1_parser http1;
	struct http2 *http2;  /* when ALPN selected it */
	size_t counted_bytes; /* of worker->in_flight_bytes */
	enum server_close_reason reason;
	bool is_last; /* close when the response is sent */
	bool said_continue;
};

TAILQ_HEAD(conn_list, conn);

/* One writer, any number of readers: relaxed loads and stores cost no more than ordinary ones. */
struct worker_stats {
	_Atomic uint64_t accepted, accept_errors, requests, http2_connections, open, active,
		in_flight_bytes;
	_Atomic uint64_t closed[SERVER_CLOSE__COUNT];
};

enum worker_phase { WORKER_SERVING, WORKER_ANNOUNCING, WORKER_CLOSING };

struct worker {
	struct server *server;
	const struct server_config *config;
	unsigned index;
	pthread_t thread;
	bool is_running;
	struct loop loop;
	struct listener listener;
	struct waker waker;
	struct timer tick;
	struct conn_list lists[CONN_CLOSING];
	size_t n_conns; /* including those being closed: they hold descriptors */
	size_t max_conns;
	struct arena arena; /* of the current request */
	struct buffer head; /* of the current HTTP/1.1 response, with its body */
	size_t in_flight_bytes;
	char date[32]; /* for the Date field, renewed every second */
	enum worker_phase phase;
	struct worker_stats stats;
};

static inline void stat_add(_Atomic uint64_t *counter, uint64_t n)
{
	uint64_t old = atomic_load_explicit(counter, memory_order_relaxed);

	atomic_store_explicit(counter, old + n, memory_order_relaxed);
}

int conn_open(struct worker *w, int fd);
void conn_move(struct conn *c,
	       enum conn_state state); /* to the end of that list; restarts the time */
void conn_abort(struct conn *c, enum server_close_reason reason); /* now */
void conn_announce_end(struct conn *c);
void conn_finish(struct conn *c, enum server_close_reason reason); /* after what is queued */

/* For the protocols. Bytes to the client are encrypted and queued; conn_flush() sends them. */
void conn_put(struct conn *c, struct str plain);
void conn_flush(struct conn *c);

/* Counts bytes of a request that is being received. False when that exceeds the limit. */
bool conn_count_bytes(struct conn *c, size_t now_bytes);

/* Runs the handler, in the worker's arena. */
void conn_handle(struct conn *c, struct http_request *request, struct http_response *ret);

/* HTTP/2 (http2.c). */
void http2_new(struct conn *c);
void http2_free(struct http2 *h);
void http2_receive(struct http2 *h, struct str bytes);
void http2_announce_end(struct http2 *h);
void http2_close(struct http2 *h);
bool http2_is_idle(const struct http2 *h);
