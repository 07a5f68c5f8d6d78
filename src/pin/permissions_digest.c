/* Writing goes through the types of all namespaces once to find the keys, and then through the
 * namespaces once for each key: types are few. Reading checks every name, so that what an agent
 * believes is always something that a cluster could say. */

#include "permissions_digest.h"

#include <errno.h>
#include <stdlib.h>

#include "admission/namespaces.h"
#include "base/arena.h"
#include "base/err.h"
#include "kube/names.h"
#include "kube/workload_type.h"
#include "namespace_allowlist.h"

struct digest_types {
	struct str items[PERMISSIONS_DIGEST_MAX_TYPES];
	size_t n;
};

static bool has_type(const struct digest_types *types, struct str type)
{
	for (size_t i = 0; i < types->n; i++)
		if (str_eq(types->items[i], type))
			return true;
	return false;
}

static int collect_types(const struct namespace_allowlist *list, struct digest_types *ret,
			 struct err *err)
{
	for (size_t i = 0; i < list->n; i++) {
		struct str_split split = str_split(str_from(list->items[i].types));
		struct str type;

		while (str_next(&split, ',', &type)) {
			if (!workload_type_is_valid(type) || has_type(ret, type))
				continue;
			if (ret->n == PERMISSIONS_DIGEST_MAX_TYPES)
				return err_set(err, E2BIG,
					       "the namespaces allow more than %d workload types",
					       PERMISSIONS_DIGEST_MAX_TYPES);
			ret->items[ret->n++] = type;
		}
	}
	qsort(ret->items, ret->n, sizeof(*ret->items), str_order);
	return 0;
}

static struct str names_of(const struct namespace_allowlist *list, struct str type, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < list->n; i++) {
		if (!type_is_allowed(str_from(list->items[i].types), type))
			continue;
		strbuf_add(&b, str_from(list->items[i].namespace));
		strbuf_addc(&b, '\n');
	}
	return strbuf_str(&b);
}

static int write_data(const struct namespace_allowlist *list, yyjson_mut_doc *m,
		      yyjson_mut_val *object, struct arena *a, struct err *err)
{
	yyjson_mut_val *data = yyjson_mut_obj(m);
	struct digest_types types = { 0 };
	size_t size = 0;
	int r = collect_types(list, &types, err);

	for (size_t i = 0; r == 0 && i < types.n; i++) {
		const struct str names = names_of(list, types.items[i], a);

		size += types.items[i].n + names.n;
		doc_put_str(m, data, types.items[i], names);
		if (size > PERMISSIONS_DIGEST_MAX_BYTES)
			r = err_set(err, E2BIG,
				    "the names of the namespaces have more than %zu bytes",
				    PERMISSIONS_DIGEST_MAX_BYTES);
	}
	if (r == 0)
		doc_put(m, object, STR("data"), data);
	return r;
}

int permissions_digest_write(const struct namespace_allowlist *list, struct str renewed,
			     struct arena *a, struct str *ret, struct err *err)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *object = yyjson_mut_obj(m), *meta;
	struct err large = { 0 };
	int r;

	doc_put_str(m, object, STR("apiVersion"), STR("v1"));
	doc_put_str(m, object, STR("kind"), STR("ConfigMap"));
	meta = doc_put_obj(m, object, STR("metadata"));
	doc_put_str(m, meta, STR("name"), STR(NAME_PERMISSIONS));
	doc_put_str(m, meta, STR("namespace"), STR(NAME_PERMISSIONS_NAMESPACE));
	if (write_data(list, m, object, a, &large) == 0)
		doc_put_str(m, doc_put_obj(m, meta, STR("annotations")), STR(NAME_RENEWED),
			    renewed);
	r = doc_write(object, false, a, ret, err);
	return r < 0 || !large.code ? r : err_set(err, large.code, "%s", large.msg);
}

/* Namespaces and workload types are both DNS labels. */
static bool is_name(struct str name)
{
	return workload_type_is_valid(name);
}

static int read_names(struct str type, struct str names, struct namespace_allowlist *list,
		      struct err *err)
{
	struct str_split split = str_split(names);
	struct str name;
	int r = 0;

	while (r == 0 && str_next(&split, '\n', &name)) {
		if (!name.n && split.ended)
			break; /* after the last line */
		r = is_name(name) ?
			    namespace_allowlist_add(list, name, type, err) :
			    err_set(err, EINVAL, "%s: not a list of namespaces", NAME_PERMISSIONS);
	}
	return r;
}

static int read_data(yyjson_val *data, struct namespace_allowlist *list, struct err *err)
{
	yyjson_val *key, *value;
	size_t n = 0;
	int r = 0;

	if (!yyjson_is_obj(data))
		return data ? err_set(err, EINVAL, "%s: data is not an object", NAME_PERMISSIONS) :
			      0;
	DOC_EACH_PAIR (data, key, value) {
		if (r < 0)
			break;
		if (++n > PERMISSIONS_DIGEST_MAX_TYPES || !is_name(doc_str(key)) ||
		    !yyjson_is_str(value) || doc_str(value).n > PERMISSIONS_DIGEST_MAX_BYTES)
			r = err_set(err, EINVAL, "%s: bad workload type or list", NAME_PERMISSIONS);
		else
			r = read_names(doc_str(key), doc_str(value), list, err);
	}
	return r;
}

int permissions_digest_read(yyjson_val *object, struct namespace_allowlist *ret,
			    struct str *ret_renewed, struct err *err)
{
	yyjson_val *meta = doc_get(object, STR("metadata"));
	const struct str renewed =
		doc_str(doc_get(doc_get(meta, STR("annotations")), STR(NAME_RENEWED)));
	int r;

	if (!str_eq(doc_str(doc_get(meta, STR("name"))), STR(NAME_PERMISSIONS)) ||
	    !str_eq(doc_str(doc_get(meta, STR("namespace"))), STR(NAME_PERMISSIONS_NAMESPACE)))
		return err_set(err, EINVAL, "not the ConfigMap %s/%s", NAME_PERMISSIONS_NAMESPACE,
			       NAME_PERMISSIONS);
	if (!renewed.n)
		return err_set(err, EINVAL, "%s: not in use", NAME_PERMISSIONS);
	r = read_data(doc_get(object, STR("data")), ret, err);
	if (r < 0) {
		namespace_allowlist_done(ret);
		return r;
	}
	*ret_renewed = renewed;
	return 0;
}
