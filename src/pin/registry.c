/* Two sorted arrays of pointers: entries do not move, so a container can point to its pod, and a
 * few hundred entries need no hash table. */

#include "registry.h"

#include <stdlib.h>
#include <string.h>

#include "base/sorted.h"
#include "cgroup/cgroup_path.h"
#include "kube/names.h"
#include "nri/nri.h"

static char *copy_text(const char *text)
{
	char *p = strdup(text ? text : "");

	if (!p)
		abort(); /* D21 */
	return p;
}

/* Replaces an owned string when it differs. */
static void set_text(char **at, const char *text)
{
	if (*at && strcmp(*at, text) == 0)
		return;
	free(*at);
	*at = copy_text(text);
}

static void free_pod(struct pod_entry *p)
{
	free(p->id);
	free(p->uid);
	free(p->namespace);
	free(p->name);
	free(p->cgroup);
	free(p->pause_cgroup);
	free(p);
}

struct shared_settings {
	struct cpu_settings settings; /* first: an entry points to it */
	size_t n_users;
};

static const struct shared_settings no_settings;

static void drop_settings(struct registry *r, struct container_entry *c)
{
	struct shared_settings *old = (struct shared_settings *)c->settings;

	c->settings = &no_settings.settings;
	if (old == &no_settings || --old->n_users > 0)
		return;
	for (size_t i = 0; i < r->n_settings; i++)
		if (r->settings[i] == old) {
			r->settings[i] = r->settings[--r->n_settings];
			break;
		}
	free(old);
}

static void free_container(struct registry *r, struct container_entry *c)
{
	drop_settings(r, c);
	free(c->id);
	free(c->name);
	free(c->cgroup);
	free(c->isolation_error);
	free(c);
}

void registry_init(struct registry *r)
{
	*r = (struct registry){ 0 };
}

void registry_clear(struct registry *r)
{
	for (size_t i = 0; i < r->n_containers; i++)
		free_container(r, r->containers[i]);
	for (size_t i = 0; i < r->n_pods; i++)
		free_pod(r->pods[i]);
	r->n_containers = r->n_pods = 0;
}

void registry_done(struct registry *r)
{
	registry_clear(r);
	free(r->containers);
	free(r->pods);
	free(r->settings);
}

/* Both kinds of entry begin with their id, so that one search function serves both lists. */
_Static_assert(offsetof(struct pod_entry, id) == 0 && offsetof(struct container_entry, id) == 0,
	       "an entry begins with its id");

static int compare_id(const void *item, const void *id)
{
	const char *const *const *entry = item;

	return strcmp(**entry, id);
}

static size_t find_position(void *const *items, size_t n, const char *id, bool *ret_found)
{
	const size_t at = sorted_position(items, n, sizeof(*items), id, compare_id);

	*ret_found = at < n && compare_id(&items[at], id) == 0;
	return at;
}

static void **insert_at(void **items, size_t *n, size_t *cap, size_t at, void *item)
{
	if (*n == *cap) {
		*cap = *cap ? *cap * 2 : 16;
		items = realloc(items, *cap * sizeof(*items));
		if (!items)
			abort();
	}
	memmove(items + at + 1, items + at, (*n - at) * sizeof(*items));
	items[at] = item;
	++*n;
	return items;
}

struct pod_entry *registry_find_pod(const struct registry *r, const char *id)
{
	bool found;
	const size_t at = find_position((void *const *)r->pods, r->n_pods, id, &found);

	return found ? r->pods[at] : NULL;
}

struct container_entry *registry_find(const struct registry *r, const char *id)
{
	bool found;
	const size_t at = find_position((void *const *)r->containers, r->n_containers, id, &found);

	return found ? r->containers[at] : NULL;
}

struct pod_entry *registry_put_pod(struct registry *r, const struct nri_pod *pod, struct arena *a)
{
	bool found;
	const size_t at = find_position((void *const *)r->pods, r->n_pods, pod->id, &found);
	struct pod_entry *p;

