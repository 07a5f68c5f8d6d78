/* What all steps share about one pod. Views point into the request's document, everything new is in
 * the request's arena; nothing outlives the response. */

#include "pod_context.h"

#include <errno.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "kube/names.h"
#include "kube/shares.h"
#include "texts.h"

bool request_is_static_pod(const struct admission_request *request)
{
	yyjson_val *source;

	if (!request->by_node)
		return false;
	/* Any other value counts, also an empty one; the annotation config.mirror is not read. */
	source = doc_get(object_annotations(request->object), STR(NAME_CONFIG_SOURCE));
	return source && !str_eq(doc_str(source), STR(NAME_CONFIG_SOURCE_API));
}

bool pod_context_init(struct pod_context *ctx)
{
	const struct admission_request *rq = ctx->request;
	struct str kind = object_kind(rq->object);

	ctx->subject = subject_of(rq->object, "pods", "Pod");
	if (!yyjson_is_obj(rq->object) || (kind.n && !str_eq(kind, STR("Pod")))) {
		result_forbid(ctx->result, RULE_OBJECT, &ctx->subject,
			      str_printf(ctx->a, "unexpected object: " PRI_STR,
					 FMT_STR(kind.n ? kind : str_from(doc_type(rq->object)))));
		return false;
	}
	/* Not pod_from_object(): the object in a request may have no kind. */
	ctx->pod = (struct pod){
		.meta = doc_get(rq->object, STR("metadata")),
		.spec = doc_get(rq->object, STR("spec")),
		.object_meta = doc_get(rq->object, STR("metadata")),
		.kind = STR("Pod"),
		.prefix = "",
	};
	/* The API server always sends it; the object of a CREATE may leave its own empty. */
	ctx->namespace = rq->namespace.n ? rq->namespace : pod_namespace(&ctx->pod);
	annotations_scan(&ctx->annotations, pod_annotations(&ctx->pod), ctx->state->settings.legacy,
			 ctx->a);
	return true;
}

bool pod_context_is_synced(struct pod_context *ctx)
{
	if (ctx->state->is_synced)
		return true;
	result_forbid(ctx->result, RULE_SYNCED, &ctx->subject,
		      STR(NAME_PLUGIN_PODS
			  " node or namespace or infra config cache not synchronized"));
	return false;
}

bool pod_context_find_namespace(struct pod_context *ctx, struct namespace_permission *ret)
{
	const struct admission_state *s = ctx->state;

	if (s->find_namespace(s->owner, ctx->namespace, ret)) {
		/* The annotation wins over the label of 2021. */
		if (!ret->has_allowed && s->settings.legacy && ret->has_legacy_allowed) {
			ret->allowed = ret->legacy_allowed;
			ret->has_allowed = true;
		}
		result_step(ctx->result, RULE_NAMESPACE, VERDICT_GO_ON, ctx->namespace);
		return true;
	}
	result_refuse(ctx->result, RULE_NAMESPACE, 404, "NotFound",
		      str_printf(ctx->a, "namespaces \"" PRI_STR "\" not found",
				 FMT_STR(ctx->namespace)));
	return false;
}

size_t pod_context_find_type(struct pod_context *ctx, struct str *ret_problem)
{
	const struct annotations *ann = &ctx->annotations;
	size_t n = 0;

	for (size_t i = 0; i < ann->n_own; i++) {
		if (ann->own[i].kind != OWN_TARGET)
			continue;
		/* Which one it is does not matter when there are several: that is an error. */
		ctx->type = ann->own[i].name;
		ctx->effect = ann->own[i].value;
		n++;
	}
	if (n > 1)
		*ret_problem = STR(TEXT_TWO_TYPES);
	else if (n == 1 && !ctx->type.n)
		*ret_problem = STR(TEXT_EMPTY_TYPE);
	return n;
}

bool pod_context_read_resources(struct pod_context *ctx)
{
	struct field_errors problems;

	if (ctx->has_resources)
		return true;
	field_errors_init(&problems, ctx->a);
	if (pod_resources_read(&ctx->pod, ctx->a, &ctx->resources, &problems) == 0) {
		ctx->has_resources = true;
		return true;
	}
	result_invalid(ctx->result, RULE_QUANTITY, &ctx->subject, &problems);
	return false;
}

