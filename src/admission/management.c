/* Pods that opted in to a workload type: whether they may, and the conversion of their CPU. The
 * order of the checks is OpenShift's (docs/reference/admission.md#admit-order), because it
 * decides which message the user gets. Each check returns whether the next one follows. */

#include <errno.h>

#include "base/arena.h"
#include "base/err.h"
#include "kube/names.h"
#include "kube/shares.h"
#include "steps.h"
#include "texts.h"

/* Removes the workload annotations and adds the reason as a warning; the rest of the pod stays. */
static bool skip(struct pod_context *ctx, enum admission_rule rule, struct str seen,
		 struct str text)
{
	annotations_set(&ctx->annotations, STR(NAME_WARNING), text);
	result_warn(ctx->result, text);
	result_decide(ctx->result, rule, VERDICT_STRIP, seen);
	return false;
}

/* The same where OpenShift sets no annotation: only the response has the warning (D11). */
static bool skip_silently(struct pod_context *ctx, enum admission_rule rule, struct str seen,
			  struct str text)
{
	result_warn(ctx->result, text);
	result_decide(ctx->result, rule, VERDICT_STRIP, seen);
	return false;
}

static bool next_rule(struct pod_context *ctx, enum admission_rule rule, struct str seen)
{
	result_step(ctx->result, rule, VERDICT_GO_ON, seen);
	return true;
}

static bool forbid(struct pod_context *ctx, enum admission_rule rule, struct str text)
{
	result_forbid(ctx->result, rule, &ctx->subject, text);
	return false;
}

/* Refuses with 422. */
static bool reject_annotations(struct pod_context *ctx, enum admission_rule rule, struct str detail)
{
	struct field_errors p;

	field_errors_init(&p, ctx->a);
	pod_context_annotation_error(ctx, &p, detail);
	result_invalid(ctx->result, rule, &ctx->subject, &p);
	return false;
}

static bool check_type(struct pod_context *ctx)
{
	struct str problem = STR("");
	/* Before the cluster is known: errors in the type are reported even where partitioning is
	 * off. */
	size_t n = pod_context_find_type(ctx, &problem);

	if (problem.n)
		return reject_annotations(ctx, RULE_TARGET, problem);
	if (!n && ctx->state->settings.legacy) {
		ctx->type = doc_str(
			doc_get(doc_get(ctx->pod.meta, STR("labels")), STR(NAME_LEGACY_TARGET)));
		ctx->effect = STR(NAME_TARGET_VALUE); /* the labels of 2021 had no effect */
	}
	if (ctx->type.n)
		return next_rule(ctx, RULE_TARGET, ctx->type);
	result_decide(ctx->result, RULE_TARGET, VERDICT_LEAVE,
		      STR("no " NAME_TARGET_PREFIX "<type> annotation"));
	return false;
}

static struct str partitioning_text(const struct infrastructure_status *i)
{
	return i->partitioning.n ? i->partitioning : STR("not set");
}

/* An upgraded single node advertises the resource before the cluster flag is set (D3). */
static bool check_single_node(struct pod_context *ctx)
{
	const struct admission_state *s = ctx->state;
	struct str text;

	if (s->count_cores(s->owner, ctx->type).n)
		return next_rule(ctx, RULE_SINGLE_NODE, ctx->type);
	text = str_printf(ctx->a, TEXT_NODE_LACKS PRI_STR NAME_CORES_SUFFIX, FMT_STR(ctx->type));
	/* A node without any status may still get the resource; OpenShift sets no annotation
	 * then. */
	if (s->nodes.n_reporting)
		return skip(ctx, RULE_SINGLE_NODE, ctx->type, text);
	return skip_silently(ctx, RULE_SINGLE_NODE, STR("no node reports anything"), text);
}

/* An unknown cluster refuses pods that opted in instead of letting them run unconverted: they would
 * stay on the wrong CPUs until they are created again. */
