#pragma once

/* Sends the writes of a reconcile (writes.h), a few at a time. A key that was written waits before
 * it is written again, the longer the more often that happens in a row: a controller that reverts a
 * write is not fought at full speed, and a server that refuses is not asked at once. Nothing is
 * kept of a write that was not sent: the next reconcile decides anew. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/api.h"
#include "cluster/backoff.h"
#include "writes.h"

struct operator_writer;
struct write_slot;

#define WRITER_MAX_IN_FLIGHT 8
#define WRITER_QUIET_MS 10000 /* a write this long after the last one of its key is not delayed */
#define WRITER_BUSY_MS 5000   /* after 429: a PodDisruptionBudget, or an overloaded server */

/* A write of which no response came may be executed until then: rollout_write.c limits it on the
 * server. */
#define WRITER_FENCE_MS 5000

enum write_result {
	WRITE_OK,
	WRITE_CONFLICT,
	WRITE_BUSY, /* 429 */
	WRITE_REFUSED,
	WRITE_FAILED,
	WRITE_RESULT__COUNT
};
const char *write_result_name(enum write_result r);

/* Every `what` that was sent, for the metrics. */
struct write_count {
	const char *what;
	uint64_t n[WRITE_RESULT__COUNT];
};
#define WRITER_MAX_COUNTS 32

struct write_done {
	const char *what;
	struct str key;
	enum operator_kind kind;
	struct str object;
	yyjson_val *response;  /* NULL: it failed */
	const struct err *err; /* NULL: it succeeded */
	enum write_result result;
};

struct operator_writer {
	struct api *api;
	void (*on_done)(struct operator_writer *w, const struct write_done *done);
	struct write_slot *slots; /* by key */
	unsigned in_flight;
	struct write_count counts[WRITER_MAX_COUNTS];
	size_t n_counts;
};

/* on_done is set by the owner. */
void operator_writer_start(struct operator_writer *w, struct api *api);

/* Starts what may start. Returns in how many ms the next of the others may, UINT64_MAX: none waits
 * for time. */
uint64_t operator_writer_send(struct operator_writer *w, const struct operator_writes *writes);

void operator_writer_close(struct operator_writer *w);
void operator_writer_done(struct operator_writer *w); /* after the loop is done */

/* Of one key. */
struct write_pace {
	struct backoff backoff; /* counts writes in quick succession, successful or not */
	unsigned refusals;	/* in a row */
};

/* How long a key waits after a response. Pure. */
uint64_t operator_write_delay_ms(enum write_result result, struct write_pace *pace,
				 uint32_t random);
