/* The agent's document may be that of another node: its containers count only with the same uid,
 * its refusals, which have none, only on the same node. */

#include "explain_place.h"

#include "base/arena.h"
#include "kube/names.h"
#include "kube/pod.h"

/* A profile without a selector applies to every node. */
static bool applies(const struct profile_cpus *p, yyjson_val *node)
{
	yyjson_val *labels = doc_find(node, "/metadata/labels"), *key, *value;

	DOC_EACH_PAIR (p->node_selector, key, value) {
		yyjson_val *label = doc_get(labels, doc_str(key));

		if (!label || !str_eq(doc_str(label), doc_str(value)))
			return false;
	}
	return true;
}

/* Whether the profile applies to the node or, with name "", to every node. */
static bool applies_to(const struct state_manifests *m, const struct profile_cpus *p,
		       struct str node)
{
	bool is_known = false;

	for (size_t i = 0; i < m->n_nodes; i++) {
		if (node.n && !str_eq(object_name(m->nodes[i]), node))
			continue;
		is_known = true;
		if (!applies(p, m->nodes[i]))
			return false;
	}
	return is_known;
}

const struct profile_cpus *explain_profile(const struct state_manifests *m, struct str node,
					   bool *ret_is_assumed)
{
	const struct profile_cpus *found = NULL;

	for (size_t i = 0; i < m->n_profiles; i++)
		if (applies_to(m, &m->profiles[i], node))
			found = &m->profiles[i];
	*ret_is_assumed = !found;
	return found ? found : m->n_profiles == 1 ? m->profiles : NULL;
}

static struct str profile_pool(const struct profile_cpus *p, enum pool pool)
{
	const struct str lists[] = { [POOL_MANAGEMENT] = p->reserved,
				     [POOL_SHARED] = p->shared,
				     [POOL_GUARANTEED] = p->isolated };

	return lists[pool];
}

static bool has(yyjson_val *object, struct str key, struct str value)
{
	return str_eq(doc_str(doc_get(object, key)), value);
}

/* The CPUs that the agent has set for it; "" when it does not know it. */
static struct str agent_cpus(yyjson_val *status, const struct explain_container *c)
{
	yyjson_val *item;

	DOC_EACH_ITEM (doc_get(status, STR("containers")), item)
		if (has(item, STR("uid"), c->uid) && has(item, STR("container"), c->name))
			return doc_str(doc_get(item, STR("cpus")));
	return STR("");
}

static yyjson_val *agent_refusal(yyjson_val *status, const struct explain_container *c)
{
	yyjson_val *item, *last = NULL;

	if (!has(status, STR("node"), c->node))
		return NULL;
	DOC_EACH_ITEM (doc_get(status, STR("refused")), item)
		if (has(item, STR("namespace"), c->namespace) && has(item, STR("pod"), c->pod) &&
		    has(item, STR("container"), c->name))
			last = item;
	return last;
}

struct explain_place explain_place(const struct state_manifests *m, yyjson_val *status,
				   const struct explain_container *c, struct arena *a)
{
	struct explain_place place = { .cpus = agent_cpus(status, c), .from = STR("agent") };
	const struct profile_cpus *p;

	if (place.cpus.n)
		return place;
	place.refusal = agent_refusal(status, c);
	if (place.refusal)
		return place;
	p = explain_profile(m, c->node, &place.is_assumed);
	if (!p)
		return (struct explain_place){ 0 };
	place.cpus = profile_pool(p, c->pool);
	place.from = str_printf(a, "profile " PRI_STR, FMT_STR(p->name));
	if (c->pool == POOL_SHARED && !place.cpus.n) { /* classic mode */
		place.cpus = p->isolated;
		place.from = str_printf(a, PRI_STR ", except exclusive CPUs", FMT_STR(place.from));
	}
	return place;
}
