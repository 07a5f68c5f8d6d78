/* A converted container has neither a cpu request nor a cpu limit: its CPU is in the cores resource
 * and in annotations. What demands one of the two refuses it, and what divides by the request finds
 * none. */

#include "namespace_checks.h"

#include "base/arena.h"
#include "base/macro.h"
#include "kube/names.h"
#include "kube/pod.h"

static struct str member(yyjson_val *object, const char *pointer)
{
	return doc_str(doc_find(object, pointer));
}

static bool has_annotation_prefix(yyjson_val *object, struct str prefix)
{
	yyjson_val *key, *value;

	DOC_EACH_PAIR (object_annotations(object), key, value)
		if (value && str_starts(doc_str(key), prefix))
			return true;
	return false;
}

static bool is_converted(yyjson_val *pod)
{
	return has_annotation_prefix(pod, STR(NAME_RESOURCES_PREFIX));
}

bool pod_is_unconverted(yyjson_val *pod)
{
	return has_annotation_prefix(pod, STR(NAME_TARGET_PREFIX)) && !is_converted(pod) &&
	       !doc_find(pod, "/metadata/deletionTimestamp");
}

static yyjson_val *find_controller(yyjson_val *pod)
{
	yyjson_val *owner;

	DOC_EACH_ITEM (doc_find(pod, "/metadata/ownerReferences"), owner)
		if (doc_bool(doc_get(owner, STR("controller")), false))
			return owner;
	return NULL;
}

bool pod_workload(yyjson_val *pod, struct arena *a, struct workload_ref *ret)
{
	yyjson_val *owner = find_controller(pod);
	const struct str hash =
		doc_str(doc_get(doc_find(pod, "/metadata/labels"), STR("pod-template-hash")));
	struct workload_ref ref = { member(pod, "/metadata/namespace"), member(owner, "/kind"),
				    member(owner, "/name") };

	if (!ref.name.n)
		return false;
	/* "web-5d4f9", with 5d4f9 as the hash. */
	if (str_eq(ref.kind, STR("ReplicaSet")) && hash.n &&
	    str_ends(ref.name, str_printf(a, "-" PRI_STR, FMT_STR(hash)))) {
		ref.kind = STR("Deployment");
		ref.name.n -= hash.n + 1;
	}
	*ret = ref;
	return true;
}

static bool is_same_workload(const struct workload_ref *x, const struct workload_ref *y)
{
	return str_eq(x->name, y->name) && str_eq(x->kind, y->kind) &&
	       str_eq(x->namespace, y->namespace);
}

static bool has_converted_pods(const struct namespace_checks *c, const struct workload_ref *w)
{
	for (size_t i = c->n_converted; i-- > 0;) /* the pods of a workload follow each other */
		if (is_same_workload(&c->converted[i], w))
			return true;
	return false;
}

static void note_converted(struct namespace_checks *c, yyjson_val *pod)
{
	struct workload_ref w;

	if (!pod_workload(pod, c->arena, &w) || has_converted_pods(c, &w))
		return;
	c->converted = arena_one_more(c->arena, c->converted, c->n_converted, sizeof(w));
	c->converted[c->n_converted++] = (struct workload_ref){ str_dup(c->arena, w.namespace),
								str_dup(c->arena, w.kind),
								str_dup(c->arena, w.name) };
}

static void add(struct namespace_checks *c, const struct cluster_finding *of, yyjson_val *object)
{
	struct cluster_finding finding = *of;

	finding.namespace = member(object, "/metadata/namespace");
	finding.name = member(object, "/metadata/name");
	finding.uid = member(object, "/metadata/uid");
	cluster_findings_add(&c->found, &finding);
}

void namespace_check_pod(struct namespace_checks *c, yyjson_val *pod)
{
	const bool is_static = doc_get(object_annotations(pod), STR(NAME_CONFIG_MIRROR)) != NULL;

	if (is_converted(pod)) {
		note_converted(c, pod);
		return;
	}
	if (pod_is_unconverted(pod))
		add(c,
		    &(struct cluster_finding){
			    .check = CLUSTER_POD_UNCONVERTED,
			    .api = STR("v1"),
			    .kind = STR("Pod"),
			    .problem =
				    is_static ?
					    STR("this static pod opted in to a workload type and "
						"was not converted") :
					    STR("the pod opted in to a workload type and was not "
						"converted") },
		    pod);
}

