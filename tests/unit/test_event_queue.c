/* The queue of Events: repeats are counted, and the rate is limited. */

#include <stdio.h>

#include "pin/event_queue.h"
#include "test.h"

static void add(struct event_queue *n, unsigned pod, const char *text)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "pod-%u", pod);
	event_queue_add(n, EVENT_CONTAINER_REFUSED,
			&(struct event_subject){ "shop", name, name, "c" }, str_from(text));
}

/* Sends all that may be sent now; returns how many. */
static unsigned drain(struct event_queue *n, uint64_t now_ms)
{
	const struct event *event;
	unsigned sent = 0;

	while ((event = event_queue_next(n, now_ms))) {
		event_queue_sent(n, event, event->count, now_ms);
		sent++;
	}
	return sent;
}

TEST(repeats_about_one_container_are_counted)
{
	struct event_queue n;
	const struct event *event;

	event_queue_init(&n);
	add(&n, 1, "first");
	add(&n, 1, "second");
	add(&n, 2, "other");
	event = event_queue_next(&n, 1000);
	CHECK(event != NULL);
	CHECK_UINT(event->count, 2);
	CHECK_STR(event->text, "second");
	CHECK_STR(event_reason(event->kind), "ContainerRefused");
	CHECK_UINT(drain(&n, 1000), 2);
	add(&n, 1, "again");
	CHECK_UINT(drain(&n, 1000 + EVENT_QUEUE_REPEAT_MS - 1), 0);
	CHECK_UINT(drain(&n, 1000 + EVENT_QUEUE_REPEAT_MS), 1);
	event_queue_done(&n);
}

TEST(a_repeat_during_a_request_is_sent_later)
{
	const struct event *event;
	struct event_queue n;

	event_queue_init(&n);
	add(&n, 1, "first");
	event = event_queue_next(&n, 1000);
	add(&n, 1, "meanwhile");
	event_queue_sent(&n, event, 1, 1000);
	CHECK_UINT(drain(&n, 1000 + EVENT_QUEUE_REPEAT_MS), 1);
	event_queue_done(&n);
}

TEST(a_burst_is_sent_slowly_and_the_excess_is_dropped)
{
	const uint64_t start_ms = 1000000;
	struct event_queue n;

	event_queue_init(&n);
	for (unsigned i = 0; i < EVENT_QUEUE_MAX + 8; i++)
		add(&n, i, "no CPUs");
	CHECK_UINT(n.dropped, 8);
	CHECK_UINT(drain(&n, start_ms), EVENT_QUEUE_BURST);
	CHECK_UINT(drain(&n, start_ms + EVENT_QUEUE_EVERY_MS - 1), 0);
	CHECK_UINT(drain(&n, start_ms + EVENT_QUEUE_EVERY_MS), 1);
	CHECK_UINT(drain(&n, start_ms + (uint64_t)1000 * EVENT_QUEUE_EVERY_MS), EVENT_QUEUE_BURST);
	add(&n, 1000, "no CPUs"); /* replaces the oldest that was sent */
	CHECK_UINT(n.dropped, 8);
	CHECK_UINT(n.n, EVENT_QUEUE_MAX);
	event_queue_done(&n);
}
