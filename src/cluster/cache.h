#pragma once

/* The fields of cluster objects that admission needs, about 100 bytes per object; the objects
 * themselves are not stored. One thread writes; any number of others read without locks, as a
 * struct admission_state. informers.h fills it. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "admission/admission_state.h"
#include "codec/doc.h"
#include "grace.h"

enum cache_kind {
	CACHE_NAMESPACES,
	CACHE_NODES,
	CACHE_INFRASTRUCTURE,
	CACHE_FEATURE_GATES,
	CACHE_PROFILES,
	CACHE__COUNT
};

struct cache_table;
struct cache_view;
struct cached_node;

/* A workload type, and the nodes that have its cores. */
struct cache_type {
	char *name;
	struct cores_count nodes;
};

/* A profile, and the label of its nodes. */
struct cached_profile {
	char *name, *selector;
	uint32_t generation; /* of the list that had it last */
};

struct cache {
	/* Read by all threads. */
	struct grace grace;
	_Atomic(struct cache_view *) view;
	_Atomic(struct cache_table *) namespaces;

	/* Used by the writer only. */
	struct admission_settings settings;
	struct infrastructure_status infrastructure;
	char *partitioning; /* owns the text of infrastructure.partitioning */
	bool gate_pools;
	struct cached_node **nodes; /* buckets */
	size_t n_nodes, n_node_buckets;
	struct node_totals totals;
	TAILQ_HEAD(cached_node_list, cached_node) missing_shared;
	struct cache_type *types;
	size_t n_types;
	struct cached_profile *profiles;
	size_t n_profiles;
	bool has_profiles; /* a list of them was complete */
	uint32_t seed;
	uint32_t generation[CACHE__COUNT]; /* of the list being read, or last read */
	bool is_seen[CACHE__COUNT];	   /* of the two single objects: in this list */
	bool is_synced;
	bool is_changed; /* since the last cache_publish() */
};

/* `readers` is how many threads read. */
void cache_init(struct cache *c, const struct admission_settings *settings, size_t readers);
void cache_done(struct cache *c);

/* Readers. Each has a number below `readers`. */
const struct admission_state *cache_acquire(struct cache *c, size_t reader);
void cache_release(struct cache *c, size_t reader);

/* The writer. Namespaces are visible at once; the rest with the next cache_publish(). Objects are
 * only read during the call. Objects without a name are ignored. */
void cache_put(struct cache *c, enum cache_kind kind, yyjson_val *object);
void cache_remove(struct cache *c, enum cache_kind kind, yyjson_val *object);
void cache_begin_list(struct cache *c, enum cache_kind kind);
void cache_end_list(struct cache *c, enum cache_kind kind); /* removes what was not put since */
void cache_set_synced(struct cache *c, bool is_synced);
void cache_publish(struct cache *c);

const struct admission_state *cache_writer_state(const struct cache *c); /* the published one */
size_t cache_count(const struct cache *c, enum cache_kind kind);	 /* the writer only */

/* A node that was created after `since`, a time as objects have it, and has neither cores nor
 * Pinfold's taint. The writer only. */
bool cache_find_unpartitioned(const struct cache *c, const char *since, struct str *ret_name);
