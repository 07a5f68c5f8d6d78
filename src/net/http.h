#pragma once

/* A request and its response, the same for HTTP/1.1 and HTTP/2: handlers never see the protocol. A
 * handler responds at once, from memory; it never waits, so a thread serves one request at a time.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct arena;

struct http_request {
	struct str method;
	struct str path;  /* "/readyz"; as sent, not decoded */
	struct str query; /* what follows '?' */
	struct str body;
	struct arena *arena; /* of this request: the response may point into it */
	unsigned thread;     /* which of the server's threads serves it */
	bool is_trusted;     /* the client has the certificate that the server asks for, if any */
	bool is_truncated;   /* the body exceeds the limit; only its beginning is here */
};

struct http_response {
	unsigned status;
	const char *content_type; /* NULL when there is no body */
	const char *allow;	  /* methods, with 405 */
	struct str body;
};

typedef void (*http_handler_fn)(const struct http_request *request, struct http_response *ret,
				void *context);

/* "Not Found"; "" for a status that is not used here. */
const char *http_status_text(unsigned status);

/* A short text response: "404 Not Found\n". */
void http_response_status(struct http_response *ret, unsigned status, struct arena *a);

/* Cuts "/readyz?verbose" in two. */
void http_split_target(struct str target, struct str *ret_path, struct str *ret_query);

/* True when the query has this name, with or without a value. */
bool http_query_has(struct str query, struct str name);

/* The value of this name, with %xx and '+' decoded into the arena; "" when there is none, or an
 * escape is invalid. */
struct str http_query_get(struct str query, struct str name, struct arena *a);
