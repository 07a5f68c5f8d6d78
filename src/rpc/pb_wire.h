#pragma once

/* The parts of the decoder that pb.c, for a whole message, and pb_stream.c, for one that arrives in
 * pieces, share. */

#include "pb.h"

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

#define PB_HEADER_MAX 20 /* two numbers: the key, and the value or length */

/* One encoded field. */
struct pb_wire {
	uint32_t number;
	unsigned type;
	uint64_t value;	  /* of WIRE_VARINT; else the number of bytes that follow */
	struct str bytes; /* not of WIRE_VARINT */
};

struct pb_context {
	struct arena *a;
	const struct pb_filter *filter; /* NULL: every pair of a map is kept */
};

/* Key and number, or key and length. Returns their size, 0 when `in` ends inside them. */
int pb_read_header(struct str in, struct pb_wire *ret, struct err *err);

/* NULL when the table has no such field, or one with another type. */
const struct pb_field *pb_find_field(const struct pb_message *m, const struct pb_wire *w);

/* Sets a field whose bytes are all there. */
int pb_set_field(const struct pb_context *c, const struct pb_field *f, const struct pb_wire *w,
		 void *value, struct err *err);

/* The struct that a PB_MESSAGE or PB_REPEATED field is decoded into; NULL without memory. */
void *pb_open_message(const struct pb_context *c, const struct pb_field *f, void *value,
		      struct err *err);

/* One pair of a map; `bytes` are the first of `size`, or all. */
int pb_add_pair(const struct pb_context *c, const struct pb_field *f, void *value, struct str bytes,
		size_t size, struct err *err);

int pb_ends_inside(const char *what, struct err *err);
