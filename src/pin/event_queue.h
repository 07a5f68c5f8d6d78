#pragma once

/* Events that wait to be sent to the API server. The queue is bounded, a repeat about the same
 * container is counted instead of queued, and a token bucket limits the rate. It lives here because
 * the manager fills it; nodesync/event_sender.h sends. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum event_kind {
	EVENT_CONTAINER_REFUSED,   /* a container was not created because no CPUs fit */
	EVENT_TOPOLOGY_REFUSED,	   /* likewise, by the NUMA policy: the kubelet's reason */
	EVENT_ANNOTATION_REJECTED, /* see enum distrust_reason */
	EVENT_DRIFT_CORRECTED,	   /* CPU settings changed externally were restored */
	EVENT_RUNTIME_LOST,	   /* this and the next are about the node */
	EVENT_RUNTIME_BACK,
	EVENT_RESOURCES_RESTORED, /* resources on the Node were removed or changed */
	EVENT_SHARED_POOL_EMPTY,  /* its containers use management CPUs */
	EVENT__COUNT
};

const char *event_reason(enum event_kind kind); /* "ContainerRefused" */
bool event_is_warning(enum event_kind kind);

#define EVENT_QUEUE_MAX 32	     /* different Events that are kept */
#define EVENT_QUEUE_BURST 10	     /* Events that may be sent at once... */
#define EVENT_QUEUE_EVERY_MS 6000    /* ...then one per interval */
#define EVENT_QUEUE_REPEAT_MS 300000 /* between two sends of the same Event */

struct event {
	enum event_kind kind;
	char *namespace, *pod, *uid; /* "": about the node */
	char *container;
	char *text;
	uint32_t count; /* since it was last sent */
	bool was_sent;
	uint64_t sent_ms;
	uint64_t sequence; /* of the last repeat; the newest is the highest */
};

struct event_queue {
	struct event items[EVENT_QUEUE_MAX];
	size_t n;
	uint64_t tokens_ms;   /* the bucket: EVENT_QUEUE_EVERY_MS per Event */
	uint64_t refilled_ms; /* when tokens_ms was last brought up to date */
	uint64_t added, sent, dropped;
};

/* What the Event is about; all empty: the node. */
struct event_subject {
	const char *namespace, *pod, *uid, *container;
};

void event_queue_init(struct event_queue *q);
void event_queue_done(struct event_queue *q);

/* Does nothing if `q` is NULL: there is no cluster. A full queue replaces the oldest Event that was
 * sent; if none was, the new one is dropped. */
void event_queue_add(struct event_queue *q, enum event_kind kind, const struct event_subject *about,
		     struct str text);

/* The Event to send now, or NULL. It stays in the queue; event_queue_sent() takes off the `count`
 * repeats that were in the request. */
const struct event *event_queue_next(struct event_queue *q, uint64_t now_ms);
void event_queue_sent(struct event_queue *q, const struct event *event, uint32_t count,
		      uint64_t now_ms);
