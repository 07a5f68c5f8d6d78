#include "cache.h"

#include <stdlib.h>
#include <string.h>

#include "backoff.h"
#include "base/macro.h"
#include "kube/names.h"
#include "kube/pod.h"

#define FIRST_BUCKETS 64

/* Immutable but for `next` and `generation`; only the writer looks at the latter. The texts follow
 * one another: name, allowed, legacy. */
struct cached_namespace {
	_Atomic(struct cached_namespace *) next;
	uint32_t hash, generation;
	uint32_t allowed_n, legacy_n;
	uint16_t name_n;
	bool has_allowed, has_legacy;
	char text[];
};

struct cache_table {
	size_t n_buckets, n;
	_Atomic(struct cached_namespace *) buckets[];
};

/* The types it allocates cores for stand behind the name, each ended by NUL. */
struct cached_node {
	struct cached_node *next;
	TAILQ_ENTRY(cached_node) missing;
	uint32_t hash, generation;
	uint32_t name_n, types_n;
	bool is_reporting, is_schedulable, has_shared;
	char text[];
};

/* Everything but the namespaces, as readers see it. Immutable. */
struct cache_view {
	struct admission_state state;
	const struct cache *cache;
	size_t n_types;
	struct str types[];
};

static void *allocate(size_t size)
{
	void *p = calloc(1, size);

	if (!p)
		abort();
	return p;
}

/* Seeded, so that nobody can choose names that all land in one bucket. */
static uint32_t hash_of(const struct cache *c, struct str name)
{
	uint64_t h = c->seed ^ 14695981039346656037u;

	for (size_t i = 0; i < name.n; i++)
		h = (h ^ (unsigned char)name.p[i]) * 1099511628211u;
	h ^= h >> 29;
	h *= 0xbf58476d1ce4e5b9u;
	return (uint32_t)(h >> 32);
}

/* Namespaces. */

static struct str namespace_name(const struct cached_namespace *n)
{
	return (struct str){ n->text, n->name_n };
}

static struct namespace_facts facts_of(const struct cached_namespace *n)
{
	return (struct namespace_facts){
		.allowed = { n->text + n->name_n, n->allowed_n },
		.legacy_allowed = { n->text + n->name_n + n->allowed_n, n->legacy_n },
		.has_allowed = n->has_allowed,
		.has_legacy_allowed = n->has_legacy,
	};
}

static bool find_namespace(const void *owner, struct str name, struct namespace_facts *ret)
{
	const struct cache *c = ((const struct cache_view *)owner)->cache;
	struct cache_table *t = atomic_load(&c->namespaces);
	uint32_t hash = hash_of(c, name);
	struct cached_namespace *n = atomic_load(&t->buckets[hash & (t->n_buckets - 1)]);

	for (; n; n = atomic_load(&n->next))
		if (n->hash == hash && str_eq(namespace_name(n), name)) {
			*ret = facts_of(n);
			return true;
		}
	return false;
}

static struct cache_table *table_new(size_t n_buckets)
{
	struct cache_table *t = allocate(sizeof(*t) + n_buckets * sizeof(t->buckets[0]));

	t->n_buckets = n_buckets;
	return t;
}

/* Where the pointer to it stands, or the end of its chain. */
static _Atomic(struct cached_namespace *) *find_slot(struct cache_table *t, uint32_t hash,
						     struct str name)
{
	_Atomic(struct cached_namespace *) *slot = &t->buckets[hash & (t->n_buckets - 1)];
	struct cached_namespace *n;

	for (; (n = atomic_load(slot)); slot = &n->next)
		if (n->hash == hash && str_eq(namespace_name(n), name))
			break;
	return slot;
}

static struct cached_namespace *namespace_new(struct str name, const struct namespace_facts *f)
{
	struct cached_namespace *n =
		allocate(sizeof(*n) + name.n + f->allowed.n + f->legacy_allowed.n);

