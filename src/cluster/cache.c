/* The writer changes struct cache in place and copies what readers need into a new struct
 * cache_view (cache_publish()); the previous view is freed when no reader uses it any more
 * (grace.h). Namespaces are the exception: there are too many to copy, so readers search the
 * writer's table, which is built for that (cache_namespaces.c). */

#include "cache.h"

#include <stdlib.h>
#include <string.h>

#include "backoff.h"
#include "cache_private.h"
#include "kube/names.h"
#include "kube/pod.h"

struct view_type {
	struct str name;
	struct cores_count nodes;
};

/* What readers see, except the namespaces. Immutable. */
struct cache_view {
	struct admission_state state;
	const struct cache *cache;
	struct node_group groups[NODE_GROUPS_MAX];
	size_t n_types;
	struct view_type types[];
};

void *cache_allocate(size_t size)
{
	void *p = calloc(1, size);

	if (!p)
		abort();
	return p;
}

uint32_t cache_hash(const struct cache *c, struct str name)
{
	/* FNV-1a with a final mix: the seed is only in the start value and must reach all bits of
	 * the result. */
	uint64_t h = c->seed ^ 14695981039346656037u;

	for (size_t i = 0; i < name.n; i++)
		h = (h ^ (unsigned char)name.p[i]) * 1099511628211u;
	h ^= h >> 29;
	h *= 0xbf58476d1ce4e5b9u;
	return (uint32_t)(h >> 32);
}

/* Objects of which there is one. NULL: it does not exist. */

static void set_infrastructure(struct cache *c, yyjson_val *object)
{
	struct infrastructure_status status = { 0 };
	char *text;

	if (object)
		status = infrastructure_status_of(object);
	/* The text points into the object, which exists only during the call. */
	text = cache_allocate(status.partitioning.n + 1);
	if (status.partitioning.n)
		memcpy(text, status.partitioning.p, status.partitioning.n);
	status.partitioning.p = text;
	free(c->partitioning);
	c->partitioning = text;
	c->infrastructure = status;
	c->is_changed = true;
}

static void set_gates(struct cache *c, yyjson_val *object)
{
	bool pools = feature_gate_has_pools(object);

	c->is_changed |= pools != c->gate_pools;
	c->gate_pools = pools;
}

static void set_single(struct cache *c, enum cache_kind kind, yyjson_val *object)
{
	c->is_seen[kind] = object != NULL;
	if (kind == CACHE_INFRASTRUCTURE)
		set_infrastructure(c, object);
	else
		set_gates(c, object);
}

static bool find_namespace(const void *owner, struct str name, struct namespace_permission *ret)
{
	/* May be newer than the view: a decision reads one namespace, so no two of them can
	 * contradict each other. */
	return cache_namespace_find(((const struct cache_view *)owner)->cache, name, ret);
}

static struct cores_count count_cores(const void *owner, struct str type)
{
	const struct cache_view *v = owner;

	for (size_t i = 0; i < v->n_types; i++)
		if (str_eq(v->types[i].name, type))
			return v->types[i].nodes;
	return (struct cores_count){ 0 };
}

static struct str copy_to(char **to, struct str s)
{
	struct str copy = { *to, s.n };

	if (s.n)
		memcpy(*to, s.p, s.n);
	*to += s.n;
	return copy;
}

/* Copies what points into the writer's memory to the texts of the view. */
static void view_fill(struct cache_view *v, const struct cache *c, const struct node_group *groups)
{
	/* After the types in the same block, followed by the texts. */
	struct profile_ref *profiles = (struct profile_ref *)&v->types[c->n_types];
	char *text = (char *)&profiles[c->n_profiles];

	for (size_t i = 0; i < c->n_types; i++)
		v->types[i] = (struct view_type){ copy_to(&text, str_from(c->types[i].name)),
						  c->types[i].nodes };
	for (size_t i = 0; i < v->state.nodes.n_missing_shared; i++)
		v->groups[i] = (struct node_group){ copy_to(&text, groups[i].taints),
						    copy_to(&text, groups[i].name) };
	for (size_t i = 0; i < c->n_profiles; i++)
		profiles[i] = (struct profile_ref){
			copy_to(&text, str_from(c->profiles[i].name)),
			copy_to(&text, str_from(c->profiles[i].selector)),
		};
	v->state.profiles = profiles;
	v->state.nodes.missing_shared = v->groups;
	v->state.infrastructure.partitioning = copy_to(&text, c->infrastructure.partitioning);
}

static struct cache_view *view_new(const struct cache *c)
{
	struct node_group groups[NODE_GROUPS_MAX];
	const size_t n_groups = cache_nodes_missing_shared(c, groups);
	size_t text_n = c->infrastructure.partitioning.n;
	struct cache_view *v;

