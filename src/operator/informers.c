/* One watch per kind. What it reports is trimmed and compared with the stored text, so that only a
 * change of something that matters leads to a reconcile. */

#include <stdlib.h>

#include "base/err.h"
#include "base/log.h"
#include "base/macro.h"
#include "base/trim.h"
#include "drain.h"
#include "operator_private.h"

static struct operator_informer *informer_of(struct watch *w)
{
	return container_of(w, struct operator_informer, watch);
}

static struct object_store *store_of(struct watch *w)
{
	return &informer_of(w)->daemon->stores[informer_of(w)->kind];
}

static void trigger_if(struct watch *w, bool is_changed)
{
	if (is_changed)
		operator_trigger(informer_of(w)->daemon);
}

static struct str version_of(yyjson_val *object)
{
	return doc_str(doc_find(object, "/metadata/resourceVersion"));
}

static void on_object(struct watch *w, yyjson_val *object)
{
	const struct operator_kind_info *info = &operator_kinds[informer_of(w)->kind];
	CLEANUP(arena_done) struct arena a;
	struct str key, text;

	arena_init(&a, 0);
	key = operator_object_key(object, &a);
	if (info->is_wanted && !info->is_wanted(object)) {
		trigger_if(w, object_store_remove(store_of(w), key));
		return;
	}
	if (!key.n || operator_object_trim(informer_of(w)->kind, object, &a, &text, NULL) < 0)
		return;
	trigger_if(w, object_store_put(store_of(w), key, version_of(object), text));
	object_store_see(store_of(w), key, operator_agent_seen_s(object));
}

static void on_deleted(struct watch *w, yyjson_val *object)
{
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	trigger_if(w, object_store_remove(store_of(w), operator_object_key(object, &a)));
}

static void on_list(struct watch *w)
{
	object_store_begin_list(store_of(w));
}

static void on_synced(struct watch *w)
{
	(void)object_store_end_list(store_of(w));
	operator_trigger(informer_of(w)->daemon);
	trim_memory(); /* the lists were much larger than what is kept */
}

static void on_failure(struct watch *w, const struct err *err)
{
	struct operator_daemon *op = informer_of(w)->daemon;

	if (op->config->is_dry_run)
		operator_give_up(op, err);
	else
		api_failures_add(&op->failures, loop_now_ms(&op->loop), w->config->path, err);
}

static const struct watch_callbacks callbacks = { .on_object = on_object,
						  .on_deleted = on_deleted,
						  .on_list = on_list,
						  .on_synced = on_synced,
						  .on_failure = on_failure };

bool operator_watches(const struct operator_daemon *op, enum operator_kind kind)
{
	return !operator_kinds[kind].is_openshift || op->config->is_openshift;
}

void operator_watch_start(struct operator_daemon *op)
{
	for (enum operator_kind kind = 0; kind < OPERATOR_WATCHED; kind++) {
		if (!operator_watches(op, kind))
			continue;
		op->informers[kind].daemon = op;
		op->informers[kind].kind = kind;
		watch_init(&op->informers[kind].watch, &op->api, &operator_kinds[kind].watch,
			   &callbacks);
	}
}

void operator_watch_close(struct operator_daemon *op)
{
	for (enum operator_kind i = 0; i < OPERATOR_WATCHED; i++)
		if (operator_watches(op, i))
			watch_close(&op->informers[i].watch);
}

void operator_watch_done(struct operator_daemon *op)
{
	for (enum operator_kind i = 0; i < OPERATOR_WATCHED; i++) {
		if (operator_watches(op, i))
			watch_done(&op->informers[i].watch);
		op->informers[i] = (struct operator_informer){ 0 };
	}
}

bool operator_watch_is_synced(const struct operator_daemon *op)
{
	for (enum operator_kind i = 0; i < OPERATOR_WATCHED; i++)
		if (operator_watches(op, i) && !op->informers[i].watch.is_synced)
			return false;
	return true;
}

uint64_t operator_watch_age_ms(const struct operator_daemon *op, enum operator_kind kind)
{
	const struct watch *w = &op->informers[kind].watch;

	return w->is_current || !w->loop ? 0 : loop_now_ms(&op->loop) - w->lost_ms;
}

static bool is_drained(const struct reconcile_result *result, struct str name)
{
	for (size_t i = 0; i < result->n_drained; i++)
		if (str_eq(result->drained[i], name))
			return true;
	return false;
}

void operator_forget_pods(struct operator_daemon *op, const struct reconcile_result *result)
{
	struct object_store *pods = &op->stores[OPERATOR_NODE_PODS];

	for (size_t i = pods->n; i-- > 0;)
		if (!is_drained(result, str_from(pods->items[i].key)))
			(void)object_store_remove(pods, str_from(pods->items[i].key));
}

void operator_store_response(struct operator_daemon *op, const struct write_done *done)
{
	CLEANUP(arena_done) struct arena a;
	struct str text;

	arena_init(&a, 0);
	if (done->kind == OPERATOR_KIND__COUNT)
		return;
	if (done->kind == OPERATOR_NODE_PODS) {
		if (drain_pods_trim(done->response, &a, &text, NULL) >= 0)
			(void)object_store_put(&op->stores[done->kind], done->object, STR(""),
					       text);
	} else if (operator_object_trim(done->kind, done->response, &a, &text, NULL) >= 0) {
		(void)object_store_update(&op->stores[done->kind], done->object,
					  version_of(done->response), text);
	}
}
