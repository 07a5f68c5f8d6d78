#include "event_queue.h"

#include <stdlib.h>
#include <string.h>

static const struct {
	const char *reason;
	bool is_warning;
} kinds[] = {
	[EVENT_CONTAINER_REFUSED] = { "ContainerRefused", true },
	[EVENT_ANNOTATION_REJECTED] = { "AnnotationNotBelieved", true },
	[EVENT_DRIFT_CORRECTED] = { "DriftRepaired", true },
	[EVENT_RUNTIME_LOST] = { "RuntimeDisconnected", true },
	[EVENT_RUNTIME_BACK] = { "RuntimeConnected", false },
	[EVENT_RESOURCES_RESTORED] = { "ResourcesRestored", false },
};

const char *event_reason(enum event_kind kind)
{
	return kinds[kind].reason;
}

bool event_is_warning(enum event_kind kind)
{
	return kinds[kind].is_warning;
}

static char *copy(const char *text)
{
	char *p = strdup(text ? text : "");

	if (!p)
		abort();
	return p;
}

static void clear(struct event *event)
{
	free(event->namespace);
	free(event->pod);
	free(event->uid);
	free(event->container);
	free(event->text);
	*event = (struct event){ 0 };
}

void event_queue_init(struct event_queue *n)
{
	*n = (struct event_queue){ .tokens_ms =
					   (uint64_t)EVENT_QUEUE_BURST * EVENT_QUEUE_EVERY_MS };
}

void event_queue_done(struct event_queue *n)
{
	for (size_t i = 0; i < n->n; i++)
		clear(&n->items[i]);
	n->n = 0;
}

static bool is_same(const char *have, const char *want)
{
	return strcmp(have, want ? want : "") == 0;
}

static struct event *find(struct event_queue *n, enum event_kind kind,
			  const struct event_subject *about)
{
	for (size_t i = 0; i < n->n; i++)
		if (n->items[i].kind == kind && is_same(n->items[i].uid, about->uid) &&
		    is_same(n->items[i].pod, about->pod) &&
		    is_same(n->items[i].namespace, about->namespace) &&
		    is_same(n->items[i].container, about->container))
			return &n->items[i];
	return NULL;
}

/* Nothing that still has to be said is forgotten for something new. */
static struct event *make_room(struct event_queue *n)
{
	struct event *oldest = NULL;

	if (n->n < EVENT_QUEUE_MAX)
		return &n->items[n->n++];
	for (size_t i = 0; i < n->n; i++)
		if (!n->items[i].count && (!oldest || n->items[i].age < oldest->age))
			oldest = &n->items[i];
	if (oldest)
		clear(oldest);
	return oldest;
}

void event_queue_add(struct event_queue *n, enum event_kind kind, const struct event_subject *about,
		     struct str text)
{
	struct event *event;

	if (!n)
		return;
	event = find(n, kind, about);
	if (!event) {
		event = make_room(n);
		if (!event) {
			n->dropped++;
			return;
		}
		*event = (struct event){
			.kind = kind,
			.namespace = copy(about->namespace),
			.pod = copy(about->pod),
			.uid = copy(about->uid),
			.container = copy(about->container),
		};
	}
	free(event->text); /* the last one is what is told */
	event->text = strndup(text.p ? text.p : "", text.n);
	if (!event->text)
		abort();
	event->count++;
	event->age = ++n->added;
}

static void refill(struct event_queue *n, uint64_t now_ms)
{
	const uint64_t full_ms = (uint64_t)EVENT_QUEUE_BURST * EVENT_QUEUE_EVERY_MS;

	if (now_ms > n->refilled_ms)
		n->tokens_ms += now_ms - n->refilled_ms;
	if (n->tokens_ms > full_ms)
		n->tokens_ms = full_ms;
	n->refilled_ms = now_ms;
}

const struct event *event_queue_next(struct event_queue *n, uint64_t now_ms)
{
	refill(n, now_ms);
	if (n->tokens_ms < EVENT_QUEUE_EVERY_MS)
		return NULL;
	for (size_t i = 0; i < n->n; i++) {
		const struct event *event = &n->items[i];

		if (event->count &&
		    (!event->was_sent || now_ms - event->sent_ms >= EVENT_QUEUE_REPEAT_MS))
			return event;
	}
	return NULL;
}

void event_queue_sent(struct event_queue *n, const struct event *event, uint32_t count,
		      uint64_t now_ms)
{
	struct event *own = &n->items[event - n->items];

	n->tokens_ms -= EVENT_QUEUE_EVERY_MS;
	n->sent++;
	own->count -= count < own->count ? count : own->count;
	own->was_sent = true;
	own->sent_ms = now_ms;
}