void pod_context_annotation_error(const struct pod_context *ctx, struct field_errors *p,
				  struct str detail)
{
	field_errors_invalid(p, STR("metadata.Annotations"),
			     print_map(pod_annotations(&ctx->pod), false, ctx->a), detail);
}

static const struct str counted[] = {
	[QOS_CPU] = STR_INIT(NAME_CPU),
	[QOS_MEMORY] = STR_INIT(NAME_MEMORY),
};
_Static_assert(ARRAY_LEN(counted) == QOS_COUNTED__COUNT, "every counted resource has a name");

static void add_quantity_error(struct field_errors *problems, const struct container *c,
			       const char *list, struct str name, const struct err *err)
{
	yyjson_val *v = doc_get(list[0] == 'r' ? c->requests : c->limits, name);
	struct str field = str_printf(problems->a, "spec.%s[%zu].resources.%s[" PRI_STR "]",
				      c->list, c->index, list, FMT_STR(name));
	struct str detail = str_dup(problems->a, str_from(err->msg));

	field_errors_invalid(problems, field, print_quoted(doc_text(v), problems->a), detail);
}

static int read_amount(const struct container *c, bool of_limit, struct str name,
		       struct quantity *ret, struct field_errors *problems)
{
	struct err err = { 0 };
	int r = resource_get(of_limit ? c->limits : c->requests, name, ret, &err);

	/* The API server refuses a negative amount only while it is in the pod, and a conversion
	 * moves it to an annotation. The text is the API server's. */
	if (r > 0 && quantity_sign(ret) < 0)
		r = err_set(&err, EINVAL, "must be greater than or equal to 0");
	if (r < 0)
		add_quantity_error(problems, c, of_limit ? "limits" : "requests", name, &err);
	return r;
}

static int read_container(const struct container *c, struct container_resources *ret,
			  struct field_errors *problems)
{
	int worst = 0;

	ret->c = *c;
	for (size_t i = 0; i < QOS_COUNTED__COUNT; i++) {
		/* Both are read even when the first fails: the user gets all errors at once. */
		int request = read_amount(c, false, counted[i], &ret->request[i], problems);
		int limit = read_amount(c, true, counted[i], &ret->limit[i], problems);

		ret->has_request[i] = request > 0;
		ret->has_limit[i] = limit > 0;
		if (request < 0 || limit < 0)
			worst = -EINVAL;
	}
	return worst;
}

int pod_resources_read(const struct pod *pod, struct arena *a, struct pod_resources *ret,
		       struct field_errors *problems)
{
	struct container_iter it = container_iter(pod, false);
	struct container c;
	struct pod_resources resources = { 0 };
	size_t max = yyjson_arr_size(doc_get(pod->spec, STR("initContainers"))) +
		     yyjson_arr_size(doc_get(pod->spec, STR("containers")));
	int r = 0;

	resources.items = arena_alloc(a, (max ? max : 1) * sizeof(*resources.items), 16);
	if (!resources.items)
		return -ENOMEM;
	while (container_next(&it, &c))
		if (read_container(&c, &resources.items[resources.n++], problems) < 0)
			r = -EINVAL;
	*ret = resources;
	return r;
}

int container_milli(const struct container_resources *r, bool of_limit, int64_t *ret,
		    struct field_errors *problems)
{
	struct err err = { 0 };
	const struct quantity *amount = of_limit ? &r->limit[QOS_CPU] : &r->request[QOS_CPU];
	int code = quantity_milli(amount, ret, &err);

	if (code < 0)
		add_quantity_error(problems, &r->c, of_limit ? "limits" : "requests", STR(NAME_CPU),
				   &err);
	return code;
}

void container_fold(struct qos_hook_fold *fold, const struct container_resources *r,
		    bool without_cpu)
{
	bool cpu = !without_cpu;

	qos_hook_add(fold, QOS_CPU, cpu && r->has_request[QOS_CPU] ? &r->request[QOS_CPU] : NULL,
		     cpu && r->has_limit[QOS_CPU] ? &r->limit[QOS_CPU] : NULL);
	qos_hook_add(fold, QOS_MEMORY, r->has_request[QOS_MEMORY] ? &r->request[QOS_MEMORY] : NULL,
		     r->has_limit[QOS_MEMORY] ? &r->limit[QOS_MEMORY] : NULL);
}

