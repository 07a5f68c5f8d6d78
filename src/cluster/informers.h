#pragma once

/* Keeps a cache (cache.h) up to date with an API server: watches Namespaces, Nodes, the
 * Infrastructure object, the FeatureGate object and PerformanceProfiles, and tracks how old the
 * content is. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cache.h"
#include "watch.h"

struct informers;

/* A cache that was not current for this long is not used any more, and admission decides by its
 * rule for an unknown state. Shorter outages do not matter: while the API server is unreachable it
 * sends no requests either. */
#define INFORMERS_STALE_MS ((uint64_t)10 * 60 * 1000)

/* Updated once a second; read by any thread. */
struct informers_stats {
	_Atomic uint64_t objects, age_ms, lists, watches, events, too_old, failures;
	atomic_bool is_synced, is_absent;
};

struct informer {
	struct watch watch;
	struct informers *informers;
	enum cache_kind kind;
	struct informers_stats stats;
};

struct informers_config {
	/* On the loop's thread: a list or a watch of `path` failed and is retried. */
	void (*on_failure)(struct informers *f, const char *path, const struct err *err);
	void (*on_synced)(struct informers *f); /* all kinds, for the first time */
};

struct informers {
	struct api *api;
	struct cache *cache;
	const struct informers_config *config;
	struct informer watches[CACHE__COUNT];
	struct timer tick;
	bool was_synced;
	atomic_bool is_ready; /* any thread */
};

void informers_init(struct informers *f, struct api *api, struct cache *cache,
		    const struct informers_config *config);
void informers_close(struct informers *f);
void informers_done(struct informers *f); /* after the loop is done */

const char *informers_kind_name(enum cache_kind kind); /* "Namespace"... */
