/* node_observed_of() keeps the few fields that matter of a Node, the plan functions compare them
 * with struct node_desired and write only differences. Numbers are compared as values, not as text:
 * the API server returns quantities in canonical form, such as "8k" for 8000. */

#include "node_plan.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "base/quote.h"
#include "cluster/object_path.h"
#include "cpu/topology.h"
#include "kube/names.h"
#include "kube/object_time.h"
#include "kube/patch.h"
#include "kube/quantity.h"
#include "pool/ledger.h"

static const char *const resource_names[] = {
	[NODE_MANAGEMENT] = NAME_MANAGEMENT_CORES,
	[NODE_SHARED] = NAME_SHARED_CPUS,
	[NODE_GUARANTEED] = NAME_GUARANTEED_CPUS,
};

/* OpenShift's kubelet counts every online CPU as management cores
 * (docs/reference/admission.md#node-capacity). The guaranteed pool counts only CPUs that can be
 * assigned: whole cores with full-pcpus-only. */
void node_amounts_of(const struct ledger *l, bool pools, struct node_amounts *ret)
{
	struct ledger_capacity capacity;

	*ret = (struct node_amounts){ 0 };
	for (size_t i = 0; i < l->now.config.n_types; i++)
		if (strcmp(l->now.config.types[i].name, NAME_TYPE_MANAGEMENT) != 0)
			memcpy(ret->types[ret->n_types++], l->now.config.types[i].name,
			       sizeof(ret->types[0]));
	ledger_capacity(l, &capacity);
	ret->milli[NODE_MANAGEMENT] = 1000 * (int64_t)cpuset_count(&l->now.topology->online);
	pools = pools && !l->now.config.is_classic;
	ret->milli[NODE_SHARED] = pools ? capacity.shared_milli : NODE_ABSENT;
	ret->milli[NODE_GUARANTEED] = pools ? capacity.usable_milli : NODE_ABSENT;
}

static const struct {
	const char *name, *status;
} reasons[] = {
	[NODE_PINNING] = { "Pinning", "True" },
	[NODE_RUNTIME_LOST] = { "RuntimeDisconnected", "False" },
	[NODE_POOLS_REFUSED] = { "PoolsRefused", "False" },
	[NODE_CGROUPS_FAIL] = { "CgroupWritesFail", "False" },
	[NODE_AGENT_STOPPED] = { "AgentStopped", "Unknown" },
};

const char *node_reason_name(enum node_reason r)
{
	return reasons[r].name;
}

const char *node_reason_status(enum node_reason r)
{
	return reasons[r].status;
}

enum node_reason node_reason_choose(const struct node_health *h)
{
	/* The first that holds is shown: without the runtime the other two are old. */
	return !h->is_connected	    ? NODE_RUNTIME_LOST :
	       h->writes_fail	    ? NODE_CGROUPS_FAIL :
	       h->pools_are_refused ? NODE_POOLS_REFUSED :
				      NODE_PINNING;
}

enum node_taint node_taint_choose(bool is_ready, uint64_t unready_ms, bool taints_unready)
{
	if (is_ready)
		return NODE_TAINT_REMOVE;
	return taints_unready && unready_ms >= NODE_UNREADY_MS ? NODE_TAINT_PUT : NODE_TAINT_LEAVE;
}

static int64_t amount_in(yyjson_val *list, struct str name)
{
	yyjson_val *v = doc_get(list, name);
	struct quantity q;

	/* Unreadable counts as absent, so the correct amount is written. */
	if (!v || quantity_parse(doc_text(v), &q, NULL) < 0)
		return NODE_ABSENT;
	return quantity_value(&q);
}

static void copy_text(char *to, size_t cap, struct str text)
{
	(void)snprintf(to, cap, PRI_STR, FMT_STR(text));
}

static bool is_agent_taint(yyjson_val *taint)
{
	return str_eq(doc_str(doc_get(taint, STR("key"))), STR(NAME_TAINT_UNPARTITIONED)) &&
	       str_eq(doc_str(doc_get(taint, STR("effect"))), STR(NAME_TAINT_EFFECT));
}

static void read_taints(yyjson_val *taints, struct node_observed *ret)
{
	yyjson_val *taint;
	int i = 0;

	/* The index is kept, because JSON Patch addresses items of a list by it. */
	ret->taint = -1;
	ret->has_taints = yyjson_is_arr(taints);
	DOC_EACH_ITEM (taints, taint) {
		if (is_agent_taint(taint))
			ret->taint = i;
		i++;
	}
}

