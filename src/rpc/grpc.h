#pragma once

/* gRPC over HTTP/2 without TLS, as on the kubelet's Unix sockets: unary calls, uncompressed
 * messages, client or server. No I/O: sockets, timeouts and the content of messages are the
 * caller's. HTTP/2 itself is nghttp2. One thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct err;
struct grpc;

enum grpc_code {
	GRPC_OK = 0,
	GRPC_CANCELLED = 1,
	GRPC_UNKNOWN = 2, /* the code that Go servers send for a plain error */
	GRPC_INVALID_ARGUMENT = 3,
	GRPC_DEADLINE_EXCEEDED = 4,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_INTERNAL = 13,
	GRPC_UNAVAILABLE = 14,
	GRPC__CODES = 17,
};

#define GRPC_MAX_REQUEST ((size_t)64 << 10)
#define GRPC_MAX_RESPONSE ((size_t)16 << 20) /* the limit of the kubelet's clients */
#define GRPC_MAX_STREAMS 32		     /* at once, on a connection */

/* The prefix of a message: a byte that says whether it is compressed, and its length. */
#define GRPC_PREFIX_SIZE 5
void grpc_put_prefix(unsigned char ret[GRPC_PREFIX_SIZE], uint32_t size);

/* A view of the message in `body`. -EBADMSG when there is not exactly one, -ENOTSUP when it is
 * compressed. */
int grpc_message_of(struct str body, struct str *ret, struct err *err);

/* The text of a status in a header field: printable ASCII unchanged, other bytes and '%' as %XX.
 * grpc_unescape() keeps invalid escapes unchanged. At most `cap` bytes with the NUL. */
void grpc_escape(struct str text, char *ret, size_t cap);
void grpc_unescape(struct str text, char *ret, size_t cap);

struct grpc_response {
	enum grpc_code code;
	struct str text;    /* of a failure */
	struct str message; /* of a success: encoded */
};

/* Server: a call arrived. The strings are valid until this returns; grpc_respond() may be called
 * inside, later, or never. */
typedef void (*grpc_call_fn)(void *user, int32_t call, struct str path, struct str message);

/* Client: the response to a call. Called once per call unless the connection ends first. */
typedef void (*grpc_response_fn)(void *user, int32_t call, const struct grpc_response *response);

struct grpc *grpc_server_new(grpc_call_fn on_call, void *user);
struct grpc *grpc_client_new(grpc_response_fn on_response, void *user);
void grpc_free(struct grpc *g);

/* Bytes from the peer. A failure means that the connection must be closed. */
int grpc_receive(struct grpc *g, struct str bytes, struct err *err);

/* Bytes for the peer: true with the next piece, valid until the next call of any function here.
 * Call it after each of the other functions, but not inside the callbacks. */
bool grpc_send(struct grpc *g, struct str *ret);

/* Neither side will send anything more. */
bool grpc_is_finished(const struct grpc *g);

/* Server: responds to a call; ignored if the client has cancelled it. The response is copied. */
void grpc_respond(struct grpc *g, int32_t call, const struct grpc_response *response);

/* Client: starts a call; returns its number, or a negative errno. */
int32_t grpc_call(struct grpc *g, const char *path, struct str message);
