/* The validating hook: pods as they will be stored (spec/admission.md 1.14), and changes that would
 * undo what admission decided (D8, D10). */

#include <errno.h>

#include "admission.h"
#include "annotation.h"
#include "base/arena.h"
#include "base/err.h"
#include "kube/names.h"

#define DEBUG_ADVICE                                                                               \
	"You must pass --keep-annotations parameter to the debug command or upgrade the oc tool "  \
	"to the latest version when trying to debug a pod with workload partitioning resources."

static void annotation_problem(struct admission *ad, struct field_errors *p, struct str detail)
{
	field_errors_invalid(p, STR("metadata.Annotations"),
			     print_map(pod_annotations(&ad->pod), false, ad->a), detail);
}

static size_t check_resource_annotations(struct admission *ad, struct field_errors *p)
{
	size_t n = 0;

	for (size_t i = 0; i < ad->annotations.n_own; i++) {
		const struct own_annotation *own = &ad->annotations.own[i];
		struct container_cpu cpu;
		struct err err = { 0 };

		if (own->kind != OWN_RESOURCES)
			continue;
		n++;
		if (container_cpu_parse(own->value, ad->a, &cpu, &err) < 0)
			annotation_problem(ad, p, str_dup(ad->a, str_from(err.msg)));
	}
	return n;
}

/* Enough for anybody; without an end, a hostile pod would make us compare for seconds. */
#define MAX_RESOURCES 64

struct cores_search {
	struct str found[MAX_RESOURCES];
	size_t n;
};

static bool is_news(struct cores_search *search, struct str resource)
{
	for (size_t i = 0; i < search->n; i++)
		if (str_eq(search->found[i], resource))
			return false;
	if (search->n == MAX_RESOURCES)
		return false;
	search->found[search->n++] = resource;
	return true;
}

static void check_container_cores(struct admission *ad, struct cores_search *search,
				  yyjson_val *requests, struct field_errors *p)
{
	yyjson_val *key, *value;

	DOC_EACH_PAIR (requests, key, value) {
		struct str resource = doc_str(key), detail;

		if (!str_ends(resource, STR(NAME_CORES)) || !is_news(search, resource))
			continue;
		detail = str_printf(ad->a,
				    "the pod without workload annotations can not have containers "
				    "with workload resources \"" PRI_STR "\"",
				    FMT_STR(resource));
		field_errors_invalid(p, STR("spec.containers.resources.requests"),
				     print_map(requests, true, ad->a), detail);
	}
	(void)value;
}

/* Backwards: of several containers that request a resource, the last one's requests are shown. */
static void check_cores(struct admission *ad, struct field_errors *p)
{
	struct container_iter it = container_iter(&ad->pod, false);
	struct cores_search search = { .n = 0 };
	size_t n = 0, max = yyjson_arr_size(doc_get(ad->pod.spec, STR("initContainers"))) +
			    yyjson_arr_size(doc_get(ad->pod.spec, STR("containers")));
	yyjson_val **requests = arena_array(ad->a, yyjson_val *, max + 1);
	struct container c;

	while (requests && container_next(&it, &c))
		requests[n++] = c.requests;
	while (n)
		check_container_cores(ad, &search, requests[--n], p);
	if (search.n && doc_get(pod_annotations(&ad->pod), STR(NAME_DEBUG_SOURCE)))
		result_warn(ad->result, STR(DEBUG_ADVICE));
}

static void check_untargeted(struct admission *ad, size_t n_resource_annotations,
			     struct field_errors *p)
{
	if (n_resource_annotations)
		annotation_problem(ad, p,
				   STR("the pod without workload annotation can not have resource "
				       "annotation"));
	check_cores(ad, p);
}

static void check_type_allowed(struct admission *ad, const struct namespace_facts *ns,
			       struct field_errors *p)
{
	if (!ns->has_allowed || type_is_allowed(ns->allowed, ad->type))
		return; /* without the annotation the pod was stripped before */
	annotation_problem(ad, p,
			   str_printf(ad->a,
				      "the namespace \"" PRI_STR
				      "\" does not allow the workload type " PRI_STR,
				      FMT_STR(ad->namespace), FMT_STR(ad->type)));
}

