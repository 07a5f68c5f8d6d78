#pragma once

/* What happened that people should hear of as Events: a few are kept until somebody can send them,
 * the same about the same container is counted instead of repeated, and no storm of them leaves the
 * node. Nothing here sends. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum notice_kind {
	NOTICE_REFUSED,	 /* a container that had no place was not created */
	NOTICE_DOUBTED,	 /* an annotation was not believed */
	NOTICE_REPAIRED, /* somebody else had changed a container's CPUs */
	NOTICE_LOST,	 /* the runtime is gone; about the node, as all below */
	NOTICE_BACK,
	NOTICE_RESTORED, /* our resources had been taken from the Node */
	NOTICE__COUNT
};

const char *notice_reason(enum notice_kind kind); /* "ContainerRefused" */
bool notice_is_warning(enum notice_kind kind);

#define NOTICES_MAX 32		 /* different ones that are remembered */
#define NOTICES_BURST 10	 /* sent at once... */
#define NOTICES_EVERY_MS 6000	 /* ...and then one in this time */
#define NOTICES_REPEAT_MS 300000 /* the same again */

struct notice {
	enum notice_kind kind;
	char *namespace, *pod, *uid; /* "": about the node */
	char *container;
	char *text;
	uint32_t count; /* since it was last sent */
	bool was_sent;
	uint64_t sent_ms;
	uint64_t age; /* by a counter, the newest is the highest */
};

struct notices {
	struct notice items[NOTICES_MAX];
	size_t n;
	uint64_t tokens_ms;   /* what may be sent, in units of time */
	uint64_t refilled_ms; /* when that was last counted */
	uint64_t added, sent, dropped;
};

/* Who it is about; all empty: the node. */
struct notice_subject {
	const char *namespace, *pod, *uid, *container;
};

void notices_init(struct notices *n);
void notices_done(struct notices *n);

/* `n` may be NULL: nobody wants to hear it. When there is no room the oldest that was sent makes
 * room, and if none was, this one is dropped. */
void notices_add(struct notices *n, enum notice_kind kind, const struct notice_subject *about,
		 struct str text);

/* The one to send now, or NULL. It keeps its place until notices_sent() says that `count` of it
 * were told. */
const struct notice *notices_next(struct notices *n, uint64_t now_ms);
void notices_sent(struct notices *n, const struct notice *notice, uint32_t count, uint64_t now_ms);
