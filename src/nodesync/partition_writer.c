/* The watch delivers the object as it is, also after another client has changed it, so that the
 * comparison is always with what the API server has. */

#include "partition_writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api_failures.h"
#include "base/err.h"
#include "base/log.h"
#include "base/macro.h"
#include "cluster/object_path.h"
#include "kube/names.h"
#include "kube/object_time.h"

#define QUIET_MS 10000 /* a write after this long without one starts at the shortest delay */

enum partition_step partition_step_choose(const struct partition_facts *f)
{
	if (!f->exists)
		return f->has_node ? PARTITION_CREATE : PARTITION_KEEP;
	if (f->difference == STATUS_EQUAL ||
	    (f->difference == STATUS_FIGURES_DIFFER && f->since_write_ms < PARTITION_FIGURES_MS))
		return PARTITION_KEEP;
	return PARTITION_WRITE;
}

static uint64_t now_ms(const struct partition_writer *w)
{
	return loop_now_ms(w->api->loop);
}

/* Only the status is compared later. */
static char *status_text(yyjson_val *object)
{
	CLEANUP(arena_done) struct arena a;
	yyjson_val *status = doc_get(object, STR("status"));
	struct str text;
	char *copy;

	arena_init(&a, 0);
	if (!status || doc_write_val(status, false, &a, &text, NULL) < 0)
		return NULL;
	copy = strndup(text.p, text.n);
	if (!copy)
		abort();
	return copy;
}

static void observe(struct partition_writer *w, yyjson_val *object)
{
	struct partition_observed *o = &w->observed;
	CLEANUP(arena_done) struct arena a;
	struct node_partition p = { 0 };

	arena_init(&a, 0);
	free(o->status);
	*o = (struct partition_observed){ .exists = object != NULL };
	if (!object)
		return;
	/* A status that cannot be read counts as none and is replaced. */
	if (node_partition_decode(object, &a, &p, NULL) == 0)
		o->status = status_text(object);
	(void)doc_int(doc_find(object, "/metadata/generation"), &o->generation);
	(void)snprintf(o->granted, sizeof(o->granted), PRI_STR,
		       FMT_STR(doc_str(doc_find(object, "/spec/granted"))));
}

static void on_object(struct object_watch *watch, yyjson_val *object)
{
	struct partition_writer *w = container_of(watch, struct partition_writer, watch);

	/* NULL at the beginning of a list does not mean that it is gone. */
	w->is_listing = !object && watch->watch.phase == WATCH_LISTING;
	observe(w, object);
}

static void on_synced(struct object_watch *watch)
{
	container_of(watch, struct partition_writer, watch)->is_listing = false;
}

static void on_response(struct api_call *call, yyjson_val *object, const struct err *err)
{
	struct partition_writer *w = container_of(call, struct partition_writer, call);

	w->is_busy = false;
	if (backoff_refused(&w->n_refused, err && call->http.status == 403))
		w->forbidden_ms = now_ms(w) + BACKOFF_FORBIDDEN_MS;
	/* After a conflict or a deletion the watch delivers the present state. */
	if (err && err->code != EEXIST && err->code != ENOENT)
		api_failures_add(w->config.failures, now_ms(w), "write the NodePartition", err);
	if (!err) {
		if (now_ms(w) - w->written_ms > QUIET_MS)
			backoff_reset(&w->backoff);
		if (!w->is_creating) {
			w->written_ms = now_ms(w);
			w->n_written++;
		}
		observe(w, object);
	}
	timer_start(&w->delay, backoff_next(&w->backoff, backoff_random()), 0);
}

static void on_delay(struct timer *t)
{
	partition_writer_update(container_of(t, struct partition_writer, delay));
}

static struct str path_of(struct str name, struct str subresource, struct arena *a)
{
	const struct object_ref ref = { .api = STR(NAME_PARTITION_API),
					.resource = STR(NAME_PARTITION_RESOURCE),
					.name = name,
					.subresource = subresource };

	return object_path(&ref, a);
}

static int create_request(const struct partition_writer *w, struct arena *a,
			  struct api_request *ret, struct err *err)
{
	ret->method = "POST";
	ret->content_type = API_JSON;
	ret->path = path_of(STR(""), STR(""), a);
	return node_partition_create(w->name, str_from(w->node_uid), a, &ret->body, err);
}