static struct node_type_cores *find_type(const struct node_observed *observed, const char *type)
{
	for (size_t i = 0; i < observed->n_types; i++)
		if (strcmp(observed->types[i].type, type) == 0)
			return (struct node_type_cores *)&observed->types[i];
	return NULL;
}

/* The resources of workload types in one list. A kubelet removes an extended resource from both
 * lists or from one. */
static void read_types(yyjson_val *list, bool is_capacity, struct node_observed *ret)
{
	yyjson_val *key, *value;

	DOC_EACH_PAIR (list, key, value) {
		struct str type = doc_str(key);
		struct node_type_cores *t;
		char name[WORKLOAD_TYPE_MAX + 1];

		(void)value;
		if (!str_ends(type, STR(NAME_CORES_SUFFIX)) ||
		    str_eq(type, STR(NAME_MANAGEMENT_CORES)))
			continue;
		type.n -= sizeof(NAME_CORES_SUFFIX) - 1;
		if (!workload_type_is_valid(type))
			continue;
		copy_text(name, sizeof(name), type);
		t = find_type(ret, name);
		if (!t && ret->n_types == NODE_TYPES_MAX)
			continue;
		if (!t) {
			t = &ret->types[ret->n_types++];
			*t = (struct node_type_cores){ .capacity = NODE_ABSENT,
						       .allocatable = NODE_ABSENT };
			memcpy(t->type, name, sizeof(name));
		}
		*(is_capacity ? &t->capacity : &t->allocatable) = amount_in(list, doc_str(key));
	}
}

void node_observed_of(yyjson_val *node, struct node_observed *ret)
{
	yyjson_val *status = doc_get(node, STR("status")), *condition;
	yyjson_val *capacity = doc_get(status, STR("capacity"));
	yyjson_val *allocatable = doc_get(status, STR("allocatable"));

	*ret = (struct node_observed){ .exists = node != NULL };
	for (enum node_resource r = 0; r < NODE_RESOURCE__COUNT; r++) {
		ret->capacity[r] = amount_in(capacity, str_from(resource_names[r]));
		ret->allocatable[r] = amount_in(allocatable, str_from(resource_names[r]));
	}
	read_types(capacity, true, ret);
	read_types(allocatable, false, ret);
	DOC_EACH_ITEM (doc_get(status, STR("conditions")), condition) {
		if (!str_eq(doc_str(doc_get(condition, STR("type"))), STR(NAME_CONDITION_READY)))
			continue;
		copy_text(ret->status, sizeof(ret->status),
			  doc_str(doc_get(condition, STR("status"))));
		copy_text(ret->reason, sizeof(ret->reason),
			  doc_str(doc_get(condition, STR("reason"))));
		copy_text(ret->message, sizeof(ret->message),
			  doc_str(doc_get(condition, STR("message"))));
		copy_text(ret->since, sizeof(ret->since),
			  doc_str(doc_get(condition, STR("lastTransitionTime"))));
	}
	read_taints(doc_find(node, "/spec/taints"), ret);
	copy_text(ret->version, sizeof(ret->version),
		  doc_str(doc_find(node, "/metadata/resourceVersion")));
	copy_text(ret->uid, sizeof(ret->uid), doc_str(doc_find(node, "/metadata/uid")));
}

static void put_amount(yyjson_mut_doc *m, yyjson_mut_val *amounts, struct str name,
		       int64_t observed, int64_t want, struct arena *a)
{
	const struct quantity q = quantity_from_int(want, QUANTITY_DECIMAL_SI);

	if (observed == want)
		return;
	if (want == NODE_ABSENT) /* null removes the key in a merge patch */
		doc_put(m, amounts, name, yyjson_mut_null(m));
	else
		doc_put_str(m, amounts, name, quantity_format(&q, a));
}

static bool wants_type(const struct node_amounts *want, const char *type)
{
	for (size_t i = 0; i < want->n_types; i++)
		if (strcmp(want->types[i], type) == 0)
			return true;
	return false;
}

