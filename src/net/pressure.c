/* What clients may make the process keep, and for how long. Small requests never ask: their memory
 * is set aside for every connection. Larger ones take from the budget of the process. When it is
 * exhausted they are not read further, and the slowest requests are answered early: first those of
 * addresses that hold more than their share. */

#include "conn.h"
#include "limits.h"

static uint64_t now_ms(const struct worker *w)
{
	return loop_now_ms(&w->loop);
}

static size_t bytes_of(const struct conn *c)
{
	/* The request's buffer by what was received: what it reserves beyond is untouched. */
	return c->in.end + (c->http2 ? http2_bytes(c->http2) : 0) + c->tls.out.cap +
	       c->stream.sending.cap + c->stream.queued.cap;
}

static void record(struct conn *c, size_t held, size_t taken)
{
	struct worker *w = c->worker;

	w->in_flight_bytes += held - c->held_bytes;
	atomic_store_explicit(&w->stats.in_flight_bytes, w->in_flight_bytes, memory_order_relaxed);
	c->held_bytes = held;
	if (taken == c->taken_bytes)
		return;
	peer_hold(&w->shares->peers, c->peer, c->taken_bytes, taken);
	c->taken_bytes = taken;
}

static void stop_waiting(struct conn *c)
{
	if (!c->waiting_ms)
		return;
	c->waited_ms += now_ms(c->worker) - c->waiting_ms;
	c->waiting_ms = 0;
	atomic_fetch_sub(&c->worker->shares->n_waiting, 1);
}

static void wait_for_memory(struct conn *c)
{
	struct worker *w = c->worker;

	stream_pause(&c->stream);
	if (c->waiting_ms)
		return;
	c->waiting_ms = now_ms(w);
	atomic_fetch_add(&w->shares->n_waiting, 1);
	if (!timer_is_active(&w->retry))
		timer_start(&w->retry, LIMIT_RETRY_MS, LIMIT_RETRY_MS);
}

/* While others wait, an address may not grow beyond its share. */
static bool take(const struct conn *c, size_t more)
{
	struct shares *s = c->worker->shares;

	if (atomic_load_explicit(&s->n_waiting, memory_order_relaxed) &&
	    peer_bytes(c->peer) + more > peer_fair_share(&s->peers, s->budget.limit))
		return false;
	return budget_take(&s->budget, more);
}

void conn_release(struct conn *c)
{
	size_t held = bytes_of(c);
	size_t taken = held > LIMIT_CONNECTION_BYTES ? held - LIMIT_CONNECTION_BYTES : 0;

	if (taken > c->taken_bytes || c->state == CONN_CLOSING)
		return;
	if (taken < c->taken_bytes)
		budget_give(&c->worker->shares->budget, c->taken_bytes - taken);
	record(c, held, taken);
}

void conn_settle(struct conn *c)
{
	struct budget *budget = &c->worker->shares->budget;
	size_t held = bytes_of(c);
	size_t taken = held > LIMIT_CONNECTION_BYTES ? held - LIMIT_CONNECTION_BYTES : 0;
	size_t more = taken > c->taken_bytes ? taken - c->taken_bytes : 0;

	if (c->state == CONN_CLOSING)
		return;
	if (!more) {
		conn_release(c);
		return;
	}
	if (take(c, more)) {
		record(c, held, taken);
		return;
	}
	/* It is in memory already, so it counts, beyond the limit. */
	budget_force(budget, more);
	record(c, held, taken);
	if (more > LIMIT_OVERDRAFT_BYTES || budget_used(budget) > budget->limit / 8 * 9)
		conn_give_up(c, SERVER_CLOSE_OVERLOAD);
	else
		wait_for_memory(c);
}

void conn_forget(struct conn *c)
{
	stop_waiting(c);
	budget_give(&c->worker->shares->budget, c->taken_bytes);
	record(c, 0, 0);
}

/* Since when the oldest request of the connection is received. */
static uint64_t begun_ms(const struct conn *c)
{
	uint64_t oldest_ms = c->http2 ? http2_oldest_ms(c->http2) : 0;

	return oldest_ms ? oldest_ms : c->since_ms;
}

/* The one that holds memory longest for least: bytes a millisecond, at least LIMIT_PATIENCE_MS old.
 * Addresses above their share come first. */
static struct conn *find_slowest(struct worker *w)
{
	size_t share = peer_fair_share(&w->shares->peers, w->shares->budget.limit);
	struct conn *slowest = NULL;
	bool slowest_is_greedy = false;
	uint64_t slowest_rate = 0;

