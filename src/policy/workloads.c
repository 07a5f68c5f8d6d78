/* Management and pools as one MutatingAdmissionPolicy, because the order of policies is not
 * defined. The variables follow admission/management.c and admission/pools.c, with the cluster's
 * state in the parameters. A policy cannot refuse: a pod that the webhook would refuse is left as
 * it is, and the guard refuses what it finds. CEL as of Kubernetes 1.34 (transformList, flatten).
 */

#include "admission/annotation.h"
#include "admission/texts.h"
#include "cel.h"
#include "policy.h"

/* CEL in lines of its own. */
/* clang-format off */

#define DATA(key) "params.?data[?'" key "'].orValue('')"
#define PATCH(op, path) "JSONPatch{op: '" op "', path: " path "}"
#define PATCH_VALUE(path, value) "JSONPatch{op: 'add', path: " path ", value: " value "}"
#define NOTE_PATH(key) "'/metadata/annotations/' + jsonpatch.escapeKey(" key ")"
#define OWN_NOTE_PATH NOTE_PATH("'" NAME_RESOURCES_PREFIX "' + f.name")
#define RESOURCE_PATH(list, name) "f.path + '" list "/' + jsonpatch.escapeKey(" name ")"

/* {path, name, kind, q: requests, l: limits, hasQ, hasL} of every container. */
#define SLOTS(list, kind)                                                                          \
	"object.spec.?" list ".orValue([]).transformList(i, c, {\n"                                \
	"  'path': dyn('/spec/" list "/' + string(i) + '/resources/'),\n"                          \
	"  'name': dyn(c.name), 'kind': dyn(" kind "),\n"                                          \
	"  'q': dyn(" CEL_REQUESTS("c") "), 'l': dyn(" CEL_LIMITS("c") "),\n"                      \
	"  'hasQ': dyn(c.?resources.?requests.hasValue()),\n"                                      \
	"  'hasL': dyn(c.?resources.?limits.hasValue())})"
#define SLOT_FIELDS                                                                                \
	"'path': dyn(f.path), 'name': dyn(f.name), 'q': dyn(f.q), 'l': dyn(f.l), "                 \
	"'hasQ': dyn(f.hasQ), 'hasL': dyn(f.hasL)"

/* A number of the annotation resources.workload.openshift.io/<container>, as text. */
#define OLD_NUMBER(key) "f.old.find('\"" key "\" *: *[0-9]{1,18}').find('[0-9]+$')"

/* was_converted(): cores, and an annotation that fits them where there is cpu as well (D4). */
#define WAS_CONVERTED                                                                              \
	"(f.cores >= 0 && (f.cpu < 0 ||\n"                                                         \
	"    " OLD_NUMBER(NAME_CPUSHARES_KEY) " == string(" CEL_SHARES("f.cores") ")))"
#define LIMIT                                                                                      \
	"(f.source == 'cpu' || f.old == '' ? f.limit :\n"                                          \
	"    " OLD_NUMBER(NAME_CPULIMIT_KEY) " != '' ?\n"                                          \
	"    int(" OLD_NUMBER(NAME_CPULIMIT_KEY) ") : 0)"

/* class_of() with the QoS classes of OpenShift's plugin. */
#define IS_GUARANTEED                                                                              \
	"variables.plans.all(f, f.source != 'cores' && ['" NAME_CPU "', '" NAME_MEMORY "'].all(r,\n" \
	"  r in f.l && quantity(f.l[r]).compareTo(quantity('0')) != 0 && (!(r in f.q) ||\n"        \
	"  (r == '" NAME_CPU "' && quantity(f.q[r]).compareTo(quantity('0')) == 0) ||\n"           \
	"  quantity(f.q[r]).compareTo(quantity(f.l[r])) == 0)))"
#define IS_BEST_EFFORT(without_cpu)                                                                \
	"variables.plans.all(f,\n"                                                                 \
	"  " CEL_IS_ZERO("f.q", NAME_MEMORY) " && " CEL_IS_ZERO("f.l", NAME_MEMORY) " &&\n"        \
	"  (" without_cpu " ||\n"                                                                  \
	"  (" CEL_IS_ZERO("f.q", NAME_CPU) " && " CEL_IS_ZERO("f.l", NAME_CPU) ")))"

