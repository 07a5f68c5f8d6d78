/* Values are kept once, with counts. A value is rare when at most one cluster in twenty has it, or
 * only one where more than half have another: such clusters are outliers. Two versions that share a
 * fleet half and half are a rollout, and in the table of versions. */

#include "fleet.h"

#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/macro.h"
#include "base/sorted.h"
#include "kube/names.h"
#include "kube/pod.h"
#include "kube/quantity.h"
#include "partition/profile_select.h"

#define RARE_ONE_IN 20

static const char *const attribute_names[] = {
	[FLEET_AGENT] = "agent",   [FLEET_KUBELET] = "kubelet", [FLEET_RUNTIME] = "runtime",
	[FLEET_KERNEL] = "kernel", [FLEET_OS] = "os",		[FLEET_PROFILE] = "profile",
	[FLEET_POOLS] = "pools",
};
_Static_assert(ARRAY_LEN(attribute_names) == FLEET_ATTRIBUTE__COUNT, "every attribute has a name");

const char *fleet_attribute_name(enum fleet_attribute attribute)
{
	return attribute_names[attribute];
}

void fleet_init(struct fleet *f, struct fleet_plan *plan, struct arena *a)
{
	*f = (struct fleet){ .a = a, .plan = plan };
}

static struct fleet_cluster *add_cluster(struct fleet *f, struct str name)
{
	f->clusters = arena_reserve(f->a, f->clusters, f->n_clusters, &f->cap_clusters,
				    sizeof(*f->clusters));
	f->clusters[f->n_clusters] = (struct fleet_cluster){ .name = str_dup(f->a, name) };
	return &f->clusters[f->n_clusters++];
}

void fleet_add_unreadable(struct fleet *f, struct str name, struct str why)
{
	add_cluster(f, name)->problem = str_dup(f->a, why);
}

/* --- values --- */

static struct fleet_value *value_of(struct fleet *f, enum fleet_attribute attribute,
				    struct str text)
{
	struct fleet_value *v;

	for (size_t i = 0; i < f->n_values; i++)
		if (f->values[i].attribute == attribute && str_eq(f->values[i].text, text))
			return &f->values[i];
	f->values = arena_reserve(f->a, f->values, f->n_values, &f->cap_values, sizeof(*v));
	v = &f->values[f->n_values++];
	*v = (struct fleet_value){ .attribute = attribute,
				   .text = str_dup(f->a, text),
				   .last = UINT32_MAX };
	return v;
}

static void note(struct fleet *f, enum fleet_attribute attribute, struct str text)
{
	const uint32_t cluster = (uint32_t)f->n_clusters - 1;
	struct fleet_value *v;

	if (!text.n)
		return;
	v = value_of(f, attribute, text);
	v->n_nodes++;
	if (v->last == cluster)
		return;
	v->last = cluster;
	v->n_clusters++;
	f->uses = arena_reserve(f->a, f->uses, f->n_uses, &f->cap_uses, sizeof(*f->uses));
	f->uses[f->n_uses++] = (struct fleet_use){ cluster, (uint32_t)(v - f->values) };
}

/* --- one cluster --- */

struct cluster_objects {
	struct arena *a;
	struct cluster_nodes nodes;
	yyjson_val **profiles;
	size_t n_profiles, cap_profiles;
	yyjson_val **objects; /* Nodes */
	size_t n_objects, cap_objects;
};

static void sort_out(struct cluster_objects *c, const struct manifest_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		yyjson_val *object = list->items[i].object;
		const struct str kind = object_kind(object);

		if (str_eq(kind, STR("Node"))) {
			cluster_nodes_add_node(&c->nodes, object);
			c->objects = arena_reserve(c->a, c->objects, c->n_objects, &c->cap_objects,
						   sizeof(yyjson_val *));
			c->objects[c->n_objects++] = object;
		} else if (str_eq(kind, STR(NAME_PARTITION_KIND))) {
			cluster_nodes_add_partition(&c->nodes, object);
		} else if (str_eq(kind, STR(NAME_PROFILE_KIND))) {
			c->profiles = arena_reserve(c->a, c->profiles, c->n_profiles,
						    &c->cap_profiles, sizeof(yyjson_val *));
			c->profiles[c->n_profiles++] = object;
		} else if (str_eq(kind, STR(NAME_INFRASTRUCTURE_KIND))) {
			c->nodes.is_partitioned |=
				str_eq(doc_str(doc_find(object, "/status/" NAME_PARTITIONING_KEY)),
				       STR(NAME_PARTITIONING_ALL));
		}
	}
	cluster_nodes_sort(&c->nodes);
}

