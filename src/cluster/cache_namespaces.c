/* A hash table with chains that one thread changes while others search it without a lock. An entry
 * is complete before it is linked, and is never changed afterwards in what readers use; a change
 * links a new entry in its position. An entry that was unlinked keeps its `next`: a reader that
 * stands on it still finds the rest of the chain, and grace.h keeps the entry until that reader has
 * left. */

#include <stdlib.h>
#include <string.h>

#include "cache_private.h"

/* Immutable except `next` and `generation`, which only the writer reads. The texts are stored one
 * after another: name, allowed, legacy. */
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

static struct str namespace_name(const struct cached_namespace *n)
{
	return (struct str){ n->text, n->name_n };
}

static struct namespace_permission permission_of(const struct cached_namespace *n)
{
	return (struct namespace_permission){
		.allowed = { n->text + n->name_n, n->allowed_n },
		.legacy_allowed = { n->text + n->name_n + n->allowed_n, n->legacy_n },
		.has_allowed = n->has_allowed,
		.has_legacy_allowed = n->has_legacy,
	};
}

bool cache_namespace_find(const struct cache *c, struct str name, struct namespace_permission *ret)
{
	/* Loaded once: table and chain must belong together while the writer replaces the table. */
	struct cache_table *t = atomic_load(&c->namespaces);
	uint32_t hash = cache_hash(c, name);
	struct cached_namespace *n = atomic_load(&t->buckets[hash & (t->n_buckets - 1)]);

	for (; n; n = atomic_load(&n->next))
		if (n->hash == hash && str_eq(namespace_name(n), name)) {
			*ret = permission_of(n);
			return true;
		}
	return false;
}

static struct cache_table *table_new(size_t n_buckets)
{
	struct cache_table *t = cache_allocate(sizeof(*t) + n_buckets * sizeof(t->buckets[0]));

	t->n_buckets = n_buckets;
	return t;
}

/* The pointer to the entry, or the end of its chain. */
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

static struct cached_namespace *namespace_new(struct str name,
					      const struct namespace_permission *permission)
{
	struct cached_namespace *n = cache_allocate(sizeof(*n) + name.n + permission->allowed.n +
						    permission->legacy_allowed.n);

	n->name_n = (uint16_t)name.n;
	n->allowed_n = (uint32_t)permission->allowed.n;
	n->legacy_n = (uint32_t)permission->legacy_allowed.n;
	n->has_allowed = permission->has_allowed;
	n->has_legacy = permission->has_legacy_allowed;
	memcpy(n->text, name.p, name.n);
	if (permission->allowed.n)
		memcpy(n->text + name.n, permission->allowed.p, permission->allowed.n);
	if (permission->legacy_allowed.n)
		memcpy(n->text + name.n + permission->allowed.n, permission->legacy_allowed.p,
		       permission->legacy_allowed.n);
	return n;
}

/* Readers may follow the old chains meanwhile, so the new table gets copies of the entries. */
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
			struct namespace_permission permission = permission_of(n);
			struct cached_namespace *copy =
				namespace_new(namespace_name(n), &permission);

			copy->hash = n->hash;
			copy->generation = n->generation;
			atomic_init(&copy->next, atomic_load(head));
			atomic_init(head, copy);
		}
	/* Searches that began before see the old table with all its entries, later ones the new
	 * table. */
	atomic_store(&c->namespaces, t);
	for (size_t i = 0; i < old->n_buckets; i++)
		for (n = atomic_load(&old->buckets[i]); n; n = next) {
			next = atomic_load(&n->next);
			grace_retire(&c->grace, n);
		}
	grace_retire(&c->grace, old);
}

static bool is_same(const struct cached_namespace *n, const struct namespace_permission *permission)
{
	struct namespace_permission has = permission_of(n);

	return has.has_allowed == permission->has_allowed &&
	       str_eq(has.allowed, permission->allowed) &&
	       has.has_legacy_allowed == permission->has_legacy_allowed &&
	       str_eq(has.legacy_allowed, permission->legacy_allowed);
}

void cache_namespace_put(struct cache *c, struct str name, yyjson_val *object)
{
	struct cache_table *t = atomic_load(&c->namespaces);
	struct namespace_permission permission = namespace_permission_of(object);
	uint32_t hash = cache_hash(c, name);
	_Atomic(struct cached_namespace *) *slot = find_slot(t, hash, name);
	struct cached_namespace *old = atomic_load(slot), *n;

	if (old && is_same(old, &permission)) {
		/* Most events change other fields: nothing is allocated or retired for them. */
		old->generation = c->generation[CACHE_NAMESPACES];
		return;
	}
	n = namespace_new(name, &permission);
	n->hash = hash;
	n->generation = c->generation[CACHE_NAMESPACES];
	atomic_init(&n->next, old ? atomic_load(&old->next) : NULL);
	/* One store replaces the entry: a search finds either the old or the new one. */
	atomic_store(slot, n);
	if (old)
		grace_retire(&c->grace, old);
	else if (++t->n > t->n_buckets) /* more than one entry per bucket on average */
		grow_table(c);
}

static void unlink_namespace(struct cache *c, _Atomic(struct cached_namespace *) *slot)
{
	struct cached_namespace *n = atomic_load(slot);

	atomic_store(slot, atomic_load(&n->next));
	atomic_load(&c->namespaces)->n--;
	grace_retire(&c->grace, n);
}

void cache_namespace_remove(struct cache *c, struct str name)
{
	_Atomic(struct cached_namespace *) *slot =
		find_slot(atomic_load(&c->namespaces), cache_hash(c, name), name);

	if (atomic_load(slot))
		unlink_namespace(c, slot);
}

void cache_namespaces_sweep(struct cache *c)
{
	struct cache_table *t = atomic_load(&c->namespaces);

	for (size_t i = 0; i < t->n_buckets; i++) {
		_Atomic(struct cached_namespace *) *slot = &t->buckets[i];
		struct cached_namespace *n;

		while ((n = atomic_load(slot)))
			/* unlink_namespace() stores the next entry in this slot, so the slot is
			 * read again. */
			if (n->generation == c->generation[CACHE_NAMESPACES])
				slot = &n->next;
			else
				unlink_namespace(c, slot);
	}
}

size_t cache_namespaces_count(const struct cache *c)
{
	return atomic_load(&c->namespaces)->n;
}

void cache_namespaces_init(struct cache *c)
{
	atomic_init(&c->namespaces, table_new(CACHE_FIRST_BUCKETS));
}

void cache_namespaces_done(struct cache *c)
{
	/* No entry has the new generation: the sweep removes all. */
	c->generation[CACHE_NAMESPACES]++;
	cache_namespaces_sweep(c);
	free(atomic_load(&c->namespaces));
}
