#pragma once

/* Which requests are answered (D53). A page of another site that a browser of the same machine
 * shows must not read the dashboard: neither by its own requests (Origin) nor by a name that it
 * resolves to the loopback address (Host). Pure. */

#include <stddef.h>

#include "base/str.h"
#include "net/small_server.h"

#define REQUEST_NAMES_MAX 16

struct request_rules {
	const char *names[REQUEST_NAMES_MAX]; /* hosts without ports, besides those of loopback */
	size_t n_names;
	struct str token; /* "": none is needed */
};

/* Header lines of every response. */
extern const char request_headers[];

/* 0, or the HTTP status of the refusal with a sentence for the user. */
unsigned request_refuse(const struct request_rules *rules, const struct small_request *request,
			const char **ret_why);

/* The bearer token of a request; "" when it has none. */
struct str request_token(const struct small_request *request);

/* "127.0.0.1" of "127.0.0.1:8088", "[::1]" of "[::1]:80". */
struct str request_host_name(struct str host);
