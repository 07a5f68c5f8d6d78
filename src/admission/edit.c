#include "edit.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "kube/names.h"

static bool classify(struct str key, bool legacy, struct own_annotation *ret)
{
	static const struct {
		struct str prefix;
		enum own_kind kind;
		bool is_legacy, is_whole;
	} kinds[] = {
		{ STR_INIT(NAME_TARGET_PREFIX), OWN_TARGET, false, false },
		{ STR_INIT(NAME_RESOURCES_PREFIX), OWN_RESOURCES, false, false },
		{ STR_INIT(NAME_STAMP), OWN_STAMP, false, true },
		{ STR_INIT(NAME_WARNING), OWN_WARNING, false, true },
		{ STR_INIT(NAME_LEGACY_CPU_PREFIX), OWN_LEGACY_CPU, true, false },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!str_starts(key, kinds[i].prefix) || (kinds[i].is_legacy && !legacy) ||
		    (kinds[i].is_whole && key.n != kinds[i].prefix.n))
			continue;
		*ret = (struct own_annotation){
			.key = key,
			.name = str_skip(key, kinds[i].prefix.n),
			.kind = kinds[i].kind,
		};
		return true;
	}
	return false;
}

static int by_key(const void *a, const void *b)
{
	return str_cmp(((const struct own_annotation *)a)->key,
		       ((const struct own_annotation *)b)->key);
}

/* Up to here a plain search is faster than a sorted one, and qsort() needs no heap. */
#define FEW 16

void annotations_scan(struct annotations *ann, yyjson_val *map, bool legacy, struct arena *a)
{
	yyjson_val *key, *value;
	size_t n = yyjson_obj_size(map);

	*ann = (struct annotations){ .a = a, .map = map };
	if (!n)
		return;
	ann->own = arena_alloc(a, n * sizeof(*ann->own), 16);
	if (!ann->own) {
		ann->failed = true;
		return;
	}
	DOC_EACH_PAIR (map, key, value) {
		struct own_annotation *own = &ann->own[ann->n_own];

		if (!classify(doc_str(key), legacy, own))
			continue;
		own->value = doc_str(value);
		ann->n_own++;
	}
	if (ann->n_own > FEW)
		qsort(ann->own, ann->n_own, sizeof(*ann->own), by_key);
}

struct own_annotation *annotations_find(const struct annotations *ann, struct str key)
{
	struct own_annotation wanted = { .key = key };

	if (ann->n_own > FEW)
		return bsearch(&wanted, ann->own, ann->n_own, sizeof(*ann->own), by_key);
	for (size_t i = 0; i < ann->n_own; i++)
		if (str_eq(ann->own[i].key, key))
			return &ann->own[i];
	return NULL;
}

void annotations_keep(struct own_annotation *own)
{
	own->is_settled = true;
}

void annotations_set(struct annotations *ann, struct str key, struct str value)
{
	if (ann->n_sets == ann->cap_sets) {
		size_t cap = ann->cap_sets ? ann->cap_sets * 2 : 8;
		struct annotation_set *sets = arena_realloc(
			ann->a, ann->sets, ann->cap_sets * sizeof(*sets), cap * sizeof(*sets));

		if (!sets) {
			ann->failed = true;
			return;
		}
		ann->sets = sets;
		ann->cap_sets = cap;
	}
	ann->sets[ann->n_sets++] = (struct annotation_set){ key, value };
}

/* Where there is no map yet, it is added with everything in it. */
static void add_map(const struct annotations *ann, yyjson_val *meta, struct patch *p)
{
	yyjson_mut_val *map = yyjson_mut_obj(p->doc), *outer;

	for (size_t i = 0; i < ann->n_sets; i++)
		doc_put_str(p->doc, map, ann->sets[i].key, ann->sets[i].value);
	if (yyjson_is_obj(meta)) {
		patch_put(p, STR("/metadata/annotations"), ann->map != NULL, map);
		return;
	}
	outer = yyjson_mut_obj(p->doc);
	doc_put(p->doc, outer, STR("annotations"), map);
	patch_put(p, STR("/metadata"), meta != NULL, outer);
}

