/* A slot exists for every key that was written lately. It owns the request in flight and the delay
 * after it. Slots without either are freed when the list is next walked. */

#include "writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "base/macro.h"
#include "net/loop.h"

#define EVENT_KEY "event"

struct write_slot {
	struct write_slot *next;
	struct operator_writer *writer;
	const char *what;
	char *key, *object;
	enum operator_kind kind;
	struct api_call call;
	bool is_busy;
	uint64_t interval_ms, ready_ms; /* the next request of this key may start then */
	struct write_pace pace;
	char *event_path, *event_body; /* sent after success; NULL: none */
};

const char *write_result_name(enum write_result r)
{
	static const char *const names[] = { [WRITE_OK] = "ok",
					     [WRITE_CONFLICT] = "conflict",
					     [WRITE_BUSY] = "busy",
					     [WRITE_REFUSED] = "refused",
					     [WRITE_FAILED] = "failed" };
	_Static_assert(ARRAY_LEN(names) == WRITE_RESULT__COUNT, "every result has a name");

	return names[r];
}

static enum write_result classify(unsigned status, const struct err *err)
{
	if (!err)
		return WRITE_OK;
	if (status == 429)
		return WRITE_BUSY;
	switch (err->code) {
	case EEXIST:
	case ENOENT:
		return WRITE_CONFLICT;
	case EACCES:
	case EINVAL:
		return WRITE_REFUSED;
	default:
		return WRITE_FAILED;
	}
}

uint64_t operator_write_delay_ms(enum write_result result, struct write_pace *pace, uint32_t random)
{
	const bool is_sure = backoff_refused(&pace->refusals, result == WRITE_REFUSED);
	uint64_t ms = backoff_next(&pace->backoff, random);

	if (result == WRITE_BUSY)
		return backoff_jitter((uint64_t)2 * WRITER_BUSY_MS, random);
	/* Only an administrator can change that. */
	if (is_sure)
		return backoff_jitter(BACKOFF_FORBIDDEN_MS, random);
	return ms;
}

static void count(struct operator_writer *w, const char *what, enum write_result result)
{
	size_t i = 0;

	while (i < w->n_counts && strcmp(w->counts[i].what, what) != 0)
		i++;
	if (i == WRITER_MAX_COUNTS)
		return;
	if (i == w->n_counts)
		w->counts[w->n_counts++] = (struct write_count){ .what = what };
	w->counts[i].n[result]++;
}

static char *copy(struct str s)
{
	char *p = strndup(s.p ? s.p : "", s.n);

	if (!p)
		abort(); /* D21 */
	return p;
}

static struct write_slot *slot_of(struct operator_writer *w, struct str key)
{
	struct write_slot *s = w->slots;

	while (s && !str_eq(str_from(s->key), key))
		s = s->next;
	return s;
}

static struct write_slot *add_slot(struct operator_writer *w, struct str key)
{
	struct write_slot *s = calloc(1, sizeof(*s));

	if (!s)
		abort();
	*s = (struct write_slot){ .next = w->slots, .writer = w, .key = copy(key) };
	w->slots = s;
	return s;
}

static void free_slot(struct write_slot *s)
{
	free(s->key);
	free(s->object);
	free(s->event_path);
	free(s->event_body);
	free(s);
}

/* Also while nothing is written: called with every reconcile. */
static void sweep(struct operator_writer *w)
{
	const uint64_t now_ms = loop_now_ms(w->api->loop);
	struct write_slot **at = &w->slots, *s;

	while ((s = *at)) {
		if (s->is_busy || now_ms < s->ready_ms + WRITER_QUIET_MS) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		free_slot(s);
	}
}

static void on_response(struct api_call *call, yyjson_val *object, const struct err *err);

static void start(struct write_slot *s, const struct api_request *request)
{
	s->is_busy = true;
	s->writer->in_flight++;
	api_start(s->writer->api, &s->call, request, on_response);
}

