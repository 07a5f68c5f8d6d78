#pragma once

/* D-Bus messages and the start of a connection, as far as a client needs them that calls methods of
 * one service (D-Bus specification 0.43). Encodes calls and parses any message; of a reply only the
 * header and the text of an error are decoded. No I/O.
 *
 * Not libsystemd: it is the only function of it that is needed, and it cannot be linked statically.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct arena;
struct err;
struct strbuf;

#define DBUS_MAX_MESSAGE ((size_t)1 << 20) /* the specification allows 128 MiB */
#define DBUS_MAX_LINE 1024		   /* of the authentication */

enum dbus_type { DBUS_CALL = 1, DBUS_REPLY = 2, DBUS_ERROR = 3, DBUS_SIGNAL = 4 };

struct dbus_message {
	enum dbus_type type;
	uint32_t serial, reply_serial; /* reply_serial 0: none */
	struct str error_name, signature, body;
	bool is_big_endian;
};

/* The next message at the beginning of `bytes`. Returns 1 and its size; 0 when it is not complete;
 * -EBADMSG or -EMSGSIZE. The texts point into `bytes`. */
int dbus_parse(struct str bytes, struct dbus_message *ret, size_t *ret_size, struct err *err);

/* The text of an error, the first argument if that is a string, else "". */
struct str dbus_error_text(const struct dbus_message *m);

/* A method call. */
struct dbus_call {
	const char *destination, *path, *interface, *member;
	const char *signature; /* of the body; "" when there is none */
	struct str body;
	uint32_t serial; /* not 0 */
};

void dbus_add_call(struct strbuf *to, const struct dbus_call *call);

/* Values of a body, in the order of its signature. Each pads to its alignment, which counts from
 * the beginning of `b`. */
void dbus_add_u32(struct strbuf *b, uint32_t n); /* also a boolean: 0 or 1 */
void dbus_add_string(struct strbuf *b, struct str s);
void dbus_add_signature(struct strbuf *b, struct str s);
void dbus_align(struct strbuf *b, size_t to); /* of a struct: 8 */

/* An array starts with its length, which is known at its end. `align` is that of its elements. */
struct dbus_array {
	size_t length_at, first; /* offsets */
};
struct dbus_array dbus_begin_array(struct strbuf *b, size_t align);
void dbus_end_array(struct strbuf *b, struct dbus_array array);

/* What a client sends first: it authenticates as a user by the credentials of the socket, and
 * begins. Calls follow when the server has accepted: systemd does not read on by itself when they
 * arrive together with the end of the authentication. */
void dbus_add_auth(struct strbuf *b, unsigned uid);

/* The server's line. Returns 1 when it accepts, and the size of the line; 0 when it is not
 * complete; -EACCES when it refuses, -EMSGSIZE when it is too long. */
int dbus_parse_auth(struct str bytes, size_t *ret_size, struct err *err);
