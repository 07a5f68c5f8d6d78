/* A PodList is cut down to one small object per pod before it is stored. */

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
	if (doc_str(doc_find(list, "/metadata/continue")).n)
		doc_put_bool(m, root, STR("more"), true);
	return doc_write(root, false, a, ret, err);
}

static bool stays(yyjson_val *pod)
{
	struct str phase = doc_str(doc_get(pod, STR("phase")));

	return doc_get(pod, STR("mirror")) || str_eq(phase, STR("Succeeded")) ||
	       str_eq(phase, STR("Failed")) ||
	       str_eq(doc_str(doc_get(pod, STR("controller"))), STR("DaemonSet"));
}

void drain_plan(yyjson_val *pods, struct arena *a, struct drain_plan *ret)
{
	yyjson_val *pod;

	*ret = (struct drain_plan){ .is_known = pods != NULL,
				    .has_more = doc_bool(doc_get(pods, STR("more")), false) };
	DOC_EACH_ITEM (doc_get(pods, STR("pods")), pod) {
		struct drain_pod p = { doc_str(doc_get(pod, STR("namespace"))),
				       doc_str(doc_get(pod, STR("name"))),
				       doc_str(doc_get(pod, STR("uid"))) };

		if (stays(pod))
			continue;
		if (doc_get(pod, STR("deleting"))) {
			ret->n_leaving++;
		} else if (!doc_get(pod, STR("controller"))) {
			ret->unmanaged = p;
			ret->n_unmanaged++;
		} else {
			ret->evict =
				arena_one_more(a, ret->evict, ret->n_evict, sizeof(*ret->evict));
			ret->evict[ret->n_evict++] = p;
		}
	}
}

bool drain_is_complete(const struct drain_plan *p)
{
	return p->is_known && !p->has_more && !p->n_evict && !p->n_leaving && !p->n_unmanaged;
}

struct str drain_describe(const struct drain_plan *p, struct arena *a)
{
	const size_t n = p->n_evict + p->n_leaving;
	struct strbuf b;

	strbuf_init(&b, a);
	if (!p->is_known)
		return STR("its pods are being read");
	if (n)
		strbuf_printf(&b, PRI_STR " to leave",
			      FMT_STR(str_count(a, n, "pod has", "pods have")));
	if (p->n_unmanaged)
		strbuf_printf(&b,
			      "%s" PRI_STR " no controller and must be deleted by hand: " PRI_STR
			      "/" PRI_STR,
			      n ? ", " : "",
			      FMT_STR(str_count(a, p->n_unmanaged, "pod has", "pods have")),
			      FMT_STR(p->unmanaged.namespace), FMT_STR(p->unmanaged.name));
	return strbuf_str(&b);
}
