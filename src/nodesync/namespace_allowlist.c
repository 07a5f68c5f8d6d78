/* A sorted array: a check during container creation is a binary search without allocation, and
 * changes are rare. Entries that a list does not confirm are found by their generation, as in the
 * webhook's cache (cluster/cache_namespaces.c). */

#include "namespace_allowlist.h"

#include <stdlib.h>
#include <string.h>

#include "admission/namespaces.h"
#include "kube/names.h"

static struct str name_of(yyjson_val *object)
{
	return doc_str(doc_find(object, "/metadata/name"));
}

/* Binary search: the index of the first item that is not before `name`. */
static size_t find_position(const struct namespace_allowlist *list, struct str name)
{
	size_t low = 0, high = list->n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (str_cmp(str_from(list->items[middle].namespace), name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_at(const struct namespace_allowlist *list, size_t i, struct str name)
{
	return i < list->n && str_eq(str_from(list->items[i].namespace), name);
}

static void remove_at(struct namespace_allowlist *list, size_t i)
{
	free(list->items[i].namespace);
	list->n--;
	memmove(&list->items[i], &list->items[i + 1], (list->n - i) * sizeof(*list->items));
}

static void insert_at(struct namespace_allowlist *list, size_t i, struct str name)
{
	if (list->n == list->cap) {
		const size_t cap = list->cap ? list->cap * 2 : 8;

		list->items = reallocarray(list->items, cap, sizeof(*list->items));
		if (!list->items)
			abort();
		list->cap = cap;
	}
	memmove(&list->items[i + 1], &list->items[i], (list->n - i) * sizeof(*list->items));
	list->items[i].namespace = strndup(name.p, name.n);
	if (!list->items[i].namespace)
		abort();
	list->n++;
}

void namespace_allowlist_done(struct namespace_allowlist *list)
{
	while (list->n)
		remove_at(list, list->n - 1);
	free(list->items);
	*list = (struct namespace_allowlist){ 0 };
}

static bool is_allowed(const struct namespace_allowlist *list, yyjson_val *object)
{
	const struct namespace_permission permission = namespace_permission_of(object);

	/* The annotation wins also when it does not allow the type: the label is a name of 2021 and
	 * only an input (D2). */
	if (permission.has_allowed)
		return type_is_allowed(permission.allowed, STR(NAME_TYPE_MANAGEMENT));
	return list->is_legacy && permission.has_legacy_allowed &&
	       type_is_allowed(permission.legacy_allowed, STR(NAME_TYPE_MANAGEMENT));
}

void namespace_allowlist_put(struct namespace_allowlist *list, yyjson_val *namespace)
{
	const struct str name = name_of(namespace);
	const size_t i = find_position(list, name);
	const bool is_there = is_at(list, i, name);

	/* Also reached by events for namespaces that were allowed until now. */
	if (!is_allowed(list, namespace)) {
		if (is_there)
			remove_at(list, i);
		return;
	}
	if (!is_there)
		insert_at(list, i, name);
	list->items[i].generation = list->generation;
}

void namespace_allowlist_remove(struct namespace_allowlist *list, yyjson_val *namespace)
{
	const struct str name = name_of(namespace);
	const size_t i = find_position(list, name);

	if (is_at(list, i, name))
		remove_at(list, i);
}

void namespace_allowlist_begin_list(struct namespace_allowlist *list)
{
	list->generation++;
}

void namespace_allowlist_end_list(struct namespace_allowlist *list)
{
	/* Backwards, because remove_at() moves the later entries. */
	for (size_t i = list->n; i-- > 0;)
		if (list->items[i].generation != list->generation)
			remove_at(list, i);
	list->is_known = true;
}

enum permission namespace_allowlist_check(const struct namespace_allowlist *list,
					  struct str namespace)
{
	/* Unknown is not denied: until the first list is complete, a pod must look converted. */
	if (!list->is_known)
		return PERMISSION_UNKNOWN;
	return is_at(list, find_position(list, namespace), namespace) ? PERMISSION_GRANTED :
									PERMISSION_DENIED;
}
