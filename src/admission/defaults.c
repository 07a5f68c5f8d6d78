/* What the API server does to resources before admission, for the commands, which start from files.
 * Without it, a pod with only a CPU limit would look as if it had no CPU request, and would not be
 * converted. */

#include "defaults.h"

#include <errno.h>

#include "base/arena.h"
#include "base/err.h"
#include "kube/pod.h"
#include "kube/quantity.h"

static void round_list(yyjson_mut_doc *m, yyjson_mut_val *list, struct arena *a)
{
	yyjson_mut_obj_iter it = yyjson_mut_obj_iter_with(list);
	yyjson_mut_val *key;

	while ((key = yyjson_mut_obj_iter_next(&it))) {
		yyjson_mut_val *value = yyjson_mut_obj_iter_get_val(key);
		/* Numbers are kept as raw text when a document is read, so that no digit is
		 * lost. */
		struct str text = yyjson_mut_is_raw(value) ? str_from(yyjson_mut_get_raw(value)) :
							     doc_mut_str(value);
		struct quantity q;

		if (yyjson_mut_is_raw(value))
			text.n = yyjson_mut_get_len(value);
		if (quantity_parse(text, &q, NULL) < 0)
			continue;
		q = quantity_round_up_milli(&q);
		text = quantity_format(&q, a);
		yyjson_mut_obj_put(list, key, doc_new_str(m, text));
	}
}

static void default_resources(yyjson_mut_doc *m, yyjson_mut_val *resources, struct arena *a)
{
	yyjson_mut_val *limits = yyjson_mut_obj_get(resources, "limits"), *key;
	yyjson_mut_val *requests = yyjson_mut_obj_get(resources, "requests");
	yyjson_mut_obj_iter it = yyjson_mut_obj_iter_with(limits);

	if (yyjson_mut_obj_size(limits) && !yyjson_mut_is_obj(requests))
		requests = doc_put_obj(m, resources, STR("requests"));
	while ((key = yyjson_mut_obj_iter_next(&it))) {
		struct str name = doc_mut_str(key);

		/* An explicit 0 counts as present. */
		if (!yyjson_mut_obj_getn(requests, name.p, name.n))
			doc_put(m, requests, name,
				yyjson_mut_val_mut_copy(m, yyjson_mut_obj_iter_get_val(key)));
	}
	round_list(m, limits, a);
	round_list(m, requests, a);
}

int pod_default_resources(yyjson_val *pod, struct arena *a, yyjson_val **ret, struct err *err)
{
	static const char *const lists[] = { "initContainers", "containers" };
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *copy = yyjson_val_mut_copy(m, pod), *c;
	yyjson_val *frozen;

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		DOC_EACH_BUILT_ITEM (yyjson_mut_obj_get(yyjson_mut_obj_get(copy, "spec"), lists[i]),
				     c)
			default_resources(m, yyjson_mut_obj_get(c, "resources"), a);
	frozen = copy ? doc_freeze(copy, a) : NULL;
	if (!frozen)
		return err_set(err, ENOMEM, "not enough memory");
	*ret = frozen;
	return 0;
}

int pod_from_workload(yyjson_val *object, struct arena *a, yyjson_val **ret, struct err *err)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m), *meta;
	struct pod pod;

	if (!pod_from_object(object, &pod) || !yyjson_is_obj(pod.spec))
		return err_set(err, EINVAL, PRI_STR " " PRI_STR " has no pod spec",
			       FMT_STR(object_kind(object)), FMT_STR(object_name(object)));
	if (!*pod.prefix) {
		*ret = object;
		return 0;
	}
	doc_put_str(m, root, STR("apiVersion"), STR("v1"));
	doc_put_str(m, root, STR("kind"), STR("Pod"));
	meta = yyjson_is_obj(pod.meta) ? yyjson_val_mut_copy(m, pod.meta) : yyjson_mut_obj(m);
	doc_put(m, root, STR("metadata"), meta);
	/* Only for messages. A Deployment's pods also have the hash of their ReplicaSet in the
	 * name. */
	doc_put_str(m, meta, STR("generateName"),
		    str_printf(a, PRI_STR "-", FMT_STR(pod_name(&pod))));
	if (doc_get(pod.object_meta, STR("namespace")))
		doc_put_str(m, meta, STR("namespace"), pod_namespace(&pod));
	doc_put(m, root, STR("spec"), yyjson_val_mut_copy(m, pod.spec));
	*ret = doc_freeze(root, a);
	return *ret ? 0 : err_set(err, ENOMEM, "not enough memory");
}