	for (size_t i = 0; i < c->n_types; i++)
		text_n += strlen(c->types[i].name);
	for (size_t i = 0; i < n_groups; i++)
		text_n += groups[i].taints.n + groups[i].name.n;
	for (size_t i = 0; i < c->n_profiles; i++)
		text_n += strlen(c->profiles[i].name) + strlen(c->profiles[i].selector);
	/* One block, because grace_retire() frees it with one free(). */
	v = cache_allocate(sizeof(*v) + c->n_types * sizeof(v->types[0]) +
			   c->n_profiles * sizeof(v->state.profiles[0]) + text_n);
	v->cache = c;
	v->n_types = c->n_types;
	v->state = (struct admission_state){
		.settings = c->settings,
		.infrastructure = c->infrastructure,
		.nodes = c->totals,
		.n_profiles = c->n_profiles,
		.has_profiles = c->has_profiles,
		.is_synced = c->is_synced,
		.owner = v,
		.find_namespace = find_namespace,
		.count_cores = count_cores,
	};
	v->state.nodes.n_missing_shared = n_groups;
	/* The command line or the FeatureGate object turns the feature on. */
	v->state.settings.pools |= c->gate_pools;
	view_fill(v, c, groups);
	return v;
}

void cache_publish(struct cache *c)
{
	if (!c->is_changed)
		return;
	c->is_changed = false;
	/* In this order: the old view is retired only when readers can no longer find it. */
	grace_retire(&c->grace, atomic_exchange(&c->view, view_new(c)));
	grace_collect(&c->grace);
}

const struct admission_state *cache_acquire(struct cache *c, size_t reader)
{
	grace_enter(&c->grace, reader);
	return &atomic_load(&c->view)->state;
}

void cache_release(struct cache *c, size_t reader)
{
	grace_leave(&c->grace, reader);
}

const struct admission_state *cache_writer_state(const struct cache *c)
{
	return &atomic_load(&c->view)->state;
}

void cache_put(struct cache *c, enum cache_kind kind, yyjson_val *object)
{
	struct str name = object_name(object);

	if (!name.n || name.n > UINT8_MAX) /* Kubernetes limits names to 253 bytes */
		return;
	if (kind == CACHE_NAMESPACES)
		cache_namespace_put(c, name, object);
	else if (kind == CACHE_NODES)
		cache_node_put(c, name, object);
	else if (kind == CACHE_PROFILES)
		cache_profile_put(c, name, object);
	else if (str_eq(name, STR(NAME_INFRASTRUCTURE)))
		set_single(c, kind, object);
}

void cache_remove(struct cache *c, enum cache_kind kind, yyjson_val *object)
{
	struct str name = object_name(object);

	if (kind == CACHE_NAMESPACES)
		cache_namespace_remove(c, name);
	else if (kind == CACHE_NODES)
		cache_node_remove(c, name);
	else if (kind == CACHE_PROFILES)
		cache_profile_remove(c, name);
	else if (str_eq(name, STR(NAME_INFRASTRUCTURE)))
		set_single(c, kind, NULL);
}

void cache_begin_list(struct cache *c, enum cache_kind kind)
{
	c->generation[kind]++;
	c->is_seen[kind] = false;
}

void cache_end_list(struct cache *c, enum cache_kind kind)
{
	if (kind == CACHE_NAMESPACES)
		cache_namespaces_sweep(c);
	else if (kind == CACHE_NODES)
		cache_nodes_sweep(c);
	else if (kind == CACHE_PROFILES)
		cache_profiles_sweep(c);
	else if (!c->is_seen[kind])
		set_single(c, kind, NULL);
}

void cache_set_synced(struct cache *c, bool is_synced)
{
	c->is_changed |= c->is_synced != is_synced;
	c->is_synced = is_synced;
}

size_t cache_count(const struct cache *c, enum cache_kind kind)
{
	return kind == CACHE_NAMESPACES	    ? cache_namespaces_count(c) :
	       kind == CACHE_NODES	    ? c->n_nodes :
	       kind == CACHE_PROFILES	    ? c->n_profiles :
	       kind == CACHE_INFRASTRUCTURE ? c->infrastructure.is_present :
					      c->is_seen[kind];
}

void cache_init(struct cache *c, const struct admission_settings *settings, size_t readers)
{
	*c = (struct cache){ .settings = *settings, .seed = backoff_random() };
	grace_init(&c->grace, readers);
	cache_namespaces_init(c);
	cache_nodes_init(c);
	atomic_init(&c->view, view_new(c));
}

void cache_done(struct cache *c)
{
	/* Before grace_done(): removed entries are retired, not freed. */
	cache_namespaces_done(c);
	cache_nodes_done(c);
	cache_profiles_done(c);
	free(c->partitioning);
	free(atomic_load(&c->view));
	grace_done(&c->grace);
}