/* A JSON Patch that replaces the whole status: nothing of an older one stays. */
static int status_request(const struct partition_writer *w, const struct node_partition_status *s,
			  struct arena *a, struct api_request *ret, struct err *err)
{
	struct str text;
	int r = node_partition_status_encode(s, a, &text, err);

	ret->method = "PATCH";
	ret->content_type = API_PATCH_JSON;
	ret->path = path_of(w->name, STR("status"), a);
	if (r == 0)
		ret->body = str_printf(a,
				       "[{\"op\":\"add\",\"path\":\"/status\",\"value\":" PRI_STR
				       "}]",
				       FMT_STR(text));
	return r;
}

/* The status of the last version seen; false when there is none. */
static bool observed_status(const struct partition_writer *w, struct arena *a,
			    struct node_partition_status *ret)
{
	struct node_partition p;
	struct str text;
	struct doc doc;

	if (!w->observed.status)
		return false;
	text = str_printf(a, "{\"status\":%s}", w->observed.status);
	if (doc_parse(text, STR(""), NULL, a, &doc, NULL) < 0 ||
	    node_partition_decode(doc.root, a, &p, NULL) < 0)
		return false;
	*ret = p.status;
	return true;
}

static void start_request(struct partition_writer *w, enum partition_step step,
			  const struct node_partition_status *want, struct arena *a)
{
	struct api_request request = { 0 };
	struct err err = { 0 };
	int r;

	r = step == PARTITION_CREATE ? create_request(w, a, &request, &err) :
				       status_request(w, want, a, &request, &err);
	if (r < 0) {
		api_failures_add(w->config.failures, now_ms(w), "describe the NodePartition", &err);
		return;
	}
	w->is_busy = true;
	w->is_creating = step == PARTITION_CREATE;
	api_start(w->api, &w->call, &request, on_response);
}

void partition_writer_update(struct partition_writer *w)
{
	CLEANUP(arena_done) struct arena a;
	struct node_partition_status want, have;
	struct partition_facts facts;
	enum partition_step step;
	bool has_status;

	arena_init(&a, 0);
	if (!w->api || w->is_busy || timer_is_active(&w->delay) || w->is_listing ||
	    !w->watch.watch.is_synced || w->watch.watch.is_absent || now_ms(w) < w->forbidden_ms)
		return;
	want = w->config.desired(w->config.desired_data, &a);
	want.observed_generation = w->observed.generation;
	has_status = observed_status(w, &a, &have);
	node_partition_set_times(&want, has_status ? &have : NULL,
				 object_time((int64_t)time(NULL), &a));
	facts = (struct partition_facts){
		.exists = w->observed.exists,
		.has_node = w->node_uid[0],
		.difference = has_status ? node_partition_compare(&want, &have) : STATUS_DIFFERS,
		.since_write_ms = w->n_written ? now_ms(w) - w->written_ms : UINT64_MAX,
	};
	step = partition_step_choose(&facts);
	if (step != PARTITION_KEEP)
		start_request(w, step, &want, &a);
}

void partition_writer_start(struct partition_writer *w, struct api *api, struct str name,
			    const struct partition_writer_config *config)
{
	static const struct object_watch_config watch_config = {
		.path = "/apis/" NAME_PARTITION_API "/" NAME_PARTITION_RESOURCE,
		.request = "watch the NodePartition",
		.may_be_absent = true,
	};

	w->config = *config;
	w->api = api;
	w->name = name;
	w->watch.on_object = on_object;
	w->watch.on_synced = on_synced;
	timer_init(&w->delay, api->loop, on_delay);
	object_watch_start(&w->watch, api, &watch_config, name, config->failures);
}

void partition_writer_set_node(struct partition_writer *w, const char *uid)
{
	(void)snprintf(w->node_uid, sizeof(w->node_uid), "%s", uid);
}

void partition_writer_close(struct partition_writer *w)
{
	object_watch_close(&w->watch);
	api_cancel(&w->call);
}

void partition_writer_done(struct partition_writer *w)
{
	object_watch_done(&w->watch);
	free(w->observed.status);
	w->observed.status = NULL;
}
