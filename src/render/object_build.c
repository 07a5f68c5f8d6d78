/* Objects are built as JSON and written as YAML with sorted keys, as Kubernetes' own YAML writer
 * does, so that the order in which members are put does not matter. */

#include "object_build.h"

#include <stdlib.h>

#include "base/arena.h"
#include "codec/yaml.h"
#include "kube/names.h"
#include "profile/profile.h"

yyjson_mut_val *object_new(yyjson_mut_doc *m, const char *api, const char *kind, struct str name)
{
	yyjson_mut_val *object = yyjson_mut_obj(m), *meta;

	doc_put_str(m, object, STR("apiVersion"), str_from(api));
	doc_put_str(m, object, STR("kind"), str_from(kind));
	meta = doc_put_obj(m, object, STR("metadata"));
	doc_put_str(m, meta, STR("name"), name);
	return object;
}

yyjson_mut_val *object_labels(yyjson_mut_doc *m, yyjson_mut_val *object)
{
	yyjson_mut_val *meta = yyjson_mut_obj_get(object, "metadata");
	yyjson_mut_val *labels = yyjson_mut_obj_get(meta, "labels");

	return labels ? labels : doc_put_obj(m, meta, STR("labels"));
}

void object_set_owner(yyjson_mut_doc *m, yyjson_mut_val *object, enum owner_mode mode,
		      const struct profile *profile)
{
	yyjson_mut_val *owner;

	if (mode == OWNER_LABEL_NAME)
		doc_put_str(m, object_labels(m, object), STR(NAME_WEAK_OWNER), profile->name);
	if (mode != OWNER_K8S)
		return;
	owner = doc_put_arr(m, yyjson_mut_obj_get(object, "metadata"), STR("ownerReferences"));
	owner = yyjson_mut_arr_add_obj(m, owner);
	doc_put_str(m, owner, STR("apiVersion"), STR(NAME_PROFILE_API));
	doc_put_str(m, owner, STR("kind"), STR(NAME_PROFILE_KIND));
	doc_put_str(m, owner, STR("name"), profile->name);
	doc_put_str(m, owner, STR("uid"), profile->uid);
}

void object_set(yyjson_mut_doc *m, yyjson_mut_val *object, struct str key, yyjson_mut_val *value)
{
	/* yyjson would keep both members. */
	yyjson_mut_obj_remove_keyn(object, key.p, key.n);
	doc_put(m, object, key, value);
}

void object_copy_pairs(yyjson_mut_doc *m, yyjson_mut_val *to, yyjson_val *from)
{
	yyjson_val *key, *value;

	DOC_EACH_PAIR (from, key, value) {
		object_set(m, to, doc_str(key), yyjson_val_mut_copy(m, value));
	}
}

void object_fill(yyjson_mut_doc *m, yyjson_mut_val *object, yyjson_val *defaults)
{
	yyjson_val *key, *value;

	DOC_EACH_PAIR (defaults, key, value) {
		struct str name = doc_str(key);
		yyjson_mut_val *have = yyjson_mut_obj_getn(object, name.p, name.n);

		if (!have)
			doc_put(m, object, name, yyjson_val_mut_copy(m, value));
		else if (yyjson_mut_is_obj(have))
			object_fill(m, have, value);
	}
}

struct pair {
	yyjson_mut_val *key, *value;
};

static int by_key(const void *va, const void *vb)
{
	const struct pair *a = va, *b = vb;

	return str_cmp(doc_mut_str(a->key), doc_mut_str(b->key));
}

static void sort_keys(yyjson_mut_val *v, struct arena *a);

static void sort_object(yyjson_mut_val *v, struct arena *a)
{
	size_t n = yyjson_mut_obj_size(v), i = 0;
	struct pair *pairs = arena_array(a, struct pair, n + 1); /* the loop ends with a NULL */
	yyjson_mut_obj_iter it = yyjson_mut_obj_iter_with(v);

	while ((pairs[i].key = yyjson_mut_obj_iter_next(&it))) {
		pairs[i].value = yyjson_mut_obj_iter_get_val(pairs[i].key);
		sort_keys(pairs[i].value, a);
		i++;
	}
	qsort(pairs, n, sizeof(*pairs), by_key);
	/* The members are a linked list: all are taken out before one is put back. */
	yyjson_mut_obj_clear(v);
	for (i = 0; i < n; i++)
		yyjson_mut_obj_add(v, pairs[i].key, pairs[i].value);
}

static void sort_keys(yyjson_mut_val *v, struct arena *a)
{
	yyjson_mut_arr_iter it;
	yyjson_mut_val *item;

	if (yyjson_mut_is_obj(v))
		sort_object(v, a);
	it = yyjson_mut_arr_iter_with(v);
	while ((item = yyjson_mut_arr_iter_next(&it)))
		sort_keys(item, a);
}

int object_write(yyjson_mut_val *object, struct arena *a, struct str *ret, struct err *err)
{
	sort_keys(object, a);
	return yaml_write(object, a, ret, err);
}
