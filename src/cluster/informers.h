#pragma once

/* Keeps a cache (cache.h) up to date with an API server: watches Namespaces, Nodes, the
 * Infrastructure object and the FeatureGate object, and says how fresh that is. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cache.h"
#include "watch.h"

struct informers;

/* Beyond this the facts are no longer taken for the truth, and decisions are made by the rule for
 * that case. The API server itself has to be away so long: nobody asks us then, or something is
 * wrong with our connection alone. */
#define INFORMERS_STALE_MS ((uint64_t)10 * 60 * 1000)

/* As of the last second; any thread. */
struct informers_stats {
	_Atomic uint64_t objects, age_ms, lists, watches, events, too_old, failures;
	atomic_bool is_synced, is_absent;
};

struct informer {
	struct watch watch;
	struct informers *facts;
	enum cache_kind kind;
	struct informers_stats stats;
};

struct informers_config {
	/* On the loop's thread: a list or a watch of `path` failed and is tried again. */
	void (*on_trouble)(struct informers *f, const char *path, const struct err *err);
	void (*on_synced)(struct informers *f); /* all of them, for the first time */
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
