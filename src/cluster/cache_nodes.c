/* A hash table of the writer, with plain pointers: readers see only totals, which are kept up to
 * date with every change instead of being counted over all nodes. A node stores its previous
 * contribution, so that it can be subtracted when the node changes or is removed. */

#include <stdlib.h>
#include <string.h>

#include "cache_private.h"
#include "kube/names.h"

/* The workload types of its cores are stored after the name, each ended by NUL. */
struct cached_node {
	struct cached_node *next;
	TAILQ_ENTRY(cached_node) missing;
	uint32_t hash, generation;
	uint32_t name_n, types_n;
	bool is_reporting, is_schedulable, has_shared;
	char text[];
};

static struct str node_name(const struct cached_node *n)
{
	return (struct str){ n->text, n->name_n };
}

static struct cached_node **find_node(struct cache *c, uint32_t hash, struct str name)
{
	struct cached_node **slot = &c->nodes[hash & (c->n_node_buckets - 1)];

	for (; *slot; slot = &(*slot)->next)
		if ((*slot)->hash == hash && str_eq(node_name(*slot), name))
			break;
	return slot;
}

static void count_type(struct cache *c, const char *name, bool is_new)
{
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
	c->types[i].nodes += is_new ? 1 : (size_t)-1;
	if (c->types[i].nodes)
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
	c->totals.n_schedulable += n->is_schedulable ? one : 0;
	c->totals.n_schedulable_shared += n->is_schedulable && n->has_shared ? one : 0;
	/* Admission names one node that blocks the pools (D12); the list finds the next one without
	 * a search over all nodes. */
	if (n->is_schedulable && !n->has_shared) {
		if (is_new)
			TAILQ_INSERT_TAIL(&c->missing_shared, n, missing);
		else
			TAILQ_REMOVE(&c->missing_shared, n, missing);
	}
	for (; type < end; type += strlen(type) + 1)
		count_type(c, type, is_new);
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

/* "management.workload.openshift.io/cores" gives "management"; "" for other resources. JSON
 * could contain a NUL, which no resource name has. */
static struct str type_of(yyjson_val *resource)
{
	struct str name = doc_str(resource);

	if (!str_ends(name, STR(NAME_CORES_SUFFIX)) || memchr(name.p, '\0', name.n))
		return STR("");
	name.n -= strlen(NAME_CORES_SUFFIX);
	return name;
}

static struct cached_node *node_new(struct str name, yyjson_val *object)
{
	yyjson_val *status = doc_get(object, STR("status"));
	yyjson_val *allocatable = doc_get(status, STR("allocatable"));
	yyjson_val *key, *value;
	struct cached_node *n;
	size_t types_n = 0;
	char *to;

	DOC_EACH_PAIR (allocatable, key, value)
		/* With a NUL each; the allocation is zeroed, so only the names are copied below. */
		types_n += type_of(key).n ? type_of(key).n + 1 : 0;
	n = cache_allocate(sizeof(*n) + name.n + types_n);
	n->name_n = (uint32_t)name.n;
	n->types_n = (uint32_t)types_n;
	n->is_reporting = allocatable || doc_get(status, STR("capacity"));
	n->is_schedulable = !doc_bool(doc_find(object, "/spec/unschedulable"), false);
	n->has_shared = doc_get(allocatable, STR(NAME_SHARED_CPUS)) != NULL;
	memcpy(n->text, name.p, name.n);
	to = n->text + name.n;
	DOC_EACH_PAIR (allocatable, key, value) {
		struct str type = type_of(key);

		(void)value;
		if (!type.n)
			continue;
		memcpy(to, type.p, type.n);
		to += type.n + 1;
	}
	return n;
}

static bool is_same_node(const struct cached_node *a, const struct cached_node *b)
{
	return a->is_reporting == b->is_reporting && a->is_schedulable == b->is_schedulable &&
	       a->has_shared == b->has_shared && a->types_n == b->types_n &&
	       memcmp(a->text + a->name_n, b->text + b->name_n, a->types_n) == 0;
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

struct str cache_node_missing_shared(const struct cache *c)
{
	const struct cached_node *missing = TAILQ_FIRST(&c->missing_shared);

	return missing ? node_name(missing) : STR("");
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
