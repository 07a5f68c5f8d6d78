#pragma once

/* The agent's HTTP server, with one request per connection. Its Unix socket is for root: GET
 * /status, and OCI hooks add containers (POST /oci/ID) and remove them (DELETE). The TCP port, if
 * there is one, has no authentication, so it serves GET /metrics, /cpus, /healthz and /readyz only,
 * which name no pod; the socket serves them, too. Clients of one cannot use up the connections of
 * the other. */

#include "net/small_server.h"

struct err;
struct manager;
struct oci_containers;

struct status_server {
	const struct manager *manager;
	struct small_server socket, port;
	char *path;
	struct oci_containers *oci; /* for requests of OCI hooks; NULL: refused */
};

/* Replaces a stale socket at `path`; `address` may be NULL. */
int status_server_init(struct status_server *s, struct loop *loop, const struct manager *m,
		       const char *path, const char *address, struct err *err);
void status_server_done(struct status_server *s);
