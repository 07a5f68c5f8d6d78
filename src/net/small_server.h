#pragma once

/* A plain HTTP/1.1 server on one loop, with one request per connection: for metrics, probes and the
 * agent's socket. It has no TLS; a local server accepts only root and the process's own user. The
 * handler responds at once, from memory. Admission uses server.h. */

#include <stdbool.h>

#include "http.h"
#include "loop.h"

struct err;
struct small_connection;

#define SMALL_SERVER_MAX_CONNECTIONS 64

struct small_server {
	http_handler_fn handler; /* set by the owner, like the next two */
	void *context;
	bool is_local; /* a Unix socket; requests are trusted */

	struct loop *loop;
	struct listener listener;
	struct small_connection *connections[SMALL_SERVER_MAX_CONNECTIONS]; /* oldest first */
	unsigned n;
	bool is_open;
};

/* Owns the listening descriptor; a negative one is returned as the error that it is. */
int small_server_open(struct small_server *s, struct loop *loop, int fd, struct err *err);

/* At a TCP address, the value of --listen. */
int small_server_listen(struct small_server *s, struct loop *loop, const char *address,
			struct err *err);
void small_server_close(struct small_server *s);
