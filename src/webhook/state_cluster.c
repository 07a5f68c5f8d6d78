#include "state_cluster.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/log.h"
#include "base/macro.h"
#include "net/prometheus.h"

#define COMPLAIN_MS 30000

static struct state_cluster *of(struct state_source *source)
{
	return container_of(source, struct state_cluster, source);
}

/* Every try fails while the API server is away; one line in a while is enough. */
static void on_trouble(struct facts *f, const char *path, const struct err *err)
{
	struct state_cluster *s = container_of(f, struct state_cluster, facts);
	uint64_t now_ms = loop_now_ms(s->api.loop);

	if (s->complaints++ && now_ms - s->complained_ms < COMPLAIN_MS)
		return;
	s->complained_ms = now_ms;
	log_warning("cannot follow the API server, trying again", LOG_STR("path", str_from(path)),
		    LOG_ERR(err));
}

static void on_synced(struct facts *f)
{
	struct state_cluster *s = container_of(f, struct state_cluster, facts);

	log_info("caches are synchronised",
		 LOG_INT("namespaces", cache_count(&s->cache, CACHE_NAMESPACES)),
		 LOG_INT("nodes", cache_count(&s->cache, CACHE_NODES)));
}

static const struct facts_config facts_config = { .on_trouble = on_trouble,
						  .on_synced = on_synced };

static int start(struct state_source *source, struct loop *loop, unsigned threads, struct err *err)
{
	struct state_cluster *s = of(source);
	int r;

	cache_init(&s->cache, &s->settings, threads);
	s->is_started = true;
	r = api_init(&s->api, loop, &s->access, s->user_agent, err);
	facts_init(&s->facts, &s->api, &s->cache, &facts_config);
	log_info("following the API server", LOG_STR("host", str_from(s->access.host)),
		 LOG_INT("port", s->access.port));
	return r;
}

static void stop(struct state_source *source)
{
	struct state_cluster *s = of(source);

	if (!s->is_started)
		return;
	facts_close(&s->facts);
	api_close(&s->api);
}

static const struct admission_state *acquire(struct state_source *source, unsigned thread)
{
	return cache_acquire(&of(source)->cache, thread);
}

static void release(struct state_source *source, unsigned thread)
{
	cache_release(&of(source)->cache, thread);
}

static bool is_ready(struct state_source *source, const char **ret_missing)
{
	struct facts *f = &of(source)->facts;

	if (atomic_load(&f->is_ready))
		return true;
	*ret_missing = "caches are out of date";
	for (size_t i = 0; i < CACHE__COUNT; i++)
		if (!atomic_load(&f->watches[i].stats.is_synced))
			*ret_missing = "caches are not synchronised";
	return false;
}

static void reload(struct state_source *source)
{
	(void)source;
	log_info("the API server is followed all the time, nothing to read again");
}

/* One family, a sample a kind. */
static void add_family(const struct facts *f, struct strbuf *b, const char *name, const char *type,
		       const char *help, size_t offset)
{
	prometheus_family(b, name, type, help);
	for (enum cache_kind kind = 0; kind < CACHE__COUNT; kind++) {
		const struct prometheus_label labels[] = { { "kind", facts_kind_name(kind) },
							   { 0 } };
		const void *field = (const char *)&f->watches[kind].stats + offset;

		prometheus_uint(b, name, labels,
				atomic_load_explicit((const _Atomic uint64_t *)field,
						     memory_order_relaxed));
	}
}

static void add_age(const struct facts *f, struct strbuf *b)
{
	prometheus_family(b, "pinfold_cache_age_seconds", "gauge",
			  "Since the cache was last known to be current");
	for (enum cache_kind kind = 0; kind < CACHE__COUNT; kind++) {
		const struct prometheus_label labels[] = { { "kind", facts_kind_name(kind) },
							   { 0 } };

		prometheus_double(b, "pinfold_cache_age_seconds", labels,
				  (double)atomic_load(&f->watches[kind].stats.age_ms) / 1000);
	}
}

#define AT(field) offsetof(struct facts_stats, field)

static void add_metrics(struct state_source *source, struct strbuf *b)
{
	const struct facts *f = &of(source)->facts;

	add_family(f, b, "pinfold_state_objects", "gauge", "Objects that decisions rest on",
		   AT(objects));
	add_age(f, b);
	add_family(f, b, "pinfold_cache_lists_total", "counter", "Collections read as a whole",
		   AT(lists));
	add_family(f, b, "pinfold_watch_starts_total", "counter", "Watches begun or resumed",
		   AT(watches));
	add_family(f, b, "pinfold_watch_events_total", "counter", "Changes and bookmarks received",
		   AT(events));
	add_family(f, b, "pinfold_watch_too_old_total", "counter",
		   "Versions that the API server no longer had: the collection was read again",
		   AT(too_old));
	add_family(f, b, "pinfold_watch_failures_total", "counter", "Lists and watches that failed",
		   AT(failures));
}

int state_cluster_init(struct state_cluster *s, const struct state_cluster_config *config,
		       struct err *err)
{
	*s = (struct state_cluster){
		.source = { .start = start,
			    .stop = stop,
			    .acquire = acquire,
			    .release = release,
			    .is_ready = is_ready,
			    .reload = reload,
			    .add_metrics = add_metrics },
		.settings = config->settings,
	};
	arena_init(&s->arena, 0);
	(void)snprintf(s->user_agent, sizeof(s->user_agent), "pinfold-webhook/%s", config->version);
	if (config->kubeconfig)
		return access_read_kubeconfig(config->kubeconfig, config->context, &s->arena,
					      &s->access, err);
	return access_in_pod(getenv("KUBERNETES_SERVICE_HOST"), getenv("KUBERNETES_SERVICE_PORT"),
			     ACCESS_POD_DIR, &s->arena, &s->access, err);
}

void state_cluster_done(struct state_cluster *s)
{
	if (s->is_started) {
		facts_done(&s->facts);
		api_done(&s->api);
		cache_done(&s->cache);
	}
	arena_done(&s->arena);
}
