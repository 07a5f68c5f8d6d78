#pragma once

/* The agent's HTTP server, with one request per connection. Its Unix socket is for root: GET
 * /status, and OCI hooks add containers (POST /oci/ID) and remove them (DELETE). The TCP port, if
 * there is one, has no authentication, so it serves GET /metrics, /healthz and /readyz only, which
 * name no pod; the socket serves them, too. Clients of one cannot use up the connections of the
 * other. */

#include "net/loop.h"

struct connection;
struct err;
struct manager;
struct oci_containers;
struct status_server;

#define STATUS_SERVER_MAX_CONNECTIONS 64 /* of each endpoint */

/* The connections of one listening socket, oldest first. */
struct status_endpoint {
	struct status_server *server;
	struct listener listener;
	struct connection *connections[STATUS_SERVER_MAX_CONNECTIONS];
	unsigned n;
	bool is_local; /* the Unix socket */
	bool is_open;
};

struct status_server {
	struct loop *loop;
	const struct manager *manager;
	struct status_endpoint socket, port;
	char *path;
	struct oci_containers *oci; /* for requests of OCI hooks; NULL: refused */
};

/* Replaces a stale socket at `path`; `address` may be NULL. */
int status_server_init(struct status_server *s, struct loop *loop, const struct manager *m,
		       const char *path, const char *address, struct err *err);
void status_server_done(struct status_server *s);
