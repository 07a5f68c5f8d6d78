/* Whether a pod belongs to a workload type, and what becomes of its CPU (spec/admission.md 1.4 to
 * 1.10). Each step is a function that returns whether the next one is asked. */

#include <errno.h>

#include "admission.h"
#include "annotation.h"
#include "base/arena.h"
#include "base/err.h"
#include "kube/names.h"
#include "kube/shares.h"

/* The pod stays as it is but for its workload annotations, and says why. */
static bool skip(struct admission *ad, enum admission_rule rule, struct str seen, struct str text)
{
	annotations_set(&ad->annotations, STR(NAME_WARNING), text);
	result_warn(ad->result, text);
	result_decide(ad->result, rule, VERDICT_STRIP, seen);
	return false;
}

/* The same where upstream leaves no trace on the pod: only whoever creates it is told (D11). */
static bool skip_silently(struct admission *ad, enum admission_rule rule, struct str seen,
			  struct str text)
{
	result_warn(ad->result, text);
	result_decide(ad->result, rule, VERDICT_STRIP, seen);
	return false;
}

static bool go_on(struct admission *ad, enum admission_rule rule, struct str seen)
{
	result_step(ad->result, rule, VERDICT_GO_ON, seen);
	return true;
}

static bool forbid(struct admission *ad, enum admission_rule rule, struct str text)
{
	result_forbid(ad->result, rule, &ad->subject, text);
	return false;
}

/* 422 on the annotations as the user gave them. */
static bool reject_annotations(struct admission *ad, enum admission_rule rule, struct str detail)
{
	struct field_errors p;

	field_errors_init(&p, ad->a);
	field_errors_invalid(&p, STR("metadata.Annotations"),
			     print_map(pod_annotations(&ad->pod), false, ad->a), detail);
	result_invalid(ad->result, rule, &ad->subject, &p);
	return false;
}

static bool check_type(struct admission *ad)
{
	struct str problem = STR("");
	size_t n = workload_type(&ad->annotations, &ad->type, &ad->effect, &problem);

	if (problem.n)
		return reject_annotations(ad, RULE_TARGET, problem);
	if (!n && ad->state->settings.legacy) {
		ad->type = doc_str(
			doc_get(doc_get(ad->pod.meta, STR("labels")), STR(NAME_LEGACY_TARGET)));
		ad->effect = STR(NAME_TARGET_VALUE); /* labels knew no effect */
	}
	if (ad->type.n)
		return go_on(ad, RULE_TARGET, ad->type);
	result_decide(ad->result, RULE_TARGET, VERDICT_LEAVE,
		      STR("no " NAME_TARGET_PREFIX "<type> annotation"));
	return false;
}

static struct str partitioning_text(const struct infrastructure_facts *i)
{
	return i->partitioning.n ? i->partitioning : STR("not set");
}

/* D3: a single node that was upgraded advertises the resource before anybody sets the flag. */
static bool check_single_node(struct admission *ad)
{
	const struct admission_state *s = ad->state;
	struct str text;

	if (s->has_cores(s->owner, ad->type))
		return go_on(ad, RULE_SINGLE_NODE, ad->type);
	text = str_printf(
		ad->a,
		"skip pod CPUs requests modifications because the node does not report the "
		"resource " PRI_STR NAME_CORES_SUFFIX,
		FMT_STR(ad->type));
	/* A node that reports nothing at all is not known to lack it; upstream says nothing then.
	 */
	if (s->nodes.n_reporting)
		return skip(ad, RULE_SINGLE_NODE, ad->type, text);
	return skip_silently(ad, RULE_SINGLE_NODE, STR("no node reports anything"), text);
}

static bool check_cluster(struct admission *ad)
{
	const struct infrastructure_facts *i = &ad->state->infrastructure;

	if (!ad->state->is_synced)
		return forbid(ad, RULE_SYNCED,
			      STR(NAME_PLUGIN_PODS
				  " node or namespace or infra config cache not synchronized"));
	if (!i->is_present)
		return forbid(ad, RULE_INFRASTRUCTURE,
			      STR("infrastructure.config.openshift.io \"" NAME_INFRASTRUCTURE
				  "\" not found"));
	if (!i->has_status)
		return forbid(ad, RULE_INFRASTRUCTURE,
			      STR(NAME_PLUGIN_PODS " infrastructure resource has empty status"));
	go_on(ad, RULE_INFRASTRUCTURE, STR(NAME_INFRASTRUCTURE));
	if (!i->has_topology)
		return skip_silently(ad, RULE_TOPOLOGY, STR("none"),
				     STR("skip pod CPUs requests modifications because the "
					 "Infrastructure states no topology"));
	if (i->is_partitioned)
		return go_on(ad, RULE_PARTITIONING, i->partitioning);
	if (i->is_single)
		return check_single_node(ad);
	return skip_silently(ad, RULE_PARTITIONING, partitioning_text(i),
			     str_printf(ad->a,
					"skip pod CPUs requests modifications because workload "
					"partitioning is off (" NAME_PARTITIONING_KEY " is " PRI_STR
					")",
					FMT_STR(partitioning_text(i))));
}

