/* A loop of list and watch, as client-go's reflector: on_timer() starts one of them,
 * schedule_next() is called at the end of each and decides with watch_decide() what comes next and
 * when. At most one request is in flight. `version` is the last version that the callbacks have
 * seen; a watch resumes after it. */

#include "watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/macro.h"
#include "net/loop.h"
#include "object_path.h"

#define WATCH_S 300	     /* the server ends a watch after this time, and the next one starts */
#define BRIEF_MS 1000	     /* a watch that ends before that is a failure */
#define ABSENT_MS 10000	     /* between requests for a collection that does not exist, */
#define ABSENT_FEW 6	     /* as long as its CRD may be about to be installed; */
#define LONG_ABSENT_MS 60000 /* later. Some clusters never have it, and every agent asks. */
#define RELIST_FAILURES 5    /* in a row; then the version itself may be the cause */
#define ARENA_KEEP ((size_t)256 << 10)

static bool is_too_old(const struct watch_outcome *o)
{
	/* A server that has already responded 200 can report an expired version only as an ERROR
	 * event. */
	return o->status == 410 || o->event_code == 410;
}

/* The token of a page is good for minutes, and a server that is slow or restarts would get the
 * whole list again. */
static bool keeps_page(const struct watch_outcome *o)
{
	return o->failed && (!o->status || o->status == 429 || o->status >= 500) &&
	       o->failures < RELIST_FAILURES;
}

struct watch_plan watch_decide(const struct watch_outcome *o)
{
	bool absent = o->may_be_absent && o->status == 404;

	if (o->was_list && absent)
		return (struct watch_plan){
			true, o->absences < ABSENT_FEW ? WATCH_ABSENT : WATCH_LONG_ABSENT, false
		};
	if (o->may_be_forbidden && o->status == 403 && o->refusals >= BACKOFF_SURE_FAILURES)
		return (struct watch_plan){ true, WATCH_FORBIDDEN, false };
	/* 404 to a watch: the CRD was removed, and the list decides. 410 to a list: the continue
	 * token expired. Once at once: schedule_next() counts it. */
	if (is_too_old(o) || (!o->was_list && o->status == 404))
		return (struct watch_plan){ true, o->failures ? WATCH_BACK_OFF : WATCH_AT_ONCE,
					    false };
	if (o->was_list)
		return (struct watch_plan){ o->failed, o->failed ? WATCH_BACK_OFF : WATCH_AT_ONCE,
					    keeps_page(o) };
	/* The events after the unreadable one are lost, so only a list gives the complete state. */
	if (o->unreadable)
		return (struct watch_plan){ true, WATCH_BACK_OFF, false };
	/* Without a response the server or the network is the cause, and the version may still be
	 * good: a list would only be load for a server that just restarts. */
	if (o->failed || o->event_code || o->was_brief || o->status != 200)
		return (struct watch_plan){ o->status && o->failures >= RELIST_FAILURES,
					    WATCH_BACK_OFF, false };
	return (struct watch_plan){ false, WATCH_AT_ONCE, false };
}

static void start_list(struct watch *w);
static void start_watch(struct watch *w);

static void on_timer(struct timer *t)
{
	struct watch *w = container_of(t, struct watch, timer);

	if (w->must_list)
		start_list(w);
	else
		start_watch(w);
}

static void schedule_next(struct watch *w, const struct watch_outcome *o, const struct err *err)
{
	struct watch_plan plan = watch_decide(o);
	uint64_t delay_ms = 0;

	w->phase = WATCH_WAITING;
	w->refusals = o->status == 403 ? w->refusals + 1 : 0;
	w->absences = w->is_absent ? w->absences + 1 : 0;
	w->must_list = plan.relist;
	if (!plan.keeps_page)
		buffer_done(&w->next_page);
	w->too_old += is_too_old(o);
	if (plan.delay == WATCH_BACK_OFF) {
		w->failures++;
		delay_ms = backoff_next(&w->backoff, backoff_random());
		if (err && w->events->on_failure)
			w->events->on_failure(w, err);
	} else if (plan.delay == WATCH_AT_ONCE && plan.relist) {
		(void)backoff_next(&w->backoff, 0); /* the next one in a row is delayed */
	} else if (plan.delay == WATCH_ABSENT) {
		delay_ms = backoff_jitter(ABSENT_MS, backoff_random());
	} else if (plan.delay == WATCH_LONG_ABSENT) {
		delay_ms = backoff_jitter(LONG_ABSENT_MS, backoff_random());
	} else if (plan.delay == WATCH_FORBIDDEN) {
		delay_ms = backoff_jitter(BACKOFF_FORBIDDEN_MS, backoff_random());
		w->events->on_forbidden(w, err);
	}
	/* A watch that ended by its timeout is followed by the next one at once and counts as
	 * current in between. */
	if (plan.delay != WATCH_AT_ONCE || plan.relist) {
		if (w->is_current)
			w->lost_ms = loop_now_ms(w->loop);
		w->is_current = false;
	}
	timer_start(&w->timer, delay_ms, 0);
}

