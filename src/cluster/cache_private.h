#pragma once

/* Shared by the parts of the cache: cache.c has the readers' view and the objects of which there is
 * one, cache_namespaces.c, cache_nodes.c and cache_profiles.c have the tables. Included by these
 * four files only. */

#include "cache.h"

void *cache_allocate(size_t size); /* zeroed; aborts when memory runs out */

/* Seeded, so that names cannot be chosen to collide. */
uint32_t cache_hash(const struct cache *c, struct str name);

#define CACHE_FIRST_BUCKETS 64

/* Namespaces: a table that readers use while it changes. All but the first function are for the
 * writer only. */
bool cache_namespace_find(const struct cache *c, struct str name, struct namespace_permission *ret);
void cache_namespaces_init(struct cache *c);
void cache_namespaces_done(struct cache *c);
void cache_namespace_put(struct cache *c, struct str name, yyjson_val *object);
void cache_namespace_remove(struct cache *c, struct str name);
void cache_namespaces_sweep(struct cache *c); /* removes those of an older generation */
size_t cache_namespaces_count(const struct cache *c);

/* Profiles: for the writer only; readers see copies. */
void cache_profile_put(struct cache *c, struct str name, yyjson_val *object);
void cache_profile_remove(struct cache *c, struct str name);
void cache_profiles_sweep(struct cache *c);
void cache_profiles_done(struct cache *c);

/* Nodes: for the writer only; readers see the totals. */
void cache_nodes_init(struct cache *c);
void cache_nodes_done(struct cache *c);
void cache_node_put(struct cache *c, struct str name, yyjson_val *object);
void cache_node_remove(struct cache *c, struct str name);
void cache_nodes_sweep(struct cache *c);
/* Available nodes without the shared pool; texts are the cache's. Returns how many groups. */
size_t cache_nodes_missing_shared(const struct cache *c, struct node_group groups[NODE_GROUPS_MAX]);
