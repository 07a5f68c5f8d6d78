/* A sorted array: a check during container creation is a binary search without allocation, and
 * changes are rare. Entries that a list does not confirm are found by their generation, as in the
 * webhook's cache (cluster/cache_namespaces.c). */

#include "namespace_allowlist.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "admission/namespaces.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "base/macro.h"
#include "base/sorted.h"
#include "kube/names.h"
#include "kube/workload_type.h"

#define ALLOWLIST_VERSION 1
#define MAX_FILE_SIZE ((size_t)16 << 20)
#define MAX_TYPES 1024 /* bytes of one namespace's list; far above any list in use */

static struct str name_of(yyjson_val *object)
{
	return doc_str(doc_find(object, "/metadata/name"));
}

static int compare_name(const void *item, const void *name)
{
	const struct allowed_namespace *allowed = item;
	const struct str *key = name;

	return str_cmp(str_from(allowed->namespace), *key);
}

static size_t find_position(const struct namespace_allowlist *list, struct str name)
{
	return sorted_position(list->items, list->n, sizeof(*list->items), &name, compare_name);
}

static bool is_at(const struct namespace_allowlist *list, size_t i, struct str name)
{
	return i < list->n && str_eq(str_from(list->items[i].namespace), name);
}

static void remove_at(struct namespace_allowlist *list, size_t i)
{
	free(list->items[i].namespace);
	free(list->items[i].types);
	list->n--;
	memmove(&list->items[i], &list->items[i + 1], (list->n - i) * sizeof(*list->items));
	list->is_changed = true;
}

static char *copy_of(struct str s)
{
	char *copy = strndup(s.p, s.n);

	if (!copy)
		abort();
	return copy;
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
	list->items[i] = (struct allowed_namespace){ .namespace = copy_of(name) };
	list->n++;
}

static void put(struct namespace_allowlist *list, struct str name, struct str types)
{
	const size_t i = find_position(list, name);
	const bool is_there = is_at(list, i, name);

	/* Also reached by events for namespaces that were allowed until now. */
	if (types.n == 0) {
		if (is_there)
			remove_at(list, i);
		return;
	}
	if (!is_there)
		insert_at(list, i, name);
	list->items[i].generation = list->generation;
	if (is_there && str_eq(str_from(list->items[i].types), types))
		return;
	free(list->items[i].types);
	list->items[i].types = copy_of(types);
	list->is_changed = true;
}

void namespace_allowlist_done(struct namespace_allowlist *list)
{
	while (list->n)
		remove_at(list, list->n - 1);
	free(list->items);
	*list = (struct namespace_allowlist){ 0 };
}

/* Without the items that do not fit: memory is bounded whatever a namespace says. */
static struct str cut_types(struct str types)
{
	if (types.n <= MAX_TYPES)
		return types;
	types.n = MAX_TYPES;
	while (types.n && types.p[types.n] != ',')
		types.n--;
	return types;
}

static struct str types_of(const struct namespace_allowlist *list, yyjson_val *object)
{
	const struct namespace_permission permission = namespace_permission_of(object);

	/* The annotation wins also when it does not allow the type: the label is a name of 2021 and
	 * only an input (D2). */
	if (permission.has_allowed)
		return cut_types(permission.allowed);
	return list->is_legacy ? cut_types(permission.legacy_allowed) : STR("");
}

void namespace_allowlist_put(struct namespace_allowlist *list, yyjson_val *namespace)
{
	put(list, name_of(namespace), types_of(list, namespace));
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
	list->is_changed = list->is_changed || !list->is_known; /* an empty list is news, too */
	list->is_known = true;
}

int namespace_allowlist_add(struct namespace_allowlist *list, struct str namespace, struct str type,
			    struct err *err)
{
	const size_t i = find_position(list, namespace);
	struct allowed_namespace *item;
	char *types = NULL;

	if (!is_at(list, i, namespace)) {
		put(list, namespace, type);
		return 0;
	}
	item = &list->items[i];
	if (type_is_allowed(str_from(item->types), type))
		return 0;
	if (strlen(item->types) + 1 + type.n > MAX_TYPES)
		return err_set(err, ENOSPC, "namespace " PRI_STR " has more than %d bytes of types",
			       FMT_STR(namespace), MAX_TYPES);
	if (asprintf(&types, "%s," PRI_STR, item->types, FMT_STR(type)) < 0)
		abort();
	free(item->types);
	item->types = types;
	list->is_changed = true;
	return 0;
}

/* Whether every valid type of `some` is in `all`. */
static bool has_all_types(const char *all, const char *some)
{
	struct str_split split = str_split(str_from(some));
	struct str type;

	while (str_next(&split, ',', &type))
		if (workload_type_is_valid(type) && !type_is_allowed(str_from(all), type))
			return false;
	return true;
}

