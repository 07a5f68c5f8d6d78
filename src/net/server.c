/* The server's threads: each worker has its own loop, its own listening socket on the same port,
 * and its own connections, so that requests need no lock. The main thread reaches them only
 * through the atomic phase and their wakers. */

#include "server.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/macro.h"
#include "conn.h"
#include "limits.h"

#define TICK_MS 1000

struct server {
	struct server_config config;
	struct shares shares;
	_Atomic enum worker_phase phase;
	unsigned port;
	unsigned n_workers;
	struct worker *workers;
};

static const char *const reason_texts[] = {
#define X(name, text) [SERVER_CLOSE_##name] = (text),
	SERVER_CLOSE_REASONS(X)
#undef X
};
_Static_assert(ARRAY_LEN(reason_texts) == SERVER_CLOSE__COUNT, "every reason has a text");

const char *server_close_reason_text(enum server_close_reason reason)
{
	return reason_texts[reason];
}

/* Of the list, the connection whose address has most connections, the oldest of those. */
static struct conn *find_crowded(struct worker *w, enum conn_state state, uint64_t min_age_ms,
				 struct conn *best)
{
	for (struct conn *c = TAILQ_FIRST(&w->lists[state]); c; c = TAILQ_NEXT(c, link)) {
		if (loop_now_ms(&w->loop) - c->since_ms < min_age_ms)
			break; /* the list is in the order of since_ms */
		if (!best || peer_conns(c->peer) > peer_conns(best->peer))
			best = c;
	}
	return best;
}

/* Closes one connection in favour of a new one: of the address that has most of them, the least
 * useful: one that only waits for the client's end, one that had time to send a request and did
 * not, the one that is idle longest. In a flood of new connections, one that was just served is
 * worth more than they are. A connection whose request is being received is closed only when its
 * address has more connections than that of the others: a crowd of unfinished requests must not
 * displace the idle connections of an API server. */
static void evict_one(struct worker *w)
{
	struct conn *c = find_crowded(w, CONN_LINGERING, 0, NULL);

	c = find_crowded(w, CONN_NEW, TICK_MS, c);
	c = find_crowded(w, CONN_IDLE, TICK_MS, c);
	c = find_crowded(w, CONN_NEW, 0, c);
	c = find_crowded(w, CONN_IDLE, 0, c);
	c = find_crowded(w, CONN_ACTIVE, 0, c);
	if (c)
		conn_abort(c, SERVER_CLOSE_EVICTED);
}

static void on_accept(struct listener *l, int fd)
{
	struct worker *w = container_of(l, struct worker, listener);

	stat_add(&w->stats.accepted, 1);
	/* The new connection is accepted in any case: it may be the API server's, while the others
	 * are idle. The limit is exceeded by one until the evicted one is closed. */
	if (w->n_conns >= w->max_conns) {
		listener_pause(l); /* until a descriptor is free again */
		evict_one(w);
	}
	(void)conn_open(w, fd);
}

static void on_accept_error(struct listener *l, int error)
{
	struct worker *w = container_of(l, struct worker, listener);

	(void)error;
	stat_add(&w->stats.accept_errors, 1);
	evict_one(w);
}

static void close_expired(struct worker *w, enum conn_state state, uint64_t limit_ms,
			  enum server_close_reason reason)
{
	uint64_t now = loop_now_ms(&w->loop);
	struct conn *c;

	/* The lists are in the order of since_ms, so the first one that has time left ends the
	 * search. */
	while ((c = TAILQ_FIRST(&w->lists[state])) && now - c->since_ms >= limit_ms)
		conn_abort(c, reason);
}

