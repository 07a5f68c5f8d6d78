/* A cycle of the timer: read the Lease, decide (lease.h), write if this replica may, wait. The
 * object's resourceVersion is in every write, so of two replicas that write at the same time one
 * gets a conflict and reads again. The holder knows the Lease from the response to its last write
 * and renews it without a read. Only one request is in flight; after each, successful or not, the
 * timer starts the next cycle. */

#include "leader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/macro.h"
#include "lease.h"

/* The loss by time is reported by a timer of its own, which also runs while a request is in
 * flight; leader_is() compares the clock itself. */
static void notify_change(struct leader *l)
{
	enum leader_state state = leader_state(l);

	if (state == l->state)
		return;
	l->state = state;
	l->config->on_change(l);
}

/* After a write without a response, or one that was refused, its version is not known. */
static void forget_lease(struct leader *l)
{
	l->known = (struct lease){ 0 };
}

static void keep_lease(struct leader *l, yyjson_val *object)
{
	struct lease lease = lease_of(object);

	arena_reset(&l->arena);
	l->known = (struct lease){ .exists = lease.exists && lease.version.n,
				   .holder = str_dup(&l->arena, lease.holder),
				   .acquired = str_dup(&l->arena, lease.acquired),
				   .version = str_dup(&l->arena, lease.version),
				   .transitions = lease.transitions };
}

static void retry_after(struct leader *l, uint64_t after_ms)
{
	l->is_busy = false;
	timer_start(&l->timer, after_ms, 0);
}

static void fail(struct leader *l, const struct err *err)
{
	forget_lease(l);
	if (l->config->on_failure)
		l->config->on_failure(l, err);
	retry_after(l, backoff_next(&l->backoff, backoff_random()));
	notify_change(l);
}

/* At least 1, so that leader_is() is false when the timer fires. */
static uint64_t expires_in_ms(const struct leader *l)
{
	const uint64_t passed_ms = loop_now_ms(l->api->loop) - l->renewed_ms;

	return passed_ms < LEASE_HOLD_MS ? LEASE_HOLD_MS - passed_ms : 1;
}

/* The time counts from when the write began: a slow server is asked early enough. */
static uint64_t renews_in_ms(const struct leader *l)
{
	const uint64_t passed_ms = loop_now_ms(l->api->loop) - l->write_ms;

	return passed_ms < LEASE_RENEW_MS ? LEASE_RENEW_MS - passed_ms : 0;
}

static void on_expiry(struct timer *t)
{
	struct leader *l = container_of(t, struct leader, expiry);

	/* libuv's clock may be a moment behind. */
	if (leader_is(l))
		timer_start(&l->expiry, expires_in_ms(l), 0);
	else
		notify_change(l);
}

/* Someone else wrote. A holder reads soon who holds the Lease now. */
static void read_again(struct leader *l)
{
	forget_lease(l);
	retry_after(l, l->renewed_ms ? backoff_next(&l->backoff, backoff_random()) :
				       backoff_jitter(LEASE_RETRY_MS, backoff_random()));
	notify_change(l);
}

static void on_written(struct api_call *call, yyjson_val *object, const struct err *err)
{
	struct leader *l = container_of(call, struct leader, call);

	if (err && (err->code == EEXIST || err->code == ENOENT)) {
		read_again(l);
		return;
	}
	if (err) {
		fail(l, err);
		return;
	}
	keep_lease(l, object);
	backoff_reset(&l->backoff);
	/* Counted from when the request was sent: other replicas may have seen the renewal that
	 * early, and must not consider it expired before this one does. */
	l->renewed_ms = l->is_releasing ? 0 : l->write_ms;
	l->is_releasing = false;
	if (l->renewed_ms)
		timer_start(&l->expiry, expires_in_ms(l), 0);
	retry_after(l, l->is_wanted ? renews_in_ms(l) : 0);
	notify_change(l);
}

static void start_request(struct leader *l, const char *method, const char *name, struct str body,
			  api_call_fn on_done)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "/apis/coordination.k8s.io/v1/namespaces/%s/leases%s%s",
		       l->config->namespace, *name ? "/" : "", name);
	l->is_busy = true;
	api_start(l->api, &l->call,
		  &(struct api_request){ .method = method,
					 .path = str_from(path),
					 .content_type = body.n ? API_JSON : NULL,
					 .body = body },
		  on_done);
}