/* Whether `all` allows everything that `some` allows. */
static bool allows_all(const struct namespace_allowlist *all,
		       const struct namespace_allowlist *some)
{
	for (size_t i = 0; i < some->n; i++) {
		const struct allowed_namespace *item = &some->items[i];
		const size_t at = find_position(all, str_from(item->namespace));
		const bool is_there = is_at(all, at, str_from(item->namespace));

		if (!has_all_types(is_there ? all->items[at].types : "", item->types))
			return false;
	}
	return true;
}

bool namespace_allowlist_allows_same(const struct namespace_allowlist *a,
				     const struct namespace_allowlist *b)
{
	return allows_all(a, b) && allows_all(b, a);
}

void namespace_allowlist_take(struct namespace_allowlist *list, struct namespace_allowlist *from)
{
	const struct namespace_allowlist old = *list;

	list->is_changed |= !list->is_known || !namespace_allowlist_allows_same(list, from);
	list->is_known = true;
	list->items = from->items;
	list->n = from->n;
	list->cap = from->cap;
	list->generation = 0;
	*from = (struct namespace_allowlist){ .items = old.items, .n = old.n, .cap = old.cap };
	namespace_allowlist_done(from);
}

enum permission namespace_allowlist_check(const struct namespace_allowlist *list,
					  struct str namespace, struct str type)
{
	const size_t i = find_position(list, namespace);

	if (!list->is_known)
		return PERMISSION_UNKNOWN;
	return is_at(list, i, namespace) && type_is_allowed(str_from(list->items[i].types), type) ?
		       PERMISSION_GRANTED :
		       PERMISSION_DENIED;
}

size_t namespace_allowlist_count(const struct namespace_allowlist *list, struct str type)
{
	size_t n = 0;

	for (size_t i = 0; i < list->n; i++)
		n += type_is_allowed(str_from(list->items[i].types), type);
	return n;
}

int namespace_allowlist_write(const struct namespace_allowlist *list, int dir_fd, struct str server,
			      struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	yyjson_mut_val *root, *namespaces;
	yyjson_mut_doc *m;
	struct str text;
	int r;

	arena_init(&a, 0);
	m = doc_build(&a);
	root = yyjson_mut_obj(m);
	doc_put_int(m, root, STR("version"), ALLOWLIST_VERSION);
	doc_put_str(m, root, STR("server"), server);
	namespaces = doc_put_obj(m, root, STR("namespaces"));
	for (size_t i = 0; i < list->n; i++)
		doc_put_str(m, namespaces, str_from(list->items[i].namespace),
			    str_from(list->items[i].types));
	r = doc_write(root, false, &a, &text, err);
	return r < 0 ? r : file_replace_at(dir_fd, ALLOWLIST_FILE, text, 0600, err);
}

static int check_file(const struct doc *doc, struct str server, struct err *err)
{
	const struct str from = doc_str(doc_get(doc->root, STR("server")));
	yyjson_val *namespaces = doc_get(doc->root, STR("namespaces")), *key, *value;
	int64_t version;

	if (!doc_int(doc_get(doc->root, STR("version")), &version) || version != ALLOWLIST_VERSION)
		return doc_err(err, doc, doc->root, "want version %d", ALLOWLIST_VERSION);
	if (server.n && !str_eq(from, server))
		return err_set(err, ESTALE, ALLOWLIST_FILE " is from the API server " PRI_STR,
			       FMT_STR(from));
	if (!yyjson_is_obj(namespaces))
		return doc_err(err, doc, doc->root, "no namespaces");
	DOC_EACH_PAIR (namespaces, key, value)
		if (!yyjson_is_str(value))
			return doc_err(err, doc, key, "want workload types, not %s",
				       doc_type(value));
	return 0;
}

int namespace_allowlist_read(struct namespace_allowlist *list, int dir_fd, struct str server,
			     struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	yyjson_val *key, *value;
	struct str text;
	struct doc doc = { 0 };
	int r;

	arena_init(&a, 0);
	r = file_read_at(dir_fd, ALLOWLIST_FILE, MAX_FILE_SIZE, &a, &text, err);
	if (r == 0)
		r = doc_parse(text, STR(ALLOWLIST_FILE), NULL, &a, &doc, err);
	if (r == 0)
		r = check_file(&doc, server, err);
	if (r < 0)
		return r;
	DOC_EACH_PAIR (doc_get(doc.root, STR("namespaces")), key, value)
		put(list, doc_str(key), cut_types(doc_str(value)));
	list->is_known = true;
	list->is_changed = false;
	return 0;
}
