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
#include "base/budget.h"
#include "buffer.h"
#include "http1.h"
#include "loop.h"
#include "peers.h"
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
	struct http2 *http2; /* when ALPN selected it */
	struct peer *peer;
	size_t held_bytes;   /* requests and responses in memory */
	size_t taken_bytes;  /* of those, from the budget */
	uint64_t waiting_ms; /* since when it waits for memory and is not read; 0: it does not */
	uint64_t waited_ms;  /* earlier, in this state */
	uint64_t unread_ms;  /* since when a response is not read; 0: none */
	enum server_close_reason reason;
	bool is_trusted; /* once the handshake is complete */
	bool is_last;	 /* close when the response is sent */
	bool said_continue;
};

TAILQ_HEAD(conn_list, conn);

/* One writer, any number of readers: relaxed loads and stores cost no more than ordinary ones. */
struct worker_stats {
	_Atomic uint64_t accepted, accept_errors, requests, http2_connections, open, active,
		in_flight_bytes, given_up;
	_Atomic uint64_t closed[SERVER_CLOSE__COUNT];
};

/* What the workers share. Everything that clients make the process keep counts: up to
 * LIMIT_CONNECTION_BYTES for every connection that there may be, `arena_bytes` for every thread,
 * and what the budget has beyond these. */
struct shares {
	struct budget budget;
	struct peer_table peers;
	size_t arena_bytes;
	unsigned max_conns;
	_Atomic unsigned n_waiting; /* connections that wait for memory */
};

enum worker_phase { WORKER_SERVING, WORKER_ANNOUNCING, WORKER_CLOSING };

struct worker {
	struct server *server;
	struct shares *shares;
	const struct server_config *config;
	unsigned index;
	pthread_t thread;
	bool is_running;
	struct loop loop;
	struct listener listener;
	struct waker waker;
	struct timer tick;
	struct timer retry; /* while a connection waits for memory */
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

/* Runs the handler, in the worker's arena, which the caller resets when it has copied the
 * response. */
void conn_handle(struct conn *c, struct http_request *request, struct http_response *ret);

/* Answers what was received so far, because it takes too long or too much memory, and closes the
 * connection (HTTP/1.1) or the streams (HTTP/2). */
void conn_give_up(struct conn *c, enum server_close_reason reason);

/* Memory (pressure.c). After each change of what a connection keeps. It may pause the connection or
 * give it up. */
void conn_settle(struct conn *c);
void conn_release(struct conn *c); /* it keeps less */
void conn_forget(struct conn *c);  /* it is closed and holds nothing */

/* When connections wait for memory: gives up the slowest, and resumes those that fit. */
void worker_relieve(struct worker *w);

/* Every second: deadlines and rates. */
void worker_expire(struct worker *w);

/* server.c: all other workers call worker_relieve(). */
void server_relieve(struct server *s, const struct worker *except);

/* HTTP/2 (http2.c). */
void http2_new(struct conn *c);
void http2_free(struct http2 *h);
void http2_receive(struct http2 *h, struct str bytes);
void http2_announce_end(struct http2 *h);
void http2_close(struct http2 *h);
bool http2_is_idle(const struct http2 *h);
size_t http2_bytes(const struct http2 *h);	 /* of requests and responses */
uint64_t http2_oldest_ms(const struct http2 *h); /* when its oldest stream began; 0: none */

/* Answers streams of at least `min_bytes` that began at `until_ms` or earlier, and those below the
 * minimum rate; resets those whose responses are not read. */
void http2_give_up(struct http2 *h, uint64_t until_ms, size_t min_bytes);