/* Whether the metric is the share of the cpu request that is used. */
static bool is_cpu_utilization(yyjson_val *metric)
{
	const struct str type = member(metric, "/type");
	const char *key = str_eq(type, STR("Resource"))		 ? "resource" :
			  str_eq(type, STR("ContainerResource")) ? "containerResource" :
								   NULL;
	yyjson_val *source = key ? doc_get(metric, str_from(key)) : NULL;

	return str_eq(member(source, "/name"), STR(NAME_CPU)) &&
	       str_eq(member(source, "/target/type"), STR("Utilization"));
}

void namespace_check_autoscaler(struct namespace_checks *c, yyjson_val *autoscaler)
{
	const struct workload_ref target = { member(autoscaler, "/metadata/namespace"),
					     member(autoscaler, "/spec/scaleTargetRef/kind"),
					     member(autoscaler, "/spec/scaleTargetRef/name") };
	yyjson_val *metric;

	if (!has_converted_pods(c, &target))
		return;
	DOC_EACH_ITEM (doc_find(autoscaler, "/spec/metrics"), metric) {
		if (!is_cpu_utilization(metric))
			continue;
		add(c,
		    &(struct cluster_finding){
			    .check = CLUSTER_AUTOSCALER,
			    .api = STR("autoscaling/v2"),
			    .kind = STR("HorizontalPodAutoscaler"),
			    .problem = str_printf(
				    c->arena,
				    "it scales on cpu utilization, and the pods of " PRI_STR
				    " " PRI_STR " have no cpu request",
				    FMT_STR(target.kind), FMT_STR(target.name)) },
		    autoscaler);
		return;
	}
}

static bool is_allowed_namespace(const struct namespace_checks *c, yyjson_val *object)
{
	return object_store_find(c->allowed, member(object, "/metadata/namespace")) != NULL;
}

/* The member of a limit that refuses containers without a cpu request or limit; NULL: none. */
static const char *refusing_limit(yyjson_val *limit)
{
	static const char *const members[] = { "min", "max", "maxLimitRequestRatio" };
	const struct str type = member(limit, "/type");

	if (!str_eq(type, STR("Container")) && !str_eq(type, STR("Pod")))
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		if (doc_get(doc_get(limit, str_from(members[i])), STR(NAME_CPU)))
			return members[i];
	return NULL;
}

void namespace_check_limit_range(struct namespace_checks *c, yyjson_val *range)
{
	yyjson_val *limit;

	if (!is_allowed_namespace(c, range))
		return;
	DOC_EACH_ITEM (doc_find(range, "/spec/limits"), limit) {
		const char *what = refusing_limit(limit);

		if (!what)
			continue;
		add(c,
		    &(struct cluster_finding){
			    .check = CLUSTER_LIMIT_RANGE,
			    .api = STR("v1"),
			    .kind = STR("LimitRange"),
			    .problem = str_printf(
				    c->arena, "%s.cpu of type " PRI_STR " refuses converted pods",
				    what, FMT_STR(member(limit, "/type"))) },
		    range);
		return;
	}
}

/* Scopes in which no long-running pod with a request is. */
static bool has_other_scope(yyjson_val *quota)
{
	yyjson_val *scope;

	DOC_EACH_ITEM (doc_find(quota, "/spec/scopes"), scope)
		if (str_eq(doc_str(scope), STR("BestEffort")) ||
		    str_eq(doc_str(scope), STR("Terminating")))
			return true;
	return false;
}

void namespace_check_quota(struct namespace_checks *c, yyjson_val *quota)
{
	static const char *const names[] = { "cpu", "requests.cpu", "limits.cpu" };
	yyjson_val *hard = doc_find(quota, "/spec/hard");
	const bool is_scoped = yyjson_arr_size(doc_find(quota, "/spec/scopes")) ||
			       doc_find(quota, "/spec/scopeSelector");

	if (!is_allowed_namespace(c, quota) || has_other_scope(quota))
		return;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (!doc_get(hard, str_from(names[i])))
			continue;
		add(c,
		    &(struct cluster_finding){
			    .check = CLUSTER_QUOTA,
			    .api = STR("v1"),
			    .kind = STR("ResourceQuota"),
			    .problem = str_printf(c->arena, "%s refuses converted pods%s", names[i],
						  is_scoped ? " in its scope" : "") },
		    quota);
		return;
	}
}
