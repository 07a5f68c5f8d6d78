/* From the queue to the API server: event_sender_tick() takes the next Event and sends it,
 * on_sent() removes what was sent. The Event stays in the queue meanwhile: a queue replaces only
 * Events with nothing left to send, so the pointer in `in_flight` stays valid. */

#include "event_sender.h"

#include <errno.h>
#include <time.h>

#include "api_failures.h"
#include "base/err.h"
#include "base/macro.h"
#include "cluster/backoff.h"
#include "cluster/object_path.h"
#include "net/loop.h"

bool event_sender_retries(unsigned status, int code)
{
	/* An Event that the server refuses for good would block all later ones. */
	return status != 403 && code != ENOENT && code != EINVAL && code != EEXIST;
}

static void on_sent(struct api_call *call, yyjson_val *object, const struct err *err)
{
	struct event_sender *s = container_of(call, struct event_sender, call);
	const uint64_t now_ms = loop_now_ms(s->api->loop);

	(void)object;
	if (err)
		api_failures_add(s->failures, now_ms, "create an Event", err);
	if (err && event_sender_retries(call->http.status, err->code))
		s->retry_ms = now_ms + EVENT_SENDER_RETRY_MS;
	else
		/* Also when the Event was refused: it counts as sent. Repeats that were counted
		 * during the request stay for the next one. */
		event_queue_sent(&s->queue, s->in_flight, s->in_flight_count, now_ms);
	s->in_flight = NULL;
}

static int write_event(const struct event_sender *s, const struct event *event, struct arena *a,
		       struct api_request *ret, struct err *err)
{
	const bool is_pod = *event->pod;
	const struct object_event object = {
		.api = STR("v1"),
		.kind = is_pod ? STR("Pod") : STR("Node"),
		.namespace = str_from(event->namespace),
		.name = is_pod ? str_from(event->pod) : s->node_name,
		/* Kubelets use the Node's name as UID; `kubectl describe node` selects by it. */
		.uid = is_pod ? str_from(event->uid) : s->node_name,
		.reason = str_from(event_reason(event->kind)),
		.message = str_from(event->text),
		.component = STR("pinfold-agent"),
		.host = s->node_name,
		.is_warning = event_is_warning(event->kind),
		.count = event->count,
		.now_s = (int64_t)time(NULL),
		/* A retry gets another name: whether the server created the first object is unknown
		 * when no response came. */
		.random = backoff_random(),
	};

	*ret = (struct api_request){ .method = "POST", .content_type = API_JSON };
	return object_event_write(&object, a, &ret->path, &ret->body, err);
}

void event_sender_tick(struct event_sender *s)
{
	CLEANUP(arena_done) struct arena a;
	const struct event *event;
	struct api_request request;
	struct err err = { 0 };
	uint64_t now_ms;

	arena_init(&a, 0);
	if (!s->api || s->in_flight)
		return;
	now_ms = loop_now_ms(s->api->loop);
	if (now_ms < s->retry_ms)
		return;
	event = event_queue_next(&s->queue, now_ms);
	if (!event)
		return;
	if (write_event(s, event, &a, &request, &err) < 0) {
		api_failures_add(s->failures, now_ms, "write an Event", &err);
		return;
	}
	s->in_flight = event;
	s->in_flight_count = event->count;
	api_start(s->api, &s->call, &request, on_sent);
}

void event_sender_init(struct event_sender *s)
{
	*s = (struct event_sender){ 0 };
	event_queue_init(&s->queue);
}

void event_sender_start(struct event_sender *s, struct api *api, struct str node_name,
			struct api_failures *failures)
{
	s->api = api;
	s->node_name = node_name;
	s->failures = failures;
}

void event_sender_close(struct event_sender *s)
{
	api_cancel(&s->call);
}

void event_sender_done(struct event_sender *s)
{
	event_queue_done(&s->queue);
}