	for (enum conn_state state = CONN_NEW; state <= CONN_ACTIVE; state++)
		for (struct conn *c = TAILQ_FIRST(&w->lists[state]); c; c = TAILQ_NEXT(c, link)) {
			uint64_t age_ms = now_ms(w) - begun_ms(c);
			uint64_t rate = c->held_bytes / (age_ms + 1);
			bool is_greedy = peer_bytes(c->peer) > share;

			if (!c->taken_bytes || c->is_last || age_ms < LIMIT_PATIENCE_MS)
				continue;
			if (slowest && (slowest_is_greedy > is_greedy ||
					(slowest_is_greedy == is_greedy && slowest_rate <= rate)))
				continue;
			slowest = c;
			slowest_is_greedy = is_greedy;
			slowest_rate = rate;
		}
	return slowest;
}

static void resume(struct conn *c)
{
	stop_waiting(c);
	if (stream_queued(&c->stream) <= LIMIT_UNREAD_BYTES)
		stream_resume(&c->stream);
}

/* Those of addresses within their share first. */
static size_t resume_waiting(struct worker *w, bool any)
{
	const struct budget *budget = &w->shares->budget;
	size_t share = peer_fair_share(&w->shares->peers, budget->limit), n_left = 0;

	for (enum conn_state state = CONN_NEW; state <= CONN_LINGERING; state++)
		for (struct conn *c = TAILQ_FIRST(&w->lists[state]); c; c = TAILQ_NEXT(c, link)) {
			if (!c->waiting_ms)
				continue;
			if (budget_used(budget) < budget->limit &&
			    (any || peer_bytes(c->peer) <= share))
				resume(c);
			else
				n_left++;
		}
	return n_left;
}

void worker_relieve(struct worker *w)
{
	const struct budget *budget = &w->shares->budget;
	struct conn *c;

	if (!atomic_load(&w->shares->n_waiting))
		return;
	/* Some more than needed, so that those that wait can read on and finish. */
	while (budget_used(budget) > budget->limit / 4 * 3 && (c = find_slowest(w))) {
		stat_add(&w->stats.given_up, 1);
		conn_give_up(c, SERVER_CLOSE_EVICTED);
	}
	if (resume_waiting(w, false))
		(void)resume_waiting(w, budget_used(budget) < budget->limit / 8 * 7);
}

static bool is_too_slow(const struct conn *c, uint64_t age_ms)
{
	/* The time in which it was not read is not its fault. */
	uint64_t reading_ms = age_ms - (c->waited_ms < age_ms ? c->waited_ms : age_ms);

	return c->http1.need > buffer_len(&c->in) && c->http1.need > LIMIT_CONNECTION_BYTES &&
	       !c->waiting_ms && reading_ms > LIMIT_RATE_GRACE_MS &&
	       buffer_len(&c->in) < (reading_ms - LIMIT_RATE_GRACE_MS) * LIMIT_RATE_BYTES_PER_MS;
}

static void expire(struct conn *c)
{
	const uint64_t now = now_ms(c->worker), age_ms = now - c->since_ms;

	if (c->unread_ms && now - c->unread_ms >= LIMIT_REQUEST_MS) {
		conn_abort(c, SERVER_CLOSE_SLOW);
	} else if (c->state == CONN_NEW && (c->http2 || c->http1.state == HTTP1_HEAD)) {
		if (age_ms >= LIMIT_REQUEST_MS)
			conn_abort(c, SERVER_CLOSE_HANDSHAKE);
	} else if (c->http2) {
		http2_give_up(c->http2, now > LIMIT_REQUEST_MS ? now - LIMIT_REQUEST_MS : 0, 0);
		conn_flush(c);
		conn_settle(c);
	} else if (age_ms >= LIMIT_REQUEST_MS || is_too_slow(c, age_ms)) {
		stat_add(&c->worker->stats.given_up, 1);
		conn_give_up(c, SERVER_CLOSE_SLOW);
	}
}

void worker_expire(struct worker *w)
{
	for (enum conn_state state = CONN_NEW; state <= CONN_ACTIVE; state++) {
		struct conn *c, *next;

		for (c = TAILQ_FIRST(&w->lists[state]); c; c = next) {
			next = TAILQ_NEXT(c, link); /* it may move or leave */
			if (c->state != CONN_IDLE)
				expire(c);
		}
	}
}