/* Also removes the cores of types that are not configured any more. */
static void put_types(yyjson_mut_doc *m, yyjson_mut_val *amounts, bool is_capacity,
		      const struct node_observed *observed, const struct node_amounts *want,
		      struct arena *a)
{
	for (size_t i = 0; i < want->n_types; i++) {
		const struct node_type_cores *t = find_type(observed, want->types[i]);

		put_amount(m, amounts, str_printf(a, "%s" NAME_CORES_SUFFIX, want->types[i]),
			   !t	       ? NODE_ABSENT :
			   is_capacity ? t->capacity :
					 t->allocatable,
			   want->milli[NODE_MANAGEMENT], a);
	}
	for (size_t i = 0; i < observed->n_types; i++) {
		const struct node_type_cores *t = &observed->types[i];

		if (!wants_type(want, t->type))
			put_amount(m, amounts, str_printf(a, "%s" NAME_CORES_SUFFIX, t->type),
				   is_capacity ? t->capacity : t->allocatable, NODE_ABSENT, a);
	}
}

static void put_amounts(yyjson_mut_doc *m, yyjson_mut_val *status,
			const struct node_observed *observed, const struct node_amounts *want,
			struct arena *a)
{
	const struct {
		struct str name;
		const int64_t *observed;
	} lists[] = { { STR("allocatable"), observed->allocatable },
		      { STR("capacity"), observed->capacity } };

	for (size_t i = ARRAY_LEN(lists); i-- > 0;) {
		yyjson_mut_val *amounts = yyjson_mut_obj(m);

		for (enum node_resource r = 0; r < NODE_RESOURCE__COUNT; r++)
			put_amount(m, amounts, str_from(resource_names[r]), lists[i].observed[r],
				   want->milli[r], a);
		put_types(m, amounts, i == 1, observed, want, a);
		if (yyjson_mut_obj_size(amounts))
			doc_put(m, status, lists[i].name, amounts);
	}
}

bool node_has_capacity(const struct node_observed *observed, const struct node_amounts *want)
{
	for (size_t i = 0; i < want->n_types; i++) {
		const struct node_type_cores *t = find_type(observed, want->types[i]);

		if (!t || t->capacity != want->milli[NODE_MANAGEMENT])
			return false;
	}
	return memcmp(observed->capacity, want->milli, sizeof(want->milli)) == 0;
}

static yyjson_mut_val *make_condition(const struct node_observed *observed,
				      const struct node_desired *want, yyjson_mut_doc *m,
				      struct arena *a)
{
	const struct str now = object_time(want->now_s, a);
	/* API convention: the transition time changes only with the status, not with the reason. */
	const bool is_same = strcmp(observed->status, node_reason_status(want->reason)) == 0 &&
			     observed->since[0];
	yyjson_mut_val *c = yyjson_mut_obj(m);

	doc_put_str(m, c, STR("type"), STR(NAME_CONDITION_READY));
	doc_put_str(m, c, STR("status"), str_from(node_reason_status(want->reason)));
	doc_put_str(m, c, STR("reason"), str_from(node_reason_name(want->reason)));
	doc_put_str(m, c, STR("message"), want->message);
	doc_put_str(m, c, STR("lastHeartbeatTime"), now);
	doc_put_str(m, c, STR("lastTransitionTime"), is_same ? str_from(observed->since) : now);
	return c;
}

static bool condition_differs(const struct node_observed *observed, const struct node_desired *want)
{
	return want->is_heartbeat_due ||
	       strcmp(observed->status, node_reason_status(want->reason)) != 0 ||
	       strcmp(observed->reason, node_reason_name(want->reason)) != 0 ||
	       !str_eq(str_from(observed->message), want->message);
}

static int write_status(yyjson_mut_doc *m, yyjson_mut_val *status, struct arena *a,
			struct str *ret_body, struct err *err)
{
	yyjson_mut_val *root = yyjson_mut_obj(m);
	int r;

	if (!yyjson_mut_obj_size(status))
		return 0;
	doc_put(m, root, STR("status"), status);
	r = doc_write(root, false, a, ret_body, err);
	return r < 0 ? r : 1;
}

static void put_condition(yyjson_mut_doc *m, yyjson_mut_val *status, yyjson_mut_val *condition)
{
	yyjson_mut_arr_append(doc_put_arr(m, status, STR("conditions")), condition);
}

int node_plan_status(const struct node_observed *observed, const struct node_desired *want,
		     struct arena *a, struct str *ret_body, struct err *err)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *status = yyjson_mut_obj(m);

	put_amounts(m, status, observed, &want->amounts, a);
	if (condition_differs(observed, want))
		put_condition(m, status, make_condition(observed, want, m, a));
	return write_status(m, status, a, ret_body, err);
}

