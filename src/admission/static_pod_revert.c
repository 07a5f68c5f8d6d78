#include <errno.h>

#include "annotation.h"
#include "base/arena.h"
#include "edit.h"
#include "kube/names.h"
#include "static_pod.h"

/* The cores of a container, of whatever workload type. */
static bool find_cores(const struct container *c, struct str *ret_name, struct quantity *ret)
{
	yyjson_val *key, *value;

	DOC_EACH_PAIR (c->requests, key, value) {
		if (!str_ends(doc_str(key), STR(NAME_CORES_SUFFIX)) || yyjson_is_null(value))
			continue;
		*ret_name = doc_str(key);
		return resource_get(c->requests, *ret_name, ret, NULL) == 1;
	}
	return false;
}

static void revert_container(const struct container *c, struct annotations *ann, struct patch *p)
{
	struct resource_edit e = resource_edit(p, c);
	struct str key = str_printf(p->arena, NAME_RESOURCES_PREFIX PRI_STR, FMT_STR(c->name));
	const struct own_annotation *own = annotations_find(ann, key);
	struct container_cpu cpu = { 0 };
	struct quantity cores, amount;
	struct str name;

	if (!find_cores(c, &name, &cores))
		return; /* its annotation, if any, goes: best effort */
	if (own)
		(void)container_cpu_parse(own->value, p->arena, &cpu, NULL);
	amount = quantity_from_milli(quantity_value(&cores), cores.format);
	for (int of_limit = 0; of_limit <= 1; of_limit++)
		resource_drop(&e, of_limit, name);
	resource_set(&e, false, STR(NAME_CPU), &amount);
	if (cpu.limit_milli > 0) {
		amount = quantity_from_milli(cpu.limit_milli, cores.format);
		resource_set(&e, true, STR(NAME_CPU), &amount);
	}
}

int static_pod_revert(yyjson_val *object, struct arena *a, struct patch *ret)
{
	struct annotations ann;
	struct container_iter it;
	struct container c;
	struct pod pod;

	if (!pod_from_object(object, &pod))
		return -EINVAL;
	if (!patch_init(ret, a))
		return -ENOMEM;
	annotations_scan(&ann, pod_annotations(&pod), false, a);
	it = container_iter(&pod, false);
	while (container_next(&it, &c))
		revert_container(&c, &ann, ret);
	for (size_t i = 0; i < ann.n_own; i++)
		if (ann.own[i].kind != OWN_RESOURCES)
			annotations_keep(&ann.own[i]);
	annotations_flush(&ann, pod.meta, ret);
	return a->failed ? -ENOMEM : 0;
}
