/* The record of a decision, and the texts of refusals as the API server writes them: users see the
 * same text as on OpenShift, where admission is part of the API server. */

#include "decision.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/macro.h"
#include "kube/names.h"
#include "kube/quantity.h"

/* In the order of enum admission_rule. Names are in audit logs and metric labels, questions and
 * advice in the output of `explain`. */
static const struct {
	const char *name, *question, *advice;
} rules[] = {
	[RULE_SCOPE] = { "scope", "does admission decide about this kind of object?", NULL },
	[RULE_OBJECT] = { "object", "does the object match the resource of the request?", NULL },
	[RULE_EXEMPT] = { "exempt", "is the namespace Pinfold's own?",
			  "run the pod in another namespace" },
	[RULE_STATIC] = { "static-pod", "is it the mirror pod of a static pod?", NULL },
	[RULE_TARGET] = { "target", "does the pod opt in to a workload type?",
			  "to opt in, give the pod exactly one annotation " NAME_TARGET_PREFIX
			  "<type>: '" NAME_TARGET_VALUE "'" },
	[RULE_SYNCED] = { "synced", "are the caches synchronized?",
			  "retry when the webhook is ready" },
	[RULE_INFRASTRUCTURE] = { "infrastructure",
				  "does Infrastructure \"cluster\" exist, with a status?",
				  "create Infrastructure \"cluster\" and set its status" },
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
	[RULE_EFFECT] = { "effect", "is the effect supported?",
			  "set the annotation's value to '" NAME_TARGET_VALUE "'" },
	[RULE_POD_LEVEL] = { "pod-level-resources", "does the pod have no pod-level CPU?",
			     "move cpu from spec.resources into the containers" },
	[RULE_QUANTITY] = { "quantity", "are the CPU and memory quantities readable and in range?",
			    "write CPU as 250m or 1, memory as 64Mi" },
	[RULE_GUARANTEED] = { "guaranteed", "is the QoS class other than Guaranteed?",
			      "make the pod Burstable: remove a limit, or set one above its "
			      "request" },
	[RULE_QOS_CHANGE] = { "qos-change", "does the QoS class stay the same without CPU?",
			      "give at least one container a memory request" },
	[RULE_CORES] = { "cores", "does a node that is ready advertise the workload resource?",
			 "run the agent on the nodes, then create the pod again" },
	[RULE_CONVERT] = { "convert", "CPU is replaced by the workload resource", NULL },
	[RULE_POOL_GATE] = { "pool-gate", "is the feature gate " NAME_GATE_POOLS " on?", NULL },
	[RULE_POOL_NODES] = { "pool-nodes",
			      "does every node that could take the pod advertise " NAME_SHARED_CPUS
			      "?",
			      "run the agent with a shared pool on every such node, or cordon or "
			      "taint the others" },
	[RULE_POOLS] = { "pools", "CPU is counted in the shared or the guaranteed pool", NULL },
	[RULE_AGENT] = { "agent", "the containers require the agent on their node", NULL },
	[RULE_RESOURCES_ANNOTATION] = { "resources-annotation",
					"are the resource annotations valid?",
					"remove " NAME_RESOURCES_PREFIX
					"* annotations: admission writes them" },
	[RULE_UNTARGETED] = { "untargeted",
			      "are resource annotations and cores only on pods that opted in?",
			      "remove the workload's annotations and resources, or opt in" },
	[RULE_UPDATE] = { "update", "do the workload annotations stay unchanged?",
			  "delete the pod and create it again" },
	[RULE_RESIZE] = { "resize", "does the CPU of counted containers stay unchanged?",
			  "delete the pod and create it with the new CPU" },
	[RULE_TURN_OFF] = { "turn-off", "does workload partitioning stay on?",
			    "change the CPU sets in the profiles instead" },
	[RULE_TURN_ON] = { "turn-on", "are the nodes ready for workload partitioning?",
			   "run the agent on every node first" },
	[RULE_PROFILE] = { "profile", "is the profile valid?",
			   "run pinfold profile check on the manifest" },
	[RULE_PROFILE_CONFLICT] = { "profile-conflict",
				    "does no other profile have the same node selector?",
				    "change spec.nodeSelector, or change the other profile" },
	[RULE_NODE] = { "node-resource", "does the node advertise the workload resource?",
			"configure the node first; pinfold agent --register does it" },
};
_Static_assert(ARRAY_LEN(rules) == RULE__COUNT, "every rule has its texts");

