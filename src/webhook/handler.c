/* The webhook's routes. Runs on every thread of the server without locks: it uses only the request,
 * the state between acquire and release, and the thread's own counters. */

#include <errno.h>
#include <time.h>

#include "admission/review.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "metrics.h"
#include "net/prometheus.h"
#include "webhook.h"

#define JSON "application/json"
#define TEXT "text/plain; charset=utf-8"

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Whatever has a uid gets a response with a decision: a call that fails lets the pod in where
 * failurePolicy is Ignore. Fails only when there is no uid. */
static int decide(struct webhook *w, enum hook_kind hook, const struct http_request *rq,
		  struct str *ret_body, struct review_outcome *ret, struct err *err)
{
	int r;

	if (rq->is_truncated)
		return review_refuse(rq->body, 413, "it is larger than the webhook accepts",
				     rq->arena, ret_body, ret, err);
	/* The writer frees old state only after the readers released it, so nothing may wait in
	 * between. */
	r = review_respond(w->source->acquire(w->source, rq->thread),
			   hook <= HOOK_MUTATE_NODES ? REVIEW_MUTATE : REVIEW_VALIDATE, rq->body,
			   rq->arena, ret_body, ret, err);
	w->source->release(w->source, rq->thread); /* the response does not point into the state */
	if (r != -ENOMEM)
		return r;
	arena_reset(rq->arena); /* the body is not in it */
	return review_refuse(rq->body, 503, "the webhook has too little memory for it; try again",
			     rq->arena, ret_body, ret, err);
}

static void handle_review(struct webhook *w, enum hook_kind hook, const struct http_request *rq,
			  struct http_response *ret)
{
	struct review_outcome outcome = { .rule = RULE__COUNT };
	enum review_result result = RESULT_FAILED;
	uint64_t start = now_ns();
	struct err err = { 0 };
	int r = decide(w, hook, rq, &ret->body, &outcome, &err);

	if (r >= 0) {
		result = outcome.is_malformed ? RESULT_MALFORMED :
			 !outcome.allowed     ? RESULT_REFUSED :
			 outcome.is_changed   ? RESULT_CHANGED :
						RESULT_ALLOWED;
		/* Also for a refusal: it is in the body. Any other status counts as a failed
		 * webhook for the API server, which then applies the failurePolicy. */
		ret->status = 200;
		ret->content_type = JSON;
	} else {
		ret->status = rq->is_truncated ? 413 : 400;
		ret->content_type = TEXT;
		ret->body = str_dup(rq->arena, str_from(err.msg));
	}
	metrics_count(&w->counters[rq->thread], hook, result, outcome.rule, now_ns() - start);
}

static void respond_text(struct http_response *ret, unsigned status, struct str text)
{
	*ret = (struct http_response){ .status = status, .content_type = TEXT, .body = text };
}

/* As the API server's own health endpoints print them. */
static void add_check(struct strbuf *b, const char *name, const char *problem)
{
	if (problem)
		strbuf_printf(b, "[-]%s failed: %s\n", name, problem);
	else
		strbuf_printf(b, "[+]%s ok\n", name);
}

static void handle_ready(struct webhook *w, const struct http_request *rq,
			 struct http_response *ret)
{
	const char *state = NULL, *certificate = NULL, *shutdown = NULL;
	struct strbuf b;
	bool is_ready;

	strbuf_init(&b, rq->arena);
	if (!w->source->is_ready(w->source, &state) && !state)
		state = "not synchronized";
	/* Also true while there is no certificate, when the expiry is 0. */
	if (atomic_load(&w->certificate.expiry_unix_s) <= (int64_t)time(NULL))
		certificate = "expired";
	if (atomic_load(&w->is_draining))
		shutdown = "shutting down";
	is_ready = !state && !certificate && !shutdown;
	add_check(&b, "state", state);
	add_check(&b, "certificate", certificate);
	add_check(&b, "shutdown", shutdown);
	strbuf_printf(&b, "readyz check %s\n", is_ready ? "passed" : "failed");
	/* A failure always lists the checks: it has to say which one failed. */
	if (is_ready && !http_query_has(rq->query, STR("verbose")))
		respond_text(ret, 200, STR("ok\n"));
	else
		respond_text(ret, is_ready ? 200 : 503, strbuf_str(&b));
}

static void handle_live(struct webhook *w, const struct http_request *rq, struct http_response *ret)
{
	(void)w; /* a thread that hangs sends no response, so responding is the check */
	if (http_query_has(rq->query, STR("verbose")))
		respond_text(ret, 200, STR("[+]ping ok\nlivez check passed\n"));
	else
		respond_text(ret, 200, STR("ok\n"));
}

