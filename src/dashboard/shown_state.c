#include "shown_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/macro.h"
#include "shown_private.h"

#define FIRST_BUCKETS 64

void *shown_allocate(size_t size)
{
	void *p = calloc(1, size);

	if (!p)
		abort(); /* D21 */
	return p;
}

struct str shown_own(struct str text)
{
	char *p = shown_allocate(text.n + 1);

	if (text.n)
		memcpy(p, text.p, text.n);
	return (struct str){ p, text.n };
}

void shown_disown(struct str *text)
{
	free((char *)text->p);
	*text = (struct str){ 0 };
}

bool shown_replace(struct str *text, struct str by)
{
	if (text->p && str_eq(*text, by))
		return false;
	shown_disown(text);
	*text = shown_own(by);
	return true;
}

void shown_state_init(struct shown_state *s)
{
	*s = (struct shown_state){ .n_node_buckets = FIRST_BUCKETS,
				   .n_pod_buckets = FIRST_BUCKETS };
	s->nodes = shown_allocate(FIRST_BUCKETS * sizeof(struct shown_node *));
	s->pods = shown_allocate(FIRST_BUCKETS * sizeof(struct stored_pod *));
	history_init(&s->history);
}

static void free_node(struct shown_node *n)
{
	shown_disown(&n->name);
	shown_disown(&n->node);
	shown_disown(&n->partition);
	shown_disown(&n->topology);
	shown_disown(&n->use);
	for (enum pool p = 0; p < POOL__COUNT; p++)
		shown_disown(&n->pools[p]);
	free(n);
}

void shown_state_done(struct shown_state *s)
{
	for (size_t i = 0; i < s->n_pod_buckets; i++)
		for (struct stored_pod *p = s->pods[i], *next; p; p = next) {
			next = p->next;
			free(p);
		}
	for (size_t i = 0; i < s->n_node_buckets; i++)
		for (struct shown_node *n = s->nodes[i], *next; n; n = next) {
			next = n->next;
			free_node(n);
		}
	for (size_t i = 0; i < s->n_profiles; i++) {
		shown_disown(&s->profiles[i].name);
		shown_disown(&s->profiles[i].json);
	}
	for (size_t i = 0; i < s->n_removed; i++)
		shown_disown(&s->removed[i]);
	for (size_t i = 0; i < s->n_versions; i++)
		shown_disown(&s->versions[i].text);
	free(s->profiles);
	free(s->nodes);
	free(s->pods);
	history_done(&s->history);
}

/* --- nodes --- */

static struct shown_node **node_slot(const struct shown_state *s, struct str name)
{
	const uint32_t hash = fnv1a32(FNV1A32_START, name);
	struct shown_node **slot = &s->nodes[hash & (s->n_node_buckets - 1)];

	while (*slot && !((*slot)->hash == hash && str_eq((*slot)->name, name)))
		slot = &(*slot)->next;
	return slot;
}

struct shown_node *shown_state_find_node(const struct shown_state *s, struct str name)
{
	return *node_slot(s, name);
}

static void grow_nodes(struct shown_state *s)
{
	const size_t n = s->n_node_buckets * 2;
	struct shown_node **buckets = shown_allocate(n * sizeof(struct shown_node *));

	for (size_t i = 0; i < s->n_node_buckets; i++)
		for (struct shown_node *v = s->nodes[i], *next; v; v = next) {
			next = v->next;
			v->next = buckets[v->hash & (n - 1)];
			buckets[v->hash & (n - 1)] = v;
		}
	free(s->nodes);
	s->nodes = buckets;
	s->n_node_buckets = n;
}

struct shown_node *shown_node_get(struct shown_state *s, struct str name)
{
	struct shown_node *n = shown_state_find_node(s, name);

	if (n)
		return n;
	if (s->n_nodes == s->n_node_buckets)
		grow_nodes(s);
	n = shown_allocate(sizeof(*n));
	n->name = shown_own(name);
	n->hash = fnv1a32(FNV1A32_START, name);
	LIST_INIT(&n->pods);
	*node_slot(s, name) = n; /* its end of the list: there is no such name */
	s->n_nodes++;
	return n;
}

void shown_node_touch(struct shown_state *s, struct shown_node *n)
{
	n->is_changed = true;
	n->revision = ++s->revision;
}

/* A node stays while it has an object or pods. */
void shown_node_release(struct shown_state *s, struct shown_node *n)
{
	struct shown_node **slot = node_slot(s, n->name);

	if (n->node.n || n->partition.n || n->n_pods) {
		shown_node_touch(s, n);
		return;
	}
	if (s->n_removed < ARRAY_LEN(s->removed))
		s->removed[s->n_removed++] = shown_own(n->name);
	else
		s->has_lost_removals = true;
	*slot = n->next;
	s->n_nodes--;
	s->revision++;
	free_node(n);
}

void shown_count_version(struct shown_state *s, struct str version, bool is_new)
{
	struct shown_version *v = s->versions, *end = v + s->n_versions;

	while (v < end && !str_eq(v->text, version))
		v++;
	if (v == end) {
		/* A cluster has a few versions; further ones are not counted. */
		if (!is_new || !version.n || s->n_versions == ARRAY_LEN(s->versions))
			return;
		*v = (struct shown_version){ .text = shown_own(version) };
		s->n_versions++;
	}
	v->n += is_new ? 1 : (size_t)-1; /* wraps around to minus one */
	if (v->n)
		return;
	shown_disown(&v->text);
	*v = s->versions[--s->n_versions];
}

struct str shown_state_version(const struct shown_state *s)
{
	const struct shown_version *best = NULL;

	for (size_t i = 0; i < s->n_versions; i++)
		if (!best || s->versions[i].n > best->n)
			best = &s->versions[i];
	return best ? best->text : STR("");
}

static int by_name(const void *x, const void *y)
{
	const struct shown_node *const *a = x, *const *b = y;

	return str_cmp((*a)->name, (*b)->name);
}

struct shown_node **shown_state_sorted(const struct shown_state *s, struct arena *a)
{
	struct shown_node **all = arena_array(a, struct shown_node *, s->n_nodes);
	size_t n = 0;

	for (size_t i = 0; i < s->n_node_buckets; i++)
		for (struct shown_node *v = s->nodes[i]; v; v = v->next)
			all[n++] = v;
	if (n)
		qsort(all, n, sizeof(struct shown_node *), by_name);
	return all;
}