void pod_validate(struct admission *ad)
{
	struct str problem = STR("");
	struct namespace_facts ns;
	struct field_errors p;
	size_t n_types, n_annotations;

	if (admission_is_static(ad->request)) {
		result_decide(ad->result, RULE_STATIC, VERDICT_LEAVE, ad->subject.name);
		return;
	}
	if (!ad->state->is_synced) {
		result_forbid(ad->result, RULE_SYNCED, &ad->subject,
			      STR(NAME_PLUGIN_PODS
				  " node or namespace or infra config cache not synchronized"));
		return;
	}
	if (!admission_find_namespace(ad, &ns))
		return;
	field_errors_init(&p, ad->a);
	n_types = workload_type(&ad->annotations, &ad->type, &ad->effect, &problem);
	if (problem.n)
		annotation_problem(ad, &p, problem);
	n_annotations = check_resource_annotations(ad, &p);
	if (!n_types || problem.n)
		check_untargeted(ad, n_annotations, &p);
	else
		check_type_allowed(ad, &ns, &p);
	if (p.n)
		result_invalid(ad->result, n_types ? RULE_RESOURCES_ANNOTATION : RULE_UNTARGETED,
			       &ad->subject, &p);
	else
		result_decide(ad->result, RULE_RESOURCES_ANNOTATION, VERDICT_LEAVE,
			      ad->subject.name);
}

/* Annotations of ours in `ann` that `other` has not, or has with another value. */
static void list_changes(const struct annotations *ann, const struct annotations *other,
			 const char *what, struct field_errors *p)
{
	for (size_t i = 0; i < ann->n_own; i++) {
		const struct own_annotation *own = &ann->own[i];
		const struct own_annotation *match = annotations_find(other, own->key);

		if (own->kind == OWN_WARNING || (match && str_eq(match->value, own->value)))
			continue;
		field_errors_add(
			p, str_printf(p->a,
				      "metadata.annotations[" PRI_STR
				      "]: Forbidden: may not be %s after the pod was created: "
				      "delete the pod and create it anew",
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

	return has_x == has_y && quantity_cmp(&x, &y) == 0;
}

/* Extended resources cannot follow a resize, so the accounts would be wrong from then on. Lists of
 * containers cannot change here: the API server compares them before us. */
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
		field_errors_add(
			p,
			str_printf(
				p->a,
				"spec.%s[%zu].resources: Forbidden: the CPU of container " PRI_STR
				" is counted in a CPU pool and cannot be resized "
				"in place: delete the pod and create it with the new CPU",
				new.list, new.index, FMT_STR(new.name)));
	}
}

void pod_update_validate(const struct admission_request *rq, struct admission_result *r)
{
	struct subject s = subject_of(rq->object, "pods", "Pod");
	struct field_errors p;

	if (!yyjson_is_obj(rq->object) || !yyjson_is_obj(rq->old_object) ||
	    !str_eq(object_kind(rq->object), STR("Pod")) || admission_is_static(rq)) {
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

void infrastructure_validate(const struct admission_request *rq, struct admission_result *r)
{
	struct infrastructure_facts before = infrastructure_facts_of(rq->old_object);
	struct infrastructure_facts after = infrastructure_facts_of(rq->object);
	struct subject s = subject_of(rq->old_object, "infrastructures.config.openshift.io",
				      "Infrastructure.config.openshift.io");
	struct field_errors p;

	if (!str_eq(s.name, STR(NAME_INFRASTRUCTURE)) || !before.is_partitioned ||
	    after.is_partitioned) {
		result_decide(r, RULE_TURN_OFF, VERDICT_LEAVE, after.partitioning);
		return;
	}
	field_errors_init(&p, r->patch.arena);
	field_errors_add(&p, STR("status." NAME_PARTITIONING_KEY
				 ": Forbidden: workload partitioning can not be turned off once it "
				 "is " NAME_PARTITIONING_ALL
				 "; change the CPU sets in the profiles instead"));
	result_invalid(r, RULE_TURN_OFF, &s, &p);
}
