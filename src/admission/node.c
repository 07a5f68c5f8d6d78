/* Nodes that join a partitioned cluster must advertise the workload resource (D7,
 * docs/reference/admission.md#node-admission). A node without it is refused, or admitted with a
 * taint that its agent removes. Where nodes get the taint, none is refused: one without it joined
 * while the mutating hook was not called, and the webhook taints it later. */

#include "base/arena.h"
#include "kube/names.h"
#include "steps.h"
#include "texts.h"

/* An error for each of the two lists that does not have the resource. */
static void list_missing(yyjson_val *node, struct field_errors *problems)
{
	static const struct str lists[] = { STR_INIT("capacity"), STR_INIT("allocatable") };
	yyjson_val *status = doc_get(node, STR("status"));

	/* Capacity first, as in OpenShift's message. */
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		if (!node_has_resource(doc_get(status, lists[i]), STR(NAME_CORES)))
			field_errors_add(problems,
					 str_printf(problems->a,
						    "status." PRI_STR "." NAME_CORES
						    ": Required value: " TEXT_NODE_REQUIRED,
						    FMT_STR(lists[i])));
}

/* False when the request is decided: refused, or not relevant. */
static bool check_request(const struct admission_state *state, const struct admission_request *rq,
			  const struct subject *s, struct admission_result *r)
{
	struct arena *a = r->patch.arena;
	struct str kind = object_kind(rq->object);

	if (!yyjson_is_obj(rq->object) || (kind.n && !str_eq(kind, STR("Node")))) {
		result_forbid(r, RULE_OBJECT, s,
			      str_printf(a, "unexpected object: " PRI_STR,
					 FMT_STR(kind.n ? kind : str_from(doc_type(rq->object)))));
		return false;
	}
	if (!state->is_synced) {
		result_forbid(r, RULE_SYNCED, s,
			      STR(NAME_PLUGIN_NODES " infra config cache not synchronized"));
		return false;
	}
	/* An empty status is no error here, unlike for pods: it does not say AllNodes. Off
	 * OpenShift the object is created with the flag, and nodes join and change before (D18). */
	if (!state->infrastructure.is_present) {
		result_decide(r, RULE_INFRASTRUCTURE, VERDICT_LEAVE, s->name);
		return false;
	}
	if (!state->infrastructure.is_partitioned) {
		result_decide(r, RULE_PARTITIONING, VERDICT_LEAVE,
			      state->infrastructure.partitioning);
		return false;
	}
	return true;
}

static bool has_taint(yyjson_val *node)
{
	yyjson_val *taint;

	DOC_EACH_ITEM (doc_find(node, "/spec/taints"), taint)
		if (str_eq(doc_str(doc_get(taint, STR("key"))), STR(NAME_TAINT_UNPARTITIONED)))
			return true;
	return false;
}

void node_validate(const struct admission_state *state, const struct admission_request *rq,
		   struct admission_result *r)
{
	struct subject s = subject_of(rq->object, "nodes", "Node");
	bool joins = rq->operation == OPERATION_CREATE;
	struct field_errors problems;

	if (!check_request(state, rq, &s, r))
		return;
	field_errors_init(&problems, r->patch.arena);
	list_missing(rq->object, &problems);
	if (!problems.n) {
		result_decide(r, RULE_NODE, VERDICT_LEAVE, s.name);
		return;
	}
	/* Only joining is refused. An update comes from a kubelet whose Node exists already and
	 * that would retry forever (D7). */
	if (joins && state->settings.nodes == NODE_MODE_REFUSE) {
		result_invalid(r, RULE_NODE, &s, &problems);
		return;
	}
	result_warn(r, STR(TEXT_NODE_REQUIRED));
	result_decide(r, RULE_NODE, VERDICT_LEAVE, STR(TEXT_NODE_REQUIRED));
}

static void add_taint(yyjson_val *node, struct patch *p)
{
	yyjson_val *spec = doc_get(node, STR("spec")), *taints = doc_get(spec, STR("taints"));
	yyjson_mut_val *taint = yyjson_mut_obj(p->doc), *list = yyjson_mut_arr(p->doc);
	yyjson_mut_val *outer = yyjson_mut_obj(p->doc);

	doc_put_str(p->doc, taint, STR("key"), STR(NAME_TAINT_UNPARTITIONED));
	doc_put_str(p->doc, taint, STR("effect"), STR(NAME_TAINT_EFFECT));
	/* One operation for each shape: a patch cannot append to a list that does not exist. */
	if (yyjson_is_arr(taints)) {
		patch_add(p, STR("/spec/taints/-"), taint);
		return;
	}
	yyjson_mut_arr_append(list, taint);
	if (yyjson_is_obj(spec)) {
		patch_put(p, STR("/spec/taints"), taints != NULL, list);
		return;
	}
	doc_put(p->doc, outer, STR("taints"), list);
	patch_put(p, STR("/spec"), spec != NULL, outer);
}

void node_mutate(const struct admission_state *state, const struct admission_request *rq,
		 struct admission_result *r)
{
	struct subject s = subject_of(rq->object, "nodes", "Node");
	struct field_errors problems;

	/* Both hooks see a node that joins, this one first. */
	if (state->settings.nodes != NODE_MODE_TAINT) {
		result_decide(r, RULE_SCOPE, VERDICT_LEAVE,
			      s.name); /* the validating hook decides */
		return;
	}
	if (!check_request(state, rq, &s, r))
		return;
	field_errors_init(&problems, r->patch.arena);
	list_missing(rq->object, &problems);
	if (!problems.n || has_taint(rq->object)) {
		result_decide(r, RULE_NODE, VERDICT_LEAVE, s.name);
		return;
	}
	add_taint(rq->object, &r->patch);
	result_warn(r, STR("the node gets no pods until it advertises " NAME_MANAGEMENT_CORES));
	result_decide(r, RULE_NODE, VERDICT_CHANGE, STR(NAME_TAINT_UNPARTITIONED));
}
