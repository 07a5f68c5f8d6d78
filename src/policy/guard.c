/* The guard (D48): what holds for every pod that is stored by any way, with and without
 * the webhook. No parameters and no CEL after Kubernetes 1.30, so that it is the same everywhere
 * and always in force. Node and namespace decide, never an annotation alone. */

#include "admission/annotation.h"
#include "admission/texts.h"
#include "cel.h"
#include "policy.h"

/* CEL in lines of its own. */
/* clang-format off */

#define PODS_ON_CREATE                                                                             \
	{                                                                                          \
		"", "v1", { "CREATE" },                                                            \
		{                                                                                  \
			"pods"                                                                     \
		}                                                                                  \
	}

/* The namespace's permission for the workload type; type_is_allowed(). */
#define ALLOWED_LIST                                                                               \
	"namespaceObject.metadata.?annotations[?'" NAME_ALLOWED "'].orValue('').split(',')"
#define ALLOWED "variables.type in " ALLOWED_LIST
#define ALLOWED_LEGACY                                                                             \
	ALLOWED " ||\n"                                                                            \
	"(!('" NAME_ALLOWED "' in " CEL_NOTES("namespaceObject") ") &&\n"                          \
	"namespaceObject.metadata.?labels[?'" NAME_LEGACY_ALLOWED "'].orValue('') == variables.type)"

#define IS_CORES(k) k ".endsWith('" NAME_CORES "')"
#define REFUSES_NOTE "metadata.annotations: "

/* What container_cpu_format() writes for the cores that a container requests. */
#define NOTE_FITS                                                                                  \
	CEL_LET("shares", CEL_SHARES("quantity(q[variables.cores]).asInteger()"),                       \
		"note == '{\"" NAME_CPUSHARES_KEY "\":' + string(shares) + '}' ||\n    "                \
		"note.matches('^[{]\"" NAME_CPUSHARES_KEY                                          \
		"\":' + string(shares) + ',\"" NAME_CPULIMIT_KEY "\":[0-9]{1,18}[}]$')")