static bool keep_version(struct watch *w, struct str version)
{
	/* Versions are opaque texts; clients may not assume that they are numbers. */
	if (version.n >= sizeof(w->version))
		return false;
	memcpy(w->version, version.p, version.n);
	w->version[version.n] = '\0';
	return true;
}

static void mark_synced(struct watch *w)
{
	w->is_synced = true;
	w->lost_ms = loop_now_ms(w->loop); /* the age counts from now */
	w->events->on_synced(w);
}

static void end_list(struct watch *w, yyjson_val *list, const struct err *err)
{
	struct watch_outcome o = { .was_list = true,
				   .failed = err != NULL,
				   .status = w->list.http.status,
				   .may_be_absent = w->config->may_be_absent,
				   .may_be_forbidden = w->events->on_forbidden != NULL,
				   .failures = w->backoff.n,
				   .refusals = w->refusals,
				   .absences = w->absences };
	struct err broken;

	w->is_absent = o.status == 404 && o.may_be_absent;
	if (w->is_absent) { /* the same as an empty list */
		w->events->on_list(w);
		w->is_current = false;
		mark_synced(w);
	} else if (!err) {
		/* All pages of a list have the same version, that of the first request. */
		if (keep_version(w, doc_str(doc_find(list, "/metadata/resourceVersion")))) {
			w->lists++;
			mark_synced(w);
		} else {
			(void)err_set(&broken, EPROTO, "the list has no usable resourceVersion");
			o.failed = true;
			err = &broken;
		}
	}
	schedule_next(w, &o, err);
}

static void on_page(struct api_call *call, yyjson_val *list, const struct err *err)
{
	struct watch *w = container_of(call, struct watch, list);
	struct str more = doc_str(doc_find(list, "/metadata/continue"));
	yyjson_val *object;

	if (err) {
		end_list(w, NULL, err);
		return;
	}
	/* Not when the list is requested: as long as no page arrives, the previous objects stay
	 * valid. */
	if (!buffer_len(&w->next_page))
		w->events->on_list(w);
	DOC_EACH_ITEM (doc_get(list, STR("items")), object)
		w->events->on_object(w, object);
	if (!more.n) {
		end_list(w, list, NULL);
		return;
	}
	buffer_consume(&w->next_page, buffer_len(&w->next_page));
	buffer_add(&w->next_page, more);
	start_list(w);
}

static void start_list(struct watch *w)
{
	CLEANUP(arena_done) struct arena a;
	struct str path;

	w->phase = WATCH_LISTING;
	arena_init(&a, 0);
	path = object_list_path(str_from(w->config->path), w->config->selector, w->config->page,
				buffer_str(&w->next_page), &a);
	api_start(w->api, &w->list,
		  &(struct api_request){ .method = "GET",
					 .path = path,
					 .accept = w->config->only_metadata ? API_METADATA_LIST :
									      NULL },
		  on_page);
}

static void on_head(struct http_call *http)
{
	struct watch *w = container_of(http, struct watch, http);

	/* The head comes before the first event: a collection without changes is current, too. */
	if (http->status == 200)
		w->is_current = true;
}

static void handle_event(struct watch *w, const struct watch_event *event)
{
	switch (event->type) {
	case WATCH_EVENT_ADDED:
	case WATCH_EVENT_MODIFIED:
		w->events->on_object(w, event->object);
		break;
	case WATCH_EVENT_DELETED:
		w->events->on_deleted(w, event->object);
		break;
	case WATCH_EVENT_BOOKMARK:
		break;
	case WATCH_EVENT_ERROR:
		w->event_code = event->code;
		(void)err_set(&w->broken, event->code == 410 ? ESTALE : EBUSY,
			      "the watch ended with %u: %.*s", event->code,
			      (int)(event->message.n < 150 ? event->message.n : 150),
			      event->message.p ? event->message.p : "");
		return;
	}
	w->events_seen++;
	backoff_reset(&w->backoff); /* not at the response head: a watch may fail right after it */
	/* After the callback: a watch that resumes must not skip an object that was not handled. */
	if (!keep_version(w, event->resource_version))
		(void)err_set(&w->broken, EPROTO, "the resourceVersion of an object is too long");
}

