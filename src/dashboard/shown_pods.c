/* Pods in a hash table and in a list of their node. A pod is stored in one allocation; a change
 * replaces it, and the difference goes to the history. */

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/macro.h"
#include "shown_private.h"

static uint32_t hash_of(struct str namespace, struct str name)
{
	return fnv1a32(fnv1a32(fnv1a32(FNV1A32_START, namespace), STR("/")), name);
}

static struct stored_pod **pod_slot(const struct shown_state *s, struct str namespace,
				    struct str name)
{
	const uint32_t hash = hash_of(namespace, name);
	struct stored_pod **slot = &s->pods[hash & (s->n_pod_buckets - 1)];

	while (*slot && !((*slot)->hash == hash && str_eq((*slot)->pod.name, name) &&
			  str_eq((*slot)->pod.namespace, namespace)))
		slot = &(*slot)->next;
	return slot;
}

struct stored_pod *shown_state_find_pod(const struct shown_state *s, struct str namespace,
					struct str name)
{
	return *pod_slot(s, namespace, name);
}

static void grow_pods(struct shown_state *s)
{
	const size_t n = s->n_pod_buckets * 2;
	struct stored_pod **buckets = shown_allocate(n * sizeof(struct stored_pod *));

	for (size_t i = 0; i < s->n_pod_buckets; i++)
		for (struct stored_pod *p = s->pods[i], *next; p; p = next) {
			next = p->next;
			p->next = buckets[p->hash & (n - 1)];
			buckets[p->hash & (n - 1)] = p;
		}
	free(s->pods);
	s->pods = buckets;
	s->n_pod_buckets = n;
}

/* --- storing --- */

static struct str keep(struct str text, char **to)
{
	struct str ret = { *to, text.n };

	if (text.n)
		memcpy(*to, text.p, text.n);
	*to += text.n;
	return ret;
}

static size_t size_of(const struct shown_pod *p)
{
	size_t n = sizeof(struct stored_pod) + p->n * sizeof(*p->containers) + p->namespace.n +
		   p->name.n + p->node.n + p->uid.n + p->state.n;

	for (size_t i = 0; i < p->n; i++)
		n += p->containers[i].name.n + p->containers[i].cpus.n;
	return n;
}

static struct stored_pod *store(const struct shown_pod *p)
{
	struct stored_pod *to = shown_allocate(size_of(p));
	struct shown_container *containers = (struct shown_container *)(to + 1);
	char *text = (char *)(containers + p->n);

	to->pod.namespace = keep(p->namespace, &text);
	to->pod.name = keep(p->name, &text);
	to->pod.node = keep(p->node, &text);
	to->pod.uid = keep(p->uid, &text);
	to->pod.state = keep(p->state, &text);
	for (size_t i = 0; i < p->n; i++) {
		containers[i] = p->containers[i];
		containers[i].name = keep(p->containers[i].name, &text);
		containers[i].cpus = keep(p->containers[i].cpus, &text);
	}
	to->pod.containers = containers;
	to->pod.n = p->n;
	to->hash = hash_of(p->namespace, p->name);
	return to;
}

static bool is_same_container(const struct shown_container *a, const struct shown_container *b)
{
	return str_eq(a->name, b->name) && str_eq(a->cpus, b->cpus) && a->pool == b->pool &&
	       a->kind == b->kind && a->is_exclusive == b->is_exclusive &&
	       a->millicores == b->millicores && a->shares == b->shares &&
	       a->quota_us == b->quota_us && a->period_us == b->period_us;
}

static bool is_same(const struct shown_pod *a, const struct shown_pod *b)
{
	bool same = a->n == b->n && str_eq(a->node, b->node) && str_eq(a->uid, b->uid) &&
		    str_eq(a->state, b->state);

	for (size_t i = 0; same && i < a->n; i++)
		same = is_same_container(&a->containers[i], &b->containers[i]);
	return same;
}

/* --- history --- */

static const struct shown_container *container_of_name(const struct shown_pod *p, struct str name)
{
	for (size_t i = 0; p && i < p->n; i++)
		if (str_eq(p->containers[i].name, name))
			return &p->containers[i];
	return NULL;
}

static const char *why_moved(const struct shown_container *before,
			     const struct shown_container *after)
{
	if (!before)
		return after->is_exclusive ? "placed, with exclusive CPUs" : "placed in its pool";
	if (!after)
		return before->is_exclusive ? "removed, its exclusive CPUs are free again" :
					      "removed";
	if (before->pool != after->pool)
		return "it belongs to another pool now";
	return after->is_exclusive ? "it was assigned other exclusive CPUs" :
				     "it was given other CPUs";
}

static struct history_place place_of(const struct shown_container *c)
{
	if (!c)
		return (struct history_place){ 0 };
	return (struct history_place){ str_from(pool_name(c->pool)), c->cpus };
}

static void record(struct shown_state *s, const struct shown_pod *p,
		   const struct shown_container *before, const struct shown_container *after)
{
	const struct shown_container *any = after ? after : before;
	const struct history_event e = { .time_ms = s->now_ms,
					 .node = p->node,
					 .namespace = p->namespace,
					 .pod = p->name,
					 .container = any->name,
					 .before = place_of(before),
					 .after = place_of(after),
					 .why = why_moved(before, after) };

	if (before && after && before->pool == after->pool && str_eq(before->cpus, after->cpus))
		return;
	history_add(&s->history, &e);
}

