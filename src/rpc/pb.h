#pragma once

/* Protocol buffers (proto3) by tables: a message is a C struct and a list of its fields, so a new
 * message is data, not code. Unknown fields are skipped, so a newer peer does not break us, and a
 * large message costs only what we read of it; a message that is passed on keeps them (PB_REST).
 *
 * By hand instead of protobuf-c, because libnri's public structs then need no foreign header and no
 * generator, one arena holds a whole message, and 4 MiB of mounts and environment that nobody asked
 * about are passed over instead of being allocated field by field. Fixed-width numbers and groups
 * are skipped where they occur: no message of ours has them. */

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
	PB_OPT_INT64,  /* wrapper message: int64_t, and at `second` a bool that says it was there */
	PB_OPT_UINT64, /* wrapper message: uint64_t, likewise */
	PB_INT64S,     /* pointer to the first int64_t, packed; the number of them at `second` */
	PB_REST,       /* struct str: every field that the table does not name, as it came */
};

struct pb_field {
	uint32_t number;
	enum pb_kind kind;
	size_t offset;
	size_t second;
	const struct pb_message *message;
};

struct pb_message {
	size_t size; /* of the struct */
	const struct pb_field *fields;
	size_t n; /* in rising order of numbers, as they are written */
};

#define PB_FIELD(type, number, kind, member)                                                       \
	{                                                                                          \
		(number), (kind), offsetof(type, member), 0, NULL                                  \
	}
#define PB_SUB(type, number, member, table)                                                        \
	{                                                                                          \
		(number), PB_MESSAGE, offsetof(type, member), 0, (table)                           \
	}
#define PB_LIST(type, number, member, count, table)                                                \
	{                                                                                          \
		(number), PB_REPEATED, offsetof(type, member), offsetof(type, count), (table)      \
	}
#define PB_OPTIONAL(type, number, kind, member, has)                                               \
	{                                                                                          \
		(number), (kind), offsetof(type, member), offsetof(type, has), NULL                \
	}
#define PB_NUMBERS(type, number, member, count)                                                    \
	{                                                                                          \
		(number), PB_INT64S, offsetof(type, member), offsetof(type, count), NULL           \
	}
#define PB_OTHERS(type, member) /* the last row of a table */                                      \
	{                                                                                          \
		UINT32_MAX, PB_REST, offsetof(type, member), 0, NULL                               \
	}
#define PB_TABLE(type, fields)                                                                     \
	{                                                                                          \
		sizeof(type), (fields), sizeof(fields) / sizeof((fields)[0])                       \
	}

/* Fills *ret, which starts empty or holds what an earlier part of the same message said: single
 * values are replaced, messages merged, lists continued. Texts and structs live in `a`.
 * -EBADMSG for bytes that are no such message, -ENOMEM when the arena's limit is reached. */
int pb_decode(const struct pb_message *m, struct str bytes, struct arena *a, void *ret,
	      struct err *err);

/* Sets every string to "", as pb_decode does before it reads. */
void pb_clear(const struct pb_message *m, void *value);

size_t pb_size(const struct pb_message *m, const void *value);
void pb_encode(const struct pb_message *m, const void *value, struct strbuf *out);
