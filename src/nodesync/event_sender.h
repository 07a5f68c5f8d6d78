#pragma once

/* Sends what the event queue (pin/event_queue.h) holds as Events to the API server, one at a time.
 * How many may be sent is decided by the queue. */

#include <stdbool.h>
#include <stdint.h>

#include "cluster/api.h"
#include "pin/event_queue.h"

struct api_failures;

#define EVENT_SENDER_RETRY_MS 5000

struct event_sender {
	struct event_queue queue;
	struct api *api; /* NULL: not started */
	struct str node_name;
	struct api_failures *failures;
	struct api_call call;
	const struct event *in_flight; /* NULL: none */
	uint32_t in_flight_count;      /* more may be counted until the response */
	uint64_t retry_ms;
};

void event_sender_init(struct event_sender *s);
void event_sender_start(struct event_sender *s, struct api *api, struct str node_name,
			struct api_failures *failures);
void event_sender_tick(struct event_sender *s); /* sends the next Event, if there is one */
void event_sender_close(struct event_sender *s);
void event_sender_done(struct event_sender *s);

/* Whether a failed request is worth another attempt: not if the server would refuse it again (403,
 * an invalid object, a namespace that is gone). Pure. */
bool event_sender_retries(unsigned status, int code);