/* Both may be NULL. Containers on no node have no place. */
static void record_pod(struct shown_state *s, const struct shown_pod *before,
		       const struct shown_pod *after)
{
	const bool moved = before && after && !str_eq(before->node, after->node);

	if (!s->is_complete)
		return;
	for (size_t i = 0; before && before->node.n && i < before->n; i++)
		if (moved || !container_of_name(after, before->containers[i].name))
			record(s, before, &before->containers[i], NULL);
	for (size_t i = 0; after && after->node.n && i < after->n; i++)
		record(s, after,
		       moved ? NULL : container_of_name(before, after->containers[i].name),
		       &after->containers[i]);
}

/* --- changes --- */

static void unlink_pod(struct shown_state *s, struct stored_pod **slot)
{
	struct stored_pod *p = *slot;
	struct shown_node *n = p->node;

	*slot = p->next;
	s->n_pods--;
	s->revision++;
	if (n) {
		LIST_REMOVE(p, of_node);
		n->n_pods--;
		shown_node_release(s, n);
	}
	free(p);
}

static void link_pod(struct shown_state *s, struct stored_pod *p)
{
	if (s->n_pods == s->n_pod_buckets)
		grow_pods(s);
	p->next = s->pods[p->hash & (s->n_pod_buckets - 1)];
	s->pods[p->hash & (s->n_pod_buckets - 1)] = p;
	s->n_pods++;
	s->revision++;
	if (!p->pod.node.n)
		return;
	p->node = shown_node_get(s, p->pod.node);
	LIST_INSERT_HEAD(&p->node->pods, p, of_node);
	p->node->n_pods++;
	shown_node_touch(s, p->node);
}

/* The CPUs that the node's agent reports for a container; "" when it reports none. */
static struct str assigned_cpus(yyjson_val *assignments, const struct shown_pod *p, struct str name)
{
	yyjson_val *v;

	DOC_EACH_ITEM (assignments, v)
		if (str_eq(doc_str(doc_get(v, STR("pod"))), p->name) &&
		    str_eq(doc_str(doc_get(v, STR("namespace"))), p->namespace) &&
		    str_eq(doc_str(doc_get(v, STR("container"))), name))
			return doc_str(doc_get(v, STR("cpus")));
	return STR("");
}

static bool has_exclusive(const struct shown_pod *p)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->containers[i].is_exclusive)
			return true;
	return false;
}

/* A copy of the containers with the CPUs that the NodePartition assigns. */
static struct shown_pod with_assignments(const struct shown_state *s, const struct shown_pod *p,
					 struct arena *a)
{
	const struct shown_node *n = shown_state_find_node(s, p->node);
	struct shown_container *containers = arena_array(a, struct shown_container, p->n);
	struct shown_pod ret = *p;
	struct doc doc;

	if (!s->is_cluster || !n || !n->partition.n || !has_exclusive(p) ||
	    doc_parse(n->partition, STR(""), NULL, a, &doc, NULL) < 0)
		return ret;
	for (size_t i = 0; i < p->n; i++) {
		containers[i] = p->containers[i];
		if (containers[i].is_exclusive)
			containers[i].cpus = assigned_cpus(
				doc_find(doc.root, "/status/assignments"), p, containers[i].name);
	}
	ret.containers = containers;
	return ret;
}

void shown_state_put_pod(struct shown_state *s, const struct shown_pod *given)
{
	struct stored_pod **slot = pod_slot(s, given->namespace, given->name), *old = *slot, *new;
	CLEANUP(arena_done) struct arena a;
	struct shown_pod pod;

	arena_init(&a, 0);
	pod = with_assignments(s, given, &a);
	if (old && is_same(&old->pod, &pod)) {
		old->generation = s->generation[SHOWN_PODS];
		return;
	}
	record_pod(s, old ? &old->pod : NULL, &pod);
	new = store(&pod);
	new->generation = s->generation[SHOWN_PODS];
	/* The new one first: a node without objects stays while it has a pod. */
	link_pod(s, new);
	if (!old)
		return;
	for (slot = &s->pods[new->hash &(s->n_pod_buckets - 1)]; *slot != old;)
		slot = &(*slot)->next;
	unlink_pod(s, slot);
}

void shown_state_remove_pod(struct shown_state *s, struct str namespace, struct str name)
{
	struct stored_pod **slot = pod_slot(s, namespace, name);

	if (!*slot)
		return;
	record_pod(s, &(*slot)->pod, NULL);
	unlink_pod(s, slot);
}

void shown_pods_assign(struct shown_state *s, struct shown_node *n)
{
	const uint32_t generation = s->generation[SHOWN_PODS];
	CLEANUP(arena_done) struct arena a;
	const struct stored_pod *p;
	struct shown_pod *pods;
	size_t count = 0;

	arena_init(&a, 0);
	if (!s->is_cluster || !n->n_pods)
		return;
	/* The list changes while pods are replaced; their texts stay until then. */
	pods = arena_array(&a, struct shown_pod, n->n_pods);
	for (p = LIST_FIRST(&n->pods); p; p = LIST_NEXT(p, of_node))
		if (has_exclusive(&p->pod))
			pods[count++] = p->pod;
	for (size_t i = 0; i < count; i++) {
		s->generation[SHOWN_PODS] =
			shown_state_find_pod(s, pods[i].namespace, pods[i].name)->generation;
		shown_state_put_pod(s, &pods[i]);
	}
	s->generation[SHOWN_PODS] = generation;
}
