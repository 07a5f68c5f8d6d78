/* Nodes that join without the cores resource (admission/node.c, D7), and the cluster flag
 * (admission/infrastructure.c, D8). */

#include "admission/texts.h"
#include "cel.h"
#include "policy.h"

/* CEL in lines of its own. */
/* clang-format off */

#define IS_PARTITIONED                                                                             \
	{                                                                                          \
		"partitioned",                                                                     \
			"params.?data[?'" NAME_PARAMETER_WORKLOADS                                 \
			"'].orValue('') == '" NAME_WORKLOADS_ON "'",                               \
			NULL                                                                       \
	}
/* node_has_resource(): a part of the name, so that every workload type counts. dyn: the type check of
 * a policy's status knows no optional field of an optional object. */
#define HAS_CORES(list)                                                                            \
	"dyn(object).?status.?" list ".orValue({}).exists(k, k.contains('" NAME_CORES "'))"

const struct policy policy_nodes = {
	.name = "pinfold-nodes",
	.about = "Nodes without the cores resource: a warning, or where they are not tainted a refusal to join (D7).",
	.has_parameters = true,
	.rules = { { "", "v1", { "CREATE", "UPDATE" }, { "nodes" } } },
	.conditions = { IS_PARTITIONED },
	.validations = {
		{ HAS_CORES("capacity") " && " HAS_CORES("allocatable"), .message = TEXT_NODE_REQUIRED },
	},
	.actions = { "Warn", "Audit" },
};

const struct policy policy_tainted_nodes = {
	.name = "pinfold-tainted-nodes",
	.about = "A node that joins without the cores resource gets a taint, which its agent removes (D7).",
	.has_parameters = true,
	.rules = { { "", "v1", { "CREATE" }, { "nodes" } } },
	.conditions = {
		IS_PARTITIONED,
		{ "without-cores", "!(" HAS_CORES("capacity") " && " HAS_CORES("allocatable") ")", NULL },
		{ "not-tainted",
		  "!object.?spec.?taints.orValue([]).exists(t, t.key == '" NAME_TAINT_UNPARTITIONED "')", NULL },
	},
	.mutation =
		"(has(object.spec) ? [] : [JSONPatch{op: 'add', path: '/spec', value: {}}]) +\n"
		"(object.?spec.?taints.hasValue() ? [] : [JSONPatch{op: 'add', path: '/spec/taints', value: []}]) +\n"
		"[JSONPatch{op: 'add', path: '/spec/taints/-', value: {'key': '" NAME_TAINT_UNPARTITIONED
		"', 'effect': '" NAME_TAINT_EFFECT "'}}]",
};

#define IS_ON(object)                                                                              \
	object ".?status.?" NAME_PARTITIONING_KEY ".orValue('') == '" NAME_PARTITIONING_ALL "'"

const struct policy policy_cluster_flag = {
	.name = "pinfold-cluster-flag",
	.about = "The cluster flag is never turned off (D8).",
	.rules = { { "config.openshift.io", "v1", { "UPDATE", "DELETE" }, { "infrastructures", "infrastructures/status" } } },
	.conditions = { { "the-cluster", "oldObject.metadata.name == '" NAME_INFRASTRUCTURE "'", NULL } },
	.validations = {
		{ "!(" IS_ON("oldObject") ") || (object != null && " IS_ON("object") ")",
		  .message = "status." NAME_PARTITIONING_KEY ": Forbidden: " TEXT_TURN_OFF },
	},
	.actions = { "Deny" },
};
