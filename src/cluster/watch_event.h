#pragma once

/* The body of a watch response: one JSON object {"type","object"} per line. Bytes arrive in
 * arbitrary pieces; the length of a line is limited. Pure: neither reads from the network nor
 * interprets the objects. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "codec/doc.h"
#include "net/buffer.h"

struct arena;
struct err;

/* etcd limits an object to 1.5 MiB; its JSON may be larger. */
#define WATCH_EVENT_MAX_BYTES ((size_t)8 << 20)

enum watch_event_type {
	WATCH_EVENT_ADDED,
	WATCH_EVENT_MODIFIED,
	WATCH_EVENT_DELETED,
	WATCH_EVENT_BOOKMARK,
	WATCH_EVENT_ERROR
};

struct watch_event {
	enum watch_event_type type;
	yyjson_val *object;
	struct str resource_version; /* "" in an ERROR event */
	unsigned code;		     /* of an ERROR event: 410 when the version is too old */
	struct str message;	     /* of an ERROR event */
};

struct watch_lines {
	struct buffer rest; /* an incomplete line */
	size_t given;	    /* bytes of it that were returned, dropped by the next call */
};

void watch_lines_done(struct watch_lines *l);

/* Consumes from the front of *bytes. Returns 1 with a complete line, valid until the next call; 0
 * when all bytes are consumed; -EMSGSIZE when a line is too long. */
int watch_lines_next(struct watch_lines *l, struct str *bytes, struct str *ret, struct err *err);

/* The object lives in the arena. */
int watch_event_parse(struct str line, struct arena *a, struct watch_event *ret, struct err *err);
