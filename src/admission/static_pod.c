/* The conversion of static pods as OpenShift's kubelet does it; on a node with a stock kubelet the
 * agent does it instead. The rules differ from those for other pods in small ways, which are kept
 * (docs/reference/admission.md#static-pods). */

#include "static_pod.h"

#include <errno.h>

#include "base/arena.h"
#include "kube/names.h"
#include "kube/shares.h"
#include "pod_context.h"

struct static_conversion {
	struct admission_result *r;
	struct arena *a;
	const struct static_options *options;
	struct pod pod;
	struct annotations annotations;
	struct pod_resources resources;
	struct str type, resource;
	bool keeps_class; /* without its CPU the pod is still Burstable */
};

/* The type is not checked here; of several target annotations the first one counts. */
static bool find_type(struct static_conversion *cv)
{
	bool is_managed = false;

	for (size_t i = 0; i < cv->annotations.n_own; i++) {
		struct own_annotation *own = &cv->annotations.own[i];

		if (own->kind == OWN_TARGET && !is_managed) {
			cv->type = own->name;
			is_managed = true;
		}
		if (own->kind != OWN_STAMP)
			annotations_keep(
				own); /* unchanged, also for containers that do not exist */
	}
	cv->resource = cores_resource(cv->type, cv->a);
	return is_managed;
}

/* Evaluated for init and app containers separately; an empty list counts as Guaranteed. */
static bool is_guaranteed(const struct static_conversion *cv)
{
	struct qos_hook_fold init = { 0 }, app = { 0 };

	for (size_t i = 0; i < cv->resources.n; i++) {
		const struct container_resources *f = &cv->resources.items[i];

		container_fold(f->c.kind == CONTAINER_APP ? &app : &init, f, false);
	}
	return qos_hook_class(&init) == QOS_GUARANTEED && qos_hook_class(&app) == QOS_GUARANTEED;
}

/* The QoS class as admission computes it, over the whole pod. */
static bool keeps_class(const struct static_conversion *cv)
{
	struct qos_hook_fold after = { 0 };

	for (size_t i = 0; i < cv->resources.n; i++)
		container_fold(&after, &cv->resources.items[i], true);
	return after.not_best_effort;
}

static void skip_guaranteed(struct static_conversion *cv)
{
	struct str text =
		STR("skipping pod CPUs requests modifications because it has guaranteed QoS class");

	for (size_t i = 0; i < cv->annotations.n_own; i++)
		/* find_type() kept them all; a skipped pod loses them. */
		cv->annotations.own[i].is_kept = false;
	annotations_set(&cv->annotations, STR(NAME_WARNING), text);
	result_warn(cv->r, text);
	result_decide(cv->r, RULE_GUARANTEED, VERDICT_STRIP, str_from(qos_name(QOS_GUARANTEED)));
}

static bool refuse_container(struct static_conversion *cv, const struct container_resources *f,
			     const char *what)
{
	result_refuse(cv->r, RULE_CONVERT, 422, "Invalid",
		      str_printf(cv->a, "managed container " PRI_STR " does not have %s requests",
				 FMT_STR(f->c.name), what));
	return false;
}

static void annotate(struct static_conversion *cv, const struct container_resources *f,
		     struct str value)
{
	annotations_set(&cv->annotations, resources_key(f->c.name, cv->a), value);
}

/* For a container without a CPU request. One that was converted before gets its weight from its
 * cores. */
static void annotate_without_cpu(struct static_conversion *cv, const struct container_resources *f)
{
	struct str key = resources_key(f->c.name, cv->a);
	struct container_cpu cpu = { 0 };
	struct quantity cores;

	if (!cv->options->every_container || annotations_find(&cv->annotations, key))
		return;
	if (resource_get(f->c.requests, cv->resource, &cores, NULL) != 1) {
		annotate(cv, f, STR(CONTAINER_CPU_BEST_EFFORT));
		return;
	}
	cpu.shares = cpu_shares_from_milli(quantity_value(&cores));
	annotate(cv, f, container_cpu_format(&cpu, cv->a));
}