static const char *const verdicts[] = {
	[VERDICT_GO_ON] = "yes",
	[VERDICT_LEAVE] = "unchanged",
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

enum admission_rule rule_of_warning(struct str text)
{
	static const struct {
		struct str part; /* of the texts in management.c, and of OpenShift's */
		enum admission_rule rule;
	} parts[] = {
		{ STR_INIT("is not annotated with " NAME_ALLOWED), RULE_PERMISSION },
		{ STR_INIT("has guaranteed QoS class"), RULE_GUARANTEED },
		{ STR_INIT("will change the pod QoS class"), RULE_QOS_CHANGE },
		{ STR_INIT("has pod-level cpu resources"), RULE_POD_LEVEL },
		{ STR_INIT("does not report the resource"), RULE_SINGLE_NODE },
		{ STR_INIT("is ready advertises the resource"), RULE_CORES },
		{ STR_INIT("workload partitioning is off"), RULE_PARTITIONING },
	};

	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (str_has(text, parts[i].part))
			return parts[i].rule;
	return RULE__COUNT;
}

const char *verdict_name(enum rule_verdict verdict)
{
	return verdicts[verdict];
}

bool result_init(struct admission_result *r, struct arena *a)
{
	/* The arrays are valid up to their counts, so they are not cleared. */
	r->allowed = true;
	r->code = 0;
	r->reason = "";
	r->message = STR("");
	r->n_warnings = r->n_steps = 0;
	r->rule = RULE__COUNT;
	r->is_static = false;
	return patch_init(&r->patch, a);
}

void result_step(struct admission_result *r, enum admission_rule rule, enum rule_verdict verdict,
		 struct str seen)
{
	/* There are fewer rules than places, so a chain is not cut in practice. */
	if (r->n_steps < RESULT_MAX_STEPS)
		r->steps[r->n_steps++] = (struct rule_step){ rule, verdict, seen };
}

void result_decide(struct admission_result *r, enum admission_rule rule, enum rule_verdict verdict,
		   struct str seen)
{
	result_step(r, rule, verdict, seen);
	r->rule = rule;
}

void result_warn(struct admission_result *r, struct str text)
{
	if (r->n_warnings < RESULT_MAX_WARNINGS)
		r->warnings[r->n_warnings++] = text;
}

struct subject subject_of(yyjson_val *object, const char *resource, const char *kind)
{
	yyjson_val *meta = doc_get(object, STR("metadata"));

	return (struct subject){
		.resource = resource,
		.kind = kind,
		.name = doc_str(doc_get(meta, STR("name"))),
		.generate_name = doc_str(doc_get(meta, STR("generateName"))),
	};
}

void result_refuse(struct admission_result *r, enum admission_rule rule, unsigned code,
		   const char *reason, struct str message)
{
	r->allowed = false;
	r->code = code;
	r->reason = reason;
	r->message = message;
	result_decide(r, rule, VERDICT_REFUSE, message);
	(void)patch_init(&r->patch, r->patch.arena); /* drops the planned operations */
}

void result_forbid(struct admission_result *r, enum admission_rule rule, const struct subject *s,
		   struct str text)
{
	/* As the API server: a pod of a controller has no name yet, only generateName. */
	struct str name = s->name.n	     ? s->name :
			  s->generate_name.n ? s->generate_name :
					       STR("Unknown");

	result_refuse(r, rule, 403, "Forbidden",
		      str_printf(r->patch.arena, "%s \"" PRI_STR "\" is forbidden: " PRI_STR,
				 s->resource, FMT_STR(name), FMT_STR(text)));
}

void field_errors_init(struct field_errors *p, struct arena *a)
{
	*p = (struct field_errors){ .a = a };
}

void field_errors_add(struct field_errors *p, struct str text)
{
	for (size_t i = 0; i < p->n; i++)
		if (str_eq(p->items[i], text))
			return;
	if (p->n == p->cap) {
		size_t cap = p->cap ? p->cap * 2 : 8;
		struct str *items = arena_realloc(p->a, p->items, p->cap * sizeof(*items),
						  cap * sizeof(*items));

		if (!items)
			return; /* the arena is exhausted, so the whole request fails */
		p->items = items;
		p->cap = cap;
	}
	p->items[p->n++] = text;
}

void field_errors_invalid(struct field_errors *p, struct str field, struct str value,
			  struct str detail)
{
	field_errors_add(p, str_printf(p->a, PRI_STR ": Invalid value: " PRI_STR ": " PRI_STR,
				       FMT_STR(field), FMT_STR(value), FMT_STR(detail)));
}

void result_invalid(struct admission_result *r, enum admission_rule rule, const struct subject *s,
		    const struct field_errors *p)
{
	struct strbuf b;

	strbuf_init(&b, r->patch.arena);
	/* The name is empty for generateName; the API server falls back only in its 403. */
	strbuf_printf(&b, "%s \"" PRI_STR "\" is invalid: ", s->kind, FMT_STR(s->name));
	if (p->n > 1)
		strbuf_addc(&b, '[');
	for (size_t i = 0; i < p->n; i++) {
		if (i)
			strbuf_add(&b, STR(", "));
		strbuf_add(&b, p->items[i]);
	}
	if (p->n > 1)
		strbuf_addc(&b, ']');
	result_refuse(r, rule, 422, "Invalid", strbuf_str(&b));
}

/* JSON text as Go's encoder writes it, with its HTML escapes. */
static void add_json_string(struct strbuf *b, struct str s)
{
	strbuf_addc(b, '"');
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c == '"' || c == '\\')
			strbuf_printf(b, "\\%c", c);
		else if (c == '\n')
			strbuf_add(b, STR("\\n"));
		else if (c == '\r')
			strbuf_add(b, STR("\\r"));
		else if (c == '\t')
			strbuf_add(b, STR("\\t"));
		else if (c < 0x20 || c == '<' || c == '>' || c == '&')
			strbuf_printf(b, "\\u%04x", c);
		else
			strbuf_addc(b, (char)c);
	}
	strbuf_addc(b, '"');
}

