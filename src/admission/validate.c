/* The validating hook: pods as they will be stored (docs/reference/admission.md#validate), and
 * changes that contradict an earlier decision (D10). */

#include <errno.h>

#include "base/arena.h"
#include "base/err.h"
#include "kube/names.h"
#include "steps.h"
#include "texts.h"

static size_t check_resource_annotations(struct pod_context *ctx, struct field_errors *p)
{
	size_t n = 0;

	for (size_t i = 0; i < ctx->annotations.n_own; i++) {
		const struct own_annotation *own = &ctx->annotations.own[i];
		struct container_cpu cpu;
		struct err err = { 0 };

		if (own->kind != OWN_RESOURCES)
			continue;
		n++;
		if (container_cpu_parse(own->value, ctx->a, &cpu, &err) < 0)
			pod_context_annotation_error(ctx, p, str_dup(ctx->a, str_from(err.msg)));
	}
	return n;
}

/* The search is quadratic, so a hostile pod could otherwise take seconds. */
#define MAX_RESOURCES 64

struct cores_search {
	struct str found[MAX_RESOURCES];
	size_t n;
};

static bool add_if_new(struct cores_search *search, struct str resource)
{
	for (size_t i = 0; i < search->n; i++)
		if (str_eq(search->found[i], resource))
			return false;
	if (search->n == MAX_RESOURCES)
		return false;
	search->found[search->n++] = resource;
	return true;
}

static void check_container_cores(struct pod_context *ctx, struct cores_search *search,
				  yyjson_val *requests, struct field_errors *p)
{
	yyjson_val *key, *value;

	DOC_EACH_PAIR (requests, key, value) {
		struct str resource = doc_str(key), detail;

		if (!str_ends(resource, STR(NAME_CORES)) || !add_if_new(search, resource))
			continue;
		detail = str_printf(ctx->a, TEXT_UNTARGETED_CORES PRI_STR "\"", FMT_STR(resource));
		field_errors_invalid(p, STR("spec.containers.resources.requests"),
				     print_map(requests, true, ctx->a), detail);
	}
	(void)value;
}

/* From the last container to the first: OpenShift prints the requests of the last container that
 * has the resource. */
static void check_cores(struct pod_context *ctx, struct field_errors *p)
{
	struct container_iter it = container_iter(&ctx->pod, false);
	struct cores_search search = { .n = 0 };
	size_t n = 0, max = yyjson_arr_size(doc_get(ctx->pod.spec, STR("initContainers"))) +
			    yyjson_arr_size(doc_get(ctx->pod.spec, STR("containers")));
	yyjson_val **requests = arena_array(ctx->a, yyjson_val *, max + 1);
	struct container c;

	while (requests && container_next(&it, &c))
		requests[n++] = c.requests;
	while (n)
		check_container_cores(ctx, &search, requests[--n], p);
	if (search.n && doc_get(pod_annotations(&ctx->pod), STR(NAME_DEBUG_SOURCE)))
		result_warn(ctx->result, STR(TEXT_DEBUG_ADVICE));
}

static void check_untargeted(struct pod_context *ctx, size_t n_resource_annotations,
			     struct field_errors *p)
{
	if (n_resource_annotations)
		pod_context_annotation_error(ctx, p, STR(TEXT_UNTARGETED_RESOURCES));
	check_cores(ctx, p);
}

static void check_type_allowed(struct pod_context *ctx, const struct namespace_permission *ns,
			       struct field_errors *p)
{
	/* The mutating hook removes the target of a pod whose namespace allows nothing; a target
	 * that is still there came past it. */
	if (ns->has_allowed && type_is_allowed(ns->allowed, ctx->type))
		return;
	pod_context_annotation_error(ctx, p,
				     str_printf(ctx->a,
						"the namespace \"" PRI_STR
						"\" does not allow the workload type " PRI_STR,
						FMT_STR(ctx->namespace), FMT_STR(ctx->type)));
}

