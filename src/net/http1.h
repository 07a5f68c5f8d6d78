#pragma once

/* Parses HTTP/1.1 requests (RFC 9112). Pure: with every call it gets all bytes of the current
 * request, remembers its position, and reads no byte twice. Strict where lenient parsers allow
 * request smuggling: line ends, repeated lengths, folded lines, blanks before colons. Connections
 * and responses are conn.c. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum http1_state {
	HTTP1_HEAD,
	HTTP1_BODY,
	HTTP1_CHUNK_SIZE,
	HTTP1_CHUNK_DATA,
	HTTP1_CHUNK_END,
	HTTP1_TRAILER,
};

/* All positions count from the first byte of the request. Start with { 0 }. */
struct http1_parser {
	enum http1_state state;
	size_t position; /* bytes that were parsed */
	size_t skipped;	 /* empty lines before the request line */
	size_t method_n, target_at, target_n;
	size_t body_at, body_n; /* chunked: decoded so far, in place */
	size_t chunk_left;
	size_t need; /* minimum length of the request, to reserve space at once */
	bool keep_alive;
	bool expects_continue; /* the client waits for "100 Continue" before it sends the body */
	bool is_too_large;     /* only the beginning of the body is awaited */
};

struct http1_request {
	struct str method, target, body; /* point into the bytes that were given */
	struct str head;		 /* request line and header, up to the blank line */
	bool keep_alive;		 /* the connection stays open after the response */
	bool is_truncated;		 /* the body has more bytes */
};

/* Returns how many bytes the request takes; 0 when more are needed; a negative HTTP status when it
 * must be refused and the connection closed. `bytes` of a chunked body are rearranged in place.
 * After a complete request the parser is ready for the next.
 * Of a body whose announced length exceeds the limit only the beginning is returned. */
int64_t http1_parse(struct http1_parser *p, char *bytes, size_t n, struct http1_request *ret);

/* The value of the first field of this name in the head of a request that was parsed; "" when there
 * is none. */
struct str http1_field(struct str head, const char *name);

/* The request as far as it was received, when it cannot be awaited any longer. False while the
 * header is incomplete. */
bool http1_partial(const struct http1_parser *p, struct str bytes, struct http1_request *ret);
