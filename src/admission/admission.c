#include "admission.h"

#include <errno.h>

#include "base/arena.h"
#include "kube/names.h"

/* Which requests concern us; everything else is allowed untouched. */
enum target { TARGET_OTHER, TARGET_POD, TARGET_POD_PART, TARGET_NODE, TARGET_INFRASTRUCTURE };

static enum target target_of(const struct admission_request *rq)
{
	bool is_core = !rq->group.n;

	if (is_core && str_eq(rq->resource, STR("pods")))
		return rq->subresource.n ? TARGET_POD_PART : TARGET_POD;
	if (is_core && str_eq(rq->resource, STR("nodes")) && !rq->subresource.n)
		return TARGET_NODE;
	if (str_eq(rq->group, STR("config.openshift.io")) &&
	    str_eq(rq->resource, STR("infrastructures")))
		return TARGET_INFRASTRUCTURE;
	return TARGET_OTHER;
}

static void leave(struct admission_result *r, const struct admission_request *rq)
{
	result_decide(r, RULE_SCOPE, VERDICT_LEAVE, rq->resource);
}

bool admission_is_static(const struct admission_request *request)
{
	yyjson_val *source;

	if (!request->by_node)
		return false;
	source = doc_get(object_annotations(request->object), STR(NAME_CONFIG_SOURCE));
	return source && !str_eq(doc_str(source), STR(NAME_CONFIG_SOURCE_API));
}

bool admission_read_facts(struct admission *ad)
{
	struct field_errors problems;

	if (ad->has_facts)
		return true;
	field_errors_init(&problems, ad->a);
	if (pod_facts_read(&ad->pod, ad->a, &ad->facts, &problems) == 0) {
		ad->has_facts = true;
		return true;
	}
	result_invalid(ad->result, RULE_QUANTITY, &ad->subject, &problems);
	return false;
}

bool admission_find_namespace(struct admission *ad, struct namespace_facts *ret)
{
	const struct admission_state *s = ad->state;

	if (s->find_namespace(s->owner, ad->namespace, ret)) {
		result_step(ad->result, RULE_NAMESPACE, VERDICT_GO_ON, ad->namespace);
		return true;
	}
	result_refuse(ad->result, RULE_NAMESPACE, 404, "NotFound",
		      str_printf(ad->a, "namespaces \"" PRI_STR "\" not found",
				 FMT_STR(ad->namespace)));
	return false;
}

size_t workload_type(const struct annotations *ann, struct str *ret_type, struct str *ret_effect,
		     struct str *ret_problem)
{
	size_t n = 0;

	for (size_t i = 0; i < ann->n_own; i++) {
		if (ann->own[i].kind != OWN_TARGET)
			continue;
		*ret_type = ann->own[i].name;
		*ret_effect = ann->own[i].value;
		n++;
	}
	if (n > 1)
		*ret_problem = STR("the pod can not have more than one workload annotations");
	else if (n == 1 && !ret_type->n)
		*ret_problem =
			STR("the workload annotation key should have format " NAME_TARGET_PREFIX
			    "<workload_type>, when <workload_type> is non empty string");
	return n;
}

bool type_is_allowed(struct str allowed, struct str type)
{
	struct str_split split = str_split(allowed);
	struct str item;

	while (str_next(&split, ',', &item))
		if (str_eq(item, type))
			return true;
	return false;
}

/* False when the object is no pod, and was refused. */
static bool begin_pod(struct admission *ad)
{
	const struct admission_request *rq = ad->request;
	struct str kind = object_kind(rq->object);

	ad->subject = subject_of(rq->object, "pods", "Pod");
	if (!yyjson_is_obj(rq->object) || (kind.n && !str_eq(kind, STR("Pod")))) {
		result_forbid(ad->result, RULE_OBJECT, &ad->subject,
			      str_printf(ad->a, "unexpected object: " PRI_STR,
					 FMT_STR(kind.n ? kind : str_from(doc_type(rq->object)))));
		return false;
	}
	ad->pod = (struct pod){
		.meta = doc_get(rq->object, STR("metadata")),
		.spec = doc_get(rq->object, STR("spec")),
		.object_meta = doc_get(rq->object, STR("metadata")),
		.kind = STR("Pod"),
		.prefix = "",
	};
	ad->namespace = rq->namespace.n ? rq->namespace : pod_namespace(&ad->pod);
	annotations_scan(&ad->annotations, pod_annotations(&ad->pod), ad->state->settings.legacy,
			 ad->a);
	return true;
}