static int compare_name(const void *item, const void *name)
{
	const struct cluster_node *node = item;
	const struct str *key = name;

	return str_cmp(node->name, *key);
}

static const struct cluster_node *find_node(const struct cluster_nodes *c, struct str name)
{
	const size_t at = sorted_position(c->items, c->n, sizeof(*c->items), &name, compare_name);

	return at < c->n && str_eq(c->items[at].name, name) ? &c->items[at] : NULL;
}

static struct str profile_text(const struct cluster_objects *c, yyjson_val *labels)
{
	size_t *at = arena_array(c->a, size_t, c->n_profiles + 1);
	const size_t n = profile_select(c->profiles, c->n_profiles, labels, at);
	struct str spec = STR("");

	if (n > 1)
		return STR("several");
	if (n == 0)
		return c->n_profiles ? STR("none") : STR("");
	(void)doc_write_val(doc_get(c->profiles[at[0]], STR("spec")), false, c->a, &spec, NULL);
	return str_printf(c->a, PRI_STR " %08x", FMT_STR(object_name(c->profiles[at[0]])),
			  (unsigned)xxh64(spec, 0));
}

static struct str pools_text(const struct node_partition_status *s, struct arena *a)
{
	struct strbuf b;

	if (!s->online.n)
		return STR("");
	strbuf_init(&b, a);
	strbuf_printf(&b, "CPUs " PRI_STR ": management " PRI_STR, FMT_STR(s->online),
		      FMT_STR(s->management.n ? s->management : STR("none")));
	if (s->shared.n)
		strbuf_printf(&b, ", shared " PRI_STR, FMT_STR(s->shared));
	if (s->guaranteed.n)
		strbuf_printf(&b, ", guaranteed " PRI_STR, FMT_STR(s->guaranteed));
	return strbuf_str(&b);
}

static void note_values(struct fleet *f, const struct cluster_objects *c, yyjson_val *node,
			const struct node_partition *p)
{
	yyjson_val *info = doc_find(node, "/status/nodeInfo");

	note(f, FLEET_KUBELET, doc_str(doc_get(info, STR("kubeletVersion"))));
	note(f, FLEET_RUNTIME, doc_str(doc_get(info, STR("containerRuntimeVersion"))));
	note(f, FLEET_KERNEL, doc_str(doc_get(info, STR("kernelVersion"))));
	note(f, FLEET_OS, doc_str(doc_get(info, STR("osImage"))));
	note(f, FLEET_PROFILE, profile_text(c, doc_find(node, "/metadata/labels")));
	if (!p || !p->has_status)
		return;
	note(f, FLEET_AGENT, p->status.agent_version);
	note(f, FLEET_POOLS, pools_text(&p->status, c->a));
}

static size_t cpus_of(yyjson_val *node)
{
	struct quantity q;

	if (resource_get(doc_find(node, "/status/capacity"), STR(NAME_CPU), &q, NULL) != 1)
		return 0;
	return quantity_value(&q) > 0 ? (size_t)quantity_value(&q) : 0;
}

static void note_plan(struct fleet *f, const struct cluster_objects *c, yyjson_val *node,
		      const struct node_partition *p, struct fleet_cluster *summary)
{
	const struct fleet_node of = { doc_find(node, "/metadata/labels"), cpus_of(node), p,
				       c->profiles, c->n_profiles };
	const struct fleet_decision *d;

	if (!f->plan)
		return;
	d = fleet_plan_node(f->plan, &of);
	summary->effects[d->effect]++;
	if (d->effect == FLEET_INVALID && !f->invalid.n)
		f->invalid = d->why;
}