static bool convert_container(struct static_conversion *cv, const struct container_resources *f,
			      struct field_errors *problems)
{
	bool has_cpu = f->has_request[QOS_CPU];
	bool has_memory = f->has_request[QOS_MEMORY] || f->has_limit[QOS_MEMORY];
	struct cpu_conversion conversion;

	if (!yyjson_is_obj(f->c.requests) || (!has_cpu && !has_memory)) {
		annotate_without_cpu(cv, f);
		return true;
	}
	/* The agent's choice: OpenShift's kubelet would give up on the whole pod, and all of its
	 * containers would keep their CPU requests. */
	if (!has_cpu && cv->options->every_container) {
		annotate_without_cpu(cv, f);
		return true;
	}
	if (!has_cpu)
		return refuse_container(cv, f, "cpu");
	if (!has_memory && !(cv->options->every_container && cv->keeps_class))
		return refuse_container(cv, f, "memory");
	if (cpu_conversion_plan(f, &conversion, problems) < 0)
		return false;
	cpu_conversion_apply(&conversion, &f->c, cv->resource, &cv->annotations, &cv->r->patch);
	return true;
}

/* App containers first, as in the kubelet: the error names the first one that cannot be
 * converted. */
static bool convert_all(struct static_conversion *cv, struct field_errors *problems)
{
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < cv->resources.n; i++) {
			const struct container_resources *f = &cv->resources.items[i];

			if ((f->c.kind == CONTAINER_APP) == (pass == 0) &&
			    !convert_container(cv, f, problems))
				return false;
		}
	return true;
}

static void convert_managed(struct static_conversion *cv)
{
	struct subject s = { .resource = "pods", .kind = "Pod", .name = pod_name(&cv->pod) };
	struct field_errors problems;

	field_errors_init(&problems, cv->a);
	if (pod_resources_read(&cv->pod, cv->a, &cv->resources, &problems) < 0) {
		result_invalid(cv->r, RULE_QUANTITY, &s, &problems);
		return;
	}
	if (is_guaranteed(cv)) {
		skip_guaranteed(cv);
		return;
	}
	cv->keeps_class = keeps_class(cv);
	if (!convert_all(cv, &problems)) {
		if (problems.n)
			result_invalid(cv->r, RULE_QUANTITY, &s, &problems);
		return;
	}
	result_decide(cv->r, RULE_CONVERT, VERDICT_CHANGE, cv->type);
}

int static_pod_convert(yyjson_val *pod, const struct static_options *options, struct arena *a,
		       struct admission_result *ret)
{
	struct static_conversion cv = { .r = ret, .a = a, .options = options };

	if (!result_init(ret, a))
		return -ENOMEM;
	ret->is_static = true;
	if (!pod_from_object(pod, &cv.pod)) {
		result_refuse(ret, RULE_OBJECT, 400, "BadRequest", STR("not a pod"));
		return 0;
	}
	annotations_scan(&cv.annotations, pod_annotations(&cv.pod), false, a);
	if (!find_type(&cv)) {
		result_decide(ret, RULE_TARGET, VERDICT_LEAVE,
			      STR("no " NAME_TARGET_PREFIX "<type> annotation"));
		return 0;
	}
	convert_managed(&cv);
	if (ret->allowed)
		annotations_flush(&cv.annotations, cv.pod.meta, &ret->patch);
	return a->failed ? -ENOMEM : 0;
}

/* The cores of a container, of any workload type. */
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
	struct str key = resources_key(c->name, p->arena);
	const struct own_annotation *own = annotations_find(ann, key);
	struct container_cpu cpu = { 0 };
	struct quantity cores, amount;
	struct str name;

	if (!find_cores(c, &name, &cores))
		return; /* best effort: only its annotation is removed */
	/* An invalid annotation is ignored: the request is restored from the cores alone. */
	if (own)
		(void)container_cpu_parse(own->value, p->arena, &cpu, NULL);
	/* One unit of cores is one millicore, so the request is restored exactly. */
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
		/* The target annotation stays: the manifest can be converted again. */
		if (ann.own[i].kind != OWN_RESOURCES)
			annotations_keep(&ann.own[i]);
	annotations_flush(&ann, pod.meta, ret);
	return a->failed ? -ENOMEM : 0;
}