const struct policy policy_guard = {
	.name = "pinfold-guard",
	.about = "Pods as they are stored: workload annotations, cores and CPU stamps only with permission, also while the\n"
		 "# webhook is unavailable (D48).",
	.rules = { PODS_ON_CREATE },
	.conditions = {
		CEL_NOT_STATIC,
		{ "concerns-pinfold",
		  CEL_CLAIMS_STATIC("object") " ||\n" CEL_NOTES("object") ".exists(k, " CEL_IS_OWN_KEY("k") ") ||\n"
		  CEL_CONTAINERS("object") ".exists(c, " CEL_REQUESTS("c") ".exists(k, " IS_CORES("k") "))",
		  NULL },
	},
	.variables = {
		CEL_VARIABLES_OF_TYPE,
		CEL_VARIABLES_OF_POOL,
		{ "allowed", ALLOWED, ALLOWED_LEGACY },
		{ "resources", CEL_WITH_PREFIX(NAME_RESOURCES_PREFIX), NULL },
		{ "requested",
		  "variables.containers.map(c, " CEL_REQUESTS("c") ".filter(k, " IS_CORES("k") ")).filter(l, size(l) > 0).map(l, l[0])",
		  NULL },
		{ "stamps",
		  "(object.spec.?initContainers.orValue([]).map(c, {'c': dyn(c), 'kind': dyn(" CEL_INIT_KIND ")}) +\n"
		  "object.spec.containers.map(c, {'c': dyn(c), 'kind': dyn('" NAME_KIND_APP "')}))\n"
		  ".map(s, {'name': dyn(s.c.name), 'kind': dyn(s.kind), 'requests': dyn(" CEL_REQUESTS("s.c") ")})\n"
		  ".map(s, {'name': dyn(s.name), 'kind': dyn(s.kind), 'requests': dyn(s.requests),\n"
		  "  'milli': dyn(" CEL_POOL_MILLI("s.name", "s.requests") ")})\n"
		  ".map(s, {'name': dyn(s.name), 'kind': dyn(s.kind), 'requests': dyn(s.requests), 'milli': dyn(s.milli),\n"
		  "  'pool': dyn(" CEL_POOL_OF("s.milli") ")})",
		  NULL },
	},
	.validations = {
		{ "!" CEL_CLAIMS_STATIC("object"),
		  .message = "only a node creates static pods and their mirror pods: remove the annotations " NAME_CONFIG_SOURCE
			     " and " NAME_CONFIG_MIRROR,
		  .reason = "Forbidden" },
		{ "size(variables.targets) <= 1", .message = REFUSES_NOTE TEXT_TWO_TYPES },
		{ "!('" NAME_TARGET_PREFIX "' in variables.notes)", .message = REFUSES_NOTE TEXT_EMPTY_TYPE },
		{ "variables.type == '' || variables.allowed",
		  .message_text = "'" NAME_PLUGIN_PODS " " TEXT_TYPE_REFUSED_HEAD "' + namespaceObject.metadata.name + '"
				  TEXT_TYPE_REFUSED_TAIL "' + variables.type",
		  .reason = "Forbidden" },
		{ "variables.type != '' || size(variables.resources) == 0", .message = REFUSES_NOTE TEXT_UNTARGETED_RESOURCES },
		{ "variables.type != '' || size(variables.requested) == 0",
		  .message_text = "'spec.containers.resources.requests: " TEXT_UNTARGETED_CORES "' + variables.requested[0] + '\"'" },
		{ "variables.type == '' || variables.containers.all(c, " CEL_REQUESTS("c") ".all(k, !" IS_CORES("k") " || k == variables.cores))",
		  .message_text = "'spec.containers.resources.requests: only ' + variables.cores + ' fits the workload type of the pod'" },
		{ "variables.resources.all(k, variables.containers.exists(c, k == '" NAME_RESOURCES_PREFIX "' + c.name))",
		  .message = REFUSES_NOTE "an annotation " NAME_RESOURCES_PREFIX "<container> names no container of the pod" },
		{ "variables.type == '' || variables.containers.all(c, !(variables.cores in " CEL_REQUESTS("c") ") ||\n"
		  "('" NAME_RESOURCES_PREFIX "' + c.name) in variables.notes)",
		  .message_text = "'spec.containers.resources.requests: admission sets ' + variables.cores + ', do not request it'" },
		{ "variables.type == '' || variables.containers.all(c, !(('" NAME_RESOURCES_PREFIX "' + c.name) in variables.notes) ||\n"
		  CEL_LET("note", "variables.notes['" NAME_RESOURCES_PREFIX "' + c.name]",
		  CEL_LET("q", CEL_REQUESTS("c"),
		  "variables.cores in q ?\n  " NOTE_FITS " :\n  note == '" CONTAINER_CPU_BEST_EFFORT "'")) ")",
		  .message = REFUSES_NOTE "an annotation " NAME_RESOURCES_PREFIX
			     "<container> does not fit the cores that the container requests: admission sets it" },
		{ "!('" NAME_STAMP "' in variables.notes) || (variables.type == '' && variables.notes['" NAME_STAMP "'] ==\n"
		  CEL_STAMP("variables.stamps") ")",
		  .message = REFUSES_NOTE NAME_STAMP " does not fit the CPU requests of the pod: admission sets it" },
		{ "!('" NAME_STAMP "' in variables.notes) || variables.stamps.all(s, s.milli == 0 ||\n"
		  CEL_LET("r", CEL_POOL_RESOURCE("s.pool"),
		  "r in s.requests && quantity(s.requests[r]).compareTo(quantity(string(s.milli))) == 0") ")",
		  .message = "spec.containers.resources.requests: the amounts of " NAME_SHARED_CPUS " and " NAME_GUARANTEED_CPUS
			     " do not fit the annotation " NAME_STAMP },
	},
	.actions = { "Deny" },
};

/* D28: every container of a management pod has its annotation, also one without CPU. */
const struct policy policy_converted = {
	.name = "pinfold-converted",
	.about = "Pods that opted in and were not converted. Beside a webhook with failurePolicy Ignore that is a warning:\n"
		 "# their namespace has the permission, and Ignore asks for pods rather than refusals. Where policies convert, they\n"
		 "# are refused.",
	.spares_own_namespaces = true,
	.rules = { PODS_ON_CREATE },
	.conditions = {
		CEL_NOT_STATIC,
		{ "opted-in", CEL_NOTES("object") ".exists(k, k.startsWith('" NAME_TARGET_PREFIX "'))", NULL },
	},
	.variables = { CEL_VARIABLES_OF_TYPE },
	.validations = {
		{ "variables.type == '' || (variables.notes['" NAME_TARGET_PREFIX "' + variables.type] == '" NAME_TARGET_VALUE "' &&\n"
		  CEL_CONTAINERS("object") ".all(c, ('" NAME_RESOURCES_PREFIX "' + c.name) in variables.notes &&\n"
		  "[" CEL_REQUESTS("c") ", " CEL_LIMITS("c") "].all(q, " CEL_IS_ZERO("q", NAME_CPU) ")))",
		  .message_text =
			  "'" NAME_PLUGIN_PODS " the pod opted in to the workload type ' + variables.type + ' and was not converted: ' +\n"
			  "(variables.notes['" NAME_TARGET_PREFIX "' + variables.type].matches('^\\\\s*[{]\\\\s*\"" NAME_EFFECT_KEY
			  "\"\\\\s*:\\\\s*\"" NAME_EFFECT_PREFERRED "\"\\\\s*[}]\\\\s*$') ?\n"
			  "'nothing that converts pods is in force, or the cluster is not known to it' :\n"
			  "'its annotation is not " NAME_TARGET_VALUE "')",
		  .reason = "Forbidden" },
	},
	.actions = { "Warn", "Audit" },
};

