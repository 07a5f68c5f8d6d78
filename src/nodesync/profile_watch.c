/* A version that differs only in its status is no change. An API server that starts responds 404
 * for a moment before it knows its CRDs, so profiles are gone only when the CRD was missing for
 * some time. */

#include "profile_watch.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "api_failures.h"
#include "base/log.h"
#include "base/macro.h"
#include "kube/names.h"
#include "net/loop.h"
#include "partition/node_profile.h"

#define ABSENT_MS 30000
#define MAX_REFUSED 3 /* a server that has just started responds with errors for a moment */

static struct profile_watch *profile_watch_of(struct watch *w)
{
	return container_of(w, struct profile_watch, watch);
}

static struct watched_profile *find(const struct profile_watch *w, struct str name)
{
	for (size_t i = 0; i < w->n; i++)
		if (str_eq(str_from(w->items[i].name), name))
			return &w->items[i];
	return NULL;
}

static char *copy(struct str s)
{
	char *p = strndup(s.p, s.n);

	if (!p)
		abort();
	return p;
}

static struct watched_profile *add(struct profile_watch *w, struct str name)
{
	if (w->n == w->cap) {
		w->cap = w->cap ? 2 * w->cap : 4;
		w->items = reallocarray(w->items, w->cap, sizeof(*w->items));
		if (!w->items)
			abort();
	}
	w->items[w->n] = (struct watched_profile){ .name = copy(name) };
	return &w->items[w->n++];
}

static void remove_at(struct profile_watch *w, size_t i)
{
	free(w->items[i].name);
	free(w->items[i].text);
	memmove(&w->items[i], &w->items[i + 1], (w->n - i - 1) * sizeof(*w->items));
	w->n--;
	w->is_changed = true;
}

static void on_object(struct watch *watch, yyjson_val *object)
{
	struct profile_watch *w = profile_watch_of(watch);
	const struct str name = doc_str(doc_find(object, "/metadata/name"));
	CLEANUP(arena_done) struct arena a;
	struct watched_profile *item = find(w, name);
	struct err err = { 0 };
	struct str text;

	arena_init(&a, 0);
	if (!name.n || node_profile_trim(object, &a, &text, &err) < 0)
		return; /* no such object comes from an API server */
	if (!item)
		item = add(w, name);
	item->is_listed = true;
	if (item->text && str_eq(str_from(item->text), text))
		return;
	free(item->text);
	item->text = copy(text);
	w->is_changed = true;
}

static void on_deleted(struct watch *watch, yyjson_val *object)
{
	struct profile_watch *w = profile_watch_of(watch);
	const struct watched_profile *item = find(w, doc_str(doc_find(object, "/metadata/name")));

	if (item)
		remove_at(w, (size_t)(item - w->items));
}

static void on_list(struct watch *watch)
{
	struct profile_watch *w = profile_watch_of(watch);

	w->is_listing = true;
	for (size_t i = 0; i < w->n; i++)
		w->items[i].is_listed = false;
}

/* Whether a missing CRD may be a server that has just started. */
static bool may_be_starting(struct profile_watch *w)
{
	const uint64_t now = loop_now_ms(w->watch.loop);

	if (!w->watch.is_absent) {
		w->absent_since_ms = 0;
		return false;
	}
	if (!w->absent_since_ms)
		w->absent_since_ms = now;
	return now - w->absent_since_ms < ABSENT_MS;
}

static void on_synced(struct watch *watch)
{
	struct profile_watch *w = profile_watch_of(watch);

	if (may_be_starting(w))
		return; /* retried in a few seconds */
	for (size_t i = w->n; i > 0; i--)
		if (!w->items[i - 1].is_listed)
			remove_at(w, i - 1);
	w->is_listing = false;
	w->n_refused = 0;
	w->has_logged_forbidden = false;
	if (!w->is_known)
		log_info("watching the profiles", LOG_INT("profiles", w->n));
	w->is_changed |= !w->is_known;
	w->is_known = true;
	(void)malloc_trim(0); /* objects are larger than what is kept of them */
}

static void on_failure(struct watch *watch, const struct err *err)
{
	struct profile_watch *w = profile_watch_of(watch);

	w->n_refused += watch->must_list && watch->list.http.status != 0;
	api_failures_add(w->failures, loop_now_ms(watch->loop), "watch the profiles", err);
}

static void on_forbidden(struct watch *watch, const struct err *err)
{
	struct profile_watch *w = profile_watch_of(watch);

	if (!w->has_logged_forbidden)
		log_warning("not allowed to list PerformanceProfiles, the last profile stays in "
			    "effect: apply deploy/agent/rbac.yaml, or node-rbac.yaml for an agent "
			    "with the identity of the kubelet",
			    LOG_ERR(err));
	w->has_logged_forbidden = true;
	w->n_refused = MAX_REFUSED;
}

void profile_watch_start(struct profile_watch *w, struct api *api, struct api_failures *failures)
{
	static const struct watch_config config = {
		.path = "/apis/" NAME_PROFILE_API "/" NAME_PROFILE_RESOURCE,
		.may_be_absent = true,
		.page = 10,
		.frees_memory = true,
	};
	static const struct watch_callbacks callbacks = {
		.on_object = on_object,
		.on_deleted = on_deleted,
		.on_list = on_list,
		.on_synced = on_synced,
		.on_failure = on_failure,
		.on_forbidden = on_forbidden,
	};

	w->failures = failures;
	w->is_open = true;
	watch_init(&w->watch, api, &config, &callbacks);
}

void profile_watch_close(struct profile_watch *w)
{
	if (w->is_open)
		watch_close(&w->watch);
}

void profile_watch_done(struct profile_watch *w)
{
	if (w->is_open)
		watch_done(&w->watch);
	while (w->n > 0)
		remove_at(w, w->n - 1);
	free(w->items);
}

bool profile_watch_is_undecided(const struct profile_watch *w)
{
	return w->n_refused < MAX_REFUSED && (!w->is_known || w->is_changed);
}

yyjson_val **profile_watch_objects(const struct profile_watch *w, struct arena *a, size_t *ret_n)
{
	yyjson_val **objects = arena_array(a, yyjson_val *, w->n);
	size_t n = 0;

	for (size_t i = 0; i < w->n; i++) {
		struct doc doc;

		/* It is text of doc_write(). */
		if (doc_parse(str_from(w->items[i].text), STR("profile"), NULL, a, &doc, NULL) == 0)
			objects[n++] = doc.root;
	}
	*ret_n = n;
	return objects;
}
