#pragma once

/* Decodes a message while it arrives, in pieces of any size: what the tables do not name is skipped
 * as it comes, so memory depends on the fields that are kept and not on the size of the message. */

#include "pb_wire.h"

#define PB_STREAM_LEVELS 8		  /* messages in messages */
#define PB_STREAM_TEXT ((size_t)64 << 10) /* the longest string */

/* Where the content of a PB_BYTES field, which is itself a message, is decoded into. */
struct pb_payload {
	const struct pb_message *message; /* NULL: it is skipped */
	void *value;
	struct arena *a;
};
typedef int (*pb_payload_fn)(void *user, struct pb_payload *ret, struct err *err);

struct pb_level {
	const struct pb_message *message;
	void *value;
	struct arena *a;
	size_t end; /* counted as `at` is */
};

struct pb_stream {
	const struct pb_filter *filter; /* NULL: every pair of a map is kept */
	pb_payload_fn on_payload;
	void *user;

	struct pb_level levels[PB_STREAM_LEVELS];
	size_t n_levels;
	size_t at; /* bytes received */
	unsigned char header[PB_HEADER_MAX];
	size_t n_header;
	size_t skip; /* bytes of a field that is not kept */

	const struct pb_field *field; /* arrives in pieces; NULL: none does */
	struct pb_wire wire;
	char *part;
	size_t n_part, cap_part, max_part;
};

void pb_stream_done(struct pb_stream *s);

/* The next message, of `size` bytes. *value is empty, as after pb_clear(). */
void pb_stream_start(struct pb_stream *s, const struct pb_message *m, void *value, struct arena *a,
		     size_t size);

/* At most the rest of the message. After a failure, only pb_stream_start() is allowed. */
int pb_stream_feed(struct pb_stream *s, struct str bytes, struct err *err);