static void refresh_date(struct worker *w)
{
	time_t now = time(NULL);
	struct tm tm;

	(void)gmtime_r(&now, &tm);
	(void)strftime(w->date, sizeof(w->date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
}

static void on_tick(struct timer *t)
{
	struct worker *w = container_of(t, struct worker, tick);

	refresh_date(w);
	worker_expire(w);
	close_expired(w, CONN_IDLE, LIMIT_IDLE_MS, SERVER_CLOSE_IDLE);
	close_expired(w, CONN_LINGERING, LIMIT_LINGER_MS, SERVER_CLOSE_SLOW);
}

static void on_retry(struct timer *t)
{
	struct worker *w = container_of(t, struct worker, retry);

	worker_relieve(w);
	if (atomic_load(&w->shares->n_waiting))
		server_relieve(w->server, w);
	else
		timer_stop(t);
}

static void announce_end(struct worker *w)
{
	w->phase = WORKER_ANNOUNCING;
	for (enum conn_state state = CONN_NEW; state <= CONN_ACTIVE; state++) {
		struct conn *c, *next;

		for (c = TAILQ_FIRST(&w->lists[state]); c; c = next) {
			/* The flush may move the connection to another list. */
			next = TAILQ_NEXT(c, link);
			conn_announce_end(c);
		}
	}
}

static void close_idle(struct worker *w)
{
	struct conn *c, *next;

	w->phase = WORKER_CLOSING;
	/* Connections in the backlog of this socket are reset, although other workers still listen:
	 * by default the kernel does not move them. Callers announce the end first and wait, so
	 * that hardly any are left. */
	listener_close(&w->listener);
	while ((c = TAILQ_FIRST(&w->lists[CONN_IDLE]))) {
		if (c->http2)
			http2_close(c->http2);
		conn_finish(c, SERVER_CLOSE_DRAIN);
		conn_flush(c);
		/* When the flush did not change the state, so that the loop ends. */
		if (c->state == CONN_IDLE)
			conn_abort(c, SERVER_CLOSE_DRAIN);
	}
	/* Requests in flight finish; GOAWAY refuses later ones. HTTP/1.1 responses say
	 * "Connection: close" since the end was announced. */
	for (enum conn_state state = CONN_NEW; state <= CONN_ACTIVE; state++)
		for (c = TAILQ_FIRST(&w->lists[state]); c; c = next) {
			next = TAILQ_NEXT(c, link); /* the flush may move the connection */
			if (c->http2)
				http2_close(c->http2);
			conn_flush(c);
		}
	if (!w->n_conns)
		loop_stop(&w->loop);
}

static void on_wake(struct waker *waker)
{
	struct worker *w = container_of(waker, struct worker, waker);
	enum worker_phase phase = atomic_load(&w->server->phase);

	/* Two wakes may arrive as one, so the worker may have to pass both phases here. */
	if (phase >= WORKER_ANNOUNCING && w->phase < WORKER_ANNOUNCING)
		announce_end(w);
	if (phase >= WORKER_CLOSING && w->phase < WORKER_CLOSING)
		close_idle(w);
	worker_relieve(w);
}

static void *run_worker(void *arg)
{
	struct worker *w = arg;

	loop_run(&w->loop);
	return NULL;
}

/* Descriptors for connections: the system's limit minus a reserve. */
static unsigned max_connections(const struct server_config *config)
{
	struct rlimit limit;
	unsigned max = config->max_connections ? config->max_connections : LIMIT_CONNECTIONS;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur =
			limit.rlim_max; /* the soft limit protects programs that use select() */
		(void)setrlimit(RLIMIT_NOFILE, &limit);
		if (getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
		    limit.rlim_cur < max + LIMIT_FD_RESERVE)
			max = limit.rlim_cur > 2ul * LIMIT_FD_RESERVE ?
				      (unsigned)limit.rlim_cur - LIMIT_FD_RESERVE :
				      LIMIT_FD_RESERVE;
	}
	return max;
}

/* An eighth of the memory is what all connections may hold without asking, an eighth is for TLS and
 * sockets, an eighth is for reading the requests, and the rest is the budget. */
static void share_memory(struct server *s)
{
	size_t memory = s->config.memory_bytes ? s->config.memory_bytes : LIMIT_MEMORY_BYTES;
	size_t affordable = memory / 8 / LIMIT_CONNECTION_BYTES;

	s->shares.max_conns = max_connections(&s->config);
	if (affordable < s->shares.max_conns)
		s->shares.max_conns = (unsigned)affordable;
	s->shares.arena_bytes = memory / 8 / s->config.threads;
	s->shares.budget.limit = memory / 8 * 5;
	peer_table_init(&s->shares.peers);
}

static void worker_done(struct worker *w)
{
	loop_done(&w->loop);
	arena_done(&w->arena);
	buffer_done(&w->head);
}

static int worker_init(struct worker *w, struct server *s, unsigned index, int fd, struct err *err)
{
	int r;

	*w = (struct worker){ .server = s, .config = &s->config, .index = index };
	/* The kernel distributes connections by a hash of the addresses, not evenly: one worker may
	 * be full while another has space. */
	w->shares = &s->shares;
	w->max_conns = 1 + s->shares.max_conns / s->config.threads;
	for (size_t i = 0; i < ARRAY_LEN(w->lists); i++)
		TAILQ_INIT(&w->lists[i]);
	arena_init(&w->arena, s->shares.budget.limit / 4 * 3);
	arena_use_budget(&w->arena, &s->shares.budget, s->shares.arena_bytes);
	r = loop_init(&w->loop, err);
	if (r < 0)
		return r;
	refresh_date(w);
	timer_init(&w->tick, &w->loop, on_tick);
	timer_start(&w->tick, TICK_MS, TICK_MS);
	timer_init(&w->retry, &w->loop, on_retry);
	r = waker_init(&w->waker, &w->loop, on_wake, err);
	if (r >= 0)
		r = listener_init(&w->listener, &w->loop, fd, on_accept, on_accept_error, err);
	if (r < 0)
		worker_done(w);
	return r;
}

/* Workers block all signals, so they are delivered to the thread that started the server. */
static int start_thread(struct worker *w, struct err *err)
{
	sigset_t all, old;
	int r;

	(void)sigfillset(&all);
	/* A new thread inherits the mask. Blocking signals inside the thread would leave a gap. */
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&w->thread, NULL, run_worker, w);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r)
		return err_set(err, r, "cannot start a thread: %s", strerror(r));
	w->is_running = true;
	return 0;
}

