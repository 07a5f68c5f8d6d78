/* The rules are those of `kubectl drain`. */

#include "drain.h"

#include "base/arena.h"
#include "kube/names.h"

/* {"namespace","name","uid","controller","phase","mirror","deleting"} */
static void keep_pod(yyjson_val *pod, yyjson_mut_doc *m, yyjson_mut_val *to)
{
	yyjson_val *meta = doc_get(pod, STR("metadata")), *owner;

	doc_put_str(m, to, STR("namespace"), doc_str(doc_get(meta, STR("namespace"))));
	doc_put_str(m, to, STR("name"), doc_str(doc_get(meta, STR("name"))));
	doc_put_str(m, to, STR("uid"), doc_str(doc_get(meta, STR("uid"))));
	doc_put_str(m, to, STR("phase"), doc_str(doc_find(pod, "/status/phase")));
	DOC_EACH_ITEM (doc_get(meta, STR("ownerReferences")), owner)
		if (doc_bool(doc_get(owner, STR("controller")), false))
			doc_put_str(m, to, STR("controller"), doc_str(doc_get(owner, STR("kind"))));
	if (doc_get(doc_get(meta, STR("annotations")), STR(NAME_CONFIG_MIRROR)))
		doc_put_bool(m, to, STR("mirror"), true);
	if (doc_get(meta, STR("deletionTimestamp")))
		doc_put_bool(m, to, STR("deleting"), true);
}

int drain_pods_trim(yyjson_val *list, struct arena *a, struct str *ret, struct err *err)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m), *pods = doc_put_arr(m, root, STR("pods"));
	yyjson_val *pod;

	DOC_EACH_ITEM (doc_get(list, STR("items")), pod) {
		yyjson_mut_val *kept = yyjson_mut_obj(m);

		keep_pod(pod, m, kept);
		yyjson_mut_arr_append(pods, kept);
	}
	return doc_write(root, false, a, ret, err);
}