/* Keys that differ between two maps of annotations. */
#define CHANGED                                                                                    \
	"variables.after.map(k, !(k in variables.before) || variables.before[k] != "               \
	"variables.after[k], k) +\n"                                                               \
	"variables.before.map(k, !(k in variables.after), k)"
#define SUBRESOURCE "request.?subResource.orValue('')"
/* The webhook lets a pod lose its warning; what has no business with it may not write it. */
#define IS_FIXED(k)                                                                                \
	"(" CEL_IS_OWN_KEY(k) " ||\n(" k " == '" NAME_WARNING "' && variables.isIndirect))"
#define SAME_CPU(list)                                                                             \
	CEL_LET("x", "o.?resources.?" list "[?'" NAME_CPU "'].orValue('')",                        \
		CEL_LET("y", "c.?resources.?" list "[?'" NAME_CPU "'].orValue('')",                \
			"x == y || (x != '' && y != '' && quantity(x).compareTo(quantity(y)) == "  \
			"0)"))
#define IS_COUNTED(k)                                                                              \
	IS_CORES(k) " || " k " == '" NAME_SHARED_CPUS "' || " k " == '" NAME_GUARANTEED_CPUS "'"

const struct policy policy_pods = {
	.name = "pinfold-pods",
	.about = "Annotations and CPU of workload partitioning do not change after a pod was created (D10). The webhook sees\n"
		 "# updates of the pod; status updates and bindings can carry annotations, too.",
	.rules = {
		{ "", "v1", { "UPDATE" }, { "pods", "pods/status", "pods/resize", "pods/ephemeralcontainers" } },
		{ "", "v1", { "CREATE" }, { "pods/binding", "bindings" } },
	},
	.conditions = { CEL_NOT_STATIC },
	.variables = {
		{ "after", CEL_NOTES("object"), NULL },
		{ "before", "oldObject == null ? {} : " CEL_NOTES("oldObject"), NULL },
		{ "isIndirect", "request.operation == 'CREATE' || " SUBRESOURCE " == 'status'", NULL },
		{ "changed", "(" CHANGED ").filter(k, " IS_FIXED("k") ")", NULL },
		{ "resized",
		  "variables.isIndirect || !(" SUBRESOURCE " in ['', 'resize']) ? [] :\n"
		  CEL_CONTAINERS("object") ".filter(c, " CEL_CONTAINERS("oldObject") ".exists(o, o.name == c.name &&\n"
		  "[o, c].exists(x, " CEL_REQUESTS("x") ".exists(k, " IS_COUNTED("k") ")) &&\n"
		  "!(" SAME_CPU("requests") " && " SAME_CPU("limits") ")))",
		  NULL },
	},
	.validations = {
		{ "size(variables.changed) == 0",
		  .message_text =
			  "variables.isIndirect ?\n"
			  "'annotations of workload partitioning are set only when a pod is created' :\n"
			  "'" TEXT_UPDATE_HEAD "' + variables.changed[0] + '" TEXT_UPDATE_MIDDLE "' +\n"
			  "(!(variables.changed[0] in variables.before) ? 'added' : variables.changed[0] in variables.after ? 'changed' : 'removed') +\n"
			  "'" TEXT_UPDATE_TAIL "'" },
		{ "size(variables.resized) == 0",
		  .message_text = "'spec.containers.resources: " TEXT_RESIZE_HEAD "' + variables.resized[0].name + '" TEXT_RESIZE_TAIL "'" },
	},
	.actions = { "Deny" },
};
