#include "namespace_allowlist.h"

#include <stdlib.h>
#include <string.h>

#include "admission/namespaces.h"
#include "kube/names.h"

static struct str name_of(yyjson_val *object)
{
	return doc_str(doc_find(object, "/metadata/name"));
}

/* The first that is not before `name`. */
static size_t position(const struct namespace_allowlist *p, struct str name)
{
	size_t low = 0, high = p->n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (str_cmp(str_from(p->items[middle].namespace), name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_at(const struct namespace_allowlist *p, size_t i, struct str name)
{
	return i < p->n && str_eq(str_from(p->items[i].namespace), name);
}

static void drop(struct namespace_allowlist *p, size_t i)
{
	free(p->items[i].namespace);
	p->n--;
	memmove(&p->items[i], &p->items[i + 1], (p->n - i) * sizeof(*p->items));
}

static void insert(struct namespace_allowlist *p, size_t i, struct str name)
{
	if (p->n == p->cap) {
		const size_t cap = p->cap ? p->cap * 2 : 8;

		p->items = reallocarray(p->items, cap, sizeof(*p->items));
		if (!p->items)
			abort();
		p->cap = cap;
	}
	memmove(&p->items[i + 1], &p->items[i], (p->n - i) * sizeof(*p->items));
	p->items[i].namespace = strndup(name.p, name.n);
	if (!p->items[i].namespace)
		abort();
	p->n++;
}

void namespace_allowlist_done(struct namespace_allowlist *p)
{
	while (p->n)
		drop(p, p->n - 1);
	free(p->items);
	*p = (struct namespace_allowlist){ 0 };
}

static bool is_permitted(const struct namespace_allowlist *p, yyjson_val *object)
{
	const struct namespace_permission facts = namespace_permission_of(object);

	if (facts.has_allowed)
		return type_is_allowed(facts.allowed, STR(NAME_TYPE_MANAGEMENT));
	return p->is_legacy && facts.has_legacy_allowed &&
	       type_is_allowed(facts.legacy_allowed, STR(NAME_TYPE_MANAGEMENT));
}

void namespace_allowlist_put(struct namespace_allowlist *p, yyjson_val *namespace)
{
	const struct str name = name_of(namespace);
	const size_t i = position(p, name);
	const bool is_there = is_at(p, i, name);

	if (!is_permitted(p, namespace)) {
		if (is_there)
			drop(p, i);
		return;
	}
	if (!is_there)
		insert(p, i, name);
	p->items[i].generation = p->generation;
}

void namespace_allowlist_remove(struct namespace_allowlist *p, yyjson_val *namespace)
{
	const struct str name = name_of(namespace);
	const size_t i = position(p, name);

	if (is_at(p, i, name))
		drop(p, i);
}

void namespace_allowlist_begin_list(struct namespace_allowlist *p)
{
	p->generation++;
}

void namespace_allowlist_end_list(struct namespace_allowlist *p)
{
	for (size_t i = p->n; i-- > 0;)
		if (p->items[i].generation != p->generation)
			drop(p, i);
	p->is_known = true;
}

enum permission namespace_allowlist_check(const struct namespace_allowlist *p, struct str namespace)
{
	if (!p->is_known)
		return PERMISSION_UNKNOWN;
	return is_at(p, position(p, namespace), namespace) ? PERMISSION_GRANTED : PERMISSION_DENIED;
}
