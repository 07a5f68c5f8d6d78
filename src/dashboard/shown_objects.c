/* Nodes, NodePartitions and profiles. Objects are kept as JSON with the members that are shown, so
 * that 5,000 nodes are small and a comparison tells whether something has changed. */

#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "kube/names.h"
#include "kube/object_time.h"
#include "partition/cluster_nodes.h"
#include "shown_private.h"

static yyjson_mut_val *trimmed_condition(yyjson_mut_doc *m, yyjson_val *object, struct str type,
					 size_t n)
{
	static const char *const members[] = { "type", "status", "reason", "message",
					       "lastHeartbeatTime" };
	yyjson_val *condition = object_condition(object, type);
	yyjson_mut_val *v = yyjson_mut_obj(m);

	for (size_t i = 0; i < n && i < ARRAY_LEN(members); i++) {
		yyjson_val *member = doc_get(condition, str_from(members[i]));

		if (member)
			doc_put(m, v, str_from(members[i]), yyjson_val_mut_copy(m, member));
	}
	return v;
}

static void put_status(yyjson_mut_doc *m, yyjson_mut_val *root, yyjson_val *object)
{
	yyjson_val *allocatable = doc_find(object, "/status/allocatable"), *key, *value;
	yyjson_mut_val *status = doc_put_obj(m, root, STR("status"));
	yyjson_mut_val *list = doc_put_arr(m, status, STR("conditions"));
	yyjson_mut_val *kept = doc_put_obj(m, status, STR("allocatable"));

	/* The kubelet's own condition changes with every heartbeat; only its status is shown. */
	yyjson_mut_arr_append(list, trimmed_condition(m, object, STR("Ready"), 2));
	yyjson_mut_arr_append(list, trimmed_condition(m, object, STR(NAME_CONDITION_READY), 5));
	DOC_EACH_PAIR (allocatable, key, value)
		if (str_ends(doc_str(key), STR(NAME_CORES)) || str_eq(doc_str(key), STR(NAME_CPU)))
			doc_put(m, kept, doc_str(key), yyjson_val_mut_copy(m, value));
}

static struct str trim_node(yyjson_val *object, struct arena *a)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m), *meta = doc_put_obj(m, root, STR("metadata"));
	yyjson_val *labels = doc_find(object, "/metadata/labels");
	struct str text = STR("");

	doc_put_str(m, meta, STR("name"), object_name(object));
	if (labels)
		doc_put(m, meta, STR("labels"), yyjson_val_mut_copy(m, labels));
	if (doc_bool(doc_find(object, "/spec/unschedulable"), false))
		doc_put_bool(m, doc_put_obj(m, root, STR("spec")), STR("unschedulable"), true);
	put_status(m, root, object);
	(void)doc_write(root, false, a, &text, NULL);
	return text;
}

static bool is_silent(const struct shown_state *s, const struct shown_node *n)
{
	return n->agent_seen_s && s->now_ms / 1000 - n->agent_seen_s > AGENT_SILENT_S;
}

void shown_state_put_node(struct shown_state *s, yyjson_val *object)
{
	CLEANUP(arena_done) struct arena a;
	struct shown_node *n;

	arena_init(&a, 0);
	if (!object_name(object).n)
		return;
	n = shown_node_get(s, object_name(object));
	n->node_generation = s->generation[SHOWN_NODES];
	n->agent_seen_s = 0;
	(void)object_time_read(doc_str(doc_get(object_condition(object, STR(NAME_CONDITION_READY)),
					       STR("lastHeartbeatTime"))),
			       &n->agent_seen_s);
	n->is_silent = is_silent(s, n);
	if (shown_replace(&n->node, trim_node(object, &a)))
		shown_node_touch(s, n);
}

void shown_state_check_time(struct shown_state *s)
{
	for (size_t i = 0; i < s->n_node_buckets; i++)
		for (struct shown_node *n = s->nodes[i]; n; n = n->next)
			if (n->is_silent != is_silent(s, n)) {
				n->is_silent = !n->is_silent;
				shown_node_touch(s, n);
			}
}

void shown_state_remove_node(struct shown_state *s, struct str name)
{
	struct shown_node *n = shown_state_find_node(s, name);

	if (!n)
		return;
	shown_disown(&n->node);
	shown_node_release(s, n);
}

