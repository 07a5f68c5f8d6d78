/* The state that decisions use, from manifests: for the commands, and for a webhook with state
 * files. The webhook's caches fill the same struct in src/cluster/cache.c. */

#include "admission_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/quote.h"
#include "kube/names.h"
#include "kube/pod.h"
#include "profile/selector.h"

/* An empty status, or one whose fields are all empty, is Go's zero value. */
static bool status_is_zero(yyjson_val *status)
{
	yyjson_val *key, *value;

	DOC_EACH_PAIR (status, key, value)
		if (!yyjson_is_null(value) && !(yyjson_is_str(value) && !doc_str(value).n))
			return false;
	return true;
}

struct infrastructure_status infrastructure_status_of(yyjson_val *object)
{
	yyjson_val *status = doc_get(object, STR("status"));
	struct str partitioning = doc_str(doc_get(status, STR(NAME_PARTITIONING_KEY)));
	struct str control = doc_str(doc_get(status, STR(NAME_TOPOLOGY_KEY)));

	return (struct infrastructure_status){
		.is_present = true,
		.has_status = !status_is_zero(status),
		.is_single = str_eq(control, STR(NAME_TOPOLOGY_SINGLE)),
		.is_partitioned = str_eq(partitioning, STR(NAME_PARTITIONING_ALL)),
		.partitioning = partitioning,
	};
}

bool namespace_is_exempt(const struct admission_settings *s, struct str namespace)
{
	if (str_eq(namespace, STR(NAME_NAMESPACE_WEBHOOK)) ||
	    str_eq(namespace, STR(NAME_NAMESPACE_AGENT)))
		return true;
	for (size_t i = 0; i < s->n_exempt; i++)
		if (str_eq(namespace, str_from(s->exempt[i])))
			return true;
	return false;
}

void node_groups_add(struct node_group groups[NODE_GROUPS_MAX], size_t *n, struct str name,
		     struct str taints)
{
	for (size_t i = 0; i < *n; i++)
		if (str_eq(groups[i].taints, taints))
			return;
	if (*n < NODE_GROUPS_MAX)
		groups[(*n)++] = (struct node_group){ taints, name };
}

static bool find_namespace(const void *owner, struct str name, struct namespace_permission *ret)
{
	const struct state_manifests *m = owner;

	return namespace_table_find(&m->namespaces, name, ret);
}

static struct cores_count count_cores(const void *owner, struct str type)
{
	const struct state_manifests *m = owner;
	struct cores_count count = { 0 };

	for (size_t i = 0; i < m->n_nodes; i++) {
		yyjson_val *key, *value;

		DOC_EACH_PAIR (doc_find(m->nodes[i], "/status/allocatable"), key, value)
			if (str_eq(cores_type_of(key), type)) {
				count.n++;
				count.n_available += m->facts[i].is_available;
			}
		(void)value;
	}
	return count;
}

void state_manifests_init(struct state_manifests *m, struct arena *a)
{
	*m = (struct state_manifests){ .arena = a };
}

static void add_profile(struct state_manifests *m, yyjson_val *object)
{
	yyjson_val *cpu = doc_find(object, "/spec/cpu");

	m->profiles = arena_reserve(m->arena, m->profiles, m->n_profiles, &m->cap_profiles,
				    sizeof(*m->profiles));
	m->profiles[m->n_profiles++] = (struct profile_cpus){
		.name = object_name(object),
		.reserved = doc_text(doc_get(cpu, STR(NAME_PROFILE_RESERVED))),
		.isolated = doc_text(doc_get(cpu, STR(NAME_PROFILE_ISOLATED))),
		.shared = doc_text(doc_get(cpu, STR(NAME_PROFILE_SHARED))),
		.node_selector = doc_find(object, "/spec/nodeSelector"),
	};
}

bool feature_gate_has_pools(yyjson_val *object)
{
	struct str set = doc_str(doc_find(object, "/spec/featureSet"));
	yyjson_val *gate;

	/* The enhancement defines the gate for these sets; others name their gates one by one. */
	if (str_eq(set, STR(NAME_FEATURE_SET_TECH_PREVIEW)) ||
	    str_eq(set, STR(NAME_FEATURE_SET_DEV_PREVIEW)))
		return true;
	DOC_EACH_ITEM (doc_find(object, "/spec/customNoUpgrade/enabled"), gate)
		if (str_eq(doc_str(gate), STR(NAME_GATE_POOLS)))
			return true;
	return false;
}

int state_manifests_add(struct state_manifests *m, yyjson_val *object, struct err *err)
{
	struct str kind = object_kind(object), name = object_name(object);
	bool needs_name = true;

	if (str_eq(kind, STR("Namespace"))) {
		namespace_table_add(&m->namespaces, object, m->arena);
	} else if (str_eq(kind, STR("Node"))) {
		m->nodes = arena_reserve(m->arena, m->nodes, m->n_nodes, &m->cap_nodes,
					 sizeof(yyjson_val *));
		m->nodes[m->n_nodes++] = object;
	} else if (str_eq(kind, STR(NAME_INFRASTRUCTURE_KIND))) {
		if (str_eq(name, STR(NAME_INFRASTRUCTURE)))
			m->state.infrastructure = infrastructure_status_of(object);
	} else if (str_eq(kind, STR(NAME_PROFILE_KIND))) {
		add_profile(m, object);
	} else if (str_eq(kind, STR(NAME_FEATURE_GATE_KIND))) {
		/* A gate only adds: what a flag turned on stays on, in whatever order the objects
		 * come. */
		m->state.settings.pools |= feature_gate_has_pools(object);
		needs_name = false;
	} else {
		return 0;
	}
	if (needs_name && !name.n)
		return err_set(err, EINVAL, PRI_STR " without a name", FMT_STR(kind));
	m->n_objects++;
	return 1;
}

