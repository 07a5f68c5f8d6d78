/* The profiles of a cluster, of which there are few: an array of the writer. Readers see copies in
 * the view. */

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "cache_private.h"

static struct cached_profile *find(struct cache *c, struct str name)
{
	for (size_t i = 0; i < c->n_profiles; i++)
		if (str_eq(str_from(c->profiles[i].name), name))
			return &c->profiles[i];
	return NULL;
}

static char *copy(struct str s)
{
	char *text = cache_allocate(s.n + 1);

	if (s.n)
		memcpy(text, s.p, s.n);
	return text;
}

static struct cached_profile *add(struct cache *c, struct str name)
{
	struct cached_profile *grown =
		realloc(c->profiles, (c->n_profiles + 1) * sizeof(*c->profiles));

	if (!grown)
		abort();
	c->profiles = grown;
	c->profiles[c->n_profiles] = (struct cached_profile){ .name = copy(name) };
	return &c->profiles[c->n_profiles++];
}

static void drop(struct cache *c, struct cached_profile *p)
{
	const struct cached_profile gone = *p;

	*p = c->profiles[--c->n_profiles]; /* their order has no meaning */
	free(gone.name);
	free(gone.selector);
	c->is_changed = true;
}

void cache_profile_put(struct cache *c, struct str name, yyjson_val *object)
{
	CLEANUP(arena_done) struct arena a;
	struct cached_profile *p = find(c, name);
	struct str selector;

	arena_init(&a, 0);
	selector = profile_ref_of(object, &a).selector;
	if (!p)
		p = add(c, name);
	p->generation = c->generation[CACHE_PROFILES];
	if (p->selector && str_eq(str_from(p->selector), selector))
		return; /* most changes are of the status */
	free(p->selector);
	p->selector = copy(selector);
	c->is_changed = true;
}

void cache_profile_remove(struct cache *c, struct str name)
{
	struct cached_profile *p = find(c, name);

	if (p)
		drop(c, p);
}

void cache_profiles_sweep(struct cache *c)
{
	for (size_t i = c->n_profiles; i > 0; i--)
		if (c->profiles[i - 1].generation != c->generation[CACHE_PROFILES])
			drop(c, &c->profiles[i - 1]);
	c->is_changed |= !c->has_profiles;
	c->has_profiles = true;
}

void cache_profiles_done(struct cache *c)
{
	for (size_t i = 0; i < c->n_profiles; i++) {
		free(c->profiles[i].name);
		free(c->profiles[i].selector);
	}
	free(c->profiles);
}
