/* Texts become documents in the arena of the reconcile. A profile is matched with every node: 20
 * profiles and 1,000 nodes are 20,000 comparisons of a label or two. */

#include "snapshot.h"

#include "base/arena.h"
#include "partition/cluster_nodes.h"
#include "partition/profile_select.h"

yyjson_val *operator_stored_object(const struct stored_object *o, struct arena *a)
{
	struct doc doc;

	if (doc_parse((struct str){ o->text, o->n }, str_from(o->key), NULL, a, &doc, NULL) < 0)
		return NULL;
	return doc.root;
}

struct str operator_annotation(yyjson_val *annotations, const char *name)
{
	return doc_str(doc_get(annotations, str_from(name)));
}

bool operator_profile_selects(const struct operator_snapshot *s, const struct operator_profile *p,
			      const struct operator_node *node)
{
	for (size_t i = 0; i < node->n_profiles; i++)
		if (&s->profiles[node->profiles[i]] == p)
			return true;
	return false;
}

static struct operator_profile read_profile(const struct stored_object *o, struct arena *a)
{
	yyjson_val *object = operator_stored_object(o, a);
	struct operator_profile p = {
		.name = str_from(o->key),
		.uid = doc_str(doc_find(object, "/metadata/uid")),
		.version = str_from(o->version),
		.is_deleting = doc_find(object, "/metadata/deletionTimestamp") != NULL,
		.object = object,
		.annotations = doc_find(object, "/metadata/annotations"),
		.status = doc_get(object, STR("status")),
	};

	(void)doc_int(doc_find(object, "/metadata/generation"), &p.generation);
	return p;
}

static void read_partition(const struct object_store *store, struct arena *a,
			   struct operator_node *node)
{
	const struct stored_object *o = object_store_find(store, node->name);
	struct node_partition *p = o ? arena_new(a, struct node_partition) : NULL;

	if (!p)
		return;
	node->partition_doubt_ms = o->doubted_until_ms;
	if (node_partition_decode(operator_stored_object(o, a), a, p, NULL) < 0)
		return;
	p->version = str_from(o->version);
	node->partition = p;
}

static struct operator_node read_node(const struct stored_object *o, int64_t now_s, struct arena *a)
{
	yyjson_val *object = operator_stored_object(o, a);

	return (struct operator_node){
		.name = str_from(o->key),
		.uid = doc_str(doc_find(object, "/metadata/uid")),
		.version = str_from(o->version),
		.object = object,
		.labels = doc_find(object, "/metadata/labels"),
		.annotations = doc_find(object, "/metadata/annotations"),
		.is_ready = str_eq(doc_str(doc_find(object, "/status/ready")), STR("True")),
		.is_silent = o->seen_s && now_s - o->seen_s > AGENT_SILENT_S,
		.node_doubt_ms = o->doubted_until_ms,
		.is_unschedulable = doc_bool(doc_find(object, "/spec/unschedulable"), false),
	};
}

/* A profile that is being deleted selects no node any more: its object is NULL here. */
static void match_profiles(const struct operator_snapshot *s, yyjson_val *const *objects,
			   struct operator_node *node)
{
	size_t *matches = arena_array(s->arena, size_t, s->n_profiles);

	node->n_profiles = profile_select(objects, s->n_profiles, node->labels, matches);
	node->profiles = matches;
	if (node->n_profiles == 1)
		node->profile = &s->profiles[matches[0]];
}

static void read_profiles(const struct object_store *store, struct operator_profile *profiles,
			  yyjson_val **objects, struct arena *a)
{
	for (size_t i = 0; i < store->n; i++) {
		profiles[i] = read_profile(&store->items[i], a);
		objects[i] = profiles[i].is_deleting ? NULL : profiles[i].object;
	}
}

void operator_snapshot_build(const struct object_store *stores, int64_t now_s, uint64_t now_ms,
			     struct arena *a, struct operator_snapshot *ret)
{
	const struct object_store *profiles = &stores[OPERATOR_PROFILES];
	const struct object_store *nodes = &stores[OPERATOR_NODES];
	struct operator_profile *p = arena_array(a, struct operator_profile, profiles->n);
	yyjson_val **objects = arena_array(a, yyjson_val *, profiles->n);
	struct operator_node *n = arena_array(a, struct operator_node, nodes->n);

	*ret = (struct operator_snapshot){ .arena = a,
					   .now_s = now_s,
					   .now_ms = now_ms,
					   .profiles = p,
					   .n_profiles = profiles->n,
					   .nodes = n,
					   .n_nodes = nodes->n,
					   .stores = stores };
	read_profiles(profiles, p, objects, a);
	for (size_t i = 0; i < nodes->n; i++) {
		const struct stored_object *pods;

		n[i] = read_node(&nodes->items[i], now_s, a);
		read_partition(&stores[OPERATOR_PARTITIONS], a, &n[i]);
		pods = object_store_find(&stores[OPERATOR_NODE_PODS], n[i].name);
		n[i].pods = pods ? operator_stored_object(pods, a) : NULL;
		match_profiles(ret, objects, &n[i]);
	}
}