static int by_key(const void *a, const void *b)
{
	return str_cmp(doc_str(*(yyjson_val *const *)a), doc_str(*(yyjson_val *const *)b));
}

static struct str value_text(yyjson_val *value, bool quantities, struct arena *a)
{
	struct quantity q;

	if (quantities && quantity_parse(str_trim(doc_text(value)), &q, NULL) == 0)
		return quantity_format(&q, a);
	return doc_text(value);
}

struct str print_map(yyjson_val *map, bool quantities, struct arena *a)
{
	size_t n = yyjson_obj_size(map), i = 0;
	yyjson_val **keys = arena_array(a, yyjson_val *, n + 1);
	yyjson_val *key, *value;
	struct strbuf b;

	strbuf_init(&b, a);
	if (!map || !keys)
		return STR("null");
	DOC_EACH_PAIR (map, key, value)
		keys[i++] = key;
	qsort(keys, n, sizeof(yyjson_val *), by_key);
	strbuf_addc(&b, '{');
	for (i = 0; i < n; i++) {
		if (i)
			strbuf_addc(&b, ',');
		add_json_string(&b, doc_str(keys[i]));
		strbuf_addc(&b, ':');
		/* yyjson stores a value right after its key. */
		value = yyjson_obj_iter_get_val(keys[i]);
		add_json_string(&b, value_text(value, quantities, a));
	}
	strbuf_addc(&b, '}');
	return strbuf_str(&b);
}

struct str print_quoted(struct str s, struct arena *a)
{
	static const char letters[] = "abtnvfr"; /* for characters 7 to 13 */
	struct strbuf b;

	strbuf_init(&b, a);
	strbuf_addc(&b, '"');
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c == '"' || c == '\\')
			strbuf_printf(&b, "\\%c", c);
		else if (c >= 7 && c <= 13)
			strbuf_printf(&b, "\\%c", letters[c - 7]);
		else if (c < 0x20 || c == 0x7f)
			strbuf_printf(&b, "\\x%02x", c);
		else
			strbuf_addc(&b, (char)c);
	}
	strbuf_addc(&b, '"');
	return strbuf_str(&b);
}

struct str admission_result_text(const struct admission_result *r, struct arena *a)
{
	const struct rule_step *last = r->n_steps ? &r->steps[r->n_steps - 1] : NULL;

	if (!r->allowed)
		return str_printf(a, "refused (%u %s): " PRI_STR, r->code, r->reason,
				  FMT_STR(r->message));
	if (r->rule == RULE_CONVERT)
		return STR("converted: CPU requests become requests for the workload resource");
	if (r->rule == RULE_POOLS)
		return STR("admitted, and its CPU is counted in the pools");
	/* A rule that strips the annotations always adds a warning with its reason. */
	for (size_t i = 0; i < r->n_steps; i++)
		if (r->steps[i].verdict == VERDICT_STRIP)
			return str_printf(a, "skipped: " PRI_STR, FMT_STR(r->warnings[0]));
	if (last && !patch_is_empty(&r->patch))
		return STR("admitted; annotations that only admission may write are removed");
	return STR("admitted unchanged");
}

/* Only what did not turn out as the user may have meant it has something to change. */
const char *admission_result_advice(const struct admission_result *r)
{
	if (r->rule == RULE__COUNT || r->rule == RULE_CONVERT || r->rule == RULE_POOLS)
		return NULL;
	/* A pod that does not opt in is one for the pools; if these are inactive, that is why. */
	if (r->rule == RULE_TARGET && r->n_steps &&
	    r->steps[r->n_steps - 1].rule == RULE_POOL_NODES)
		return rule_advice(RULE_POOL_NODES);
	return rule_advice(r->rule);
}
