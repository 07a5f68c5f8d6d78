#pragma once

/* What the parts of the cache share: cache.c has the view that readers see and the single objects,
 * cache_namespaces.c and cache_nodes.c the many ones. For those three files alone. */

#include "cache.h"

void *cache_allocate(size_t size); /* zeroed; aborts when there is none */

/* Seeded, so that nobody can choose names that all land in one bucket. */
uint32_t cache_hash(const struct cache *c, struct str name);

#define CACHE_FIRST_BUCKETS 64

/* Namespaces, a table that readers walk while it changes. Each of these but the first is the
 * writer's. */
bool cache_namespace_find(const struct cache *c, struct str name, struct namespace_permission *ret);
void cache_namespaces_init(struct cache *c);
void cache_namespaces_done(struct cache *c);
void cache_namespace_put(struct cache *c, struct str name, yyjson_val *object);
void cache_namespace_remove(struct cache *c, struct str name);
void cache_namespaces_sweep(struct cache *c); /* those of an older generation */
size_t cache_namespaces_count(const struct cache *c);

/* Nodes, the writer's alone: others read their sums. */
void cache_nodes_init(struct cache *c);
void cache_nodes_done(struct cache *c);
void cache_node_put(struct cache *c, struct str name, yyjson_val *object);
void cache_node_remove(struct cache *c, struct str name);
void cache_nodes_sweep(struct cache *c);
struct str cache_node_missing_shared(const struct cache *c); /* one of them, or "" */
