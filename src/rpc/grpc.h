#pragma once

/* gRPC over HTTP/2 without TLS, as the kubelet's Unix sockets speak it: unary calls, uncompressed
 * messages, either side of a connection. Takes bytes and gives bytes; sockets, time limits and what
 * the messages mean are the owner's. HTTP/2 itself is nghttp2's. One thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct err;
struct grpc;

enum grpc_code {
	GRPC_OK = 0,
	GRPC_CANCELLED = 1,
	GRPC_UNKNOWN = 2, /* what Go programs answer when a handler failed */
	GRPC_INVALID_ARGUMENT = 3,
	GRPC_DEADLINE_EXCEEDED = 4,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_INTERNAL = 13,
	GRPC_UNAVAILABLE = 14,
	GRPC__CODES = 17,
};

#define GRPC_MAX_REQUEST ((size_t)64 << 10)
#define GRPC_MAX_ANSWER ((size_t)16 << 20) /* what clients of the kubelet allow */
#define GRPC_MAX_STREAMS 32		   /* at once, on a connection */

/* A message on the wire: a byte that says whether it is compressed, and its length. */
#define GRPC_PREFIX_SIZE 5
void grpc_put_prefix(unsigned char ret[GRPC_PREFIX_SIZE], uint32_t size);

/* The one message that `body` holds, a view of it. -EBADMSG when it holds less or more, -ENOTSUP
 * when it is compressed. */
int grpc_message_of(struct str body, struct str *ret, struct err *err);

/* The text of a status in a header field: printable ASCII as it is, the rest and '%' as %XX. The
 * second leaves broken escapes as they are. Never more than `cap` bytes with the NUL. */
void grpc_escape(struct str text, char *ret, size_t cap);
void grpc_unescape(struct str text, char *ret, size_t cap);

struct grpc_response {
	enum grpc_code code;
	struct str text;    /* of a failure */
	struct str message; /* of a success: encoded */
};

/* The server was asked. The texts live until this returns; the answer may come from in here, later,
 * or never. */
typedef void (*grpc_call_fn)(void *user, int32_t call, struct str path, struct str message);

/* The client was answered. Comes once for every call of a connection that lasts. */
typedef void (*grpc_answer_fn)(void *user, int32_t call, const struct grpc_response *response);

struct grpc *grpc_server_new(grpc_call_fn on_call, void *user);
struct grpc *grpc_client_new(grpc_answer_fn on_answer, void *user);
void grpc_free(struct grpc *g);

/* Bytes from the peer. Negative when the connection is beyond repair. */
int grpc_receive(struct grpc *g, struct str bytes, struct err *err);

/* Bytes for the peer: true with the next piece of them, good until the next call of any function
 * here. Ask after every one of the others. Not inside on_call and on_answer. */
bool grpc_send(struct grpc *g, struct str *ret);

/* Neither side has anything to say any more. */
bool grpc_is_over(const struct grpc *g);

/* Server: answers a call; one that the client has given up since is ignored. Everything is copied.
 */
void grpc_respond(struct grpc *g, int32_t call, const struct grpc_response *response);

/* Client: asks; returns the number of the call, or a negative errno. */
int32_t grpc_call(struct grpc *g, const char *path, struct str message);