/* effect_check(), for the spellings that a regular expression can recognise. */
#define S "\\\\s*"
#define EFFECT_IS_VALID                                                                            \
	"variables.notes[variables.targets[0]].matches(\n"                                         \
	"  '^" S "[{]" S "(\"" NAME_EFFECT_KEY "\"" S ":" S "\"[^\"\\\\\\\\]*\"" S "," S ")*"      \
	"\"" NAME_EFFECT_KEY "\"" S ":" S "\"" NAME_EFFECT_PREFERRED "\"" S "[}]" S "$')"

#define HAS_POD_LEVEL                                                                              \
	"'" NAME_CPU "' in object.spec.?resources.?requests.orValue({}) ||\n"                      \
	"  '" NAME_CPU "' in object.spec.?resources.?limits.orValue({})"

/* read_amount(): the API server refuses the pod only while the amount is in it. */
#define HAS_NEGATIVE_CPU                                                                           \
	"variables.slots.exists(f, [f.q, f.l].exists(r,\n"                                         \
	"  '" NAME_CPU "' in r && quantity(r." NAME_CPU ").isLessThan(quantity('0'))))"

/* check_type() to pod_context_read_resources(): 'none' did not opt in, 'leave' is refused by the
 * API server or the guard, 'strip' loses its annotations, any other also gets a warning. */
#define GATE                                                                                       \
	"size(variables.targets) == 0 ? 'none' :\n"                                                \
	"size(variables.targets) > 1 || variables.type == '' ? 'leave' :\n"                        \
	DATA(NAME_PARAMETER_WORKLOADS) " == '" NAME_WORKLOADS_OFF "' ? 'strip' :\n"                \
	DATA(NAME_PARAMETER_WORKLOADS) " == '" NAME_WORKLOADS_SINGLE "' &&\n"                      \
	"  !(variables.type in " DATA(NAME_PARAMETER_REPORTED) ".split(',')) ? 'node-lacks' :\n"   \
	"!(" DATA(NAME_PARAMETER_WORKLOADS) " in\n"                                                \
	"  ['" NAME_WORKLOADS_ON "', '" NAME_WORKLOADS_SINGLE "']) ? 'leave' :\n"                  \
	"!('" NAME_ALLOWED "' in " CEL_NOTES("namespaceObject") ") ? 'permission' :\n"             \
	"!(variables.type in\n"                                                                    \
	"  namespaceObject.metadata.annotations['" NAME_ALLOWED "'].split(',')) ? 'leave' :\n"     \
	"!" EFFECT_IS_VALID " ? 'leave' :\n"                                                       \
	HAS_POD_LEVEL " ? 'pod-level' :\n"                                                         \
	HAS_NEGATIVE_CPU " ? 'leave' : 'go'"
#define VERDICT                                                                                    \
	"variables.gate != 'go' ? variables.gate :\n"                                              \
	IS_GUARANTEED " ? 'guaranteed' :\n"                                                        \
	IS_BEST_EFFORT("f.source == 'cores'") " !=\n"                                              \
	IS_BEST_EFFORT("f.source != ''") " ? 'qos-change' :\n"                                     \
	"!(variables.type in " DATA(NAME_PARAMETER_TYPES) ".split(',')) &&\n"                      \
	"  !variables.plans.exists(f, f.source == 'cores') ? 'no-node' :\n"                        \
	IS_BEST_EFFORT("f.source == 'cores'") " ? 'best-effort' : 'convert'"
#define WARNING                                                                                    \
	"variables.verdict == 'permission' ? '" TEXT_NO_PERMISSION_HEAD "' +\n"                    \
	"  namespaceObject.metadata.name + '" TEXT_NO_PERMISSION_TAIL "' :\n"                      \
	"variables.verdict == 'guaranteed' ? '" TEXT_GUARANTEED "' :\n"                            \
	"variables.verdict == 'qos-change' ? '" TEXT_QOS_CHANGE "Burstable to BestEffort' :\n"     \
	"variables.verdict == 'pod-level' ? '" TEXT_POD_LEVEL "' :\n"                              \
	"variables.verdict == 'node-lacks' ? '" TEXT_NODE_LACKS "' + variables.cores :\n"          \
	"variables.verdict == 'no-node' ? '" TEXT_NO_READY_NODE "' + variables.cores : ''"