	if (!found) {
		p = calloc(1, sizeof(*p));
		if (!p)
			abort();
		p->id = copy_text(pod->id);
		r->pods = (struct pod_entry **)insert_at((void **)r->pods, &r->n_pods, &r->cap_pods,
							 at, p);
	}
	p = r->pods[at];
	/* Not only for a new entry: a later report may have a path or pid that the first lacks. */
	set_text(&p->uid, pod->uid);
	set_text(&p->namespace, pod->pod_namespace);
	set_text(&p->name, pod->name);
	set_text(&p->cgroup, cgroup_path_of(nri_pod_cgroup_parent(pod), a));
	set_text(&p->pause_cgroup, cgroup_path_of(nri_pod_cgroups_path(pod), a));
	p->pause_pid = pod->pid;
	return p;
}

struct container_entry *registry_put(struct registry *r, struct pod_entry *pod,
				     const struct nri_container *c, struct arena *a)
{
	bool found;
	const size_t at =
		find_position((void *const *)r->containers, r->n_containers, c->id, &found);
	struct container_entry *e;

	if (!found) {
		e = calloc(1, sizeof(*e));
		if (!e)
			abort();
		e->id = copy_text(c->id);
		e->pod = pod;
		e->settings = &no_settings.settings;
		pod->n_containers++;
		r->containers = (struct container_entry **)insert_at(
			(void **)r->containers, &r->n_containers, &r->cap_containers, at, e);
	}
	e = r->containers[at];
	set_text(&e->name, c->name);
	set_text(&e->cgroup, cgroup_path_of(nri_container_cgroups_path(c), a));
	return e;
}

static struct shared_settings *settings_find_or_add(struct registry *r,
						    const struct cpu_settings *settings)
{
	struct shared_settings *s;

	for (size_t i = 0; i < r->n_settings; i++)
		if (cpu_settings_eq(&r->settings[i]->settings, settings))
			return r->settings[i];
	s = calloc(1, sizeof(*s));
	if (!s)
		abort();
	s->settings = *settings;
	r->settings = (struct shared_settings **)insert_at((void **)r->settings, &r->n_settings,
							   &r->cap_settings, r->n_settings, s);
	return s;
}

void registry_set_settings(struct registry *r, struct container_entry *c,
			   const struct cpu_settings *settings)
{
	struct shared_settings *s = settings_find_or_add(r, settings);

	s->n_users++; /* before the old ones are dropped: they may be the same */
	drop_settings(r, c);
	c->settings = &s->settings;
}

void registry_set_cpus(struct registry *r, struct container_entry *c, const struct cpuset *cpus)
{
	struct cpu_settings settings = *c->settings;

	settings.cpus = *cpus;
	registry_set_settings(r, c, &settings);
}

static void remove_container_at(struct registry *r, size_t at)
{
	struct container_entry *c = r->containers[at];

	c->pod->n_containers--;
	r->n_containers--;
	for (size_t i = at; i < r->n_containers; i++)
		r->containers[i] = r->containers[i + 1];
	free_container(r, c);
}

void registry_remove(struct registry *r, const char *id)
{
	bool found;
	const size_t at = find_position((void *const *)r->containers, r->n_containers, id, &found);

	if (found)
		remove_container_at(r, at);
}

void registry_remove_pod(struct registry *r, const char *id)
{
	bool found;
	const size_t at = find_position((void *const *)r->pods, r->n_pods, id, &found);
	struct pod_entry *p;

	if (!found)
		return;
	p = r->pods[at];
	for (size_t i = r->n_containers; i-- > 0;) /* no container outlives its pod's entry */
		if (r->containers[i]->pod == p)
			remove_container_at(r, i);
	r->n_pods--;
	for (size_t i = at; i < r->n_pods; i++)
		r->pods[i] = r->pods[i + 1];
	free_pod(p);
}

bool registry_has_sibling(const struct registry *r, const struct pod_entry *pod)
{
	for (size_t i = 0; i < r->n_pods; i++)
		if (r->pods[i] != pod && strcmp(r->pods[i]->uid, pod->uid) == 0)
			return true;
	return false;
}

bool registry_is_oci_pod(const char *pod_id)
{
	return strncmp(pod_id, REGISTRY_OCI_PREFIX, sizeof(REGISTRY_OCI_PREFIX) - 1) == 0;
}

bool registry_is_standalone(struct str pod_uid)
{
	return str_starts(pod_uid, STR(REGISTRY_OCI_PREFIX));
}

struct str registry_type_of(const struct container_entry *c)
{
	return str_from(c->pod->type ? c->pod->type : NAME_TYPE_MANAGEMENT);
}