/* --- NodePartitions --- */

static struct str trim_partition(yyjson_val *object, struct arena *a)
{
	static const char *const kept[] = { "name", "uid", "resourceVersion", "generation" };
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m), *meta = doc_put_obj(m, root, STR("metadata"));
	struct str text = STR("");

	/* The version changes with every write, also with one that changes nothing. */
	for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
		yyjson_val *v = doc_get(doc_get(object, STR("metadata")), str_from(kept[i]));

		if (v && i != 2)
			doc_put(m, meta, str_from(kept[i]), yyjson_val_mut_copy(m, v));
	}
	for (size_t i = 0; i < 2; i++) {
		const struct str key = i ? STR("status") : STR("spec");
		yyjson_val *v = doc_get(object, key);

		if (v)
			doc_put(m, root, key, yyjson_val_mut_copy(m, v));
	}
	(void)doc_write(root, false, a, &text, NULL);
	return text;
}

static const char *why_pools(enum pools_origin origin)
{
	switch (origin) {
	case POOLS_FROM_PROFILE:
		return "the profile gives the pool other CPUs";
	case POOLS_FROM_FLAGS:
		return "the agent was started with other pools";
	case POOLS_FROM_FILE:
		return "the pools file gives the pool other CPUs";
	default:
		return "the pool has other CPUs";
	}
}

static void record_pools(struct shown_state *s, struct shown_node *n,
			 const struct node_partition_status *status)
{
	const struct str now[] = { [POOL_MANAGEMENT] = status->management,
				   [POOL_SHARED] = status->shared,
				   [POOL_GUARANTEED] = status->guaranteed };

	for (enum pool p = 0; p < POOL__COUNT; p++) {
		const struct str name = str_from(pool_name(p));
		const bool is_new = !n->pools[p].p;
		struct history_event e = { .time_ms = s->now_ms,
					   .node = n->name,
					   .before = { name, n->pools[p] },
					   .after = { name, now[p] },
					   .why = why_pools(status->origin) };

		if (!is_new && s->is_complete && !str_eq(n->pools[p], now[p]))
			history_add(&s->history, &e);
		(void)shown_replace(&n->pools[p], now[p]);
	}
}

static struct str version_of(struct str partition, struct arena *a)
{
	struct doc doc;

	if (!partition.n || doc_parse(partition, STR(""), NULL, a, &doc, NULL) < 0)
		return STR("");
	return doc_str(doc_find(doc.root, "/status/agentVersion"));
}

int shown_state_put_partition(struct shown_state *s, yyjson_val *object, struct err *err)
{
	CLEANUP(arena_done) struct arena a;
	struct node_partition partition = { 0 };
	struct shown_node *n;
	int r;

	arena_init(&a, 0);
	/* One that cannot be read is kept: that is a finding of its node. */
	r = node_partition_decode(object, &a, &partition, err);
	if (r < 0)
		(void)err_wrap(err, NAME_PARTITION_KIND " " PRI_STR, FMT_STR(object_name(object)));
	if (!object_name(object).n)
		return r;
	n = shown_node_get(s, object_name(object));
	n->partition_generation = s->generation[SHOWN_PARTITIONS];
	shown_count_version(s, version_of(n->partition, &a), false);
	shown_count_version(s, partition.status.agent_version, true);
	if (!shown_replace(&n->partition, trim_partition(object, &a)))
		return r;
	if (r >= 0)
		record_pools(s, n, &partition.status);
	shown_node_touch(s, n);
	shown_pods_assign(s, n);
	return r;
}

static void drop_partition(struct shown_state *s, struct shown_node *n)
{
	CLEANUP(arena_done) struct arena a;

	arena_init(&a, 0);
	shown_count_version(s, version_of(n->partition, &a), false);
	shown_disown(&n->partition);
	shown_node_release(s, n);
}

void shown_state_remove_partition(struct shown_state *s, struct str name)
{
	struct shown_node *n = shown_state_find_node(s, name);

	if (n)
		drop_partition(s, n);
}