static void pod_mutate(struct admission *ad)
{
	if (!begin_pod(ad))
		return;
	if (admission_is_static(ad->request)) {
		result_decide(ad->result, RULE_STATIC, VERDICT_LEAVE, ad->subject.name);
		return;
	}
	management_admit(ad);
	if (ad->result->allowed && !ad->is_managed)
		pools_admit(ad);
	if (ad->result->allowed)
		plugin_require(ad);
	if (ad->result->allowed)
		annotations_flush(&ad->annotations, ad->pod.meta, &ad->result->patch);
}

/* Memory that ran out anywhere on the way shows here: nothing half-made leaves the room. */
static int finished(const struct admission *ad)
{
	return ad->a->failed ? -ENOMEM : 0;
}

int admit_mutate(const struct admission_state *state, const struct admission_request *request,
		 struct arena *a, struct admission_result *ret)
{
	struct admission ad = { .state = state, .request = request, .result = ret, .a = a };
	enum target target = target_of(request);

	if (!result_init(ret, a))
		return -ENOMEM;
	if (target == TARGET_POD && request->operation == OPERATION_CREATE)
		pod_mutate(&ad);
	else if (target == TARGET_NODE && request->operation == OPERATION_CREATE)
		node_mutate(state, request, ret);
	else
		leave(ret, request);
	return finished(&ad);
}

int admit_validate(const struct admission_state *state, const struct admission_request *request,
		   struct arena *a, struct admission_result *ret)
{
	struct admission ad = { .state = state, .request = request, .result = ret, .a = a };
	enum admission_operation operation = request->operation;
	enum target target = target_of(request);

	if (!result_init(ret, a))
		return -ENOMEM;
	if (target == TARGET_POD && operation == OPERATION_CREATE) {
		if (begin_pod(&ad))
			pod_validate(&ad);
	} else if ((target == TARGET_POD || target == TARGET_POD_PART) &&
		   operation == OPERATION_UPDATE) {
		pod_update_validate(request, ret);
	} else if (target == TARGET_NODE &&
		   (operation == OPERATION_CREATE || operation == OPERATION_UPDATE)) {
		node_validate(state, request, ret);
	} else if (target == TARGET_INFRASTRUCTURE) {
		infrastructure_validate(request, ret);
	} else {
		leave(ret, request);
	}
	return finished(&ad);
}

int admit_pod(const struct admission_state *state, yyjson_val *pod, struct arena *a,
	      struct admission_result *ret)
{
	struct admission_request request = {
		.operation = OPERATION_CREATE,
		.resource = STR("pods"),
		.object = pod,
	};

	return admit_mutate(state, &request, a, ret);
}

int admit_and_validate(const struct admission_state *state, yyjson_val *pod, struct arena *a,
		       struct admission_result *ret, yyjson_val **ret_pod)
{
	struct admission_request request = {
		.operation = OPERATION_CREATE,
		.resource = STR("pods"),
	};
	struct admission_result validated;
	int r;

	*ret_pod = pod;
	r = admit_pod(state, pod, a, ret);
	if (r < 0 || !ret->allowed)
		return r;
	r = patch_apply(&ret->patch, pod, a, &request.object, NULL);
	if (r < 0)
		return r;
	r = admit_validate(state, &request, a, &validated);
	if (r < 0)
		return r;
	if (validated.allowed)
		*ret_pod = request.object;
	else
		result_refuse(ret, validated.rule, validated.code, validated.reason,
			      validated.message);
	return 0;
}