static bool check_cluster(struct pod_context *ctx)
{
	const struct infrastructure_status *i = &ctx->state->infrastructure;

	/* OpenShift waits up to 10 s for its caches. A handler here never waits, so the request is
	 * refused at once, and controllers retry. */
	if (!pod_context_is_synced(ctx))
		return false;
	if (!i->is_present)
		return forbid(ctx, RULE_INFRASTRUCTURE,
			      STR("infrastructure.config.openshift.io \"" NAME_INFRASTRUCTURE
				  "\" not found"));
	if (!i->has_status)
		return forbid(ctx, RULE_INFRASTRUCTURE,
			      STR(NAME_PLUGIN_PODS " infrastructure resource has empty status"));
	next_rule(ctx, RULE_INFRASTRUCTURE, STR(NAME_INFRASTRUCTURE));
	/* Off OpenShift nothing sets the topologies, so they are not required (D18). */
	if (i->is_partitioned)
		return next_rule(ctx, RULE_PARTITIONING, i->partitioning);
	if (i->is_single)
		return check_single_node(ctx);
	return skip_silently(ctx, RULE_PARTITIONING, partitioning_text(i),
			     str_printf(ctx->a,
					TEXT_SKIP
					"workload partitioning is off (" NAME_PARTITIONING_KEY
					" is " PRI_STR ")",
					FMT_STR(partitioning_text(i))));
}

static bool check_namespace(struct pod_context *ctx)
{
	struct namespace_permission ns;

	if (!pod_context_find_namespace(ctx, &ns))
		return false;
	if (!ns.has_allowed)
		return skip(ctx, RULE_PERMISSION, STR("no annotation " NAME_ALLOWED),
			    str_printf(ctx->a,
				       TEXT_NO_PERMISSION_HEAD PRI_STR TEXT_NO_PERMISSION_TAIL,
				       FMT_STR(ctx->namespace)));
	if (type_is_allowed(ns.allowed, ctx->type))
		return next_rule(ctx, RULE_TYPE_ALLOWED, ns.allowed);
	return forbid(ctx, RULE_TYPE_ALLOWED,
		      str_printf(ctx->a,
				 NAME_PLUGIN_PODS
				 " " TEXT_TYPE_REFUSED_HEAD PRI_STR TEXT_TYPE_REFUSED_TAIL PRI_STR,
				 FMT_STR(ctx->namespace), FMT_STR(ctx->type)));
}

static bool check_effect(struct pod_context *ctx)
{
	struct str problem;

	/* After the namespace: where it is not annotated, an invalid effect only leads to a
	 * warning. */
	if (effect_check(ctx->effect, ctx->a, &problem) < 0)
		return reject_annotations(ctx, RULE_EFFECT, problem);
	return next_rule(ctx, RULE_EFFECT, STR(NAME_EFFECT_PREFERRED));
}

/* OpenShift ignores pod-level resources and would give such a pod the minimum weight (D5). */
static bool check_pod_level(struct pod_context *ctx)
{
	yyjson_val *resources = doc_get(ctx->pod.spec, STR("resources"));

	if (doc_get(doc_get(resources, STR("requests")), STR(NAME_CPU)) ||
	    doc_get(doc_get(resources, STR("limits")), STR(NAME_CPU)))
		return skip(ctx, RULE_POD_LEVEL, STR("spec.resources"), STR(TEXT_POD_LEVEL));
	return true;
}

/* Where a container's millicores come from. */
enum source {
	SOURCE_NONE,  /* no CPU request: not converted */
	SOURCE_CPU,   /* its CPU request */
	SOURCE_CORES, /* its cores request: it was converted before (D4) */
};

struct container_plan {
	enum source source;
	struct cpu_conversion conversion;
};

/* The amount of cores that the container requests already. The resource of 2021 counted CPUs
 * instead of millicores. */
static bool find_cores(const struct pod_context *ctx, const struct container_resources *f,
		       struct str resource, struct quantity *ret)
{
	struct quantity q;
	struct str legacy;
	int64_t milli;

	/* An unreadable amount counts as none; the API server refuses the pod later. */
	if (resource_get(f->c.requests, resource, ret, NULL) == 1)
		return true;
	if (!ctx->state->settings.legacy)
		return false;
	legacy = str_printf(ctx->a, NAME_LEGACY_CPU_PREFIX PRI_STR, FMT_STR(ctx->type));
	if (resource_get(f->c.requests, legacy, &q, NULL) != 1 ||
	    quantity_milli(&q, &milli, NULL) < 0)
		return false;
	*ret = quantity_from_int(milli, q.format);
	return true;
}