static int64_t now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* An empty holder releases the Lease: others take it at once. */
static void write_lease(struct leader *l, const struct lease *lease, enum lease_action action)
{
	CLEANUP(arena_done) struct arena a;
	const struct lease_write w = { .namespace = str_from(l->config->namespace),
				       .name = str_from(l->config->name),
				       .identity = l->is_wanted ? str_from(l->config->identity) :
								  STR(""),
				       .now_us = now_us() };
	struct str body;
	struct err err;

	arena_init(&a, 0);
	l->write_ms = loop_now_ms(l->api->loop);
	l->is_releasing = !l->is_wanted;
	if (lease_write(lease, action, &w, &a, &body, &err) < 0)
		fail(l, &err);
	else if (action == LEASE_CREATE)
		start_request(l, "POST", "", body, on_written);
	else
		start_request(l, "PUT", l->config->name, body, on_written);
}

/* How long this process has seen the lease unchanged: clocks of other machines are not compared. */
static uint64_t observe(struct leader *l, const struct lease *lease)
{
	uint64_t now_ms = loop_now_ms(l->api->loop);
	char record[sizeof(l->record)];

	(void)snprintf(record, sizeof(record), PRI_STR " " PRI_STR, FMT_STR(lease->holder),
		       FMT_STR(lease->renewed));
	if (strcmp(record, l->record) != 0) {
		memcpy(l->record, record, sizeof(record));
		l->changed_ms = now_ms;
	}
	return now_ms - l->changed_ms;
}

static void on_read(struct api_call *call, yyjson_val *object, const struct err *err)
{
	struct leader *l = container_of(call, struct leader, call);
	struct lease lease = lease_of(object);
	enum lease_action action;

	if (err && err->code != ENOENT) {
		fail(l, err);
		return;
	}
	action = lease_decide(&lease, str_from(l->config->identity), observe(l, &lease));
	/* Another replica holds or has held the Lease, or it was deleted. Reported before it is
	 * taken: what this replica knows may be older than the writes of the other one. */
	if (action != LEASE_RENEW)
		l->renewed_ms = 0;
	if (action == LEASE_WAIT || (!l->is_wanted && action != LEASE_RENEW))
		retry_after(l, backoff_jitter(LEASE_RETRY_MS, backoff_random()));
	else
		write_lease(l, &lease, action);
	notify_change(l);
}

static void on_timer(struct timer *t)
{
	struct leader *l = container_of(t, struct leader, timer);

	notify_change(l); /* the lease may have expired */
	/* Without interest, only a Lease that is still held needs a request: its release. */
	if (l->is_busy || (!l->is_wanted && !l->renewed_ms))
		return;
	if (l->known.exists && l->renewed_ms)
		write_lease(l, &l->known, LEASE_RENEW);
	else
		start_request(l, "GET", l->config->name, STR(""), on_read);
}

void leader_init(struct leader *l, struct api *api, const struct leader_config *config)
{
	*l = (struct leader){ .api = api, .config = config };
	arena_init(&l->arena, 0);
	timer_init(&l->timer, api->loop, on_timer);
	timer_init(&l->expiry, api->loop, on_expiry);
}

void leader_close(struct leader *l)
{
	api_cancel(&l->call);
	timer_close(&l->timer, NULL);
	timer_close(&l->expiry, NULL);
}

void leader_done(struct leader *l)
{
	arena_done(&l->arena);
}

void leader_want(struct leader *l, bool is_wanted)
{
	if (l->is_wanted == is_wanted)
		return;
	l->is_wanted = is_wanted;
	/* A request in flight ends in retry_after(), and the next cycle sees the change. */
	if (!l->is_busy)
		timer_start(&l->timer, 0, 0);
}

enum leader_state leader_state(const struct leader *l)
{
	if (!l->is_wanted || !l->renewed_ms)
		return LEADER_NOT;
	return lease_is_held(l->renewed_ms, loop_now_ms(l->api->loop)) ? LEADER_ACTS : LEADER_LATE;
}

bool leader_is(const struct leader *l)
{
	return leader_state(l) == LEADER_ACTS;
}

const char *leader_identity(struct arena *a)
{
	const char *pod = getenv("POD_NAME");
	char host[256] = "unknown";

	if (pod && *pod)
		return str_cstr(a, str_from(pod));
	(void)gethostname(host, sizeof(host) - 1);
	return str_printf(a, "%s_%ld_%08x", host, (long)getpid(), backoff_random()).p;
}
