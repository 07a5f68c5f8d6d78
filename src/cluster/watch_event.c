/* Cuts the byte stream of a watch into lines and parses one line. A line that arrived in one
 * piece is returned where it is; only a line that is spread over several pieces is collected in
 * `rest`. */

#include "watch_event.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "base/quote.h"

#define KEEP_BYTES 65536 /* of an empty buffer */

void watch_lines_done(struct watch_lines *l)
{
	buffer_done(&l->rest);
	*l = (struct watch_lines){ 0 };
}

int watch_lines_next(struct watch_lines *l, struct str *bytes, struct str *ret, struct err *err)
{
	const char *end;
	size_t n;

	buffer_consume(&l->rest, l->given);
	l->given = 0;
	if (!bytes->n) {
		buffer_trim(&l->rest, KEEP_BYTES);
		return 0;
	}
	end = memchr(bytes->p, '\n', bytes->n);
	n = end ? (size_t)(end - bytes->p) : bytes->n;
	if (buffer_len(&l->rest) + n > WATCH_EVENT_MAX_BYTES)
		return err_set(err, EMSGSIZE, "a watch event is larger than %zu MiB",
			       WATCH_EVENT_MAX_BYTES >> 20);
	if (!end || buffer_len(&l->rest)) {
		buffer_add(&l->rest, (struct str){ bytes->p, n });
		*ret = buffer_str(&l->rest);
		/* The caller still reads the line: the buffer is consumed by the next call. */
		l->given = end ? ret->n : 0;
	} else {
		*ret = (struct str){ bytes->p, n };
	}
	*bytes = str_skip(*bytes, end ? n + 1 : n);
	return end != NULL;
}

static int parse_type(struct str name, enum watch_event_type *ret)
{
	static const struct str names[] = { [WATCH_EVENT_ADDED] = STR_INIT("ADDED"),
					    [WATCH_EVENT_MODIFIED] = STR_INIT("MODIFIED"),
					    [WATCH_EVENT_DELETED] = STR_INIT("DELETED"),
					    [WATCH_EVENT_BOOKMARK] = STR_INIT("BOOKMARK"),
					    [WATCH_EVENT_ERROR] = STR_INIT("ERROR") };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq(name, names[i])) {
			*ret = (enum watch_event_type)i;
			return 0;
		}
	return -EINVAL;
}

int watch_event_parse(struct str line, struct arena *a, struct watch_event *ret, struct err *err)
{
	const struct doc_limits limits = { .size_bytes = WATCH_EVENT_MAX_BYTES };
	struct watch_event event = { 0 };
	struct doc doc;
	int64_t code = 0;
	int r = doc_parse(line, STR("watch event"), &limits, a, &doc, err);

	if (r < 0)
		return r;
	event.object = doc_get(doc.root, STR("object"));
	if (!yyjson_is_obj(event.object) ||
	    parse_type(doc_str(doc_get(doc.root, STR("type"))), &event.type) < 0)
		return err_set(err, EINVAL, "not a watch event: %s", quote(line).text);
	if (event.type == WATCH_EVENT_ERROR) {
		(void)doc_int(doc_get(event.object, STR("code")), &code);
		/* The object of an ERROR event is a Status. */
		event.code = code > 0 && code < 1000 ? (unsigned)code : 500;
		event.message = doc_str(doc_get(event.object, STR("message")));
	} else {
		event.resource_version =
			doc_str(doc_find(event.object, "/metadata/resourceVersion"));
		/* Bookmarks have nothing else. Without it the watch could not resume. */
		if (!event.resource_version.n)
			return err_set(err, EINVAL, "watch event without a resource version");
	}
	*ret = event;
	return 0;
}
