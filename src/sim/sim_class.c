/* From a manifest to a class: defaults, admission, requests, exclusive CPUs. A class is admitted
 * once, because pods that differ only in their names are decided alike. */

#include <errno.h>

#include "admission/admission.h"
#include "admission/defaults.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/quote.h"
#include "kube/qos.h"
#include "profile/selector.h"
#include "sim.h"

static const char *const admission_names[] = {
	[SIM_STORED] = "stored",   [SIM_UNCHANGED] = "unchanged", [SIM_CONVERTED] = "converted",
	[SIM_COUNTED] = "counted", [SIM_SKIPPED] = "skipped",	  [SIM_DENIED] = "denied",
};
_Static_assert(sizeof(admission_names) / sizeof(*admission_names) == SIM_ADMISSION__COUNT,
	       "every outcome has a name");

const char *sim_admission_name(enum sim_admission admission)
{
	return admission_names[admission];
}

static bool is_stored(const struct pod *pod)
{
	return doc_str(doc_get(pod->spec, STR("nodeName"))).n > 0;
}

static uint64_t hash_value(yyjson_val *v, uint64_t hash, struct arena *scratch)
{
	struct str text;

	if (!v || doc_write_val(v, false, scratch, &text, NULL) < 0)
		return hash * 31 + 1;
	return xxh64(text, hash);
}

/* Of a stored pod only what the simulation reads: its volumes have names of their own. */
static uint64_t hash_of(const struct pod *pod, bool stored)
{
	static const char *const parts[] = { "/resources", "/overhead", "/nodeSelector",
					     "/affinity", "/tolerations" };
	uint64_t hash = xxh64(pod_namespace(pod), stored);
	struct container_iter it = container_iter(pod, false);
	struct arena scratch;
	struct container c;

	arena_init(&scratch, 0);
	if (!stored) {
		hash = hash_value(pod_annotations(pod), hash, &scratch);
		hash = hash_value(doc_get(pod->meta, STR("labels")), hash, &scratch);
		hash = hash_value(pod->spec, hash, &scratch);
	}
	for (size_t i = 0; stored && i < sizeof(parts) / sizeof(*parts); i++)
		hash = hash_value(doc_find(pod->spec, parts[i]), hash, &scratch);
	while (stored && container_next(&it, &c)) {
		hash = xxh64(c.name, hash + c.kind);
		hash = hash_value(c.requests, hash, &scratch);
		hash = hash_value(c.limits, hash, &scratch);
	}
	arena_done(&scratch);
	return hash;
}

/* --- the table of classes --- */

static uint32_t *slot_of(struct sim *s, uint64_t hash)
{
	size_t at = hash & (s->n_slots - 1);

	while (s->by_hash[at] != SIM_NONE && s->classes[s->by_hash[at]].hash != hash)
		at = (at + 1) & (s->n_slots - 1);
	return &s->by_hash[at];
}

static void grow_slots(struct sim *s)
{
	s->n_slots = s->n_slots ? s->n_slots * 2 : 64;
	s->by_hash = arena_array(s->a, uint32_t, s->n_slots);
	for (size_t i = 0; i < s->n_slots; i++)
		s->by_hash[i] = SIM_NONE;
	for (size_t i = 0; i < s->n_classes; i++)
		*slot_of(s, s->classes[i].hash) = (uint32_t)i;
}

/* --- admission --- */

static enum sim_admission outcome_of(const struct admission_result *r)
{
	if (!r->allowed)
		return SIM_DENIED;
	if (r->rule == RULE_CONVERT)
		return SIM_CONVERTED;
	for (size_t i = 0; i < r->n_steps; i++)
		if (r->steps[i].verdict == VERDICT_STRIP)
			return SIM_SKIPPED;
	for (size_t i = 0; i < r->n_steps; i++)
		if (r->steps[i].rule == RULE_POOLS)
			return SIM_COUNTED;
	return SIM_UNCHANGED;
}

static int admit(struct sim *s, const struct admission_state *state, yyjson_val *pod,
		 struct sim_class *c, yyjson_val **ret, struct err *err)
{
	struct admission_result result;
	int r = pod_default_resources(pod, s->a, &pod, err);

	if (r >= 0)
		r = admit_and_validate(state, pod, s->a, &result, ret);
	if (r < 0)
		return r;
	c->admission = outcome_of(&result);
	if (!result.allowed)
		c->message = str_dup(s->a, result.message);
	else if (c->admission == SIM_SKIPPED && result.n_warnings)
		c->message = str_dup(s->a, result.warnings[0]);
	return 0;
}

/* --- what a pod needs --- */

static int read_members(struct sim *s, const struct pod *pod, struct sim_class *c, struct err *err)
{
	struct container_iter it = container_iter(pod, false);
	struct demand *demands = NULL;
	struct container each;
	size_t cap = 0;

	while (container_next(&it, &each)) {
		struct ledger_member *m;
		struct quantity q;
		int r = resource_get(each.requests, STR("cpu"), &q, err);

		c->members = arena_reserve(s->a, c->members, c->n_members, &cap, sizeof(*m));
		demands = arena_one_more(s->a, demands, c->n_members, sizeof(*demands));
		m = &c->members[c->n_members];
		*m = (struct ledger_member){ each.name, { each.kind, true, 0 } };
		if (r == 1)
			r = quantity_milli(&q, &m->demand.cpu_milli, err);
		if (r < 0)
			return r;
		demands[c->n_members++] = m->demand;
	}
	c->n_cpus = demand_pod_cpus(demands, c->n_members);
	return 0;
}

