/* A hash table of the writer, with plain pointers: readers see only totals, which are kept up to
 * date with every change instead of being counted over all nodes. A node stores its previous
 * contribution, so that it can be subtracted when the node changes or is removed. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "cache_private.h"

/* After the name, text has the workload types of its cores, each ended by NUL, then its taints. */
struct cached_node {
	struct cached_node *next;
	TAILQ_ENTRY(cached_node) missing;
	uint32_t hash, generation;
	uint32_t name_n, types_n, taints_n;
	bool is_reporting, is_available, has_shared;
	bool is_unpartitioned; /* neither cores nor Pinfold's taint */
	char created[24];      /* as in the object: such texts compare like times */
	char text[];
};

static struct str node_name(const struct cached_node *n)
{
	return (struct str){ n->text, n->name_n };
}

static struct str node_taints(const struct cached_node *n)
{
	return (struct str){ n->text + n->name_n + n->types_n, n->taints_n };
}

static struct cached_node **find_node(struct cache *c, uint32_t hash, struct str name)
{
	struct cached_node **slot = &c->nodes[hash & (c->n_node_buckets - 1)];

	for (; *slot; slot = &(*slot)->next)
		if ((*slot)->hash == hash && str_eq(node_name(*slot), name))
			break;
	return slot;
}

static void count_type(struct cache *c, const char *name, bool is_new, bool is_available)
{
	const size_t one = is_new ? 1 : (size_t)-1; /* wraps around to minus one */
	size_t i = 0;

	while (i < c->n_types && strcmp(c->types[i].name, name) != 0)
		i++;
	if (is_new && i == c->n_types) {
		c->types = realloc(c->types, (c->n_types + 1) * sizeof(*c->types));
		if (!c->types)
			abort();
		c->types[c->n_types++] = (struct cache_type){ .name = strdup(name) };
	}
	/* The last node of a type removes it; the order of the types has no meaning. */
	c->types[i].nodes.n += one;
	c->types[i].nodes.n_available += is_available ? one : 0;
	if (c->types[i].nodes.n)
		return;
	free(c->types[i].name);
	c->types[i] = c->types[--c->n_types];
}

/* Adds the node to the totals, or subtracts it. */
static void count_node(struct cache *c, struct cached_node *n, bool is_new)
{
	const size_t one = is_new ? 1 : (size_t)-1; /* wraps around to minus one */
	const char *type = n->text + n->name_n, *end = type + n->types_n;

	c->totals.n += one;
	c->totals.n_reporting += n->is_reporting ? one : 0;
	c->totals.n_available += n->is_available ? one : 0;
	c->totals.n_shared += n->has_shared ? one : 0;
	/* Admission names a node that blocks the pools (D12); the list finds such nodes without a
	 * search over all. */
	if (n->is_available && !n->has_shared) {
		if (is_new)
			TAILQ_INSERT_TAIL(&c->missing_shared, n, missing);
		else
			TAILQ_REMOVE(&c->missing_shared, n, missing);
	}
	for (; type < end; type += strlen(type) + 1)
		count_type(c, type, is_new, n->is_available);
	c->is_changed = true;
}

static void grow_nodes(struct cache *c)
{
	size_t n_buckets = c->n_node_buckets * 2;
	struct cached_node **buckets = cache_allocate(n_buckets * sizeof(struct cached_node *)), *n,
			   *next;

	for (size_t i = 0; i < c->n_node_buckets; i++)
		for (n = c->nodes[i]; n; n = next) {
			next = n->next;
			n->next = buckets[n->hash & (n_buckets - 1)];
			buckets[n->hash & (n_buckets - 1)] = n;
		}
	free(c->nodes);
	c->nodes = buckets;
	c->n_node_buckets = n_buckets;
}

static struct cached_node *node_new(struct str name, yyjson_val *object)
{
	yyjson_val *allocatable = doc_find(object, "/status/allocatable");
	CLEANUP(arena_done) struct arena a;
	yyjson_val *key, *value;
	struct cached_node *n;
	struct node_facts f;
	size_t types_n = 0;
	char *to;

