#pragma once

/* The containers that were refused last, with the reason, for the status document. One entry per
 * container, until it is created or its pod is removed. Bounded: a full list drops the oldest. */

#include <stddef.h>

#include "base/err.h"
#include "event_queue.h"

#define REFUSALS_MAX 16

struct refusal {
	char *namespace, *pod, *uid, *container;
	struct err why;
};

struct refusals {
	struct refusal items[REFUSALS_MAX]; /* oldest first */
	size_t n;
};

void refusals_done(struct refusals *r);
void refusals_add(struct refusals *r, const struct event_subject *about, const struct err *why);
void refusals_remove(struct refusals *r, const char *uid, const char *container); /* NULL: all */