/* Pod-level resources exclude exclusive CPUs (docs/reference/pools.md#pod-level-resources). */
static int read_exclusive(struct sim *s, const struct pod *pod, struct sim_class *c,
			  struct err *err)
{
	yyjson_val *pod_level = doc_get(pod->spec, STR("resources"));
	enum qos_class class = QOS_BURSTABLE;
	int r = qos_kubernetes(pod, &class, err);

	if (r < 0)
		return r;
	c->is_scored_by_balance = c->request.amounts.of[SIM_CPU] ||
				  c->request.amounts.of[SIM_MEMORY];
	if (class != QOS_GUARANTEED || (pod_level && !yyjson_is_null(pod_level)))
		return 0;
	return read_members(s, pod, c, err);
}

static int read_needs(struct sim *s, const struct pod *pod, struct sim_class *c, struct err *err)
{
	int r = sim_request_of(pod, &s->resources, &c->request, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < s->resources.n; i++)
		if (c->request.amounts.of[i])
			c->asked[c->n_asked++] = (uint8_t)i;
	c->spec = pod->spec;
	return read_exclusive(s, pod, c, err);
}

static int make_class(struct sim *s, const struct admission_state *state, yyjson_val *object,
		      struct sim_class *c, struct err *err)
{
	struct pod pod = { 0 };
	yyjson_val *stored = object;
	int r = 0;

	(void)pod_from_object(object, &pod);
	c->namespace = pod_namespace(&pod);
	c->name = pod_name(&pod);
	if (str_ends(c->name, STR("-"))) /* a generateName */
		c->name.n--;
	c->given = object;
	if (is_stored(&pod))
		c->admission = SIM_STORED;
	else
		r = admit(s, state, object, c, &stored, err);
	if (r < 0 || c->admission == SIM_DENIED)
		return r;
	(void)pod_from_object(stored, &pod);
	r = read_needs(s, &pod, c, err);
	return r < 0 ? err_wrap(err, "pod %s", quote(c->name).text) : 0;
}

int sim_add_class(struct sim *s, const struct admission_state *state, yyjson_val *object,
		  uint32_t *ret, struct err *err)
{
	struct sim_class c = { .first = SIM_NONE, .last = SIM_NONE };
	struct pod pod;
	uint32_t *slot;
	int r = pod_from_workload(object, s->a, &object, err);

	if (r < 0)
		return r;
	if (!pod_from_object(object, &pod))
		return err_set(err, EINVAL, "not a pod");
	if (2 * (s->n_classes + 1) > s->n_slots)
		grow_slots(s);
	c.hash = hash_of(&pod, is_stored(&pod));
	slot = slot_of(s, c.hash);
	if (*slot == SIM_NONE) {
		r = make_class(s, state, object, &c, err);
		if (r < 0)
			return r;
		s->classes =
			arena_reserve(s->a, s->classes, s->n_classes, &s->cap_classes, sizeof(c));
		*slot = (uint32_t)s->n_classes;
		s->classes[s->n_classes++] = c;
	}
	*ret = *slot;
	return 0;
}

/* --- which nodes it may use --- */

/* The terms of a required node affinity are alternatives. An operator that cannot be evaluated, as
 * Gt and Lt, matches nothing. */
static bool matches_affinity(yyjson_val *spec, yyjson_val *labels)
{
	yyjson_val *required = doc_find(
		spec, "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution");
	yyjson_val *term;

	if (!required)
		return true;
	DOC_EACH_ITEM (doc_get(required, STR("nodeSelectorTerms")), term)
		if (doc_get(term, STR("matchExpressions")) && !doc_get(term, STR("matchFields")) &&
		    selector_matches(term, labels, NULL) == 1)
			return true;
	return false;
}

static enum sim_obstacle obstacle_of(const struct sim_class *c, const struct sim_shape *shape)
{
	yyjson_val *labels = doc_find(shape->node, "/metadata/labels");
	yyjson_val *wanted = doc_get(c->spec, STR("nodeSelector"));
	yyjson_val *tolerations = doc_get(c->spec, STR("tolerations"));

	if (shape->is_unschedulable &&
	    !taints_are_tolerated(STR("node.kubernetes.io/unschedulable=:NoSchedule\n"),
				  tolerations))
		return SIM_UNSCHEDULABLE;
	if (!taints_are_tolerated(shape->taints, tolerations))
		return SIM_TAINTED;
	if ((wanted && !labels_contain(labels, wanted)) || !matches_affinity(c->spec, labels))
		return SIM_NOT_SELECTED;
	return SIM_NO_OBSTACLE;
}

void sim_class_match(const struct sim *s, struct sim_class *c)
{
	c->obstacles = arena_array(s->a, uint8_t, s->n_shapes + 1);
	for (size_t i = 0; i < s->n_shapes; i++)
		c->obstacles[i] = (uint8_t)obstacle_of(c, &s->shapes[i]);
}
