/* Connects one watch (watch.h) per kind with the cache: objects go in as they arrive, and readers
 * get a new view after each event. Once a second the age of every kind is checked, because a watch
 * that is lost makes no event. */

#include "informers.h"

#include <malloc.h>

#include "base/macro.h"
#include "kube/names.h"
#include "net/loop.h"

#define TICK_MS 1000

#define ONLY_CLUSTER "fieldSelector=metadata.name%3D" NAME_INFRASTRUCTURE

/* The page sizes keep the memory for one response of a large cluster below a few MiB. */
static const struct {
	const char *name;
	struct watch_config watch;
} kinds[] = {
	[CACHE_NAMESPACES] = { "Namespace",
			       { .path = "/api/v1/namespaces",
				 /* Permissions are annotations and labels; the rest of a namespace
				  * is not needed. */
				 .only_metadata = true,
				 .page = 500 } },
	/* Nodes are large: their status lists the images on the node. */
	[CACHE_NODES] = { "Node", { .path = "/api/v1/nodes", .page = 50 } },
	[CACHE_INFRASTRUCTURE] = { NAME_INFRASTRUCTURE_KIND,
				   { .path = "/apis/" NAME_CONFIG_API "/infrastructures",
				     .selector = ONLY_CLUSTER,
				     .may_be_absent = true,
				     .page = 10 } },
	[CACHE_FEATURE_GATES] = { NAME_FEATURE_GATE_KIND,
				  { .path = "/apis/" NAME_CONFIG_API "/featuregates",
				    .selector = ONLY_CLUSTER,
				    .may_be_absent = true,
				    .page = 10 } },
	[CACHE_PROFILES] = { NAME_PROFILE_KIND,
			     { .path = "/apis/" NAME_PROFILE_API "/" NAME_PROFILE_RESOURCE,
			       .may_be_absent = true,
			       .page = 50 } },
};

const char *informers_kind_name(enum cache_kind kind)
{
	return kinds[kind].name;
}

static struct informer *informer_of(struct watch *w)
{
	return container_of(w, struct informer, watch);
}

static uint64_t age_ms(const struct watch *w)
{
	return w->is_current ? 0 : loop_now_ms(w->loop) - w->lost_ms;
}

static void publish_stats(struct informer *informer)
{
	const struct watch *w = &informer->watch;
	struct informers_stats *s = &informer->stats;

	/* For metrics only; relaxed, because no number depends on another. */
	atomic_store_explicit(&s->objects, cache_count(informer->informers->cache, informer->kind),
			      memory_order_relaxed);
	atomic_store_explicit(&s->age_ms, age_ms(w), memory_order_relaxed);
	atomic_store_explicit(&s->lists, w->lists, memory_order_relaxed);
	atomic_store_explicit(&s->watches, w->watches, memory_order_relaxed);
	atomic_store_explicit(&s->events, w->events_seen, memory_order_relaxed);
	atomic_store_explicit(&s->too_old, w->too_old, memory_order_relaxed);
	atomic_store_explicit(&s->failures, w->failures, memory_order_relaxed);
	atomic_store_explicit(&s->is_synced, w->is_synced, memory_order_relaxed);
	atomic_store_explicit(&s->is_absent, w->is_absent, memory_order_relaxed);
}

static bool is_fresh(const struct informers *f)
{
	for (size_t i = 0; i < CACHE__COUNT; i++)
		/* Without the profiles only conflicts among them are not found, for example after
		 * an upgrade without the new permissions: pods are decided about nevertheless. */
		if (i != CACHE_PROFILES && (!f->watches[i].watch.is_synced ||
					    age_ms(&f->watches[i].watch) > INFORMERS_STALE_MS))
			return false;
	return true;
}

static void update_state(struct informers *f)
{
	bool is_synced = is_fresh(f);

	/* The view is published before is_ready: a request that arrives because of the readiness
	 * check finds it. */
	cache_set_synced(f->cache, is_synced);
	cache_publish(f->cache);
	atomic_store(&f->is_ready, is_synced);
	for (size_t i = 0; i < CACHE__COUNT; i++)
		publish_stats(&f->watches[i]);
	if (!is_synced || f->was_synced)
		return;
	f->was_synced = true;
	if (f->config->on_synced)
		f->config->on_synced(f);
}

static void on_tick(struct timer *t)
{
	struct informers *f = container_of(t, struct informers, tick);

	update_state(f);
	/* A reader that was inside during the last change kept blocks from being freed. */
	grace_collect(&f->cache->grace);
}

/* The first list becomes visible as a whole, in on_synced(). */
static void publish(struct watch *w)
{
	if (w->is_synced)
		cache_publish(informer_of(w)->informers->cache);
}

static void on_object(struct watch *w, yyjson_val *object)
{
	cache_put(informer_of(w)->informers->cache, informer_of(w)->kind, object);
	publish(w);
}

static void on_deleted(struct watch *w, yyjson_val *object)
{
	cache_remove(informer_of(w)->informers->cache, informer_of(w)->kind, object);
	publish(w);
}

static void on_list(struct watch *w)
{
	cache_begin_list(informer_of(w)->informers->cache, informer_of(w)->kind);
}

static void on_synced(struct watch *w)
{
	cache_end_list(informer_of(w)->informers->cache, informer_of(w)->kind);
	update_state(informer_of(w)->informers);
	(void)malloc_trim(0); /* the lists were much larger than the cache */
}

static void on_failure(struct watch *w, const struct err *err)
{
	struct informers *f = informer_of(w)->informers;

	if (f->config->on_failure)
		f->config->on_failure(f, w->config->path, err);
}

static const struct watch_callbacks events = {
	.on_object = on_object,
	.on_deleted = on_deleted,
	.on_list = on_list,
	.on_synced = on_synced,
	.on_failure = on_failure,
};

void informers_init(struct informers *f, struct api *api, struct cache *cache,
		    const struct informers_config *config)
{
	*f = (struct informers){ .api = api, .cache = cache, .config = config };
	for (enum cache_kind kind = 0; kind < CACHE__COUNT; kind++) {
		struct informer *informer = &f->watches[kind];

		informer->informers = f;
		informer->kind = kind;
		watch_init(&informer->watch, api, &kinds[kind].watch, &events);
	}
	timer_init(&f->tick, api->loop, on_tick);
	timer_start(&f->tick, TICK_MS, TICK_MS);
}

void informers_close(struct informers *f)
{
	for (size_t i = 0; i < CACHE__COUNT; i++)
		watch_close(&f->watches[i].watch);
	timer_close(&f->tick, NULL);
}

void informers_done(struct informers *f)
{
	for (size_t i = 0; i < CACHE__COUNT; i++)
		watch_done(&f->watches[i].watch);
}