int node_plan_removal(const struct node_observed *observed, struct arena *a, struct str *ret_body,
		      struct err *err)
{
	static const struct node_amounts none = { .milli = { NODE_ABSENT, NODE_ABSENT,
							     NODE_ABSENT } };
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *status = yyjson_mut_obj(m), *condition = yyjson_mut_obj(m);

	put_amounts(m, status, observed, &none, a);
	/* The list is merged by type: a directive removes one condition. */
	if (observed->status[0]) {
		doc_put_str(m, condition, STR("$patch"), STR("delete"));
		doc_put_str(m, condition, STR("type"), STR(NAME_CONDITION_READY));
		put_condition(m, status, condition);
	}
	return write_status(m, status, a, ret_body, err);
}

static yyjson_mut_val *make_taint(yyjson_mut_doc *m, struct str key, struct str value,
				  struct str effect)
{
	yyjson_mut_val *taint = yyjson_mut_obj(m);

	doc_put_str(m, taint, STR("key"), key);
	if (value.n)
		doc_put_str(m, taint, STR("value"), value);
	doc_put_str(m, taint, STR("effect"), effect);
	return taint;
}

static yyjson_mut_val *make_agent_taint(yyjson_mut_doc *m)
{
	return make_taint(m, STR(NAME_TAINT_UNPARTITIONED), STR(""), STR(NAME_TAINT_EFFECT));
}

/* Merge patches replace the whole list of taints; a JSON Patch changes one item. */
int node_plan_taint(const struct node_observed *observed, enum node_taint taint, struct arena *a,
		    struct str *ret_body, struct err *err)
{
	struct patch p;
	int r;

	if (!patch_init(&p, a))
		return err_set(err, ENOMEM, "out of memory");
	if (taint == NODE_TAINT_REMOVE && observed->taint >= 0) {
		/* The index is of the version that was read: the test fails if another taint is
		 * there now. */
		const struct str path =
			patch_path_index(a, STR("/spec/taints"), (size_t)observed->taint);

		patch_test(&p, patch_path(a, path, STR("key")), STR(NAME_TAINT_UNPARTITIONED));
		patch_remove(&p, path);
	} else if (taint == NODE_TAINT_PUT && observed->taint < 0 && observed->has_taints) {
		patch_add(&p, STR("/spec/taints/-"), make_agent_taint(p.doc));
	} else if (taint == NODE_TAINT_PUT && observed->taint < 0) {
		yyjson_mut_val *list = yyjson_mut_arr(p.doc);

		/* `add` would replace a list that another client has created in the meantime. */
		patch_test(&p, STR("/metadata/resourceVersion"), str_from(observed->version));
		yyjson_mut_arr_append(list, make_agent_taint(p.doc));
		patch_add(&p, STR("/spec/taints"), list);
	}
	if (patch_is_empty(&p))
		return 0;
	r = patch_write(&p, a, ret_body, err);
	return r < 0 ? r : 1;
}

static bool is_name_text(struct str s, const char *also, size_t max)
{
	for (size_t i = 0; i < s.n; i++)
		if (!isalnum((unsigned char)s.p[i]) && !strchr(also, s.p[i]))
			return false;
	return s.n <= max &&
	       (!s.n || (isalnum((unsigned char)s.p[0]) && isalnum((unsigned char)s.p[s.n - 1])));
}

/* "[prefix/]name", roughly: the API server checks it in full. */
static bool is_label_key(struct str s)
{
	return s.n && is_name_text(s, "-_./", 253 + 1 + 63);
}

/* Cuts at the first `sep`; the rest is empty when there is none. */
static struct str cut_at(struct str s, char sep, struct str *ret_rest)
{
	struct str_split split = str_split(s);
	struct str head = STR("");

	(void)str_next(&split, sep, &head);
	*ret_rest = split.ended ? STR("") : split.rest;
	return head;
}

static bool parse_label(struct str text, struct str *ret_key, struct str *ret_value)
{
	*ret_key = cut_at(text, '=', ret_value);
	return is_label_key(*ret_key) && is_name_text(*ret_value, "-_.", 63);
}

