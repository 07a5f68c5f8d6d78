#pragma once

/* The agent's answers to people and Prometheus: GET /status, /metrics, /healthz, /readyz over a
 * Unix socket and, when asked for, TCP on a chosen address. Over the Unix socket alone, OCI hooks
 * bring containers (POST /oci/ID) and take them away (DELETE). One request per connection, a
 * handful of connections at once. */

#include "net/loop.h"

struct oci_containers;
struct err;
struct manager;

#define STATUS_SERVER_MAX_CONNECTIONS 16

struct status_server {
	struct loop *loop;
	const struct manager *manager;
	struct listener listeners[2];
	unsigned n_listeners;
	unsigned n_connections;
	char *path;
	struct oci_containers *oci; /* for containers from outside; NULL: none are taken */
};

/* `path` is replaced when it is there; `address` may be NULL. */
int status_server_init(struct status_server *s, struct loop *loop, const struct manager *m,
		       const char *path, const char *address, struct err *err);
void status_server_done(struct status_server *s);
