/* The structure of pods and of the workloads that contain them. A missing or mistyped field reads
 * as absent: whether that is an error is decided by the API server or by admission, not here. */

#include "pod.h"

#include <errno.h>

#include "base/err.h"
#include "base/macro.h"
#include "base/quote.h"
#include "names.h"

/* Kinds that are a pod or have a pod template, and where. */
static const struct {
	struct str kind;
	const char *prefix;
} pod_kinds[] = {
	{ STR_INIT("Pod"), "" },
	{ STR_INIT("Deployment"), "/spec/template" },
	{ STR_INIT("DaemonSet"), "/spec/template" },
	{ STR_INIT("StatefulSet"), "/spec/template" },
	{ STR_INIT("ReplicaSet"), "/spec/template" },
	{ STR_INIT("ReplicationController"), "/spec/template" },
	{ STR_INIT("Job"), "/spec/template" },
	{ STR_INIT("CronJob"), "/spec/jobTemplate/spec/template" },
	{ STR_INIT("PodTemplate"), "/template" },
};

bool pod_from_object(yyjson_val *object, struct pod *ret)
{
	struct str kind = object_kind(object);

	for (size_t i = 0; i < ARRAY_LEN(pod_kinds); i++) {
		yyjson_val *pod;

		if (!str_eq(kind, pod_kinds[i].kind))
			continue;
		pod = *pod_kinds[i].prefix ? doc_find(object, pod_kinds[i].prefix) : object;
		*ret = (struct pod){
			.meta = doc_get(pod, STR("metadata")),
			.spec = doc_get(pod, STR("spec")),
			.object_meta = doc_get(object, STR("metadata")),
			.kind = kind,
			.prefix = pod_kinds[i].prefix,
		};
		return true;
	}
	return false;
}

struct pod pod_from_list_item(yyjson_val *object)
{
	yyjson_val *meta = doc_get(object, STR("metadata"));

	return (struct pod){ .meta = meta,
			     .spec = doc_get(object, STR("spec")),
			     .object_meta = meta,
			     .kind = STR("Pod"),
			     .prefix = "" };
}

struct str pod_name(const struct pod *pod)
{
	struct str name = doc_str(doc_get(pod->object_meta, STR("name")));

	/* Admission sees pods of controllers before the API server has made a name from
	 * generateName. */
	return name.n ? name : doc_str(doc_get(pod->object_meta, STR("generateName")));
}

struct str pod_namespace(const struct pod *pod)
{
	struct str namespace = doc_str(doc_get(pod->object_meta, STR("namespace")));

	return namespace.n ? namespace : STR("default");
}

yyjson_val *pod_annotations(const struct pod *pod)
{
	return doc_get(pod->meta, STR("annotations"));
}

struct str pod_annotation(const struct pod *pod, struct str key)
{
	return doc_str(doc_get(pod_annotations(pod), key));
}

struct object_iter object_iter(yyjson_val *root)
{
	yyjson_val *items = doc_get(root, STR("items"));

	/* kubectl prints kind List, the API server PodList, NodeList and so on. */
	if (str_ends(object_kind(root), STR("List")) && yyjson_is_arr(items))
		return (struct object_iter){ .items = yyjson_arr_iter_with(items),
					     .is_list = true };
	return (struct object_iter){ .single = root };
}

yyjson_val *object_next(struct object_iter *it)
{
	yyjson_val *object = it->single;

	if (it->is_list)
		return yyjson_arr_iter_next(&it->items);
	it->single = NULL;
	return object;
}

struct str object_kind(yyjson_val *object)
{
	return doc_str(doc_get(object, STR("kind")));
}

struct str object_api(yyjson_val *object)
{
	return doc_str(doc_get(object, STR("apiVersion")));
}

struct str object_name(yyjson_val *object)
{
	return doc_str(doc_get(doc_get(object, STR("metadata")), STR("name")));
}

yyjson_val *object_annotations(yyjson_val *object)
{
	return doc_get(doc_get(object, STR("metadata")), STR("annotations"));
}

yyjson_val *object_condition(yyjson_val *object, struct str type)
{
	yyjson_val *condition;

	DOC_EACH_ITEM (doc_find(object, "/status/conditions"), condition)
		if (str_eq(doc_str(doc_get(condition, STR("type"))), type))
			return condition;
	return NULL;
}

static const char *const kind_names[] = {
	[CONTAINER_INIT] = NAME_KIND_INIT,
	[CONTAINER_SIDECAR] = NAME_KIND_SIDECAR,
	[CONTAINER_APP] = NAME_KIND_APP,
	[CONTAINER_EPHEMERAL] = "ephemeral",
};
_Static_assert(ARRAY_LEN(kind_names) == CONTAINER__COUNT, "every kind has a name");

const char *container_kind_name(enum container_kind kind)
{
	return kind_names[kind];
}

static const struct {
	const char *name;
	enum container_kind kind;
} lists[] = {
	{ "initContainers", CONTAINER_INIT },
	{ "containers", CONTAINER_APP },
	{ "ephemeralContainers", CONTAINER_EPHEMERAL },
};

static void begin_list(struct container_iter *it)
{
	it->index = 0;
	it->items = yyjson_arr_iter_with(doc_get(it->pod->spec, str_from(lists[it->list].name)));
}

struct container_iter container_iter(const struct pod *pod, bool with_ephemeral)
{
	struct container_iter it = { .pod = pod,
				     .n_lists = ARRAY_LEN(lists) - (with_ephemeral ? 0 : 1) };

	begin_list(&it);
	return it;
}

static struct container container_view(yyjson_val *v, const struct container_iter *it)
{
	yyjson_val *resources = doc_get(v, STR("resources"));
	enum container_kind kind = lists[it->list].kind;

	/* Kubernetes' spelling of a sidecar: it keeps running next to the app containers, so its
	 * CPUs cannot be reused by them. */
	if (kind == CONTAINER_INIT &&
	    str_eq(doc_str(doc_get(v, STR("restartPolicy"))), STR("Always")))
		kind = CONTAINER_SIDECAR;
	return (struct container){
		.v = v,
		.name = doc_str(doc_get(v, STR("name"))),
		.kind = kind,
		.requests = doc_get(resources, STR("requests")),
		.limits = doc_get(resources, STR("limits")),
		.list = lists[it->list].name,
		.index = it->index - 1,
	};
}

bool container_next(struct container_iter *it, struct container *ret)
{
	for (;;) {
		yyjson_val *v = yyjson_arr_iter_next(&it->items);

		if (v) {
			it->index++;
			/* Counted although it is skipped, because `index` goes into patch paths. */
			if (!yyjson_is_obj(v))
				continue;
			*ret = container_view(v, it);
			return true;
		}
		if (++it->list >= it->n_lists) {
			it->list = it->n_lists - 1; /* a further call returns false as well */
			return false;
		}
		begin_list(it);
	}
}

int resource_get(yyjson_val *list, struct str name, struct quantity *ret, struct err *err)
{
	yyjson_val *v = doc_get(list, name);
	int r;

	if (!v || yyjson_is_null(v))
		return 0;
	if (!yyjson_is_str(v) && !doc_is_number(v))
		return err_set(err, EINVAL, PRI_STR ": a quantity must be a string or a number",
			       FMT_STR(name));
	/* Kubernetes accepts numbers without quotes, and blanks around the text in quotes. */
	r = quantity_parse(str_trim(doc_text(v)), ret, err);
	if (r < 0)
		return err_wrap(err, PRI_STR " %s", FMT_STR(name), quote(doc_text(v)).text);
	return 1;
}