/* taints_are_tolerated() for one set of taints, "key=value:effect" separated by blanks. */
#define TOLERATES                                                                                  \
	"object.spec.?tolerations.orValue([]).exists(o,\n"                                         \
	"  o.?effect.orValue('') in ['', t.split(':')[1]] &&\n"                                    \
	"  (o.?key.orValue('') == '' ? o.?operator.orValue('') == 'Exists' :\n"                    \
	"    o.key == t.split('=')[0]) &&\n"                                                       \
	"  (o.?operator.orValue('') == 'Exists' || (o.?operator.orValue('') in ['', 'Equal'] &&\n" \
	"    o.?value.orValue('') == t.split('=')[1].split(':')[0])))"
#define WITHOUT_POOL DATA(NAME_PARAMETER_WITHOUT_POOL)
#define IS_COUNTED                                                                                 \
	"!(variables.verdict in ['leave', 'convert', 'best-effort']) &&\n"                         \
	DATA(NAME_PARAMETER_POOLS) " == '" NAME_POOLS_ON "' &&\n"                                  \
	"(" WITHOUT_POOL " == '' ||\n"                                                             \
	"!" WITHOUT_POOL ".split('\\n').exists(g, g.split(' ').all(t,\n"                           \
	TOLERATES ")))"

#define ADD_LIST(list, has) "(!" has " ? [" PATCH_VALUE("f.path + '" list "'", "{}") "] : [])"
#define ADD_AMOUNT(resource)                                                                       \
	"  [" PATCH_VALUE(RESOURCE_PATH("requests", resource), "string(f.milli)") ",\n"            \
	"   " PATCH_VALUE(RESOURCE_PATH("limits", resource), "string(f.milli)")
#define CONVERTED_NOTE                                                                             \
	"'{\"" NAME_CPUSHARES_KEY "\":' + string(" CEL_SHARES("f.milli") ") +\n    "               \
	CEL_LET("l", LIMIT, "l > 0 ? ',\"" NAME_CPULIMIT_KEY "\":' + string(l) : ''") " + '}'"
#define NOTE_BEST_EFFORT PATCH_VALUE(OWN_NOTE_PATH, "'" CONTAINER_CPU_BEST_EFFORT "'")
/* convert_pod() */
#define CONVERT                                                                                    \
	"variables.plans.map(f, f.source != 'cores' && variables.verdict == 'best-effort' ?\n"     \
	"  [" NOTE_BEST_EFFORT "] : f.source == '' ?\n"                                            \
	"  ('" NAME_CPU "' in f.l ? [] : [" NOTE_BEST_EFFORT "]) :\n"                              \
	"  ('" NAME_CPU "' in f.q ? [" PATCH("remove", "f.path + 'requests/" NAME_CPU "'") "] : []) +\n" \
	"  ('" NAME_CPU "' in f.l ? [" PATCH("remove", "f.path + 'limits/" NAME_CPU "'") "] : []) +\n" \
	"  " ADD_LIST("requests", "f.hasQ") " + " ADD_LIST("limits", "f.hasL") " +\n"              \
	ADD_AMOUNT("variables.cores") ",\n"                                                        \
	"   " PATCH_VALUE(OWN_NOTE_PATH, CONVERTED_NOTE) "]).flatten()"
/* count_container() */
#define DROP(list, map, pool, resource)                                                            \
	"  ('" resource "' in f." map " && (f.milli == 0 || f.pool != '" pool "') ? ["             \
	PATCH("remove", RESOURCE_PATH(list, "'" resource "'")) "] : []) +\n"
#define COUNT                                                                                      \
	"variables.stamps.map(f,\n"                                                                \
	DROP("requests", "q", NAME_POOL_SHARED, NAME_SHARED_CPUS)                                  \
	DROP("requests", "q", NAME_POOL_GUARANTEED, NAME_GUARANTEED_CPUS)                          \
	DROP("limits", "l", NAME_POOL_SHARED, NAME_SHARED_CPUS)                                    \
	DROP("limits", "l", NAME_POOL_GUARANTEED, NAME_GUARANTEED_CPUS)                            \
	"  (f.milli == 0 ? [] :\n"                                                                 \
	"  " ADD_LIST("requests", "f.hasQ") " + " ADD_LIST("limits", "f.hasL") " +\n"              \
	ADD_AMOUNT(CEL_POOL_RESOURCE("f.pool")) "])).flatten() +\n"                                \
	"(has(object.metadata.annotations) ? [] :\n"                                               \
	"  [" PATCH_VALUE("'/metadata/annotations'", "{}") "]) +\n"                                \
	"[" PATCH_VALUE(NOTE_PATH("'" NAME_STAMP "'"), CEL_STAMP("variables.stamps")) "]"