static bool check_namespace(struct admission *ad)
{
	struct namespace_facts ns;

	if (!admission_find_namespace(ad, &ns))
		return false;
	if (!ns.has_allowed && ad->state->settings.legacy && ns.has_legacy_allowed) {
		ns.allowed = ns.legacy_allowed;
		ns.has_allowed = true;
	}
	if (!ns.has_allowed)
		return skip(
			ad, RULE_PERMISSION, STR("no annotation " NAME_ALLOWED),
			str_printf(ad->a,
				   "skipping pod CPUs requests modifications because the " PRI_STR
				   " namespace is not annotated with " NAME_ALLOWED
				   " to allow workload partitioning",
				   FMT_STR(ad->namespace)));
	if (type_is_allowed(ns.allowed, ad->type))
		return go_on(ad, RULE_TYPE_ALLOWED, ns.allowed);
	return forbid(ad, RULE_TYPE_ALLOWED,
		      str_printf(ad->a,
				 NAME_PLUGIN_PODS " the pod namespace \"" PRI_STR
						  "\" does not allow the workload type " PRI_STR,
				 FMT_STR(ad->namespace), FMT_STR(ad->type)));
}

static bool check_effect(struct admission *ad)
{
	struct str problem;

	if (effect_check(ad->effect, ad->a, &problem) < 0)
		return reject_annotations(ad, RULE_EFFECT, problem);
	return go_on(ad, RULE_EFFECT, STR(NAME_EFFECT_PREFERRED));
}

/* D5: upstream does not see them and would give such a pod the least weight. */
static bool check_pod_level(struct admission *ad)
{
	yyjson_val *resources = doc_get(ad->pod.spec, STR("resources"));

	if (doc_get(doc_get(resources, STR("requests")), STR(NAME_CPU)) ||
	    doc_get(doc_get(resources, STR("limits")), STR(NAME_CPU)))
		return skip(ad, RULE_POD_LEVEL, STR("spec.resources"),
			    STR("skip pod CPUs requests modifications because it has pod-level cpu "
				"resources"));
	return true;
}

/* Where a container's millicores come from. */
enum source {
	SOURCE_NONE,  /* no CPU: nothing is converted */
	SOURCE_CPU,   /* its CPU request */
	SOURCE_CORES, /* it was converted before (D4) */
};

struct conversion {
	enum source source;
	struct quantity cores;	  /* the amount for the extended resource */
	struct container_cpu cpu; /* the annotation */
};

static struct str joined(struct arena *a, struct str x, struct str y)
{
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_add(&b, x);
	strbuf_add(&b, y);
	return strbuf_str(&b);
}

static struct str resources_key(struct admission *ad, struct str container)
{
	return joined(ad->a, STR(NAME_RESOURCES_PREFIX), container);
}

/* The amount requested before: of the current resource, or in the legacy dialect of the first
 * document's, which counted CPUs instead of millicores. */
static bool find_cores(const struct admission *ad, const struct container_facts *f,
		       struct str resource, struct quantity *ret)
{
	struct quantity q;
	struct str legacy;
	int64_t milli;

	if (resource_get(f->c.requests, resource, ret, NULL) == 1)
		return true;
	if (!ad->state->settings.legacy)
		return false;
	legacy = str_printf(ad->a, NAME_LEGACY_CPU_PREFIX PRI_STR, FMT_STR(ad->type));
	if (resource_get(f->c.requests, legacy, &q, NULL) != 1 ||
	    quantity_milli(&q, &milli, NULL) < 0)
		return false;
	*ret = quantity_from_int(milli, q.format);
	return true;
}

/* D4: a container that has the cores, and an annotation that fits them, went through here before;
 * CPU it has now was put there by somebody else in between, such as a LimitRange. */
static bool was_converted(struct admission *ad, const struct container_facts *f,
			  struct str resource, struct conversion *ret)
{
	struct own_annotation *own;
	struct container_cpu before;
	struct quantity cores;
	bool has_before;
	int64_t milli;

	if (!find_cores(ad, f, resource, &cores))
		return false;
	milli = quantity_value(&cores);
	own = annotations_find(&ad->annotations, resources_key(ad, f->c.name));
	has_before = own && container_cpu_parse(own->value, ad->a, &before, NULL) == 0;
	if (f->has_request[QOS_CPU] &&
	    !(has_before && before.shares == cpu_shares_from_milli(milli)))
		return false;
	ret->source = SOURCE_CORES;
	ret->cores = cores;
	ret->cpu.shares = cpu_shares_from_milli(milli);
	if (has_before)
		ret->cpu.limit_milli = before.limit_milli > 0 ? before.limit_milli : 0;
	else if (f->has_limit[QOS_CPU])
		(void)quantity_milli(&f->limit[QOS_CPU], &ret->cpu.limit_milli, NULL);
	return true;
}

