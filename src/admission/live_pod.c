/* What admission wrote is read back with the functions that wrote it (annotation.h, stamp.h). */

#include "live_pod.h"

#include "annotation.h"
#include "base/arena.h"
#include "base/macro.h"
#include "kube/names.h"
#include "kube/pod.h"
#include "kube/qos.h"

static const char *const names[] = {
	[LIVE_CONVERTED] = "converted", [LIVE_SKIPPED] = "skipped",	[LIVE_MISSED] = "missed",
	[LIVE_COUNTED] = "counted",	[LIVE_UNCHANGED] = "unchanged",
};
_Static_assert(ARRAY_LEN(names) == LIVE__COUNT, "every outcome has a name");

const char *live_outcome_name(enum live_outcome outcome)
{
	return names[outcome];
}

/* The annotations that decide about the outcome. */
struct signs {
	struct str type;
	bool has_resources, has_pools;
};

static struct signs read_signs(const struct annotations *ann, const struct pod *pod)
{
	struct container_iter it = container_iter(pod, false);
	struct signs s = { 0 };
	struct container c;

	for (size_t i = 0; i < ann->n_own; i++) {
		if (ann->own[i].kind == OWN_TARGET)
			s.type = ann->own[i].name;
		s.has_resources |= ann->own[i].kind == OWN_RESOURCES;
	}
	while (container_next(&it, &c))
		s.has_pools |= doc_get(c.requests, STR(NAME_SHARED_CPUS)) ||
			       doc_get(c.requests, STR(NAME_GUARANTEED_CPUS));
	return s;
}

static enum live_outcome outcome_of(const struct signs *s, struct str warning)
{
	if (s->type.n)
		return s->has_resources ? LIVE_CONVERTED : LIVE_MISSED;
	if (warning.n)
		return LIVE_SKIPPED;
	return s->has_pools ? LIVE_COUNTED : LIVE_UNCHANGED;
}

static int64_t milli_of(const struct container *c, struct str name, bool is_milli)
{
	struct quantity q;
	int64_t milli;

	if (resource_get(c->requests, name, &q, NULL) != 1)
		return 0;
	if (is_milli)
		return quantity_value(&q);
	return quantity_milli(&q, &milli, NULL) < 0 ? 0 : milli;
}

/* As the agent classifies it: whole CPUs of a Guaranteed pod are exclusive. */
static enum pool pool_of(const struct live_pod *p, const struct container *c, int64_t milli,
			 bool is_guaranteed)
{
	if (p->outcome == LIVE_CONVERTED)
		return POOL_MANAGEMENT;
	if (doc_get(c->requests, STR(NAME_GUARANTEED_CPUS)))
		return POOL_GUARANTEED;
	return is_guaranteed && milli > 0 && milli % 1000 == 0 ? POOL_GUARANTEED : POOL_SHARED;
}

static struct live_container read_container(const struct live_pod *p, const struct container *c,
					    const struct annotations *ann, bool is_guaranteed,
					    struct arena *a)
{
	const struct own_annotation *own = annotations_find(ann, resources_key(c->name, a));
	const struct str cores = cores_resource(p->type, a);
	struct live_container ret = { .name = c->name };
	struct container_cpu cpu;

	ret.milli = milli_of(c, STR(NAME_CPU), false);
	if (p->outcome == LIVE_CONVERTED && doc_get(c->requests, cores))
		ret.milli = milli_of(c, cores, true);
	if (own && container_cpu_parse(own->value, a, &cpu, NULL) == 0) {
		ret.shares = cpu.shares;
		ret.limit_milli = cpu.limit_milli;
	}
	ret.pool = pool_of(p, c, ret.milli, is_guaranteed);
	return ret;
}

static void read_containers(struct live_pod *p, const struct pod *pod,
			    const struct annotations *ann, struct arena *a)
{
	struct container_iter it = container_iter(pod, false);
	enum qos_class qos = QOS_BURSTABLE;
	struct container c;
	size_t cap = 0;

	(void)qos_kubernetes(pod, &qos, NULL);
	while (container_next(&it, &c)) {
		p->containers = arena_reserve(a, p->containers, p->n, &cap, sizeof(*p->containers));
		if (!p->containers) {
			p->n = 0;
			return;
		}
		p->containers[p->n++] = read_container(p, &c, ann, qos == QOS_GUARANTEED, a);
	}
}

bool live_pod_read_view(const struct pod *pod, struct arena *a, struct live_pod *ret)
{
	struct live_pod p = { .rule = RULE__COUNT };
	struct annotations ann;
	struct signs signs;

	p.uid = doc_str(doc_get(pod->meta, STR("uid")));
	if (!p.uid.n)
		return false;
	annotations_scan(&ann, pod_annotations(pod), false, a);
	signs = read_signs(&ann, pod);
	p.node = doc_str(doc_get(pod->spec, STR("nodeName")));
	p.warning = pod_annotation(pod, STR(NAME_WARNING));
	p.type = signs.type;
	p.outcome = outcome_of(&signs, p.warning);
	if (p.outcome == LIVE_SKIPPED)
		p.rule = rule_of_warning(p.warning);
	read_containers(&p, pod, &ann, a);
	*ret = p;
	return true;
}

bool live_pod_read(yyjson_val *object, struct arena *a, struct live_pod *ret)
{
	struct pod pod;

	return pod_from_object(object, &pod) && str_eq(pod.kind, STR("Pod")) &&
	       live_pod_read_view(&pod, a, ret);
}

yyjson_val *live_pod_restore(yyjson_val *object, struct str type, struct arena *a)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *copy = yyjson_val_mut_copy(m, object);
	yyjson_mut_val *annotations =
		yyjson_mut_obj_get(yyjson_mut_obj_get(copy, "metadata"), "annotations");

	(void)yyjson_mut_obj_remove_key(annotations, NAME_WARNING);
	doc_put_str(m, annotations, target_key(type, a), STR(NAME_TARGET_VALUE));
	return doc_freeze(copy, a);
}

struct str live_pod_text(const struct live_pod *p, struct arena *a)
{
	switch (p->outcome) {
	case LIVE_CONVERTED:
		return str_printf(a,
				  "converted at admission: CPU requests were replaced by requests "
				  "for " PRI_STR NAME_CORES_SUFFIX,
				  FMT_STR(p->type));
	case LIVE_SKIPPED:
		return str_printf(a, "skipped at admission, annotations removed: " PRI_STR,
				  FMT_STR(p->warning));
	case LIVE_MISSED:
		return str_printf(
			a,
			"not converted: it opts in to type " PRI_STR
			" and was stored without the decision of admission: the webhook was not "
			"configured or not reachable when the pod was created",
			FMT_STR(p->type));
	case LIVE_COUNTED:
		return STR("admitted, and its CPU is counted in the pools");
	case LIVE_UNCHANGED:
	case LIVE__COUNT:
		break;
	}
	return STR("admitted unchanged: it does not opt in to a workload type");
}