static int listen_on(struct server *s, struct err *err)
{
	struct sockaddr_storage address = s->config.address;

	if (s->port) { /* port 0: the one that the first worker got */
		if (address.ss_family == AF_INET6)
			((struct sockaddr_in6 *)&address)->sin6_port = htons((uint16_t)s->port);
		else
			((struct sockaddr_in *)&address)->sin_port = htons((uint16_t)s->port);
	}
	return net_listen(&address, true, err);
}

static int add_worker(struct server *s, struct err *err)
{
	struct worker *w = &s->workers[s->n_workers];
	int r, fd = listen_on(s, err);

	if (fd < 0)
		return fd;
	s->port = net_local_port(fd);
	r = worker_init(w, s, s->n_workers, fd, err);
	if (r < 0) {
		(void)close(fd);
		return r;
	}
	s->n_workers++;
	return 0;
}

/* All workers exist, and *ret is set, before the first thread can serve a request. */
int server_start(const struct server_config *config, struct server **ret, struct err *err)
{
	struct server *s = calloc(1, sizeof(*s));
	int r = 0;

	if (!s)
		abort();
	s->config = *config;
	share_memory(s);
	s->workers = calloc(config->threads, sizeof(*s->workers));
	if (!s->workers)
		abort();
	for (unsigned i = 0; r >= 0 && i < config->threads; i++)
		r = add_worker(s, err);
	if (r >= 0)
		*ret = s;
	for (unsigned i = 0; r >= 0 && i < config->threads; i++)
		r = start_thread(&s->workers[i], err);
	if (r < 0) {
		*ret = NULL;
		server_stop(s);
		return r;
	}
	return 0;
}

unsigned server_port(const struct server *s)
{
	return s->port;
}

static uint64_t stat_get(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

void server_stats(const struct server *s, struct server_stats *ret)
{
	*ret = (struct server_stats){ .memory_bytes = budget_used(&s->shares.budget),
				      .memory_limit_bytes = s->shares.budget.limit };
	for (unsigned i = 0; i < s->n_workers; i++) {
		const struct worker_stats *w = &s->workers[i].stats;

		ret->accepted += stat_get(&w->accepted);
		ret->accept_errors += stat_get(&w->accept_errors);
		ret->requests += stat_get(&w->requests);
		ret->http2_connections += stat_get(&w->http2_connections);
		ret->open += stat_get(&w->open);
		ret->active += stat_get(&w->active);
		ret->in_flight_bytes += stat_get(&w->in_flight_bytes);
		ret->given_up += stat_get(&w->given_up);
		for (size_t k = 0; k < SERVER_CLOSE__COUNT; k++)
			ret->closed[k] += stat_get(&w->closed[k]);
	}
}

static void set_phase(struct server *s, enum worker_phase phase)
{
	atomic_store(&s->phase, phase);
	for (unsigned i = 0; i < s->n_workers; i++)
		waker_wake(&s->workers[i].waker);
}

void server_relieve(struct server *s, const struct worker *except)
{
	for (unsigned i = 0; i < s->n_workers; i++)
		if (&s->workers[i] != except)
			waker_wake(&s->workers[i].waker);
}

void server_announce_end(struct server *s)
{
	set_phase(s, WORKER_ANNOUNCING);
}

void server_close(struct server *s)
{
	set_phase(s, WORKER_CLOSING);
}

void server_stop(struct server *s)
{
	server_close(s);
	for (unsigned i = 0; i < s->n_workers; i++) {
		struct worker *w = &s->workers[i];

		/* A worker whose thread did not start has a listener that no loop will close. */
		if (w->is_running)
			(void)pthread_join(w->thread, NULL);
		else
			listener_close(&w->listener);
		worker_done(w);
	}
	peer_table_done(&s->shares.peers);
	free(s->workers);
	free(s);
}