const struct policy policy_workloads = {
	.name = "pinfold-workloads",
	.about = "What the mutating webhook does with pods, evaluated by the API server (D49). Generated: `pinfold policy`.",
	.has_parameters = true,
	.spares_own_namespaces = true,
	.rules = { { "", "v1", { "CREATE" }, { "pods" } } },
	.conditions = {
		CEL_NOT_STATIC,
		{ "concerns-pinfold",
		  DATA(NAME_PARAMETER_POOLS) " == '" NAME_POOLS_ON "' ||\n" CEL_NOTES("object") ".exists(k, " CEL_IS_OWN_KEY("k") ")",
		  NULL },
	},
	.variables = {
		CEL_VARIABLES_OF_TYPE,
		CEL_VARIABLES_OF_POOL,
		{ "slots", SLOTS("initContainers", CEL_INIT_KIND) " +\n" SLOTS("containers", "'" NAME_KIND_APP "'"), NULL },
		{ "measured",
		  "variables.slots.map(f, {" SLOT_FIELDS ",\n"
		  "  'cpu': dyn('" NAME_CPU "' in f.q ? " CEL_MILLI("f.q." NAME_CPU) " : -1),\n"
		  "  'limit': dyn('" NAME_CPU "' in f.l ? " CEL_MILLI("f.l." NAME_CPU) " : 0),\n"
		  "  'cores': dyn(variables.cores in f.q ? quantity(f.q[variables.cores]).asInteger() : -1),\n"
		  "  'old': dyn(variables.notes[?'" NAME_RESOURCES_PREFIX "' + f.name].orValue(''))})",
		  NULL },
		{ "plans",
		  "variables.measured.map(f, {" SLOT_FIELDS ", 'limit': dyn(f.limit), 'old': dyn(f.old),\n"
		  "  'source': dyn(" WAS_CONVERTED " ? 'cores' : f.cpu >= 0 ? 'cpu' : ''),\n"
		  "  'milli': dyn(" WAS_CONVERTED " ? f.cores : f.cpu)})",
		  NULL },
		{ "gate", GATE, NULL },
		{ "verdict", VERDICT, NULL },
		{ "warning", WARNING, NULL },
		{ "counted", IS_COUNTED, NULL },
		{ "stamps",
		  "variables.slots.map(f, {" SLOT_FIELDS ", 'kind': dyn(f.kind),\n"
		  "  'milli': dyn(" CEL_POOL_MILLI("f.name", "f.q") ")})\n"
		  ".map(f, {" SLOT_FIELDS ", 'kind': dyn(f.kind), 'milli': dyn(f.milli),\n"
		  "  'pool': dyn(" CEL_POOL_OF("f.milli") ")})",
		  NULL },
	},
	.mutation =
		"variables.verdict == 'leave' ? [] :\n"
		"variables.notes.filter(k, " CEL_IS_OWN_KEY("k") ").map(k, " PATCH("remove", NOTE_PATH("k")) ") +\n"
		"(variables.warning == '' ? [] : [" PATCH_VALUE(NOTE_PATH("'" NAME_WARNING "'"), "variables.warning") "]) +\n"
		"(variables.verdict in ['convert', 'best-effort'] ? " CONVERT " +\n"
		"  [" PATCH_VALUE(NOTE_PATH("variables.targets[0]"), "'" NAME_TARGET_VALUE "'") "] : []) +\n"
		"(variables.counted ? " COUNT " : [])",
};

const struct policy policy_warnings = {
	.name = NAME_POLICY_WARNINGS,
	.about = "kubectl prints why a pod was not converted.",
	.spares_own_namespaces = true,
	.rules = { { "", "v1", { "CREATE" }, { "pods" } } },
	.conditions = {
		CEL_NOT_STATIC,
		{ "has-a-reason",
		  "'" NAME_WARNING "' in " CEL_NOTES("object") " || '" NAME_DEBUG_SOURCE "' in " CEL_NOTES("object"), NULL },
	},
	.validations = {
		{ "!('" NAME_WARNING "' in object.metadata.annotations)",
		  .message_text = "string(object.metadata.annotations['" NAME_WARNING "'])" },
		{ "!('" NAME_DEBUG_SOURCE "' in object.metadata.annotations) ||\n"
		  CEL_CONTAINERS("object") ".all(c, " CEL_REQUESTS("c") ".all(k, !k.endsWith('" NAME_CORES "')))",
		  .message = TEXT_DEBUG_ADVICE },
	},
	.actions = { "Warn", "Audit" },
};
