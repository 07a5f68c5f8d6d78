#include "rule.h"

#include "base/macro.h"
#include "kube/names.h"

static const struct {
	const char *name, *question, *advice;
} rules[] = {
	[RULE_SCOPE] = { "scope", "is it something we decide about?", NULL },
	[RULE_OBJECT] = { "object", "is the object what the request says it is?", NULL },
	[RULE_STATIC] = { "static-pod", "is it a static pod, mirrored by its node?", NULL },
	[RULE_TARGET] = { "target", "does the pod opt in to a workload type?",
			  "to opt in, give the pod exactly one annotation " NAME_TARGET_PREFIX
			  "<type>: '" NAME_TARGET_VALUE "'" },
	[RULE_SYNCED] = { "synced", "has the cluster's state been read?",
			  "try again when the webhook is ready" },
	[RULE_INFRASTRUCTURE] = { "infrastructure",
				  "is Infrastructure \"cluster\" there, with a status?",
				  "create Infrastructure \"cluster\" and set its status" },
	[RULE_TOPOLOGY] = { "topology", "does the Infrastructure state a topology?",
			    "set status." NAME_TOPOLOGY_KEY " of Infrastructure \"cluster\"" },
	[RULE_PARTITIONING] = { "partitioning", "is workload partitioning on?",
				"set status." NAME_PARTITIONING_KEY
				" of Infrastructure \"cluster\" to " NAME_PARTITIONING_ALL },
	[RULE_SINGLE_NODE] = { "single-node", "does the single node advertise the resource?",
			       "configure the node (pinfold render), or set " NAME_PARTITIONING_KEY
			       " to " NAME_PARTITIONING_ALL },
	[RULE_NAMESPACE] = { "namespace", "does the namespace exist?",
			     "create the namespace first" },
	[RULE_PERMISSION] = { "permission", "is the namespace annotated?",
			      "annotate the namespace with " NAME_ALLOWED ": <type>" },
	[RULE_TYPE_ALLOWED] = { "type-allowed", "does the namespace allow the workload type?",
				"add the type to the namespace's annotation " NAME_ALLOWED
				" (comma-separated, no blanks)" },
	[RULE_EFFECT] = { "effect", "is the effect the supported one?",
			  "set the annotation's value to '" NAME_TARGET_VALUE "'" },
	[RULE_POD_LEVEL] = { "pod-level-resources",
			     "is the CPU stated for containers, not for the pod?",
			     "move cpu from spec.resources into the containers" },
	[RULE_QUANTITY] = { "quantity", "are the CPU and memory quantities readable and in range?",
			    "write CPU as 250m or 1, memory as 64Mi" },
	[RULE_GUARANTEED] = { "guaranteed", "is the QoS class something else than Guaranteed?",
			      "make the pod Burstable: drop a limit, or set one above its "
			      "request" },
	[RULE_QOS_CHANGE] = { "qos-change", "does the QoS class stay the same without the CPU?",
			      "give at least one container a memory request" },
	[RULE_CONVERT] = { "convert", "CPU becomes the workload's resource", NULL },
	[RULE_POOL_GATE] = { "pool-gate", "is the feature gate " NAME_GATE_POOLS " on?", NULL },
	[RULE_POOL_NODES] = { "pool-nodes",
			      "does every schedulable node advertise " NAME_SHARED_CPUS "?",
			      "give every node a profile with shared CPUs, or cordon the others" },
	[RULE_POOLS] = { "pools", "CPU is counted against the shared or the guaranteed pool",
			 NULL },
	[RULE_AGENT] = { "agent", "its containers wait for the agent of their node", NULL },
	[RULE_RESOURCES_ANNOTATION] = { "resources-annotation",
					"are the resource annotations well-formed?",
					"remove " NAME_RESOURCES_PREFIX
					"* annotations: admission writes them" },
	[RULE_UNTARGETED] = { "untargeted",
			      "are resource annotations and cores only on pods that opted in?",
			      "remove the workload's annotations and resources, or opt in" },
	[RULE_UPDATE] = { "update", "do the workload annotations stay as they were?",
			  "delete the pod and create it anew" },
	[RULE_RESIZE] = { "resize", "does the CPU of accounted containers stay as it was?",
			  "delete the pod and create it with the new CPU" },
	[RULE_TURN_OFF] = { "turn-off", "does workload partitioning stay on?",
			    "it can be resized through profiles, but not turned off" },
	[RULE_NODE] = { "node-resource", "does the node advertise the workload resource?",
			"configure the node first; pinfold agent --register does it" },
};
_Static_assert(ARRAY_LEN(rules) == RULE__COUNT, "every rule has its texts");

static const char *const verdicts[] = {
	[VERDICT_GO_ON] = "yes",
	[VERDICT_LEAVE] = "left as it is",
	[VERDICT_STRIP] = "skipped, annotations removed",
	[VERDICT_CHANGE] = "changed",
	[VERDICT_REFUSE] = "refused",
};
_Static_assert(ARRAY_LEN(verdicts) == VERDICT__COUNT, "every verdict has a name");

const char *rule_name(enum admission_rule rule)
{
	return rules[rule].name;
}

const char *rule_question(enum admission_rule rule)
{
	return rules[rule].question;
}

const char *rule_advice(enum admission_rule rule)
{
	return rules[rule].advice;
}

const char *verdict_name(enum rule_verdict verdict)
{
	return verdicts[verdict];
}