void pod_validate(struct pod_context *ctx)
{
	struct str problem = STR("");
	struct namespace_permission ns;
	struct field_errors p;
	size_t n_types, n_annotations;

	if (request_is_static_pod(ctx->request)) {
		result_decide(ctx->result, RULE_STATIC, VERDICT_LEAVE, ctx->subject.name);
		return;
	}
	/* As in OpenShift, the Infrastructure is not consulted: the mutating hook removed the
	 * annotations of a pod that it did not convert, so what is left must be consistent,
	 * whichever webhook added it. */
	if (!pod_context_is_synced(ctx) || !pod_context_find_namespace(ctx, &ns))
		return;
	field_errors_init(&p, ctx->a);
	n_types = pod_context_find_type(ctx, &problem);
	if (problem.n)
		pod_context_annotation_error(ctx, &p, problem);
	n_annotations = check_resource_annotations(ctx, &p);
	/* A type with an error counts as no type. */
	if (!n_types || problem.n)
		check_untargeted(ctx, n_annotations, &p);
	else
		check_type_allowed(ctx, &ns, &p);
	if (p.n)
		result_invalid(ctx->result, n_types ? RULE_RESOURCES_ANNOTATION : RULE_UNTARGETED,
			       &ctx->subject, &p);
	else
		result_decide(ctx->result, RULE_RESOURCES_ANNOTATION, VERDICT_LEAVE,
			      ctx->subject.name);
}

/* Workload annotations of `ann` that are missing or different in `other`. */
static void list_changes(const struct annotations *ann, const struct annotations *other,
			 const char *what, struct field_errors *p)
{
	for (size_t i = 0; i < ann->n_own; i++) {
		const struct own_annotation *own = &ann->own[i];
		const struct own_annotation *match = annotations_find(other, own->key);

		if (own->kind == OWN_WARNING || (match && str_eq(match->value, own->value)))
			continue;
		field_errors_add(p, str_printf(p->a,
					       TEXT_UPDATE_HEAD PRI_STR TEXT_UPDATE_MIDDLE
					       "%s" TEXT_UPDATE_TAIL,
					       FMT_STR(own->key), match ? "changed" : what));
	}
}

static void check_annotations_stay(const struct admission_request *rq, struct field_errors *p)
{
	struct annotations before, after;

	annotations_scan(&before, object_annotations(rq->old_object), false, p->a);
	annotations_scan(&after, object_annotations(rq->object), false, p->a);
	list_changes(&after, &before, "added", p);
	list_changes(&before, &after, "removed", p);
}

/* Counted by the scheduler under another name than cpu. */
static bool is_accounted(yyjson_val *requests)
{
	return doc_get(requests, STR(NAME_SHARED_CPUS)) ||
	       doc_get(requests, STR(NAME_GUARANTEED_CPUS)) ||
	       node_has_resource(requests, STR(NAME_CORES));
}

static bool same_cpu(yyjson_val *before, yyjson_val *after)
{
	struct quantity x = { 0 }, y = { 0 };
	int has_x = resource_get(before, STR(NAME_CPU), &x, NULL);
	int has_y = resource_get(after, STR(NAME_CPU), &y, NULL);

	/* By value: a client may write 1000m where the pod has 1. */
	return has_x == has_y && quantity_cmp(&x, &y) == 0;
}

/* Extended resources cannot be resized in place, so the amounts would disagree. The container
 * lists are equal: the API server compares them first. */
static void check_cpu_stays(const struct admission_request *rq, struct field_errors *p)
{
	struct pod before = { .spec = doc_get(rq->old_object, STR("spec")) };
	struct pod after = { .spec = doc_get(rq->object, STR("spec")) };
	struct container_iter x = container_iter(&before, false), y = container_iter(&after, false);
	struct container old, new;

	while (container_next(&x, &old) && container_next(&y, &new)) {
		if (!is_accounted(old.requests) && !is_accounted(new.requests))
			continue;
		if (same_cpu(old.requests, new.requests) && same_cpu(old.limits, new.limits))
			continue;
		field_errors_add(p, str_printf(p->a,
					       "spec.%s[%zu].resources: " TEXT_RESIZE_HEAD PRI_STR
						       TEXT_RESIZE_TAIL,
					       new.list, new.index, FMT_STR(new.name)));
	}
}

void pod_update_validate(const struct admission_request *rq, struct admission_result *r)
{
	struct subject s = subject_of(rq->object, "pods", "Pod");
	struct field_errors p;

	/* Other subresources send other kinds, for example a Binding. A node may update
	 * mirror pods. */
	if (!yyjson_is_obj(rq->object) || !yyjson_is_obj(rq->old_object) ||
	    !str_eq(object_kind(rq->object), STR("Pod")) || request_is_static_pod(rq)) {
		result_decide(r, RULE_UPDATE, VERDICT_LEAVE, rq->subresource);
		return;
	}
	field_errors_init(&p, r->patch.arena);
	check_annotations_stay(rq, &p);
	if (p.n) {
		result_invalid(r, RULE_UPDATE, &s, &p);
		return;
	}
	check_cpu_stays(rq, &p);
	if (p.n)
		result_invalid(r, RULE_RESIZE, &s, &p);
	else
		result_decide(r, RULE_UPDATE, VERDICT_LEAVE, s.name);
}
