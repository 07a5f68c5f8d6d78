#pragma once

/* Parts of CEL texts. CEL has neither functions nor local names, so what C would call is expanded
 * by the preprocessor; every argument is CEL, as a string literal. The parts here exist in
 * Kubernetes 1.30, except those that say otherwise. */

#include "base/macro.h"
#include "kube/names.h"
#include "kube/shares.h"

/* CEL in lines of its own. */
/* clang-format off */

#define CEL_TEXT_OF_(x) #x
#define CEL_NUMBER(x) CEL_TEXT_OF_(x) /* of a macro */

/* body, with `name` for the value. */
#define CEL_LET(name, value, body) "[" value "].map(" name ", " body ")[0]"

/* The annotations of an object, and those with a prefix. */
#define CEL_NOTES(object) object ".metadata.?annotations.orValue({})"
#define CEL_WITH_PREFIX(prefix) "variables.notes.filter(k, k.startsWith('" prefix "'))"

/* dyn: the type check of a policy's status has different types for the two lists and cannot add
 * them, and knows no optional field of an optional object. */
#define CEL_CONTAINERS(object)                                                                     \
	"(dyn(" object ".spec.?initContainers.orValue([])) + dyn(" object ".spec.containers))"
#define CEL_REQUESTS(c) c ".?resources.?requests.orValue({})"
#define CEL_LIMITS(c) c ".?resources.?limits.orValue({})"

/* Millicores of a quantity, rounded up; one that is out of range is an error, which refuses. */
#define CEL_MILLI(text)                                                                            \
	CEL_LET("m", "int(quantity(" text ").asApproximateFloat() * 1000.0 + 0.5)",                \
		"quantity(string(m) + 'm').isLessThan(quantity(" text ")) ? m + 1 : m")

/* cpu_shares_from_milli() */
#define CEL_SHARES(milli)                                                                          \
	CEL_LET("s", milli " * " CEL_NUMBER(CPU_SHARES_PER_CPU) " / 1000",                         \
		"s >= " CEL_NUMBER(CPU_SHARES_MAX) " ? " CEL_NUMBER(CPU_SHARES_MAX)                \
		" : s < " CEL_NUMBER(CPU_SHARES_MIN) " ? " CEL_NUMBER(CPU_SHARES_MIN) " : s")

/* Absent or 0. */
#define CEL_IS_ZERO(map, name)                                                                     \
	"(!('" name "' in " map ") || "                                                            \
	"quantity(" map "['" name "']).compareTo(quantity('0')) == 0)"

/* A pod claims to be static, or a mirror of one. */
#define CEL_CLAIMS_STATIC(object)                                                                  \
	"(" object ".metadata.?annotations[?'" NAME_CONFIG_SOURCE                                  \
	"'].orValue('" NAME_CONFIG_SOURCE_API "') != '" NAME_CONFIG_SOURCE_API                     \
	"' ||\n'" NAME_CONFIG_MIRROR "' in " CEL_NOTES(object) ")"
#define CEL_BY_NODE "('" NAME_NODES_GROUP "' in request.userInfo.?groups.orValue([]))"
#define CEL_NOT_STATIC                                                                             \
	{                                                                                          \
		"not-a-static-pod", "!(" CEL_BY_NODE " &&\n" CEL_CLAIMS_STATIC("object") ")", NULL \
	}

/* The annotations by which admission and nodes decide. */
#define CEL_IS_OWN_KEY(k)                                                                          \
	k ".startsWith('" NAME_TARGET_PREFIX "') || " k ".startsWith('" NAME_RESOURCES_PREFIX      \
	  "') || " k " == '" NAME_STAMP "'"

/* Variables: the annotations, the target annotations, and the one workload type ('' otherwise). */
#define CEL_VARIABLES_OF_TYPE                                                                      \
	{ "notes", CEL_NOTES("object"), NULL },                                                    \
	{ "targets", CEL_WITH_PREFIX(NAME_TARGET_PREFIX), NULL },                                  \
	{ "type",                                                                                  \
	  "size(variables.targets) == 1 ?\n"                                                       \
	  "variables.targets[0].replace('" NAME_TARGET_PREFIX "', '', 1) : ''",                    \
	  NULL },                                                                                  \
	{ "cores", "variables.type + '" NAME_CORES_SUFFIX "'", NULL }

/* What the pools count (stamp_containers() and assign_pod_level() of admission/pools.c). The amount
 * of a pod counts for its first app container where no container has one. Only a pod of Kubernetes'
 * class Guaranteed without spec.resources may own CPUs. */
#define CEL_OWN_MILLI(requests)                                                                    \
	"('" NAME_CPU "' in " requests " ? " CEL_MILLI(requests "." NAME_CPU) " : 0)"
#define CEL_VARIABLES_OF_POOL                                                                      \
	{ "containers", CEL_CONTAINERS("object"), NULL },                                          \
	{ "guaranteed",                                                                            \
	  "!has(object.spec.resources) &&\n"                                                       \
	  "variables.containers.all(c, ['" NAME_CPU "', '" NAME_MEMORY "'].all(r,\n"               \
	  "  r in " CEL_LIMITS("c") " && r in " CEL_REQUESTS("c") " &&\n"                          \
	  "  quantity(c.resources.limits[r]).isGreaterThan(quantity('0')) &&\n"                    \
	  "  quantity(c.resources.requests[r]).compareTo(quantity(c.resources.limits[r])) == 0))", \
	  NULL },                                                                                  \
	{ "podAmount",                                                                             \
	  "!has(object.spec.resources) || variables.containers.exists(c,\n  "                      \
	  CEL_LET("q", CEL_REQUESTS("c"), CEL_OWN_MILLI("q") " > 0") ") ? 0 :\n"                   \
	  "'" NAME_CPU "' in object.spec.resources.?requests.orValue({}) ?\n  "                    \
	  CEL_MILLI("object.spec.resources.requests." NAME_CPU) " :\n"                             \
	  "'" NAME_CPU "' in object.spec.resources.?limits.orValue({}) ?\n  "                      \
	  CEL_MILLI("object.spec.resources.limits." NAME_CPU) " : 0",                              \
	  NULL }
#define CEL_POOL_MILLI(name, requests)                                                             \
	"(variables.podAmount > 0 && " name " == object.spec.containers[0].name ?\n    "           \
	"variables.podAmount : " CEL_OWN_MILLI(requests) ")"
#define CEL_POOL_OF(milli)                                                                         \
	"(variables.guaranteed && " milli " > 0 && " milli " % 1000 == 0 ? '" NAME_POOL_GUARANTEED \
	"' : '" NAME_POOL_SHARED "')"
#define CEL_INIT_KIND                                                                              \
	"(c.?restartPolicy.orValue('') == 'Always' ? '" NAME_KIND_SIDECAR "' : '" NAME_KIND_INIT   \
	"')"

/* From a list of {name, kind, milli, pool}; stamps_format(). */
#define CEL_STAMP(list)                                                                            \
	"'{' + " list ".map(s, '\"' + s.name + '\":{\"" NAME_STAMP_KIND_KEY "\":\"' + s.kind +\n"  \
	"  '\",\"" NAME_STAMP_MILLI_KEY "\":' + string(s.milli) + ',\"" NAME_STAMP_POOL_KEY        \
	"\":\"' + s.pool + '\"}').join(',') + '}'"
#define CEL_POOL_RESOURCE(pool)                                                                    \
	"(" pool " == '" NAME_POOL_SHARED "' ? '" NAME_SHARED_CPUS "' : '" NAME_GUARANTEED_CPUS "')"