static int plan_container(struct admission *ad, const struct container_facts *f,
			  struct str resource, struct conversion *ret,
			  struct field_errors *problems)
{
	int64_t milli;
	int r;

	*ret = (struct conversion){ .source = SOURCE_NONE };
	if (was_converted(ad, f, resource, ret) || !f->has_request[QOS_CPU])
		return 0;
	r = container_milli(f, false, &milli, problems);
	if (r < 0)
		return r;
	if (f->has_limit[QOS_CPU]) {
		r = container_milli(f, true, &ret->cpu.limit_milli, problems);
		if (r < 0)
			return r;
	}
	ret->source = SOURCE_CPU;
	ret->cores = quantity_from_int(milli, f->request[QOS_CPU].format);
	ret->cpu.shares = cpu_shares_from_milli(milli);
	return 0;
}

/* NULL when the pod was refused for an amount that does not fit. */
static struct conversion *plan(struct admission *ad, struct str resource)
{
	struct conversion *plans = arena_alloc(ad->a, (ad->facts.n + 1) * sizeof(*plans), 16);
	struct field_errors problems;

	field_errors_init(&problems, ad->a);
	for (size_t i = 0; plans && i < ad->facts.n; i++)
		(void)plan_container(ad, &ad->facts.items[i], resource, &plans[i], &problems);
	if (plans && !problems.n)
		return plans;
	result_invalid(ad->result, RULE_QUANTITY, &ad->subject, &problems);
	return NULL;
}

static enum qos_class class_of(const struct admission *ad, const struct conversion *plans,
			       bool is_after)
{
	struct qos_hook_fold fold = { 0 };

	for (size_t i = 0; i < ad->facts.n; i++)
		container_fold(&fold, &ad->facts.items[i],
			       plans[i].source == SOURCE_CORES ||
				       (is_after && plans[i].source == SOURCE_CPU));
	return qos_hook_class(&fold);
}

static void convert_container(struct admission *ad, const struct container_facts *f,
			      const struct conversion *plan, struct str resource)
{
	struct resource_edit e;

	if (plan->source == SOURCE_NONE)
		return;
	e = resource_edit(&ad->result->patch, &f->c);
	annotations_set(&ad->annotations, resources_key(ad, f->c.name),
			container_cpu_format(&plan->cpu, ad->a));
	for (int of_limit = 0; of_limit <= 1; of_limit++) {
		resource_drop(&e, of_limit, STR(NAME_CPU));
		resource_set(&e, of_limit, resource, &plan->cores);
	}
	if (ad->state->settings.legacy) {
		struct str legacy =
			str_printf(ad->a, NAME_LEGACY_CPU_PREFIX PRI_STR, FMT_STR(ad->type));

		resource_drop(&e, false, legacy);
		resource_drop(&e, true, legacy);
	}
}

static void convert(struct admission *ad, const struct conversion *plans, struct str resource,
		    bool is_best_effort)
{
	struct str key = joined(ad->a, STR(NAME_TARGET_PREFIX), ad->type);

	for (size_t i = 0; i < ad->facts.n; i++) {
		const struct container_facts *f = &ad->facts.items[i];

		if (is_best_effort)
			annotations_set(&ad->annotations, resources_key(ad, f->c.name),
					STR(CONTAINER_CPU_BEST_EFFORT));
		else
			convert_container(ad, f, &plans[i], resource);
	}
	annotations_set(&ad->annotations, key, STR(NAME_TARGET_VALUE));
	ad->is_managed = true;
	result_decide(ad->result, RULE_CONVERT, VERDICT_CHANGE, ad->type);
}

static void check_qos_and_convert(struct admission *ad)
{
	struct str resource = joined(ad->a, ad->type, STR(NAME_CORES_SUFFIX));
	const struct conversion *plans = plan(ad, resource);
	enum qos_class before, after;

	if (!plans)
		return;
	before = class_of(ad, plans, false);
	if (before == QOS_GUARANTEED) {
		skip(ad, RULE_GUARANTEED, str_from(qos_name(before)),
		     STR("skip pod CPUs requests modifications because it has guaranteed QoS "
			 "class"));
		return;
	}
	go_on(ad, RULE_GUARANTEED, str_from(qos_name(before)));
	after = class_of(ad, plans, true);
	if (after != before) {
		skip(ad, RULE_QOS_CHANGE, str_from(qos_name(after)),
		     str_printf(
			     ad->a,
			     "skip pod CPUs requests modifications because it will change the pod "
			     "QoS class from %s to %s",
			     qos_name(before), qos_name(after)));
		return;
	}
	go_on(ad, RULE_QOS_CHANGE, str_from(qos_name(after)));
	convert(ad, plans, resource, before == QOS_BEST_EFFORT);
}

void management_admit(struct admission *ad)
{
	if (check_type(ad) && check_cluster(ad) && check_namespace(ad) && check_effect(ad) &&
	    check_pod_level(ad) && admission_read_facts(ad))
		check_qos_and_convert(ad);
}
