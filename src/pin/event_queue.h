#pragma once

/* What happened that people should hear of as Events: a few are kept until somebody can send them,
 * the same about the same container is counted instead of repeated, and no storm of them leaves the
 * node. Nothing here sends. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum event_kind {
	EVENT_CONTAINER_REFUSED,   /* a container that had no place was not created */
	EVENT_ANNOTATION_REJECTED, /* an annotation was not believed */
	EVENT_DRIFT_CORRECTED,	   /* somebody else had changed a container's CPUs */
	EVENT_RUNTIME_LOST,	   /* the runtime is gone; about the node, as all below */
	EVENT_RUNTIME_BACK,
	EVENT_RESOURCES_RESTORED, /* our resources had been taken from the Node */
	EVENT__COUNT
};

const char *event_reason(enum event_kind kind); /* "ContainerRefused" */
bool event_is_warning(enum event_kind kind);

#define EVENT_QUEUE_MAX 32	     /* different ones that are remembered */
#define EVENT_QUEUE_BURST 10	     /* sent at once... */
#define EVENT_QUEUE_EVERY_MS 6000    /* ...and then one in this time */
#define EVENT_QUEUE_REPEAT_MS 300000 /* the same again */

struct event {
	enum event_kind kind;
	char *namespace, *pod, *uid; /* "": about the node */
	char *container;
	char *text;
	uint32_t count; /* since it was last sent */
	bool was_sent;
	uint64_t sent_ms;
	uint64_t age; /* by a counter, the newest is the highest */
};

struct event_queue {
	struct event items[EVENT_QUEUE_MAX];
	size_t n;
	uint64_t tokens_ms;   /* what may be sent, in units of time */
	uint64_t refilled_ms; /* when that was last counted */
	uint64_t added, sent, dropped;
};

/* Who it is about; all empty: the node. */
struct event_subject {
	const char *namespace, *pod, *uid, *container;
};

void event_queue_init(struct event_queue *n);
void event_queue_done(struct event_queue *n);

/* `n` may be NULL: nobody wants to hear it. When there is no room the oldest that was sent makes
 * room, and if none was, this one is dropped. */
void event_queue_add(struct event_queue *n, enum event_kind kind, const struct event_subject *about,
		     struct str text);

/* The one to send now, or NULL. It keeps its place until event_queue_sent() says that `count` of it
 * were told. */
const struct event *event_queue_next(struct event_queue *n, uint64_t now_ms);
void event_queue_sent(struct event_queue *n, const struct event *event, uint32_t count,
		      uint64_t now_ms);
