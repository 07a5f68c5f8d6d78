#pragma once

/* Keeps a cache (cache.h) up to date with an API server: watches Namespaces, Nodes, the
 * Infrastructure object and the FeatureGate object, and says how fresh that is. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cache.h"
#include "watch.h"

struct facts;

/* Beyond this the facts are no longer taken for the truth, and decisions are made by the rule for
 * that case. The API server itself has to be away so long: nobody asks us then, or something is
 * wrong with our connection alone. */
#define FACTS_STALE_MS ((uint64_t)10 * 60 * 1000)

/* As of the last second; any thread. */
struct facts_stats {
	_Atomic uint64_t objects, age_ms, lists, watches, events, too_old, failures;
	atomic_bool is_synced, is_absent;
};

struct facts_watch {
	struct watch watch;
	struct facts *facts;
	enum cache_kind kind;
	struct facts_stats stats;
};

struct facts_config {
	/* On the loop's thread: a list or a watch of `path` failed and is tried again. */
	void (*on_trouble)(struct facts *f, const char *path, const struct err *err);
	void (*on_synced)(struct facts *f); /* all of them, for the first time */
};

struct facts {
	struct api *api;
	struct cache *cache;
	const struct facts_config *config;
	struct facts_watch watches[CACHE__COUNT];
	struct timer tick;
	bool was_synced;
	atomic_bool is_ready; /* any thread */
};

void facts_init(struct facts *f, struct api *api, struct cache *cache,
		const struct facts_config *config);
void facts_close(struct facts *f);
void facts_done(struct facts *f); /* after the loop is done */

const char *facts_kind_name(enum cache_kind kind); /* "Namespace"... */
