#pragma once

/* The agent's HTTP server: GET /status, /metrics, /healthz and /readyz on a Unix socket and, if
 * configured, on a TCP address. OCI hooks add containers (POST /oci/ID) and remove them (DELETE) on
 * the Unix socket only. One request per connection, few connections at once. */

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
	struct oci_containers *oci; /* for requests of OCI hooks; NULL: refused */
};

/* Replaces a stale socket at `path`; `address` may be NULL. */
int status_server_init(struct status_server *s, struct loop *loop, const struct manager *m,
		       const char *path, const char *address, struct err *err);
void status_server_done(struct status_server *s);