/* Events are for people: one that cannot be sent is dropped. */
static void send_event(struct write_slot *s)
{
	struct write_slot *event;

	if (!s->event_path)
		return;
	event = slot_of(s->writer, str_from(EVENT_KEY));
	if (!event)
		event = add_slot(s->writer, STR(EVENT_KEY));
	event->what = "event";
	event->kind = OPERATOR_KIND__COUNT;
	if (event->is_busy || s->writer->in_flight >= WRITER_MAX_IN_FLIGHT)
		count(s->writer, event->what, WRITE_FAILED);
	else
		start(event, &(struct api_request){ .method = "POST",
						    .path = str_from(s->event_path),
						    .content_type = API_JSON,
						    .body = str_from(s->event_body) });
}

static void on_response(struct api_call *call, yyjson_val *object, const struct err *err)
{
	struct write_slot *s = container_of(call, struct write_slot, call);
	struct operator_writer *w = s->writer;
	const enum write_result result = classify(call->http.status, err);
	uint64_t delay_ms;

	s->is_busy = false;
	w->in_flight--;
	count(w, s->what, result);
	delay_ms = operator_write_delay_ms(result, &s->pace, backoff_random());
	if (delay_ms < s->interval_ms)
		delay_ms = s->interval_ms;
	s->ready_ms = loop_now_ms(w->api->loop) + delay_ms;
	if (!err)
		send_event(s);
	free(s->event_path);
	free(s->event_body);
	s->event_path = s->event_body = NULL;
	w->on_done(w, &(struct write_done){ .what = s->what,
					    .key = str_from(s->key),
					    .kind = s->kind,
					    .object = str_from(s->object),
					    .response = object,
					    .err = err,
					    .result = result });
}

static void keep_event(struct write_slot *s, const struct object_event *event, struct arena *a)
{
	struct str path, body;

	if (!event || object_event_write(event, a, &path, &body, NULL) < 0)
		return;
	s->event_path = copy(path);
	s->event_body = copy(body);
}

static void begin(struct write_slot *s, const struct operator_write *write, struct arena *a)
{
	/* Writes in quick succession wait longer and longer. */
	if (loop_now_ms(s->writer->api->loop) >= s->ready_ms + WRITER_QUIET_MS)
		s->pace = (struct write_pace){ 0 };
	s->what = write->what;
	s->kind = write->kind;
	s->interval_ms = write->interval_ms;
	free(s->object);
	s->object = copy(write->object);
	keep_event(s, write->event, a);
	start(s, &write->request);
}

uint64_t operator_writer_send(struct operator_writer *w, const struct operator_writes *writes)
{
	const uint64_t now_ms = loop_now_ms(w->api->loop);
	uint64_t next_ms = UINT64_MAX;

	sweep(w);
	for (size_t i = 0; i < writes->n; i++) {
		const struct operator_write *write = &writes->items[i];
		struct write_slot *s = slot_of(w, write->key);

		if (s && s->is_busy)
			continue;
		if (s && now_ms < s->ready_ms) {
			if (s->ready_ms - now_ms < next_ms)
				next_ms = s->ready_ms - now_ms;
			continue;
		}
		/* The others follow when a response arrives. */
		if (w->in_flight >= WRITER_MAX_IN_FLIGHT)
			break;
		begin(s ? s : add_slot(w, write->key), write, writes->arena);
	}
	return next_ms;
}

void operator_writer_start(struct operator_writer *w, struct api *api)
{
	w->api = api;
}

void operator_writer_close(struct operator_writer *w)
{
	for (struct write_slot *s = w->slots; s; s = s->next)
		api_cancel(&s->call);
}

void operator_writer_done(struct operator_writer *w)
{
	struct write_slot *next;

	for (struct write_slot *s = w->slots; s; s = next) {
		next = s->next;
		free_slot(s);
	}
	w->slots = NULL;
	w->in_flight = 0;
}
