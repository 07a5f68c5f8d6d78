/* Permissions of namespaces in a sorted array: no pointers between entries, so a table of 10,000
 * namespaces stays small (D22), and one lookup for each pod is a binary search. */

#include "namespaces.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/sorted.h"
#include "kube/names.h"
#include "kube/pod.h"

struct namespace_entry {
	struct str name;
	struct namespace_permission permission;
	size_t order; /* in which it was added */
};

struct namespace_permission namespace_permission_of(yyjson_val *object)
{
	yyjson_val *meta = doc_get(object, STR("metadata"));
	yyjson_val *allowed = doc_get(doc_get(meta, STR("annotations")), STR(NAME_ALLOWED));
	yyjson_val *labels = doc_get(meta, STR("labels"));
	yyjson_val *legacy = doc_get(labels, STR(NAME_LEGACY_ALLOWED));
	/* The label of the first draft, which names no type. */
	const bool is_draft =
		!legacy &&
		str_eq(doc_str(doc_get(labels, STR(NAME_LEGACY_MANAGEMENT))), STR("true"));

	return (struct namespace_permission){
		.allowed = doc_str(allowed),
		.has_allowed = allowed != NULL,
		.legacy_allowed = is_draft ? STR(NAME_TYPE_MANAGEMENT) : doc_str(legacy),
		.has_legacy_allowed = legacy != NULL || is_draft,
	};
}

bool type_is_allowed(struct str allowed, struct str type)
{
	struct str_split split = str_split(allowed);
	struct str item;

	while (str_next(&split, ',', &item))
		if (str_eq(item, type))
			return true;
	return false;
}

void namespace_table_add(struct namespace_table *t, yyjson_val *object, struct arena *a)
{
	t->items = arena_reserve(a, t->items, t->n, &t->cap, sizeof(*t->items));
	/* qsort() is not stable, so the order of addition is stored to find the last of equal
	 * names. */
	t->items[t->n] = (struct namespace_entry){ object_name(object),
						   namespace_permission_of(object), t->n };
	t->n++;
}

static int by_name(const void *a, const void *b)
{
	const struct namespace_entry *x = a, *y = b;
	int r = str_cmp(x->name, y->name);

	return r ? r : (x->order > y->order) - (x->order < y->order);
}

void namespace_table_seal(struct namespace_table *t)
{
	size_t n = 0;

	if (t->n)
		qsort(t->items, t->n, sizeof(*t->items), by_name);
	/* by_name() sorts equal names by order, so the last one added overwrites the others. */
	for (size_t i = 0; i < t->n; i++) {
		if (n && str_eq(t->items[n - 1].name, t->items[i].name))
			n--;
		t->items[n++] = t->items[i];
	}
	t->n = n;
}

static struct str copy_of(struct str s, struct arena *a)
{
	/* Most namespaces have neither annotation nor label: no memory for them. */
	return s.n ? str_dup(a, s) : STR("");
}

struct namespace_table namespace_table_copy(const struct namespace_table *t, struct arena *a)
{
	struct namespace_table copy = { arena_array(a, struct namespace_entry, t->n), t->n, t->n };

	for (size_t i = 0; i < t->n; i++) {
		struct namespace_entry *to = &copy.items[i];

		*to = t->items[i];
		to->name = copy_of(to->name, a);
		to->permission.allowed = copy_of(to->permission.allowed, a);
		to->permission.legacy_allowed = copy_of(to->permission.legacy_allowed, a);
	}
	return copy;
}

static int compare_name(const void *item, const void *name)
{
	const struct namespace_entry *entry = item;
	const struct str *key = name;

	return str_cmp(entry->name, *key);
}

bool namespace_table_find(const struct namespace_table *t, struct str name,
			  struct namespace_permission *ret)
{
	const size_t at = sorted_position(t->items, t->n, sizeof(*t->items), &name, compare_name);

	if (at == t->n || !str_eq(t->items[at].name, name))
		return false;
	*ret = t->items[at].permission;
	return true;
}