/* A container with cores and a matching annotation was converted by an earlier call (D4). A CPU
 * request that it has as well was added in between, for example by a LimitRange. */
static bool was_converted(struct pod_context *ctx, const struct container_resources *f,
			  struct str resource, struct container_plan *ret)
{
	struct own_annotation *own;
	struct container_cpu before;
	struct quantity cores;
	bool has_before;
	int64_t milli;

	if (!find_cores(ctx, f, resource, &cores))
		return false;
	milli = quantity_value(&cores);
	own = annotations_find(&ctx->annotations, resources_key(f->c.name, ctx->a));
	has_before = own && container_cpu_parse(own->value, ctx->a, &before, NULL) == 0;
	if (f->has_request[QOS_CPU] &&
	    !(has_before && before.shares == cpu_shares_from_milli(milli)))
		return false;
	ret->source = SOURCE_CORES;
	ret->conversion.cores = cores;
	ret->conversion.cpu.shares = cpu_shares_from_milli(milli);
	/* The limit is not in the cores: its source is the earlier annotation, or a CPU limit that
	 * is still there. */
	if (has_before)
		ret->conversion.cpu.limit_milli = before.limit_milli > 0 ? before.limit_milli : 0;
	else if (f->has_limit[QOS_CPU])
		(void)quantity_milli(&f->limit[QOS_CPU], &ret->conversion.cpu.limit_milli, NULL);
	return true;
}

static void plan_container(struct pod_context *ctx, const struct container_resources *f,
			   struct str resource, struct container_plan *ret,
			   struct field_errors *problems)
{
	*ret = (struct container_plan){ .source = SOURCE_NONE };
	if (was_converted(ctx, f, resource, ret) || !f->has_request[QOS_CPU])
		return;
	if (cpu_conversion_plan(f, &ret->conversion, problems) == 0)
		ret->source = SOURCE_CPU;
}

/* NULL when an amount is out of range and the pod was refused. */
static struct container_plan *plan_pod(struct pod_context *ctx, struct str resource)
{
	struct container_plan *plans =
		arena_alloc(ctx->a, (ctx->resources.n + 1) * sizeof(*plans), 16);
	struct field_errors problems;

	field_errors_init(&problems, ctx->a);
	for (size_t i = 0; plans && i < ctx->resources.n; i++)
		plan_container(ctx, &ctx->resources.items[i], resource, &plans[i], &problems);
	if (plans && !problems.n)
		return plans;
	result_invalid(ctx->result, RULE_QUANTITY, &ctx->subject, &problems);
	return NULL;
}

static enum qos_class class_of(const struct pod_context *ctx, const struct container_plan *plans,
			       bool is_after)
{
	struct qos_hook_fold fold = { 0 };

	for (size_t i = 0; i < ctx->resources.n; i++)
		container_fold(&fold, &ctx->resources.items[i],
			       plans[i].source == SOURCE_CORES ||
				       (is_after && plans[i].source == SOURCE_CPU));
	return qos_hook_class(&fold);
}

static bool was_pod_converted(const struct pod_context *ctx, const struct container_plan *plans)
{
	for (size_t i = 0; i < ctx->resources.n; i++)
		if (plans[i].source == SOURCE_CORES)
			return true;
	return false;
}

/* A converted pod stays Pending where no node has cores. So it is left as it is while that cannot
 * be expected to change by itself: some node is available, and none with cores (D19). While no node
 * is available at all, as after the reboot of a single node, every pod has to wait. */
static bool check_cores(struct pod_context *ctx, const struct container_plan *plans,
			struct str resource)
{
	const struct admission_state *s = ctx->state;
	struct cores_count count = s->count_cores(s->owner, ctx->type);

