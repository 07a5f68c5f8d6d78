#pragma once

/* The agent's answers to people and Prometheus: GET /status, /metrics, /healthz, /readyz over a
 * Unix socket and, when asked for, TCP on a chosen address. Over the Unix socket alone, OCI hooks
 * bring containers (POST /oci/ID) and take them away (DELETE). One request per connection, a
 * handful of connections at once. */

#include "net/loop.h"

struct desk;
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
	struct desk *desk; /* for containers from outside; NULL: none are taken */
};

/* `path` is replaced when it is there; `address` may be NULL. */
int service_init(struct service *s, struct loop *loop, const struct manager *m, const char *path,
		 const char *address, struct err *err);
void service_done(struct service *s);
