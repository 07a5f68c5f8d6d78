/* A sorted array: few kinds have more than some thousand objects, and they change rarely. */

#include "object_store.h"

#include <stdlib.h>
#include <string.h>

#include "base/sorted.h"

static char *copy(struct str s)
{
	char *p = malloc(s.n + 1);

	if (!p)
		abort(); /* D21 */
	memcpy(p, s.p, s.n);
	p[s.n] = '\0';
	return p;
}

static void replace(char **p, struct str s)
{
	free(*p);
	*p = copy(s);
}

static void free_object(struct stored_object *o)
{
	free(o->key);
	free(o->version);
	free(o->text);
}

void object_store_done(struct object_store *s)
{
	for (size_t i = 0; i < s->n; i++)
		free_object(&s->items[i]);
	free(s->items);
	*s = (struct object_store){ 0 };
}

static int compare_key(const void *item, const void *wanted)
{
	const struct stored_object *o = item;
	const struct str *key = wanted;

	return str_cmp(str_from(o->key), *key);
}

/* The position of the key, or where it belongs. */
static size_t position(const struct object_store *s, struct str key, bool *ret_found)
{
	const size_t at = sorted_position(s->items, s->n, sizeof(*s->items), &key, compare_key);

	*ret_found = at < s->n && compare_key(&s->items[at], &key) == 0;
	return at;
}

static bool is_decimal(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!str_is_digit(s.p[i]))
			return false;
	return s.n > 0 && (s.p[0] != '0' || s.n == 1);
}

bool object_version_is_older(struct str x, struct str y)
{
	if (!is_decimal(x) || !is_decimal(y))
		return false;
	return x.n != y.n ? x.n < y.n : memcmp(x.p, y.p, x.n) < 0;
}

static struct stored_object *insert(struct object_store *s, size_t at)
{
	if (s->n == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 16;
		s->items = reallocarray(s->items, s->cap, sizeof(*s->items));
		if (!s->items)
			abort();
	}
	memmove(&s->items[at + 1], &s->items[at], (s->n - at) * sizeof(*s->items));
	s->n++;
	s->items[at] = (struct stored_object){ 0 };
	return &s->items[at];
}

static bool replace_object(struct stored_object *o, struct str version, struct str text)
{
	if (object_version_is_older(version, str_from(o->version)))
		return false;
	replace(&o->version, version);
	if (o->n == text.n && memcmp(o->text, text.p, text.n) == 0)
		return false;
	replace(&o->text, text);
	o->n = text.n;
	return true;
}

bool object_store_put(struct object_store *s, struct str key, struct str version, struct str text)
{
	bool is_found;
	size_t at = position(s, key, &is_found);
	struct stored_object *o;

	if (is_found) {
		s->items[at].list = s->list;
		return replace_object(&s->items[at], version, text);
	}
	o = insert(s, at);
	o->key = copy(key);
	o->version = copy(version);
	o->text = copy(text);
	o->n = text.n;
	o->list = s->list;
	return true;
}

bool object_store_update(struct object_store *s, struct str key, struct str version,
			 struct str text)
{
	bool is_found;
	size_t at = position(s, key, &is_found);

	if (is_found)
		s->items[at].doubted_until_ms = 0;
	return is_found && replace_object(&s->items[at], version, text);
}

void object_store_doubt(struct object_store *s, struct str key, uint64_t until_ms)
{
	bool is_found;
	size_t at = position(s, key, &is_found);

	if (is_found)
		s->items[at].doubted_until_ms = until_ms;
}

void object_store_see(struct object_store *s, struct str key, int64_t seen_s)
{
	bool is_found;
	size_t at = position(s, key, &is_found);

	if (is_found && seen_s > s->items[at].seen_s)
		s->items[at].seen_s = seen_s;
}

static void remove_at(struct object_store *s, size_t at)
{
	free_object(&s->items[at]);
	s->n--;
	memmove(&s->items[at], &s->items[at + 1], (s->n - at) * sizeof(*s->items));
}

bool object_store_remove(struct object_store *s, struct str key)
{
	bool is_found;
	size_t at = position(s, key, &is_found);

	if (is_found)
		remove_at(s, at);
	return is_found;
}

void object_store_begin_list(struct object_store *s)
{
	s->list++;
}

bool object_store_end_list(struct object_store *s)
{
	bool is_changed = false;

	for (size_t i = s->n; i-- > 0;)
		if (s->items[i].list != s->list) {
			remove_at(s, i);
			is_changed = true;
		}
	return is_changed;
}

const struct stored_object *object_store_find(const struct object_store *s, struct str key)
{
	bool is_found;
	size_t at = position(s, key, &is_found);

	return is_found ? &s->items[at] : NULL;
}
