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
#define EVENT_MAX_BYTES ((size_t)8 << 20)

enum event_type { EVENT_ADDED, EVENT_MODIFIED, EVENT_DELETED, EVENT_BOOKMARK, EVENT_ERROR };

struct event {
	enum event_type type;
	yyjson_val *object;
	struct str resource_version; /* "" in an error */
	unsigned code;		     /* of an error: 410 when the version is too old */
	struct str message;	     /* of an error */
};

struct event_lines {
	struct buffer rest; /* the beginning of a line */
	size_t given;	    /* of it, to be dropped before the next line */
};

void event_lines_done(struct event_lines *l);

/* Takes bytes from the front of *bytes. Returns 1 with a whole line, valid until the next call; 0
 * when all of them are used up; -EMSGSIZE when a line is too long. */
int event_lines_next(struct event_lines *l, struct str *bytes, struct str *ret, struct err *err);

/* The object lives in the arena. */
int event_parse(struct str line, struct arena *a, struct event *ret, struct err *err);