struct named_node {
	struct str name;
	size_t order; /* in which it was added */
	yyjson_val *object;
};

static int by_node_name(const void *a, const void *b)
{
	const struct named_node *x = a, *y = b;
	int r = str_cmp(x->name, y->name);

	return r ? r : (x->order > y->order) - (x->order < y->order);
}

static int by_order(const void *a, const void *b)
{
	const struct named_node *x = a, *y = b;

	return (x->order > y->order) - (x->order < y->order);
}

/* Of equal names only the last one added stays, at the position of the first. Done once at the
 * end, because a cluster has thousands of nodes. */
static void drop_replaced_nodes(struct state_manifests *m)
{
	struct named_node *sorted = arena_array(m->arena, struct named_node, m->n_nodes);
	size_t n = 0;

	if (!m->n_nodes)
		return;
	for (size_t i = 0; i < m->n_nodes; i++)
		sorted[i] = (struct named_node){ object_name(m->nodes[i]), i, m->nodes[i] };
	qsort(sorted, m->n_nodes, sizeof(*sorted), by_node_name);
	for (size_t i = 0; i < m->n_nodes; i++) {
		if (n && str_eq(sorted[n - 1].name, sorted[i].name))
			sorted[n - 1].object = sorted[i].object;
		else
			sorted[n++] = sorted[i];
	}
	qsort(sorted, n, sizeof(*sorted), by_order);
	for (size_t i = 0; i < n; i++)
		m->nodes[i] = sorted[i].object;
	m->n_nodes = n;
}

static struct node_totals node_totals_of(struct state_manifests *m)
{
	struct node_group *groups = arena_array(m->arena, struct node_group, NODE_GROUPS_MAX);
	struct node_totals t = { .n = m->n_nodes, .missing_shared = groups };

	m->facts = arena_array(m->arena, struct node_facts, m->n_nodes);
	for (size_t i = 0; i < m->n_nodes; i++) {
		struct node_facts f = node_facts_of(m->nodes[i], m->arena);

		m->facts[i] = f;
		t.n_reporting += f.is_reporting;
		t.n_available += f.is_available;
		t.n_shared += f.has_shared;
		if (f.is_available && !f.has_shared)
			node_groups_add(groups, &t.n_missing_shared, object_name(m->nodes[i]),
					f.taints);
	}
	return t;
}

struct profile_ref profile_ref_of(yyjson_val *object, struct arena *a)
{
	return (struct profile_ref){
		.name = object_name(object),
		.selector = labels_format(doc_find(object, "/spec/nodeSelector"), a),
	};
}

/* Of equal names the last one counts. */
static void seal_profiles(struct state_manifests *m)
{
	struct profile_ref *refs = arena_array(m->arena, struct profile_ref, m->n_profiles + 1);
	size_t n = 0;

	for (size_t i = 0; i < m->n_profiles; i++) {
		const struct profile_cpus *p = &m->profiles[i];
		size_t at = 0;

		while (at < n && !str_eq(refs[at].name, p->name))
			at++;
		refs[at] =
			(struct profile_ref){ p->name, labels_format(p->node_selector, m->arena) };
		n += at == n;
	}
	m->state.profiles = refs;
	m->state.n_profiles = n;
	m->state.has_profiles = true;
}

void state_manifests_seal(struct state_manifests *m)
{
	seal_profiles(m);
	namespace_table_seal(&m->namespaces);
	drop_replaced_nodes(m);
	m->state.nodes = node_totals_of(m);
	m->state.is_synced = true;
	/* The struct must not move from here on. */
	m->state.owner = m;
	m->state.find_namespace = find_namespace;
	m->state.count_cores = count_cores;
}

int settings_parse_gates(struct str text, struct admission_settings *s, struct err *err)
{
	struct str_split split = str_split(text);
	struct str item;

	while (str_next(&split, ',', &item)) {
		struct str_split pair = str_split(item);
		struct str name, value = STR("");

		(void)str_next(&pair, '=', &name);
		(void)str_next(&pair, '=', &value);
		if (!str_eq(name, STR(NAME_GATE_POOLS)))
			return err_set(err, EINVAL, "unknown feature gate %s (known: %s)",
				       quote(name).text, NAME_GATE_POOLS);
		if (!str_eq(value, STR("true")) && !str_eq(value, STR("false")))
			return err_set(err, EINVAL, "feature gate %s must be true or false, not %s",
				       NAME_GATE_POOLS, quote(value).text);
		s->pools = str_eq(value, STR("true"));
	}
	return 0;
}
