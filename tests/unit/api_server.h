#pragma once

/* An API server on loopback for tests of API clients: it responds by rules that the test sets, and
 * records what was requested. The server has a thread of its own; the client's loop runs in the
 * test's thread, inside API_SERVER_WAIT(). */

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/macro.h"
#include "cluster/api.h"
#include "net/loop.h"
#include "net/server.h"
#include "test.h"
#include "test_certs.h"

#define API_SERVER_REQUESTS 32
#define API_SERVER_RULES 12

struct api_server_rule {
	const char *method, *path; /* the path without the query */
	const char *query;	   /* a part of the query; "": any */
	unsigned status;
	const char *body; /* JSON */
};

struct api_server_request {
	char method[8], path[128], body[2048];
};

struct api_server {
	struct test_cert cert;
	struct tls_context tls;
	struct server *server;
	pthread_mutex_t lock; /* of what follows */
	struct api_server_rule rules[API_SERVER_RULES];
	size_t n_rules;
	struct api_server_request requests[API_SERVER_REQUESTS]; /* the first ones */
	size_t n_requests;

	/* The client's side. */
	struct loop loop;
	struct timer pause;
	struct kubeconfig kubeconfig;
	struct api api;
};

static inline void api_server_respond(const struct http_request *rq, struct http_response *ret,
				      void *context)
{
	struct api_server *s = context;

	(void)pthread_mutex_lock(&s->lock);
	http_response_status(ret, 404, rq->arena);
	for (size_t i = 0; i < s->n_rules; i++) {
		const struct api_server_rule *rule = &s->rules[i];

		if (!str_eq(rq->method, str_from(rule->method)) ||
		    !str_eq(rq->path, str_from(rule->path)) ||
		    !strstr(str_cstr(rq->arena, rq->query), rule->query))
			continue;
		*ret = (struct http_response){ .status = rule->status,
					       .content_type = "application/json",
					       .body = str_from(rule->body) };
		break;
	}
	if (s->n_requests < API_SERVER_REQUESTS) {
		struct api_server_request *to = &s->requests[s->n_requests];

		(void)snprintf(to->method, sizeof(to->method), PRI_STR, FMT_STR(rq->method));
		(void)snprintf(to->path, sizeof(to->path), PRI_STR, FMT_STR(rq->path));
		(void)snprintf(to->body, sizeof(to->body), PRI_STR, FMT_STR(rq->body));
	}
	s->n_requests++;
	(void)pthread_mutex_unlock(&s->lock);
}

static inline void api_server_on_pause(struct timer *t)
{
	loop_stop(&container_of(t, struct api_server, pause)->loop);
}

static inline void api_server_init(struct api_server *s)
{
	struct server_config config = {
		.threads = 1, .tls = &s->tls, .handler = api_server_respond, .context = s
	};
	struct err err = { 0 };

	memset(s, 0, sizeof(*s));
	log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	(void)pthread_mutex_init(&s->lock, NULL);
	test_cert_make(&s->cert, "localhost");
	tls_context_init(&s->tls);
	CHECK_OK(tls_context_load_server(&s->tls,
					 &(struct tls_server_config){ .cert_pem = s->cert.cert_pem,
								      .key_pem = s->cert.key_pem,
								      .alpn = "h2" },
					 &err));
	CHECK_OK(net_address_parse(STR("127.0.0.1:0"), &config.address, &err));
	CHECK_OK(server_start(&config, &s->server, &err));
	s->kubeconfig = (struct kubeconfig){ .host = "127.0.0.1",
					     .port = (uint16_t)server_port(s->server),
					     .prefix = "",
					     .ca_pem = s->cert.cert_pem };
	CHECK_OK(loop_init(&s->loop, &err));
	CHECK_OK(api_init(&s->api, &s->loop, &s->kubeconfig, "test", &err));
	timer_init(&s->pause, &s->loop, api_server_on_pause);
}

/* After the clients are closed. */
static inline void api_server_done(struct api_server *s)
{
	api_close(&s->api);
	loop_done(&s->loop);
	api_done(&s->api);
	server_stop(s->server);
	tls_context_done(&s->tls);
	test_cert_done(&s->cert);
	(void)pthread_mutex_destroy(&s->lock);
}

/* Sets the response to these requests; an earlier rule for the same requests is replaced. The texts
 * must stay. */
static inline void api_server_set(struct api_server *s, const struct api_server_rule *rule)
{
	size_t i = 0;

	(void)pthread_mutex_lock(&s->lock);
	while (i < s->n_rules && (strcmp(s->rules[i].method, rule->method) != 0 ||
				  strcmp(s->rules[i].path, rule->path) != 0 ||
				  strcmp(s->rules[i].query, rule->query) != 0))
		i++;
	CHECK(i < API_SERVER_RULES);
	s->rules[i] = *rule;
	s->n_rules += i == s->n_rules;
	(void)pthread_mutex_unlock(&s->lock);
}

static inline size_t api_server_count(struct api_server *s)
{
	size_t n;

	(void)pthread_mutex_lock(&s->lock);
	n = s->n_requests;
	(void)pthread_mutex_unlock(&s->lock);
	return n;
}

/* The request of this number, from 0. */
static inline struct api_server_request api_server_get(struct api_server *s, size_t i)
{
	struct api_server_request copy;

	(void)pthread_mutex_lock(&s->lock);
	CHECK(i < s->n_requests && i < API_SERVER_REQUESTS);
	copy = s->requests[i];
	(void)pthread_mutex_unlock(&s->lock);
	return copy;
}

static inline void api_server_run(struct api_server *s, uint64_t ms)
{
	timer_start(&s->pause, ms, 0);
	loop_run(&s->loop);
	timer_stop(&s->pause);
}

/* Runs the client until the condition holds, which must happen within a minute. */
#define API_SERVER_WAIT(s, condition)                                                              \
	do {                                                                                       \
		for (int wait_ms_ = 0; wait_ms_ < 60000 && !(condition); wait_ms_ += 2)            \
			api_server_run((s), 2);                                                    \
		CHECK(condition);                                                                  \
	} while (0)
