/* Which steps decide about a request. For a pod: management, then pools, then the required plugin.
 * The steps add operations on resources to the patch and record annotations, which are added last;
 * a refusal drops all of them. */

#include "admission.h"

#include <errno.h>

#include "base/arena.h"
#include "kube/names.h"
#include "steps.h"

/* What a request is about. TARGET_OTHER is allowed unchanged. */
enum target {
	TARGET_OTHER,
	TARGET_POD,
	TARGET_POD_SUBRESOURCE,
	TARGET_NODE,
	TARGET_INFRASTRUCTURE,
	TARGET_PROFILE
};

static enum target target_of(const struct admission_request *rq)
{
	bool is_core = !rq->group.n;

	if (is_core && str_eq(rq->resource, STR("pods")))
		return rq->subresource.n ? TARGET_POD_SUBRESOURCE : TARGET_POD;
	/* Not nodes/status: OpenShift does not inspect it either, so a kubelet can always
	 * report. */
	if (is_core && str_eq(rq->resource, STR("nodes")) && !rq->subresource.n)
		return TARGET_NODE;
	/* With any subresource: the cluster flag is in the status. */
	if (str_eq(rq->group, STR("config.openshift.io")) &&
	    str_eq(rq->resource, STR("infrastructures")))
		return TARGET_INFRASTRUCTURE;
	/* Not the status, which the operator writes. */
	if (str_eq(rq->group, STR(NAME_PROFILE_GROUP)) &&
	    str_eq(rq->resource, STR(NAME_PROFILE_RESOURCE)) && !rq->subresource.n)
		return TARGET_PROFILE;
	return TARGET_OTHER;
}

/* Pods of Pinfold itself are left alone: they provide what they would otherwise wait for (D18). */
static bool is_exempt(const struct admission_state *state, const struct admission_request *request,
		      struct admission_result *r)
{
	struct str namespace = request->namespace.n ?
				       request->namespace :
				       doc_str(doc_find(request->object, "/metadata/namespace"));

	if (!namespace_is_exempt(&state->settings, namespace))
		return false;
	result_decide(r, RULE_EXEMPT, VERDICT_LEAVE, namespace);
	return true;
}

static void pod_mutate(struct pod_context *ctx)
{
	if (is_exempt(ctx->state, ctx->request, ctx->result) || !pod_context_init(ctx))
		return;
	if (request_is_static_pod(ctx->request)) {
		result_decide(ctx->result, RULE_STATIC, VERDICT_LEAVE, ctx->subject.name);
		return;
	}
	/* Management first: a converted pod has no CPU left to count in a pool (D12). */
	management_admit(ctx);
	if (ctx->result->allowed && !ctx->is_managed)
		pools_admit(ctx);
	if (ctx->result->allowed)
		required_plugin_admit(ctx);
	if (ctx->result->allowed)
		annotations_flush(&ctx->annotations, ctx->pod.meta, &ctx->result->patch);
}

int admit_mutate(const struct admission_state *state, const struct admission_request *request,
		 struct arena *a, struct admission_result *ret)
{
	struct pod_context ctx = { .state = state, .request = request, .result = ret, .a = a };
	enum target target = target_of(request);

	if (!result_init(ret, a))
		return -ENOMEM;
	if (target == TARGET_POD && request->operation == OPERATION_CREATE)
		pod_mutate(&ctx);
	else if (target == TARGET_NODE && request->operation == OPERATION_CREATE)
		node_mutate(state, request, ret);
	else
		result_decide(ret, RULE_SCOPE, VERDICT_LEAVE, request->resource);
	return a->failed ? -ENOMEM : 0; /* an incomplete result is never returned */
}

int admit_validate(const struct admission_state *state, const struct admission_request *request,
		   struct arena *a, struct admission_result *ret)
{
	struct pod_context ctx = { .state = state, .request = request, .result = ret, .a = a };
	enum admission_operation operation = request->operation;
	enum target target = target_of(request);

	if (!result_init(ret, a))
		return -ENOMEM;
	if ((target == TARGET_POD || target == TARGET_POD_SUBRESOURCE) &&
	    is_exempt(state, request, ret))
		return 0;
	if (target == TARGET_POD && operation == OPERATION_CREATE) {
		if (pod_context_init(&ctx))
			pod_validate(&ctx);
	} else if ((target == TARGET_POD || target == TARGET_POD_SUBRESOURCE) &&
		   operation == OPERATION_UPDATE) {
		pod_update_validate(request, ret);
	} else if (target == TARGET_NODE &&
		   (operation == OPERATION_CREATE || operation == OPERATION_UPDATE)) {
		node_validate(state, request, ret);
	} else if (target == TARGET_INFRASTRUCTURE) {
		infrastructure_validate(state, request, ret);
	} else if (target == TARGET_PROFILE &&
		   (operation == OPERATION_CREATE || operation == OPERATION_UPDATE)) {
		performance_profile_validate(state, request, ret);
	} else {
		result_decide(ret, RULE_SCOPE, VERDICT_LEAVE, request->resource);
	}
	return a->failed ? -ENOMEM : 0; /* an incomplete result is never returned */
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

	/* The API server calls validating webhooks with the object that all mutating ones left. */
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