static bool parse_taint(struct str text, struct str *ret_key, struct str *ret_value,
			struct str *ret_effect)
{
	static const struct str effects[] = { STR_INIT("NoSchedule"), STR_INIT("PreferNoSchedule"),
					      STR_INIT("NoExecute") };
	struct str pair = cut_at(text, ':', ret_effect);

	if (!parse_label(pair, ret_key, ret_value))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(effects); i++)
		if (str_eq(*ret_effect, effects[i]))
			return true;
	return false;
}

int node_registration_check(const struct node_registration *b, struct err *err)
{
	struct str key, value, effect;

	/* Checked before anything connects: a typing error in a flag ends the agent at the
	 * start. */
	for (size_t i = 0; i < b->n_labels; i++)
		if (!strchr(b->labels[i], '=') ||
		    !parse_label(str_from(b->labels[i]), &key, &value))
			return err_set(err, EINVAL, "%s is not a label like key=value",
				       quote(str_from(b->labels[i])).text);
	for (size_t i = 0; i < b->n_taints; i++)
		if (!parse_taint(str_from(b->taints[i]), &key, &value, &effect))
			return err_set(err, EINVAL, "%s is not a taint like key=value:NoSchedule",
				       quote(str_from(b->taints[i])).text);
	return 0;
}

static void put_labels(const struct node_registration *b, yyjson_mut_doc *m, yyjson_mut_val *meta)
{
	yyjson_mut_val *labels = doc_put_obj(m, meta, STR("labels"));
	struct str key, value;

	doc_put_str(m, labels, STR("kubernetes.io/hostname"), b->name);
	for (size_t i = 0; i < b->n_labels; i++)
		if (parse_label(str_from(b->labels[i]), &key, &value))
			doc_put_str(m, labels, key, value);
}

static void put_taints(const struct node_registration *b, bool ours, yyjson_mut_doc *m,
		       yyjson_mut_val *spec)
{
	yyjson_mut_val *taints = yyjson_mut_arr(m);
	struct str key, value, effect;

	for (size_t i = 0; i < b->n_taints; i++)
		if (parse_taint(str_from(b->taints[i]), &key, &value, &effect))
			yyjson_mut_arr_append(taints, make_taint(m, key, value, effect));
	if (ours)
		yyjson_mut_arr_append(taints, make_agent_taint(m));
	if (yyjson_mut_arr_size(taints))
		doc_put(m, spec, STR("taints"), taints);
}

int node_plan_registration(const struct node_registration *b, const struct node_desired *want,
			   struct arena *a, struct str *ret_body, struct err *err)
{
	static const struct node_observed nothing = {
		.capacity = { NODE_ABSENT, NODE_ABSENT, NODE_ABSENT },
		.allocatable = { NODE_ABSENT, NODE_ABSENT, NODE_ABSENT },
	};
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m), *meta, *status;
	int r;

	doc_put_str(m, root, STR("apiVersion"), STR("v1"));
	doc_put_str(m, root, STR("kind"), STR("Node"));
	meta = doc_put_obj(m, root, STR("metadata"));
	doc_put_str(m, meta, STR("name"), b->name);
	put_labels(b, m, meta);
	put_taints(b, want->taint == NODE_TAINT_PUT, m, doc_put_obj(m, root, STR("spec")));
	/* A Node may be created with its status, as kubelets do; the webhook would refuse one
	 * without the resource (D7). */
	status = doc_put_obj(m, root, STR("status"));
	put_amounts(m, status, &nothing, &want->amounts, a);
	put_condition(m, status, make_condition(&nothing, want, m, a));
	r = doc_write(root, false, a, ret_body, err);
	return r < 0 ? r : 1;
}

int node_name_of(struct str host, struct arena *a, struct str *ret, struct err *err)
{
	struct str name = str_trim(host);
	char *p = (char *)str_cstr(a, name);

	for (size_t i = 0; i < name.n; i++)
		p[i] = (char)tolower((unsigned char)p[i]);
	name.p = p;
	if (!name.n || !is_name_text(name, "-.", 253))
		return err_set(err, EINVAL, "%s is not a valid Node name", quote(name).text);
	*ret = name;
	return 0;
}

struct str node_path(struct str name, struct str part, struct arena *a)
{
	return object_path(&(struct object_ref){ .api = STR("v1"),
						 .resource = STR("nodes"),
						 .name = name,
						 .subresource = part },
			   a);
}
