#pragma once

/* Protocol buffers (proto3) by tables: a message is a C struct and a list of its fields, so a new
 * message needs no code. Unknown fields are skipped, so newer peers are compatible and a large
 * message costs only the fields that are read; a message that is forwarded keeps them (PB_REST).
 *
 * Not protobuf-c: libnri's public structs need no other header and no generator, one arena holds a
 * whole message, and up to 4 MiB of mounts and environment variables are skipped instead of being
 * allocated field by field. Fixed-width numbers and groups are skipped: no message here has them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct arena;
struct err;
struct pb_message;

enum pb_kind {
	PB_BOOL,       /* bool */
	PB_INT32,      /* int32_t */
	PB_UINT32,     /* uint32_t */
	PB_INT64,      /* int64_t */
	PB_STRING,     /* const char *: "" when absent, NUL-terminated; a NUL inside is refused */
	PB_BYTES,      /* struct str: a view into the encoded message */
	PB_MESSAGE,    /* pointer to a struct; NULL when absent */
	PB_REPEATED,   /* pointer to the first struct; the number of them (size_t) at `second` */
	PB_OPT_INT64,  /* wrapper message: int64_t, and at `second` a bool: present */
	PB_OPT_UINT64, /* wrapper message: uint64_t, and at `second` a bool: present */
	PB_INT64S,     /* pointer to the first int64_t, packed; the number of them at `second` */
	PB_MAP,	       /* map of strings: like PB_REPEATED with struct pb_pair, and at `third`
			* (size_t) the bytes of all pairs that pb_filter wants */
	PB_REST,       /* struct str: all fields that are not in the table, still encoded */
};

struct pb_field {
	uint32_t number;
	enum pb_kind kind;
	size_t offset;
	size_t second;
	const struct pb_message *message;
	size_t third;
	unsigned map; /* for pb_filter: which one this is */
};

struct pb_message {
	size_t size; /* of the struct */
	const struct pb_field *fields;
	size_t n; /* sorted by number, which is the order of encoding */
};

struct pb_pair {
	const char *key, *value;
};

/* What to keep of maps. Their size is chosen by whom the sender serves, so each has a limit: when
 * the wanted pairs of one map exceed it, or one of them contains a NUL, the map stays empty and its
 * bytes at `third` are more than max_bytes. */
struct pb_filter {
	bool (*wants)(void *user, unsigned map, struct str key);
	void *user;
	size_t max_bytes;
};

#define PB_FIELD(type, n, k, member)                                                               \
	{                                                                                          \
		.number = (n), .kind = (k), .offset = offsetof(type, member)                       \
	}
#define PB_SUB(type, n, member, table)                                                             \
	{                                                                                          \
		.number = (n), .kind = PB_MESSAGE, .offset = offsetof(type, member),               \
		.message = (table)                                                                 \
	}
#define PB_LIST(type, n, member, count, table)                                                     \
	{                                                                                          \
		.number = (n), .kind = PB_REPEATED, .offset = offsetof(type, member),              \
		.second = offsetof(type, count), .message = (table)                                \
	}
#define PB_PAIRS(type, n, member, count, bytes, table, id)                                         \
	{                                                                                          \
		.number = (n), .kind = PB_MAP, .offset = offsetof(type, member),                   \
		.second = offsetof(type, count), .third = offsetof(type, bytes),                   \
		.message = (table), .map = (id)                                                    \
	}
#define PB_OPTIONAL(type, n, k, member, has)                                                       \
	{                                                                                          \
		.number = (n), .kind = (k), .offset = offsetof(type, member),                      \
		.second = offsetof(type, has)                                                      \
	}
#define PB_NUMBERS(type, n, member, count)                                                         \
	{                                                                                          \
		.number = (n), .kind = PB_INT64S, .offset = offsetof(type, member),                \
		.second = offsetof(type, count)                                                    \
	}
#define PB_OTHERS(type, member) /* the last row of a table */                                      \
	{                                                                                          \
		.number = UINT32_MAX, .kind = PB_REST, .offset = offsetof(type, member)            \
	}
#define PB_TABLE(type, fields)                                                                     \
	{                                                                                          \
		sizeof(type), (fields), sizeof(fields) / sizeof((fields)[0])                       \
	}

/* Fills *ret, which is empty or has an earlier part of the same message: single values are
 * replaced, messages merged, lists continued, as protobuf defines. Strings and structs are in `a`.
 * -EBADMSG for bytes that are not such a message, -ENOMEM when the arena's limit is exceeded. */
int pb_decode(const struct pb_message *m, struct str bytes, struct arena *a, void *ret,
	      struct err *err);

/* Sets every string to "", as pb_decode() does first. */
void pb_clear(const struct pb_message *m, void *value);

size_t pb_size(const struct pb_message *m, const void *value);
void pb_encode(const struct pb_message *m, const void *value, struct strbuf *out);