void annotations_flush(struct annotations *ann, yyjson_val *meta, struct patch *p)
{
	static const struct str base = STR_INIT("/metadata/annotations");

	if (!yyjson_is_obj(ann->map)) {
		if (ann->n_sets)
			add_map(ann, meta, p);
		return;
	}
	for (size_t i = 0; i < ann->n_sets; i++) {
		const struct annotation_set *set = &ann->sets[i];
		struct own_annotation *own = annotations_find(ann, set->key);

		if (own)
			own->is_settled = true;
		if (own && str_eq(own->value, set->value))
			continue;
		patch_put(p, patch_path(p->arena, base, set->key),
			  doc_get(ann->map, set->key) != NULL, doc_new_str(p->doc, set->value));
	}
	for (size_t i = 0; i < ann->n_own; i++)
		if (!ann->own[i].is_settled && ann->own[i].kind != OWN_WARNING)
			patch_remove(p, patch_path(p->arena, base, ann->own[i].key));
}

struct resource_edit resource_edit(struct patch *p, const struct container *c)
{
	struct resource_edit e = {
		.p = p,
		.c = c,
		.has_resources = yyjson_is_obj(doc_get(c->v, STR("resources"))),
		.has_requests = yyjson_is_obj(c->requests),
		.has_limits = yyjson_is_obj(c->limits),
	};
	struct strbuf b;

	strbuf_init(&b, p->arena);
	strbuf_add(&b, STR("/spec/"));
	strbuf_add(&b, str_from(c->list));
	strbuf_addc(&b, '/');
	strbuf_add_u64(&b, c->index);
	strbuf_add(&b, STR("/resources"));
	e.base = strbuf_str(&b);
	e.lists[false] = patch_path(p->arena, e.base, STR("requests"));
	e.lists[true] = patch_path(p->arena, e.base, STR("limits"));
	return e;
}

void resource_drop(struct resource_edit *e, bool of_limit, struct str name)
{
	if (doc_get(of_limit ? e->c->limits : e->c->requests, name))
		patch_remove(e->p, patch_path(e->p->arena, e->lists[of_limit], name));
}

/* Puts the first amount into a list that is not there yet, and "resources" around it if need be. */
static void add_list(struct resource_edit *e, bool of_limit, struct str name, yyjson_mut_val *text)
{
	yyjson_mut_doc *m = e->p->doc;
	yyjson_mut_val *list = yyjson_mut_obj(m), *outer;
	struct str key = of_limit ? STR("limits") : STR("requests");

	doc_put(m, list, name, text);
	if (e->has_resources) {
		patch_put(e->p, e->lists[of_limit],
			  (of_limit ? e->c->limits : e->c->requests) != NULL, list);
	} else {
		outer = yyjson_mut_obj(m);
		doc_put(m, outer, key, list);
		patch_put(e->p, e->base, doc_get(e->c->v, STR("resources")) != NULL, outer);
	}
	e->has_resources = true;
	*(of_limit ? &e->has_limits : &e->has_requests) = true;
}

void resource_set(struct resource_edit *e, bool of_limit, struct str name,
		  const struct quantity *value)
{
	yyjson_val *list = of_limit ? e->c->limits : e->c->requests;
	yyjson_val *old = doc_get(list, name);
	yyjson_mut_val *text;
	struct quantity q;

	if (old && resource_get(list, name, &q, NULL) == 1 && quantity_cmp(&q, value) == 0)
		return;
	text = doc_new_str(e->p->doc, quantity_format(value, e->p->arena));
	if (!(of_limit ? e->has_limits : e->has_requests))
		add_list(e, of_limit, name, text);
	else
		patch_put(e->p, patch_path(e->p->arena, e->lists[of_limit], name), old != NULL,
			  text);
}