static void add_connections(struct strbuf *b, const struct webhook *w)
{
	struct server_stats s;

	server_stats(w->server, &s);
	prometheus_one(b, "pinfold_http_connections", "gauge", "Open connections", s.open);
	prometheus_one(b, "pinfold_http_requests_in_flight", "gauge",
		       "Connections with a request that is received or a response that is sent",
		       s.active);
	prometheus_one(b, "pinfold_http_in_flight_bytes", "gauge",
		       "Memory of requests that are received and of responses that are sent",
		       s.in_flight_bytes);
	prometheus_one(b, "pinfold_http_memory_bytes", "gauge",
		       "Memory that large requests take from the budget of the process",
		       s.memory_bytes);
	prometheus_one(b, "pinfold_http_memory_limit_bytes", "gauge",
		       "The budget of the process for large requests", s.memory_limit_bytes);
	prometheus_one(b, "pinfold_http_requests_given_up_total", "counter",
		       "Requests that were answered before they were complete, because they were "
		       "slow or others needed their memory",
		       s.given_up);
	prometheus_one(b, "pinfold_http_requests_total", "counter", "Requests served", s.requests);
	prometheus_one(b, "pinfold_http_connections_accepted_total", "counter",
		       "Connections accepted", s.accepted);
	prometheus_one(b, "pinfold_http_accept_errors_total", "counter",
		       "Connections that could not be accepted for lack of descriptors or memory",
		       s.accept_errors);
	prometheus_family(b, "pinfold_http_connections_closed_total", "counter",
			  "Connections closed, by reason");
	for (enum server_close_reason reason = 0; reason < SERVER_CLOSE__COUNT; reason++) {
		const struct prometheus_label labels[] = {
			{ "reason", server_close_reason_text(reason) }, { 0 }
		};

		prometheus_uint(b, "pinfold_http_connections_closed_total", labels,
				s.closed[reason]);
	}
}

static void add_certificate(struct strbuf *b, struct certificate *c)
{
	const struct prometheus_label ok[] = { { "result", "ok" }, { 0 } };
	const struct prometheus_label failed[] = { { "result", "failed" }, { 0 } };

	prometheus_one(b, "pinfold_certificate_expiry_timestamp_seconds", "gauge",
		       "When the serving certificate expires, in seconds since 1970",
		       (uint64_t)atomic_load(&c->expiry_unix_s));
	prometheus_family(b, "pinfold_certificate_reloads_total", "counter",
			  "Reloads of the serving certificate, by result");
	prometheus_uint(b, "pinfold_certificate_reloads_total", ok, atomic_load(&c->reloads));
	prometheus_uint(b, "pinfold_certificate_reloads_total", failed,
			atomic_load(&c->failed_reloads));
}

static void handle_metrics(struct webhook *w, const struct http_request *rq,
			   struct http_response *ret)
{
	const struct prometheus_label version[] = { { "version", w->config->version }, { 0 } };
	struct strbuf b;

	strbuf_init(&b, rq->arena);
	prometheus_family(&b, "pinfold_build_info", "gauge", "Always 1");
	prometheus_uint(&b, "pinfold_build_info", version, 1);
	metrics_write(&b, w->counters, w->n_threads);
	add_connections(&b, w);
	add_certificate(&b, &w->certificate);
	w->source->add_metrics(w->source, &b);
	prometheus_process(&b);
	*ret = (struct http_response){ .status = b.failed ? 500 : 200,
				       .content_type = PROMETHEUS_CONTENT_TYPE,
				       .body = strbuf_str(&b) };
}

static const struct {
	struct str path;
	enum hook_kind hook;
} hooks[] = {
	{ STR_INIT("/mutate/pods"), HOOK_MUTATE_PODS },
	{ STR_INIT("/mutate/nodes"), HOOK_MUTATE_NODES },
	{ STR_INIT("/validate/pods"), HOOK_VALIDATE_PODS },
	{ STR_INIT("/validate/nodes"), HOOK_VALIDATE_NODES },
	{ STR_INIT("/validate/infrastructures"), HOOK_VALIDATE_INFRA },
	{ STR_INIT("/validate/performanceprofiles"), HOOK_VALIDATE_PROFILES },
};

static const struct {
	struct str path;
	void (*handle)(struct webhook *w, const struct http_request *rq, struct http_response *ret);
} pages[] = {
	{ STR_INIT("/livez"), handle_live },
	{ STR_INIT("/readyz"), handle_ready },
	{ STR_INIT("/healthz"), handle_live },
	{ STR_INIT("/metrics"), handle_metrics },
};

static bool is_method(const struct http_request *rq, struct str method, const char *allow,
		      struct http_response *ret)
{
	if (str_eq(rq->method, method))
		return true;
	http_response_status(ret, 405, rq->arena);
	ret->allow = allow;
	return false;
}

void webhook_handle(const struct http_request *rq, struct http_response *ret, void *context)
{
	struct webhook *w = context;

	for (size_t i = 0; i < ARRAY_LEN(hooks); i++)
		if (str_eq(rq->path, hooks[i].path)) {
			if (!rq->is_trusted)
				respond_text(ret, 403,
					     STR("a client certificate of the API server is "
						 "needed (--client-ca)\n"));
			else if (is_method(rq, STR("POST"), "POST", ret))
				handle_review(w, hooks[i].hook, rq, ret);
			return;
		}
	for (size_t i = 0; i < ARRAY_LEN(pages); i++)
		if (str_eq(rq->path, pages[i].path)) {
			if (is_method(rq, STR("GET"), "GET, HEAD", ret))
				pages[i].handle(w, rq, ret);
			return;
		}
	http_response_status(ret, 404, rq->arena);
}