	n->name_n = (uint16_t)name.n;
	n->allowed_n = (uint32_t)f->allowed.n;
	n->legacy_n = (uint32_t)f->legacy_allowed.n;
	n->has_allowed = f->has_allowed;
	n->has_legacy = f->has_legacy_allowed;
	memcpy(n->text, name.p, name.n);
	if (f->allowed.n)
		memcpy(n->text + name.n, f->allowed.p, f->allowed.n);
	if (f->legacy_allowed.n)
		memcpy(n->text + name.n + f->allowed.n, f->legacy_allowed.p, f->legacy_allowed.n);
	return n;
}

/* Readers may walk the old chains meanwhile, so the new table gets copies. */
static void grow_table(struct cache *c)
{
	struct cache_table *old = atomic_load(&c->namespaces);
	struct cache_table *t = table_new(old->n_buckets * 2);
	struct cached_namespace *n, *next;

	t->n = old->n;
	for (size_t i = 0; i < old->n_buckets; i++)
		for (n = atomic_load(&old->buckets[i]); n; n = atomic_load(&n->next)) {
			_Atomic(struct cached_namespace *) *head =
				&t->buckets[n->hash & (t->n_buckets - 1)];
			struct namespace_facts facts = facts_of(n);
			struct cached_namespace *copy = namespace_new(namespace_name(n), &facts);

			copy->hash = n->hash;
			copy->generation = n->generation;
			atomic_init(&copy->next, atomic_load(head));
			atomic_init(head, copy);
		}
	atomic_store(&c->namespaces, t);
	for (size_t i = 0; i < old->n_buckets; i++)
		for (n = atomic_load(&old->buckets[i]); n; n = next) {
			next = atomic_load(&n->next);
			grace_retire(&c->grace, n);
		}
	grace_retire(&c->grace, old);
}

static bool is_same(const struct cached_namespace *n, const struct namespace_facts *f)
{
	struct namespace_facts has = facts_of(n);

	return has.has_allowed == f->has_allowed && str_eq(has.allowed, f->allowed) &&
	       has.has_legacy_allowed == f->has_legacy_allowed &&
	       str_eq(has.legacy_allowed, f->legacy_allowed);
}

static void put_namespace(struct cache *c, struct str name, yyjson_val *object)
{
	struct cache_table *t = atomic_load(&c->namespaces);
	struct namespace_facts facts = namespace_facts_of(object);
	uint32_t hash = hash_of(c, name);
	_Atomic(struct cached_namespace *) *slot = find_slot(t, hash, name);
	struct cached_namespace *old = atomic_load(slot), *n;

	if (old && is_same(old, &facts)) {
		old->generation = c->generation[CACHE_NAMESPACES];
		return;
	}
	n = namespace_new(name, &facts);
	n->hash = hash;
	n->generation = c->generation[CACHE_NAMESPACES];
	atomic_init(&n->next, old ? atomic_load(&old->next) : NULL);
	atomic_store(slot, n);
	if (old)
		grace_retire(&c->grace, old);
	else if (++t->n > t->n_buckets)
		grow_table(c);
}

static void unlink_namespace(struct cache *c, _Atomic(struct cached_namespace *) *slot)
{
	struct cached_namespace *n = atomic_load(slot);

	atomic_store(slot, atomic_load(&n->next));
	atomic_load(&c->namespaces)->n--;
	grace_retire(&c->grace, n);
}

static void remove_namespace(struct cache *c, struct str name)
{
	_Atomic(struct cached_namespace *) *slot =
		find_slot(atomic_load(&c->namespaces), hash_of(c, name), name);

	if (atomic_load(slot))
		unlink_namespace(c, slot);
}

static void sweep_namespaces(struct cache *c)
{
	struct cache_table *t = atomic_load(&c->namespaces);

	for (size_t i = 0; i < t->n_buckets; i++) {
		_Atomic(struct cached_namespace *) *slot = &t->buckets[i];
		struct cached_namespace *n;

		while ((n = atomic_load(slot)))
			if (n->generation == c->generation[CACHE_NAMESPACES])
				slot = &n->next;
			else
				unlink_namespace(c, slot);
	}
}

