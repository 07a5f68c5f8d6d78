/* A kubelet sets an extended resource to 0 when it registers its Node again; the agent restores the
 * amount a moment later. So 0 counts as advertised. */

#include "node_facts.h"

#include <string.h>

#include "base/arena.h"
#include "kube/names.h"
#include "kube/pod.h"

bool node_has_resource(yyjson_val *resources, struct str part)
{
	yyjson_val *key, *value;

	DOC_EACH_PAIR (resources, key, value)
		/* OpenShift looks for a part of the name
		 * (docs/reference/admission.md#node-admission), so that every workload type
		 * counts. */
		if (str_has(doc_str(key), part))
			return true;
	(void)value;
	return false;
}

struct str cores_type_of(yyjson_val *resource)
{
	struct str name = doc_str(resource);

	/* JSON could contain a NUL, which no resource name has. */
	if (!str_ends(name, STR(NAME_CORES_SUFFIX)) || memchr(name.p, '\0', name.n))
		return STR("");
	name.n -= strlen(NAME_CORES_SUFFIX);
	return name;
}

/* A Node without the condition, such as one that its agent has just created, has a taint of the
 * node controller instead. */
static bool is_ready(yyjson_val *node)
{
	yyjson_val *ready = object_condition(node, STR("Ready"));

	return !ready || str_eq(doc_str(doc_get(ready, STR("status"))), STR("True"));
}

/* These taints come and go with the state of the node. */
static bool is_unavailable(struct str key)
{
	return str_eq(key, STR(NAME_TAINT_UNPARTITIONED)) ||
	       str_eq(key, STR("node.kubernetes.io/not-ready")) ||
	       str_eq(key, STR("node.kubernetes.io/unreachable"));
}

struct node_facts node_facts_of(yyjson_val *node, struct arena *a)
{
	yyjson_val *status = doc_get(node, STR("status")), *taint;
	yyjson_val *allocatable = doc_get(status, STR("allocatable"));
	struct node_facts f = {
		.is_reporting = allocatable || doc_get(status, STR("capacity")),
		.is_available = is_ready(node) &&
				!doc_bool(doc_find(node, "/spec/unschedulable"), false),
		.has_shared = doc_get(allocatable, STR(NAME_SHARED_CPUS)) != NULL,
		.has_cores = node_has_resource(allocatable, STR(NAME_CORES)),
	};
	struct strbuf b;

	strbuf_init(&b, a);
	DOC_EACH_ITEM (doc_find(node, "/spec/taints"), taint) {
		struct str key = doc_str(doc_get(taint, STR("key")));
		struct str effect = doc_str(doc_get(taint, STR("effect")));

		f.has_taint |= str_eq(key, STR(NAME_TAINT_UNPARTITIONED));
		if (is_unavailable(key))
			f.is_available = false;
		else if (str_eq(effect, STR("NoSchedule")) || str_eq(effect, STR("NoExecute")))
			strbuf_printf(&b, PRI_STR "=" PRI_STR ":" PRI_STR "\n", FMT_STR(key),
				      FMT_STR(doc_str(doc_get(taint, STR("value")))),
				      FMT_STR(effect));
	}
	f.taints = strbuf_str(&b);
	return f;
}

/* Kubernetes' rule; operators other than Exists and Equal match nothing here. */
static bool tolerates(yyjson_val *toleration, struct str key, struct str value, struct str effect)
{
	struct str its_key = doc_str(doc_get(toleration, STR("key")));
	struct str its_effect = doc_str(doc_get(toleration, STR("effect")));
	struct str operator= doc_str(doc_get(toleration, STR("operator")));

	if (its_effect.n && !str_eq(its_effect, effect))
		return false;
	if (its_key.n ? !str_eq(its_key, key) : !str_eq(operator, STR("Exists")))
		return false;
	if (str_eq(operator, STR("Exists")))
		return true;
	return (!operator.n || str_eq(operator, STR("Equal"))) &&
	       str_eq(doc_str(doc_get(toleration, STR("value"))), value);
}

static bool is_tolerated(struct str taint, yyjson_val *tolerations)
{
	struct str_split at_value = str_split(taint), at_effect;
	struct str key = STR(""), value = STR("");
	yyjson_val *toleration;

	/* Keys contain no '=', values no ':'. */
	(void)str_next(&at_value, '=', &key);
	at_effect = str_split(at_value.rest);
	(void)str_next(&at_effect, ':', &value);
	DOC_EACH_ITEM (tolerations, toleration)
		if (tolerates(toleration, key, value, at_effect.rest))
			return true;
	return false;
}

bool taints_are_tolerated(struct str taints, yyjson_val *tolerations)
{
	struct str_split lines = str_split(taints);
	struct str taint;

	while (str_next(&lines, '\n', &taint))
		if (taint.n && !is_tolerated(taint, tolerations))
			return false;
	return true;
}