bool shown_node_decode(const struct shown_node *n, struct arena *a, struct cluster_node *ret)
{
	struct cluster_nodes one;
	struct doc doc;

	cluster_nodes_init(&one, a);
	if (n->node.n && doc_parse(n->node, STR("node"), NULL, a, &doc, NULL) >= 0)
		cluster_nodes_add_node(&one, doc.root);
	if (n->partition.n && doc_parse(n->partition, STR("partition"), NULL, a, &doc, NULL) >= 0)
		cluster_nodes_add_partition(&one, doc.root);
	cluster_nodes_sort(&one);
	if (one.n != 1) /* only pods name it */
		*ret = (struct cluster_node){ .name = n->name };
	else
		*ret = one.items[0];
	return one.n == 1;
}

/* --- profiles --- */

const struct shown_profile *shown_state_find_profile(const struct shown_state *s, struct str name)
{
	for (size_t i = 0; i < s->n_profiles; i++)
		if (str_eq(s->profiles[i].name, name))
			return &s->profiles[i];
	return NULL;
}

void shown_state_put_profile(struct shown_state *s, yyjson_val *object)
{
	struct shown_profile *p =
		(struct shown_profile *)shown_state_find_profile(s, object_name(object));
	CLEANUP(arena_done) struct arena a;
	struct str text = STR("");

	arena_init(&a, 0);
	if (!object_name(object).n || doc_write_val(object, false, &a, &text, NULL) < 0)
		return;
	if (!p) {
		s->profiles = realloc(s->profiles, (s->n_profiles + 1) * sizeof(*s->profiles));
		if (!s->profiles)
			abort(); /* D21 */
		p = &s->profiles[s->n_profiles++];
		*p = (struct shown_profile){ .name = shown_own(object_name(object)) };
	}
	p->generation = s->generation[SHOWN_PROFILES];
	(void)shown_replace(&p->json, text);
}

static void drop_profile(struct shown_state *s, struct shown_profile *p)
{
	shown_disown(&p->name);
	shown_disown(&p->json);
	*p = s->profiles[--s->n_profiles];
}

void shown_state_remove_profile(struct shown_state *s, struct str name)
{
	struct shown_profile *p = (struct shown_profile *)shown_state_find_profile(s, name);

	if (p)
		drop_profile(s, p);
}

/* --- lists --- */

void shown_state_begin_list(struct shown_state *s, enum shown_kind kind)
{
	s->generation[kind]++;
}

static void sweep_nodes(struct shown_state *s, bool is_partitions)
{
	CLEANUP(arena_done) struct arena a;
	struct shown_node **all;
	const size_t n = s->n_nodes;

	arena_init(&a, 0);
	all = shown_state_sorted(s, &a);
	for (size_t i = 0; i < n; i++) {
		if (is_partitions && all[i]->partition.n &&
		    all[i]->partition_generation != s->generation[SHOWN_PARTITIONS]) {
			drop_partition(s, all[i]);
		} else if (!is_partitions && all[i]->node.n &&
			   all[i]->node_generation != s->generation[SHOWN_NODES]) {
			shown_disown(&all[i]->node);
			shown_node_release(s, all[i]);
		}
	}
}

static void sweep_pods(struct shown_state *s)
{
	for (size_t i = 0; i < s->n_pod_buckets; i++)
		for (struct stored_pod *p = s->pods[i], *next; p; p = next) {
			next = p->next;
			if (p->generation != s->generation[SHOWN_PODS])
				shown_state_remove_pod(s, p->pod.namespace, p->pod.name);
		}
}

void shown_state_end_list(struct shown_state *s, enum shown_kind kind)
{
	switch (kind) {
	case SHOWN_NODES:
	case SHOWN_PARTITIONS:
		sweep_nodes(s, kind == SHOWN_PARTITIONS);
		break;
	case SHOWN_PROFILES:
		for (size_t i = s->n_profiles; i-- > 0;)
			if (s->profiles[i].generation != s->generation[SHOWN_PROFILES])
				drop_profile(s, &s->profiles[i]);
		break;
	case SHOWN_PODS:
		sweep_pods(s);
		break;
	case SHOWN__KINDS:
		break;
	}
}

/* --- machines --- */

void shown_state_set_topology(struct shown_state *s, struct str node, struct str groups)
{
	struct shown_node *n = shown_node_get(s, node);

	if (shown_replace(&n->topology, groups))
		shown_node_touch(s, n);
}

void shown_state_set_use(struct shown_state *s, struct str node, struct str use)
{
	(void)shown_replace(&shown_node_get(s, node)->use, use);
}