/* Nodes: only their sums are read by others. */

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
	c->types[i].nodes += is_new ? 1 : (size_t)-1;
	if (c->types[i].nodes)
		return;
	free(c->types[i].name);
	c->types[i] = c->types[--c->n_types];
}

/* Into the sums, or out of them. */
static void count_node(struct cache *c, struct cached_node *n, bool is_new)
{
	const size_t one = is_new ? 1 : (size_t)-1; /* wraps around to minus one */
	const char *type = n->text + n->name_n, *end = type + n->types_n;

	c->totals.n += one;
	c->totals.n_reporting += n->is_reporting ? one : 0;
	c->totals.n_schedulable += n->is_schedulable ? one : 0;
	c->totals.n_schedulable_shared += n->is_schedulable && n->has_shared ? one : 0;
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
	struct cached_node **buckets = allocate(n_buckets * sizeof(struct cached_node *)), *n,
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

/* "management.workload.openshift.io/cores" gives "management"; "" for other resources. A NUL cannot
 * be in a resource's name, but it could be in JSON. */
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
		types_n += type_of(key).n ? type_of(key).n + 1 : 0;
	n = allocate(sizeof(*n) + name.n + types_n);
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

/* A kubelet reports every few seconds; mostly nothing that matters has changed. */
static void put_node(struct cache *c, struct str name, yyjson_val *object)
{
	uint32_t hash = hash_of(c, name);
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

static void sweep_nodes(struct cache *c)
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

/* The single objects. NULL: there is none. */

static void set_infrastructure(struct cache *c, yyjson_val *object)
{
	struct infrastructure_facts f = { 0 };
	char *text;

	if (object)
		f = infrastructure_facts_of(object);
	text = allocate(f.partitioning.n + 1);
	if (f.partitioning.n)
		memcpy(text, f.partitioning.p, f.partitioning.n);
	f.partitioning.p = text;
	free(c->partitioning);
	c->partitioning = text;
	c->infrastructure = f;
	c->is_changed = true;
}

static void set_gates(struct cache *c, yyjson_val *object)
{
	bool pools = false;
	yyjson_val *gate;

	DOC_EACH_ITEM (doc_find(object, "/spec/customNoUpgrade/enabled"), gate)
		if (str_eq(doc_str(gate), STR(NAME_GATE_POOLS)))
			pools = true;
	c->is_changed |= pools != c->gate_pools;
	c->gate_pools = pools;
}

static void set_single(struct cache *c, enum cache_kind kind, yyjson_val *object)
{
	c->is_seen[kind] = object != NULL;
	if (kind == CACHE_INFRASTRUCTURE)
		set_infrastructure(c, object);
	else
		set_gates(c, object);
}

/* What readers see. */

static bool has_cores(const void *owner, struct str type)
{
	const struct cache_view *v = owner;

	for (size_t i = 0; i < v->n_types; i++)
		if (str_eq(v->types[i], type))
			return true;
	return false;
}

static struct str copy_to(char **to, struct str s)
{
	struct str copy = { *to, s.n };

	if (s.n)
		memcpy(*to, s.p, s.n);
	*to += s.n;
	return copy;
}

static struct cache_view *view_new(const struct cache *c)
{
	const struct cached_node *missing = TAILQ_FIRST(&c->missing_shared);
	struct str missing_name = missing ? node_name(missing) : STR("");
	size_t text_n = missing_name.n + c->infrastructure.partitioning.n;
	struct cache_view *v;
	char *text;

	for (size_t i = 0; i < c->n_types; i++)
		text_n += strlen(c->types[i].name);
	v = allocate(sizeof(*v) + c->n_types * sizeof(v->types[0]) + text_n);
	text = (char *)&v->types[c->n_types];
	v->cache = c;
	v->n_types = c->n_types;
	for (size_t i = 0; i < c->n_types; i++)
		v->types[i] = copy_to(&text, str_from(c->types[i].name));
	v->state = (struct admission_state){
		.settings = c->settings,
		.infrastructure = c->infrastructure,
		.nodes = c->totals,
		.is_synced = c->is_synced,
		.owner = v,
		.find_namespace = find_namespace,
		.has_cores = has_cores,
	};
	v->state.settings.pools |= c->gate_pools;
	v->state.infrastructure.partitioning = copy_to(&text, c->infrastructure.partitioning);
	v->state.nodes.missing_shared = copy_to(&text, missing_name);
	return v;
}

void cache_publish(struct cache *c)
{
	if (!c->is_changed)
		return;
	c->is_changed = false;
	grace_retire(&c->grace, atomic_exchange(&c->view, view_new(c)));
	grace_collect(&c->grace);
}

const struct admission_state *cache_acquire(struct cache *c, size_t reader)
{
	grace_enter(&c->grace, reader);
	return &atomic_load(&c->view)->state;
}

void cache_release(struct cache *c, size_t reader)
{
	grace_leave(&c->grace, reader);
}

/* The writer's words. */

void cache_put(struct cache *c, enum cache_kind kind, yyjson_val *object)
{
	struct str name = object_name(object);

	if (!name.n || name.n > UINT8_MAX) /* Kubernetes has none above 253 bytes */
		return;
	if (kind == CACHE_NAMESPACES)
		put_namespace(c, name, object);
	else if (kind == CACHE_NODES)
		put_node(c, name, object);
	else if (str_eq(name, STR(NAME_INFRASTRUCTURE)))
		set_single(c, kind, object);
}

void cache_remove(struct cache *c, enum cache_kind kind, yyjson_val *object)
{
	struct str name = object_name(object);

	if (kind == CACHE_NAMESPACES) {
		remove_namespace(c, name);
	} else if (kind == CACHE_NODES) {
		struct cached_node **slot = find_node(c, hash_of(c, name), name);

		if (*slot)
			unlink_node(c, slot);
	} else if (str_eq(name, STR(NAME_INFRASTRUCTURE))) {
		set_single(c, kind, NULL);
	}
}

void cache_begin_list(struct cache *c, enum cache_kind kind)
{
	c->generation[kind]++;
	c->is_seen[kind] = false;
}

void cache_end_list(struct cache *c, enum cache_kind kind)
{
	if (kind == CACHE_NAMESPACES)
		sweep_namespaces(c);
	else if (kind == CACHE_NODES)
		sweep_nodes(c);
	else if (!c->is_seen[kind])
		set_single(c, kind, NULL);
}

void cache_set_synced(struct cache *c, bool is_synced)
{
	c->is_changed |= c->is_synced != is_synced;
	c->is_synced = is_synced;
}

size_t cache_count(const struct cache *c, enum cache_kind kind)
{
	return kind == CACHE_NAMESPACES	    ? atomic_load(&c->namespaces)->n :
	       kind == CACHE_NODES	    ? c->n_nodes :
	       kind == CACHE_INFRASTRUCTURE ? c->infrastructure.is_present :
					      c->is_seen[kind];
}

void cache_init(struct cache *c, const struct admission_settings *settings, size_t readers)
{
	*c = (struct cache){ .settings = *settings, .seed = backoff_random() };
	grace_init(&c->grace, readers);
	TAILQ_INIT(&c->missing_shared);
	atomic_init(&c->namespaces, table_new(FIRST_BUCKETS));
	c->n_node_buckets = FIRST_BUCKETS;
	c->nodes = allocate(c->n_node_buckets * sizeof(struct cached_node *));
	atomic_init(&c->view, view_new(c));
}

void cache_done(struct cache *c)
{
	struct cache_table *t = atomic_load(&c->namespaces);

	c->generation[CACHE_NAMESPACES]++;
	c->generation[CACHE_NODES]++;
	sweep_namespaces(c);
	sweep_nodes(c);
	free(t);
	free(c->nodes);
	free(c->types);
	free(c->partitioning);
	free(atomic_load(&c->view));
	grace_done(&c->grace);
}
