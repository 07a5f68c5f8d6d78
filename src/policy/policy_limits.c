/* Each limit is a row with a condition. A condition that cannot be decided from the pod alone, such
 * as the taints of nodes, is not a limit: the operator publishes it. */

#include "policy_limits.h"

#include <string.h>

#include "admission/admission_state.h"
#include "admission/annotation.h"
#include "admission/decision.h"
#include "base/arena.h"
#include "base/macro.h"
#include "kube/names.h"
#include "kube/pod.h"

struct limit_question {
	const struct pod *pod;
	const struct admission_result *result;
	const struct admission_settings *settings;
	struct arena *a;
};

/* Valid JSON that the regular expression of the policy does not match. */
static bool has_odd_effect(const struct limit_question *q)
{
	yyjson_val *key, *value;
	struct str problem;

	DOC_EACH_PAIR (pod_annotations(q->pod), key, value) {
		struct str effect = doc_str(value);

		if (str_starts(doc_str(key), STR(NAME_TARGET_PREFIX)) &&
		    effect_check(effect, q->a, &problem) == 0 &&
		    (str_has(effect, STR("\\")) || str_has(effect, STR("null"))))
			return true;
	}
	return false;
}

static bool requests_cores(const struct pod *pod)
{
	struct container_iter it = container_iter(pod, false);
	struct container c;

	while (container_next(&it, &c))
		if (node_has_resource(c.requests, STR(NAME_CORES)))
			return true;
	return false;
}

/* JSON that means something, and that the regular expressions of the policy do not find. */
static bool is_odd_json(struct str text, struct arena *a)
{
	struct container_cpu cpu;

	return container_cpu_parse(text, a, &cpu, NULL) == 0 &&
	       ((cpu.shares && !str_has(text, STR("\"" NAME_CPUSHARES_KEY "\""))) ||
		(cpu.limit_milli && !str_has(text, STR("\"" NAME_CPULIMIT_KEY "\""))) ||
		memchr(text.p, '\t', text.n) || memchr(text.p, '\n', text.n));
}

static bool has_odd_resources(const struct limit_question *q)
{
	yyjson_val *key, *value;

	if (!requests_cores(q->pod))
		return false;
	DOC_EACH_PAIR (pod_annotations(q->pod), key, value)
		if (str_starts(doc_str(key), STR(NAME_RESOURCES_PREFIX)) &&
		    is_odd_json(doc_str(value), q->a))
			return true;
	return false;
}

static bool has_binary_cpu(const struct limit_question *q)
{
	struct container_iter it = container_iter(q->pod, false);
	struct container c;

	while (container_next(&it, &c))
		if (str_ends(doc_text(doc_get(c.requests, STR(NAME_CPU))), STR("i")))
			return q->result->rule == RULE_CONVERT;
	return false;
}

static bool is_legacy(const struct limit_question *q)
{
	return q->settings->legacy &&
	       doc_get(doc_get(q->pod->meta, STR("labels")), STR(NAME_LEGACY_TARGET));
}

static bool requires_agent(const struct limit_question *q)
{
	return q->settings->requires_agent &&
	       (q->result->rule == RULE_CONVERT || q->result->rule == RULE_POOLS);
}

/* A warning that is in no annotation: a validating policy sees only the stored pod. */
static bool warns_in_response(const struct limit_question *q)
{
	return q->result->allowed && q->result->n_warnings &&
	       (q->result->rule == RULE_PARTITIONING || q->result->rule == RULE_CONVERT ||
		q->result->rule == RULE_TARGET);
}

static bool has_cpu(yyjson_val *resources)
{
	struct quantity cpu = { 0 };

	return resource_get(resources, STR(NAME_CPU), &cpu, NULL) > 0 && quantity_sign(&cpu) != 0;
}

/* The guard has no parameters: it cannot know that the cluster is not known. What it stores has
 * the permission of its namespace and runs as a converted pod does (D48). */
static bool arrives_converted(const struct limit_question *q)
{
	struct container_iter it = container_iter(q->pod, false);
	struct container c;

	if (q->result->allowed || q->result->rule != RULE_INFRASTRUCTURE)
		return false;
	while (container_next(&it, &c)) {
		struct str key = str_printf(q->a, NAME_RESOURCES_PREFIX PRI_STR, FMT_STR(c.name));

		if (has_cpu(c.requests) || has_cpu(c.limits) || !pod_annotation(q->pod, key).n)
			return false;
	}
	return true;
}

static const struct {
	struct policy_limit limit;
	bool (*holds)(const struct limit_question *q);
} limits[] = {
	{ { "effect-spelling", "CEL cannot parse JSON with escapes in the target annotation",
	    "refused; write " NAME_TARGET_VALUE },
	  has_odd_effect },
	{ { "annotation-spelling",
	    "CEL cannot parse JSON with escapes or capitals in " NAME_RESOURCES_PREFIX
	    "<container> of a pod with cores",
	    "the CPU limit in it is lost, or the pod is refused" },
	  has_odd_resources },
	{ { "quantity-format", "CEL cannot keep the format of a CPU request",
	    "the same amount of cores is written in decimal form" },
	  has_binary_cpu },
	{ { "legacy", "policies do not read the labels of 2021",
	    "stored as an ordinary pod; see pinfold migrate" },
	  is_legacy },
	{ { "require-agent", "policies do not add the annotation " NAME_REQUIRED_PLUGINS,
	    "its containers start also while the agent is away" },
	  requires_agent },
	{ { "warning", "policies return no warning about the state of the cluster",
	    "the same pod is stored, and kubectl prints nothing" },
	  warns_in_response },
	{ { "unknown-cluster", "policies leave a pod that arrives converted as it is",
	    "stored also while the cluster is not known" },
	  arrives_converted },
};
_Static_assert(ARRAY_LEN(limits) <= POLICY_LIMITS_MAX, "all limits fit");

size_t policy_limits_of(const struct pod *pod, const struct admission_result *result,
			const struct admission_settings *settings, struct arena *a,
			const struct policy_limit *ret[POLICY_LIMITS_MAX])
{
	const struct limit_question q = { pod, result, settings, a };
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(limits); i++)
		if (limits[i].holds(&q))
			ret[n++] = &limits[i].limit;
	return n;
}