	arena_init(&a, 0);
	f = node_facts_of(object, &a);
	DOC_EACH_PAIR (allocatable, key, value)
		/* With a NUL each; the allocation is zeroed, so only the names are copied below. */
		types_n += cores_type_of(key).n ? cores_type_of(key).n + 1 : 0;
	n = cache_allocate(sizeof(*n) + name.n + types_n + f.taints.n);
	n->name_n = (uint32_t)name.n;
	n->types_n = (uint32_t)types_n;
	n->taints_n = (uint32_t)f.taints.n;
	n->is_reporting = f.is_reporting;
	n->is_available = f.is_available;
	n->has_shared = f.has_shared;
	n->is_unpartitioned = !f.has_cores && !f.has_taint;
	(void)snprintf(n->created, sizeof(n->created), PRI_STR,
		       FMT_STR(doc_str(doc_find(object, "/metadata/creationTimestamp"))));
	memcpy(n->text, name.p, name.n);
	to = n->text + name.n;
	DOC_EACH_PAIR (allocatable, key, value) {
		struct str type = cores_type_of(key);

		(void)value;
		if (!type.n)
			continue;
		memcpy(to, type.p, type.n);
		to += type.n + 1;
	}
	if (f.taints.n)
		memcpy(to, f.taints.p, f.taints.n);
	return n;
}

static bool is_same_node(const struct cached_node *a, const struct cached_node *b)
{
	return a->is_reporting == b->is_reporting && a->is_available == b->is_available &&
	       a->has_shared == b->has_shared && a->types_n == b->types_n &&
	       a->taints_n == b->taints_n && a->is_unpartitioned == b->is_unpartitioned &&
	       strcmp(a->created, b->created) == 0 &&
	       memcmp(a->text + a->name_n, b->text + b->name_n, a->types_n + a->taints_n) == 0;
}

/* A kubelet updates its Node every few seconds; mostly no relevant field has changed. */
void cache_node_put(struct cache *c, struct str name, yyjson_val *object)
{
	uint32_t hash = cache_hash(c, name);
	struct cached_node **slot = find_node(c, hash, name), *old = *slot;
	struct cached_node *n = node_new(name, object);

	if (old && is_same_node(old, n)) {
		old->generation = c->generation[CACHE_NODES];
		free(n);
		return;
	}
	n->hash = hash;
	n->generation = c->generation[CACHE_NODES];
	n->next = old ? old->next : NULL;
	*slot = n;
	/* Before the old one is subtracted: a type that both have would otherwise be removed and
	 * added again. */
	count_node(c, n, true);
	if (old) {
		count_node(c, old, false);
		free(old);
	} else if (++c->n_nodes > c->n_node_buckets) {
		grow_nodes(c);
	}
}

static void unlink_node(struct cache *c, struct cached_node **slot)
{
	struct cached_node *n = *slot;

	*slot = n->next;
	count_node(c, n, false);
	c->n_nodes--;
	free(n);
}

void cache_node_remove(struct cache *c, struct str name)
{
	struct cached_node **slot = find_node(c, cache_hash(c, name), name);

	if (*slot)
		unlink_node(c, slot);
}

void cache_nodes_sweep(struct cache *c)
{
	for (size_t i = 0; i < c->n_node_buckets; i++) {
		struct cached_node **slot = &c->nodes[i];

		while (*slot)
			if ((*slot)->generation == c->generation[CACHE_NODES])
				slot = &(*slot)->next;
			else
				unlink_node(c, slot);
	}
}

size_t cache_nodes_missing_shared(const struct cache *c, struct node_group groups[NODE_GROUPS_MAX])
{
	const struct cached_node *node;
	size_t n = 0;

	for (node = TAILQ_FIRST(&c->missing_shared); node; node = TAILQ_NEXT(node, missing))
		node_groups_add(groups, &n, node_name(node), node_taints(node));
	return n;
}

bool cache_find_unpartitioned(const struct cache *c, const char *since, struct str *ret_name)
{
	for (size_t i = 0; i < c->n_node_buckets; i++)
		for (const struct cached_node *n = c->nodes[i]; n; n = n->next)
			if (n->is_unpartitioned && strcmp(n->created, since) > 0) {
				*ret_name = node_name(n);
				return true;
			}
	return false;
}

void cache_nodes_init(struct cache *c)
{
	TAILQ_INIT(&c->missing_shared);
	c->n_node_buckets = CACHE_FIRST_BUCKETS;
	c->nodes = cache_allocate(c->n_node_buckets * sizeof(struct cached_node *));
}

void cache_nodes_done(struct cache *c)
{
	c->generation[CACHE_NODES]++;
	cache_nodes_sweep(c);
	free(c->nodes);
	/* Their names were freed with the last node of each. */
	free(c->types);
}