struct resource_edit resource_edit(struct patch *p, const struct container *c)
{
	struct resource_edit e = {
		.p = p,
		.c = c,
		.has_resources = yyjson_is_obj(doc_get(c->v, STR("resources"))),
		.has_requests = yyjson_is_obj(c->requests),
		.has_limits = yyjson_is_obj(c->limits),
	};
	struct strbuf b;

	strbuf_init(&b, p->arena);
	strbuf_add(&b, STR("/spec/"));
	strbuf_add(&b, str_from(c->list));
	strbuf_addc(&b, '/');
	strbuf_add_u64(&b, c->index);
	strbuf_add(&b, STR("/resources"));
	/* The flags above follow the patch while it grows: a list that an earlier operation added
	 * must not be added again, because "add" replaces a member that exists. */
	e.base = strbuf_str(&b);
	e.lists[false] = patch_path(p->arena, e.base, STR("requests"));
	e.lists[true] = patch_path(p->arena, e.base, STR("limits"));
	return e;
}

void resource_drop(struct resource_edit *e, bool of_limit, struct str name)
{
	if (doc_get(of_limit ? e->c->limits : e->c->requests, name))
		patch_remove(e->p, patch_path(e->p->arena, e->lists[of_limit], name));
}

/* Adds a list with its first amount, inside a new "resources" object where there is none. */
static void add_resource_list(struct resource_edit *e, bool of_limit, struct str name,
			      yyjson_mut_val *text)
{
	yyjson_mut_doc *m = e->p->doc;
	yyjson_mut_val *list = yyjson_mut_obj(m), *outer;
	struct str key = of_limit ? STR("limits") : STR("requests");

	doc_put(m, list, name, text);
	if (e->has_resources) {
		patch_put(e->p, e->lists[of_limit],
			  (of_limit ? e->c->limits : e->c->requests) != NULL, list);
	} else {
		outer = yyjson_mut_obj(m);
		doc_put(m, outer, key, list);
		patch_put(e->p, e->base, doc_get(e->c->v, STR("resources")) != NULL, outer);
	}
	e->has_resources = true;
	*(of_limit ? &e->has_limits : &e->has_requests) = true;
}

void resource_set(struct resource_edit *e, bool of_limit, struct str name,
		  const struct quantity *value)
{
	yyjson_val *list = of_limit ? e->c->limits : e->c->requests;
	yyjson_val *old = doc_get(list, name);
	yyjson_mut_val *text;
	struct quantity q;

	/* "1" and "1000m" are equal: the user's spelling stays. */
	if (old && resource_get(list, name, &q, NULL) == 1 && quantity_cmp(&q, value) == 0)
		return;
	text = doc_new_str(e->p->doc, quantity_format(value, e->p->arena));
	if (!(of_limit ? e->has_limits : e->has_requests))
		add_resource_list(e, of_limit, name, text);
	else
		patch_put(e->p, patch_path(e->p->arena, e->lists[of_limit], name), old != NULL,
			  text);
}

int cpu_conversion_plan(const struct container_resources *r, struct cpu_conversion *ret,
			struct field_errors *problems)
{
	struct cpu_conversion conversion = { 0 };
	int64_t milli;
	int code = container_milli(r, false, &milli, problems);

	if (code >= 0 && r->has_limit[QOS_CPU])
		code = container_milli(r, true, &conversion.cpu.limit_milli, problems);
	if (code < 0)
		return code;
	/* The format of the CPU request is kept, as OpenShift does: 1 becomes 1k, 250m becomes
	 * 250. */
	conversion.cores = quantity_from_int(milli, r->request[QOS_CPU].format);
	conversion.cpu.shares = cpu_shares_from_milli(milli);
	*ret = conversion;
	return 0;
}

void cpu_conversion_apply(const struct cpu_conversion *conversion, const struct container *c,
			  struct str resource, struct annotations *ann, struct patch *p)
{
	struct resource_edit e = resource_edit(p, c);

	annotations_set(ann, resources_key(c->name, p->arena),
			container_cpu_format(&conversion->cpu, p->arena));
	/* Extended resources must have equal requests and limits. */
	for (int of_limit = 0; of_limit <= 1; of_limit++) {
		resource_drop(&e, of_limit, STR(NAME_CPU));
		resource_set(&e, of_limit, resource, &conversion->cores);
	}
}
