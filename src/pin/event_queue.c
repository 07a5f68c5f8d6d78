/* The API server must not be flooded by a node on which everything fails at once, so there are
 * three limits: one entry per kind and container, one send per entry in five minutes, and a token
 * bucket over all. Tokens are counted in milliseconds: time adds them, an Event costs
 * EVENT_QUEUE_EVERY_MS. */

#include "event_queue.h"

#include <stdlib.h>
#include <string.h>

#include "cpu/hints.h"
#include "kube/names.h"

static const struct {
	const char *reason;
	bool is_warning;
} kinds[] = {
	[EVENT_CONTAINER_REFUSED] = { "ContainerRefused", true },
	[EVENT_TOPOLOGY_REFUSED] = { HINTS_REJECT_REASON, true },
	[EVENT_ANNOTATION_REJECTED] = { "AnnotationRejected", true },
	[EVENT_DRIFT_CORRECTED] = { "DriftCorrected", true },
	[EVENT_RUNTIME_LOST] = { "RuntimeDisconnected", true },
	[EVENT_RUNTIME_BACK] = { "RuntimeConnected", false },
	[EVENT_RESOURCES_RESTORED] = { "ResourcesRestored", false },
	[EVENT_SHARED_POOL_EMPTY] = { NAME_REASON_SHARED_EMPTY, true },
};

const char *event_reason(enum event_kind kind)
{
	return kinds[kind].reason;
}

bool event_is_warning(enum event_kind kind)
{
	return kinds[kind].is_warning;
}

static char *copy_or_empty(const char *text)
{
	char *p = strdup(text ? text : "");

	if (!p)
		abort();
	return p;
}

static void reset_event(struct event *event)
{
	free(event->namespace);
	free(event->pod);
	free(event->uid);
	free(event->container);
	free(event->text);
	*event = (struct event){ 0 };
}

void event_queue_init(struct event_queue *q)
{
	/* Full: an agent that starts on a broken node reports at once. */
	*q = (struct event_queue){ .tokens_ms =
					   (uint64_t)EVENT_QUEUE_BURST * EVENT_QUEUE_EVERY_MS };
}

void event_queue_done(struct event_queue *q)
{
	for (size_t i = 0; i < q->n; i++)
		reset_event(&q->items[i]);
	q->n = 0;
}

static bool has_value(const char *have, const char *want)
{
	return strcmp(have, want ? want : "") == 0;
}

static struct event *find_event(struct event_queue *q, enum event_kind kind,
				const struct event_subject *about)
{
	for (size_t i = 0; i < q->n; i++)
		if (q->items[i].kind == kind && has_value(q->items[i].uid, about->uid) &&
		    has_value(q->items[i].pod, about->pod) &&
		    has_value(q->items[i].namespace, about->namespace) &&
		    has_value(q->items[i].container, about->container))
			return &q->items[i];
	return NULL;
}

/* A sent Event may be replaced, one that waits to be sent is never. NULL: all wait. */
static struct event *get_free_slot(struct event_queue *q)
{
	struct event *oldest = NULL;

	if (q->n < EVENT_QUEUE_MAX)
		return &q->items[q->n++];
	for (size_t i = 0; i < q->n; i++)
		if (!q->items[i].count && (!oldest || q->items[i].sequence < oldest->sequence))
			oldest = &q->items[i];
	if (oldest)
		reset_event(oldest);
	return oldest;
}

void event_queue_add(struct event_queue *q, enum event_kind kind, const struct event_subject *about,
		     struct str text)
{
	struct event *event;

	if (!q)
		return;
	event = find_event(q, kind, about);
	if (!event) {
		event = get_free_slot(q);
		if (!event) {
			q->dropped++;
			return;
		}
		*event = (struct event){
			.kind = kind,
			.namespace = copy_or_empty(about->namespace),
			.pod = copy_or_empty(about->pod),
			.uid = copy_or_empty(about->uid),
			.container = copy_or_empty(about->container),
		};
	}
	free(event->text); /* the text of the last repeat is sent */
	event->text = strndup(text.p ? text.p : "", text.n);
	if (!event->text)
		abort();
	event->count++;
	event->sequence = ++q->added;
}

const struct event *event_queue_next(struct event_queue *q, uint64_t now_ms)
{
	const uint64_t full_ms = (uint64_t)EVENT_QUEUE_BURST * EVENT_QUEUE_EVERY_MS;

	if (now_ms > q->refilled_ms)
		q->tokens_ms += now_ms - q->refilled_ms;
	if (q->tokens_ms > full_ms)
		q->tokens_ms = full_ms;
	q->refilled_ms = now_ms;
	if (q->tokens_ms < EVENT_QUEUE_EVERY_MS)
		return NULL;
	for (size_t i = 0; i < q->n; i++) {
		const struct event *event = &q->items[i];

		if (event->count &&
		    (!event->was_sent || now_ms - event->sent_ms >= EVENT_QUEUE_REPEAT_MS))
			return event;
	}
	return NULL;
}

void event_queue_sent(struct event_queue *q, const struct event *event, uint32_t count,
		      uint64_t now_ms)
{
	struct event *own = &q->items[event - q->items];

	q->tokens_ms -= EVENT_QUEUE_EVERY_MS;
	q->sent++;
	/* Repeats that were added while the request was under way are still to be sent. */
	own->count -= count < own->count ? count : own->count;
	own->was_sent = true;
	own->sent_ms = now_ms;
}