static bool waits_for_reboot(const struct node_partition *p)
{
	for (size_t i = 0; p && i < p->status.n_pending; i++)
		if (p->status.pending[i].need == NEED_REBOOT)
			return true;
	return false;
}

static void note_findings(struct fleet *f, struct cluster_objects *c, struct fleet_cluster *summary,
			  int64_t now_s)
{
	struct node_findings found;

	for (size_t i = 0; !now_s && i < c->nodes.n; i++)
		if (c->nodes.items[i].agent_seen_s > now_s)
			now_s = c->nodes.items[i].agent_seen_s;
	cluster_nodes_check(&c->nodes, now_s, false, &found);
	summary->n_notes = (uint32_t)found.n_notes;
	summary->n_findings = (uint32_t)(found.n - found.n_notes);
	for (size_t i = 0; i < found.n; i++) {
		const struct node_finding *finding = &found.items[i];
		struct fleet_example *example = &f->examples[finding->fault];

		if (finding->is_note)
			continue;
		if (summary->faults[finding->fault] < UINT16_MAX)
			summary->faults[finding->fault]++;
		if (!example->text.n)
			*example = (struct fleet_example){ summary->name,
							   str_dup(f->a, finding->node->name),
							   str_dup(f->a, finding->text) };
	}
}

void fleet_add(struct fleet *f, struct str name, const struct manifest_list *objects, int64_t now_s)
{
	CLEANUP(arena_done) struct arena a;
	struct cluster_objects c = { .a = &a };
	struct fleet_cluster *summary;

	arena_init(&a, 0);
	cluster_nodes_init(&c.nodes, &a);
	sort_out(&c, objects);
	summary = add_cluster(f, name);
	if (!c.nodes.n) {
		summary->problem = STR("no Node and no NodePartition in it");
		return;
	}
	summary->n_nodes = (uint32_t)c.nodes.n;
	for (size_t i = 0; i < c.n_objects; i++) {
		const struct cluster_node *node = find_node(&c.nodes, object_name(c.objects[i]));
		const struct node_partition *p = node && node->has_partition ? &node->partition :
									       NULL;

		note_values(f, &c, c.objects[i], p);
		note_plan(f, &c, c.objects[i], p, summary);
		summary->n_waiting += waits_for_reboot(p);
	}
	note_findings(f, &c, summary, now_s);
}

/* --- outliers --- */

static bool is_rare(const struct fleet_value *v, const struct fleet_value *usual, size_t n_clusters)
{
	if (v == usual || v->n_clusters * 2 > n_clusters)
		return false;
	return v->n_clusters * RARE_ONE_IN <= n_clusters ||
	       (v->n_clusters == 1 && n_clusters >= 3 && usual->n_clusters * 2 > n_clusters);
}

size_t fleet_outliers(const struct fleet *f, struct arena *a, struct fleet_outlier **ret)
{
	const struct fleet_value *usual[FLEET_ATTRIBUTE__COUNT] = { 0 };
	size_t n = 0, cap = 0;

	*ret = NULL;
	for (size_t i = 0; i < f->n_values; i++) {
		const struct fleet_value *v = &f->values[i];

		if (!usual[v->attribute] || v->n_clusters > usual[v->attribute]->n_clusters)
			usual[v->attribute] = v;
	}
	/* Uses are in the order of clusters, and of attributes for each node. */
	for (size_t i = 0; i < f->n_uses; i++) {
		const struct fleet_value *v = &f->values[f->uses[i].value];

		if (!is_rare(v, usual[v->attribute], f->n_clusters))
			continue;
		*ret = arena_reserve(a, *ret, n, &cap, sizeof(**ret));
		(*ret)[n++] = (struct fleet_outlier){ &f->clusters[f->uses[i].cluster], v,
						      usual[v->attribute] };
	}
	return n;
}
