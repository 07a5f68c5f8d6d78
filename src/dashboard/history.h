#pragma once

/* What has changed during the last hour: containers that were placed, moved and removed, and pools
 * that got other CPUs. Each entry is a JSON object with the state before and after it, so that a
 * page can go back in time from the present state. Memory is bounded: the oldest entries go first.
 * No I/O. */

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/str.h"

struct arena;

#define HISTORY_MS ((int64_t)3600 * 1000)
#define HISTORY_BYTES ((size_t)16 << 20)

/* A container, or with an empty one the pools of the node. */
struct history_place {
	struct str pool, cpus; /* "" and "": it did not exist */
};

struct history_event {
	int64_t time_ms; /* Unix time */
	struct str node, namespace, pod, container;
	struct history_place before, after;
	const char *why;
};

struct history_entry {
	TAILQ_ENTRY(history_entry) next;
	struct history_event event; /* the texts are part of this allocation */
	size_t size;
};

TAILQ_HEAD(history_list, history_entry);

struct history {
	struct history_list entries; /* oldest first */
	size_t n, bytes;
	int64_t since_ms; /* nothing before this time is known */
};

void history_init(struct history *h);
void history_done(struct history *h);
void history_add(struct history *h, const struct history_event *event);
void history_expire(struct history *h, int64_t now_ms);

/* {"since":ms,"events":[...]}: of a node or, with a pod, of the pod on any node. At most `max`, the
 * newest; then "since" is the time of the oldest of them. */
struct history_filter {
	struct str node, namespace, pod;
	size_t max;
};
struct str history_to_json(const struct history *h, const struct history_filter *f,
			   struct arena *a);
