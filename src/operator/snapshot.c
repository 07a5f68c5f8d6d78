/* Texts become documents in the arena of the reconcile. A profile is matched with every node: 20
 * profiles and 1,000 nodes are 20,000 comparisons of a label or two. */

#include "snapshot.h"

#include "base/arena.h"

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

bool operator_profile_selects(const struct operator_profile *p, const struct operator_node *node)
{
	yyjson_val *key, *value;

	if (!yyjson_obj_size(p->node_selector))
		return false;
	DOC_EACH_PAIR (p->node_selector, key, value) {
		yyjson_val *label = doc_get(node->labels, doc_str(key));

		if (!label || !str_eq(doc_str(label), doc_str(value)))
			return false;
	}
	return true;
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
		.node_selector = doc_find(object, "/spec/nodeSelector"),
		.annotations = doc_find(object, "/metadata/annotations"),
		.status = doc_get(object, STR("status")),
	};

	(void)doc_int(doc_find(object, "/metadata/generation"), &p.generation);
	return p;
}

static const struct node_partition *read_partition(const struct object_store *store,
						   struct str name, struct arena *a)
{
	const struct stored_object *o = object_store_find(store, name);
	struct node_partition *p = o ? arena_new(a, struct node_partition) : NULL;

	if (!p || node_partition_decode(operator_stored_object(o, a), a, p, NULL) < 0)
		return NULL;
	p->version = str_from(o->version);
	return p;
}

static struct operator_node read_node(const struct stored_object *o, struct arena *a)
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
		.is_unschedulable = doc_bool(doc_find(object, "/spec/unschedulable"), false),
	};
}

static void match_profiles(const struct operator_snapshot *s, struct operator_node *node)
{
	for (size_t i = 0; i < s->n_profiles; i++) {
		if (s->profiles[i].is_deleting || !operator_profile_selects(&s->profiles[i], node))
			continue;
		node->profile = node->n_profiles++ ? NULL : &s->profiles[i];
	}
}

void operator_snapshot_build(const struct object_store *stores, int64_t now_s, uint64_t now_ms,
			     struct arena *a, struct operator_snapshot *ret)
{
	const struct object_store *profiles = &stores[OPERATOR_PROFILES];
	const struct object_store *nodes = &stores[OPERATOR_NODES];
	struct operator_profile *p = arena_array(a, struct operator_profile, profiles->n);
	struct operator_node *n = arena_array(a, struct operator_node, nodes->n);

	*ret = (struct operator_snapshot){ .arena = a,
					   .now_s = now_s,
					   .now_ms = now_ms,
					   .profiles = p,
					   .n_profiles = profiles->n,
					   .nodes = n,
					   .n_nodes = nodes->n,
					   .stores = stores };
	for (size_t i = 0; i < profiles->n; i++)
		p[i] = read_profile(&profiles->items[i], a);
	for (size_t i = 0; i < nodes->n; i++) {
		const struct stored_object *pods;

		n[i] = read_node(&nodes->items[i], a);
		n[i].partition = read_partition(&stores[OPERATOR_PARTITIONS], n[i].name, a);
		pods = object_store_find(&stores[OPERATOR_NODE_PODS], n[i].name);
		n[i].pods = pods ? operator_stored_object(pods, a) : NULL;
		match_profiles(ret, &n[i]);
	}
}
