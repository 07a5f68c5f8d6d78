#pragma once

/* The agent's answers to people and Prometheus: GET /status, /metrics, /healthz, /readyz over a
 * Unix socket and, when asked for, TCP on a chosen address. One request per connection, a handful
 * of connections at once. */

#include "net/loop.h"

struct err;
struct manager;

#define SERVICE_MAX_CONNECTIONS 16

struct service {
	struct loop *loop;
	const struct manager *manager;
	struct listener listeners[2];
	unsigned n_listeners;
	unsigned n_connections;
	char *path;
};

/* `path` is replaced when it is there; `address` may be NULL. */
int service_init(struct service *s, struct loop *loop, const struct manager *m, const char *path,
		 const char *address, struct err *err);
void service_done(struct service *s);