	/* The cores that the pod requests already could not be explained without the
	 * annotations. */
	if (!count.n_available && (!count.n || s->nodes.n_available) &&
	    !was_pod_converted(ctx, plans))
		return skip(ctx, RULE_CORES, STR("none"),
			    str_printf(ctx->a, TEXT_NO_READY_NODE PRI_STR, FMT_STR(resource)));
	if (count.n_available < s->nodes.n_available)
		result_warn(
			ctx->result,
			str_printf(ctx->a,
				   "%zu of %zu nodes that are ready advertise the resource " PRI_STR
				   ", the pod cannot run on the others",
				   count.n_available, s->nodes.n_available, FMT_STR(resource)));
	return next_rule(ctx, RULE_CORES,
			 str_printf(ctx->a, "%zu of %zu", count.n_available, s->nodes.n_available));
}

static void convert_container(struct pod_context *ctx, const struct container_resources *f,
			      const struct container_plan *plan, struct str resource)
{
	struct patch *p = &ctx->result->patch;

	/* No CPU to move: the minimum weight, so that every container of a management pod has its
	 * annotation (D28). */
	if (plan->source == SOURCE_NONE) {
		if (!f->has_limit[QOS_CPU])
			annotations_set(&ctx->annotations, resources_key(f->c.name, ctx->a),
					STR(CONTAINER_CPU_BEST_EFFORT));
		return;
	}
	cpu_conversion_apply(&plan->conversion, &f->c, resource, &ctx->annotations, p);
	if (ctx->state->settings.legacy) {
		struct resource_edit e = resource_edit(p, &f->c);
		struct str legacy =
			str_printf(ctx->a, NAME_LEGACY_CPU_PREFIX PRI_STR, FMT_STR(ctx->type));

		resource_drop(&e, false, legacy);
		resource_drop(&e, true, legacy);
	}
}

static void convert_pod(struct pod_context *ctx, const struct container_plan *plans,
			struct str resource, bool is_best_effort)
{
	struct str key = target_key(ctx->type, ctx->a);

	for (size_t i = 0; i < ctx->resources.n; i++) {
		const struct container_resources *f = &ctx->resources.items[i];

		/* There is no CPU to move; the annotations alone select the CPUs of the workload
		 * type. Cores that it requests already are its weight (D4). */
		if (is_best_effort && plans[i].source != SOURCE_CORES)
			annotations_set(&ctx->annotations, resources_key(f->c.name, ctx->a),
					STR(CONTAINER_CPU_BEST_EFFORT));
		else
			convert_container(ctx, f, &plans[i], resource);
	}
	/* Last, and in the compact form, as OpenShift stores it. */
	annotations_set(&ctx->annotations, key, STR(NAME_TARGET_VALUE));
	ctx->is_managed = true;
	result_decide(ctx->result, RULE_CONVERT, VERDICT_CHANGE, ctx->type);
}

static void check_qos_and_convert(struct pod_context *ctx)
{
	struct str resource = cores_resource(ctx->type, ctx->a);
	const struct container_plan *plans = plan_pod(ctx, resource);
	enum qos_class before, after;

	if (!plans)
		return;
	/* CPU that an earlier call converted counts in neither class, so that calling admission
	 * again gives the same result (D4). */
	before = class_of(ctx, plans, false);
	if (before == QOS_GUARANTEED) {
		skip(ctx, RULE_GUARANTEED, str_from(qos_name(before)), STR(TEXT_GUARANTEED));
		return;
	}
	next_rule(ctx, RULE_GUARANTEED, str_from(qos_name(before)));
	/* Without a CPU limit a pod cannot be Guaranteed, so the only change is from Burstable
	 * to BestEffort, for a pod without memory amounts. It would get another cgroup and OOM
	 * score. */
	after = class_of(ctx, plans, true);
	if (after != before) {
		skip(ctx, RULE_QOS_CHANGE, str_from(qos_name(after)),
		     str_printf(ctx->a, TEXT_QOS_CHANGE "%s to %s", qos_name(before),
				qos_name(after)));
		return;
	}
	next_rule(ctx, RULE_QOS_CHANGE, str_from(qos_name(after)));
	if (check_cores(ctx, plans, resource))
		convert_pod(ctx, plans, resource, before == QOS_BEST_EFFORT);
}

void management_admit(struct pod_context *ctx)
{
	if (check_type(ctx) && check_cluster(ctx) && check_namespace(ctx) && check_effect(ctx) &&
	    check_pod_level(ctx) && pod_context_read_resources(ctx))
		check_qos_and_convert(ctx);
}