static void on_data(struct http_call *http, struct str bytes)
{
	struct watch *w = container_of(http, struct watch, http);
	struct watch_event event;
	struct str line;
	int r = 0;

	/* The body of another status is a Status object and no event. */
	while (!w->broken.code && http->status == 200 &&
	       (r = watch_lines_next(&w->lines, &bytes, &line, &w->broken)) > 0) {
		if (!str_trim(line).n)
			continue;
		r = watch_event_parse(line, &w->arena, &event, &w->broken);
		if (r >= 0)
			handle_event(w, &event);
		if (w->arena.used > ARENA_KEEP || w->config->frees_memory) {
			arena_done(&w->arena);
			arena_init(&w->arena, 0);
		} else {
			arena_reset(&w->arena);
		}
	}
	w->is_unreadable |= r < 0;
}

static void on_watch_end(struct http_call *http, const struct err *lost)
{
	struct watch *w = container_of(http, struct watch, http);
	struct watch_outcome o = {
		.failed = lost != NULL,
		.unreadable = w->is_unreadable,
		.status = http->status,
		.event_code = w->event_code,
		.was_brief = w->events_seen == w->events_before &&
			     loop_now_ms(w->loop) - w->started_ms < BRIEF_MS,
		.may_be_absent = w->config->may_be_absent,
		.may_be_forbidden = w->events->on_forbidden != NULL,
		.failures = w->backoff.n,
		.refusals = w->refusals,
	};
	struct err err = { 0 };

	/* A line without its end is dropped; the next watch gets this event again. */
	watch_lines_done(&w->lines);
	free(w->path);
	w->path = NULL;
	if (http->status == 401 || lost)
		api_refresh_credentials(w->api);
	if (lost)
		err = *lost;
	else if (w->broken.code)
		err = w->broken;
	else if (http->status != 200)
		(void)api_status_error(http->status, NULL, &err);
	else
		(void)err_set(&err, ECONNRESET, "the watch ended immediately");
	schedule_next(w, &o, &err);
}

static void start_watch(struct watch *w)
{
	CLEANUP(arena_done) struct arena a;
	const char *selector = w->config->selector;

	w->phase = WATCH_WATCHING;
	w->watches++;
	w->events_before = w->events_seen;
	w->started_ms = loop_now_ms(w->loop);
	w->broken = (struct err){ 0 };
	w->event_code = 0;
	w->is_unreadable = false;
	/* The timeout is between one and two times WATCH_S, as in client-go: the watches of many
	 * clients that started together then end at different times. */
	arena_init(&a, 0);
	w->path = api_path(
		w->api,
		str_printf(&a,
			   "%s?watch=1&allowWatchBookmarks=true&timeoutSeconds=%u"
			   "&resourceVersion=%s%s%s",
			   w->config->path,
			   (unsigned)backoff_jitter((uint64_t)2 * WATCH_S, backoff_random()),
			   w->version, selector ? "&" : "", selector ? selector : ""));
	w->http = (struct http_call){
		.method = "GET",
		.path = w->path,
		.accept = w->config->only_metadata ? API_METADATA : API_JSON,
		.on_head = on_head,
		.on_data = on_data,
		.on_end = on_watch_end,
	};
	api_start_stream(w->api, &w->http);
}

void watch_init(struct watch *w, struct api *api, const struct watch_config *config,
		const struct watch_callbacks *events)
{
	*w = (struct watch){
		.api = api, .config = config, .events = events, .loop = api->loop, .must_list = true
	};
	arena_init(&w->arena, 0);
	timer_init(&w->timer, api->loop, on_timer);
	w->lost_ms = loop_now_ms(api->loop);
	timer_start(&w->timer, 0, 0);
}

void watch_pause(struct watch *w)
{
	http_call_cancel(&w->http);
	api_cancel(&w->list);
	timer_stop(&w->timer);
	watch_lines_done(&w->lines);
	buffer_done(&w->next_page);
	free(w->path);
	w->path = NULL;
	if (w->is_current)
		w->lost_ms = loop_now_ms(w->loop);
	w->is_current = false;
	w->phase = WATCH_WAITING;
}

void watch_resume(struct watch *w)
{
	w->must_list = true;
	backoff_reset(&w->backoff);
	timer_start(&w->timer, 0, 0);
}

void watch_close(struct watch *w)
{
	http_call_cancel(&w->http);
	api_cancel(&w->list);
	timer_close(&w->timer, NULL);
}

void watch_done(struct watch *w)
{
	watch_lines_done(&w->lines);
	buffer_done(&w->next_page);
	arena_done(&w->arena);
	free(w->path);
}
