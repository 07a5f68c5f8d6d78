#pragma once

/* The webhook's counters. Every thread has its own; a scrape adds them up. No label names an
 * object, so the number of series is fixed. Counters of connections are net/server.h. */

#include <stdatomic.h>
#include <stdint.h>

#include "admission/review.h"

struct strbuf;

/* The endpoints for reviews. */
enum hook_kind {
	HOOK_MUTATE_PODS,
	HOOK_MUTATE_NODES,
	HOOK_VALIDATE_PODS,
	HOOK_VALIDATE_NODES,
	HOOK_VALIDATE_INFRA,
	HOOK_VALIDATE_PROFILES,
	HOOK__COUNT
};

enum review_result {
	RESULT_ALLOWED, /* unchanged */
	RESULT_CHANGED, /* allowed, with a patch */
	RESULT_REFUSED,
	RESULT_MALFORMED, /* the response is a status of the 400 class */
	RESULT_FAILED,	  /* not a review, or without uid: an HTTP error */
	RESULT__COUNT
};

#define HISTOGRAM_BOUNDS 14

struct hook_counters {
	_Atomic uint64_t reviews[RESULT__COUNT][RULE__COUNT + 1]; /* last: no rule decided */
	_Atomic uint64_t buckets[HISTOGRAM_BOUNDS + 1];
	_Atomic uint64_t sum_ns;
};

struct thread_counters {
	struct hook_counters hooks[HOOK__COUNT];
};

/* One finished review. `rule` may be RULE__COUNT. */
void metrics_count(struct thread_counters *t, enum hook_kind hook, enum review_result result,
		   enum admission_rule rule, uint64_t duration_ns);

/* The families that these counters make. */
void metrics_write(struct strbuf *b, const struct thread_counters *threads, unsigned n);
