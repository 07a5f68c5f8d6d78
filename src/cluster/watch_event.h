#pragma once

/* The body of a watch: JSON objects, one a line, {"type","object"}. Bytes come in any pieces; a
 * line has a limit. Pure: nothing here knows where the bytes come from or what the objects mean. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "codec/doc.h"
#include "net/buffer.h"

struct arena;
struct err;

/* The largest object etcd takes is 1.5 MiB; JSON of it may be larger. */
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
	struct str resource_version; /* "" in an error */
	unsigned code;		     /* of an error: 410 when the version is too old */
	struct str message;	     /* of an error */
};

struct watch_lines {
	struct buffer rest; /* the beginning of a line */
	size_t given;	    /* of it, to be dropped before the next line */
};

void watch_lines_done(struct watch_lines *l);

/* Takes bytes from the front of *bytes. Returns 1 with a whole line, valid until the next call; 0
 * when all of them are used up; -EMSGSIZE when a line is too long. */
int watch_lines_next(struct watch_lines *l, struct str *bytes, struct str *ret, struct err *err);

/* The object lives in the arena. */
int watch_event_parse(struct str line, struct arena *a, struct watch_event *ret, struct err *err);
