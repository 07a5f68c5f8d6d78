#include "oci_containers.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "cgroup/cgroup.h"
#include "cgroup/cgroup_path.h"
#include "oci_record.h"
#include "pin/change_watch.h"
#include "pin/enforce.h"
#include "pin/isolate.h"
#include "pin/manager_private.h"

/* Also what only the ledger knows. */
static void drop(struct oci_containers *d, const char *pod_id, struct str uid, struct str container)
{
	struct manager *m = d->manager;
	struct pod_entry *pod = registry_find_pod(&m->registry, pod_id);
	struct err err = { 0 };

	if (pod)
		manager_drop_pod(m, pod);
	if (ledger_release_container(m->ledger, uid, container, &err) < 0)
		log_error("cannot release CPUs", LOG_STR("container", container), LOG_ERR(&err));
	else if (m->ledger->now.config.is_classic)
		(void)manager_repin_shared(m);
}

static void drop_outside(struct oci_containers *d, const struct oci_record *o)
{
	drop(d, o->pod.id, str_from(o->pod.uid), str_from(o->container.name));
}

/* Written, and read again: what the kernel kept is what counts. */
static int enforce(struct manager *m, struct container_entry *c, struct err *err)
{
	int r;

	if (!m->cgroups)
		return 0;
	change_watch_add(m, c);
	r = enforce_settings(m->cgroups, c->cgroup, &c->settings, err);
	if (r > 0)
		r = enforce_settings(m->cgroups, c->cgroup, &c->settings, err);
	if (r > 0)
		return err_set(err, EIO, "cgroup %s did not keep its CPUs", c->cgroup);
	return r;
}

static int place(struct manager *m, const struct oci_record *o, struct placement *ret,
		 struct err *err)
{
	struct container_class class;
	int r;

	r = classify_container(&m->rules, &o->pod, &o->container, &m->scratch, &class, err);
	if (r < 0)
		return r;
	manager_note_distrust(m, &o->pod, &o->container, class.distrust);
	if (o->is_unnamed && !class.is_management && demand_cpus(&class.demand) > 0)
		return err_set(err, EPERM,
			       "it wants CPUs of its own, and its id cannot be told from "
			       "linux.cgroupsPath: name it with --id");
	return manager_give_place(m, &o->pod, &o->container, &class, ret, err);
}

static int admit(struct manager *m, const struct oci_record *o, struct container_entry **ret,
		 struct err *err)
{
	const bool is_known = registry_find(&m->registry, o->container.id) != NULL;
	struct container_entry *entry;
	struct placement p = { 0 };
	int r;

	r = place(m, o, &p, err);
	if (r < 0)
		return r;
	entry = manager_note(m, &o->pod, &o->container, &p);
	entry->is_started = !o->is_expected;
	if (entry->is_started)
		r = enforce(m, entry, err);
	if (r < 0)
		return r;
	m->counters.placed[p.pool] += !is_known;
	*ret = entry;
	return 0;
}

/* Whoever is refused loses what he was promised, too. */
static int take_in(struct oci_containers *d, const struct oci_record *o,
		   struct container_entry **ret, struct err *err)
{
	int r = admit(d->manager, o, ret, err);

	if (r < 0)
		drop_outside(d, o);
	return r;
}

void oci_containers_remove(struct oci_containers *d, struct str id)
{
	CLEANUP(arena_done) struct arena a;
	const struct container_entry *c;
	struct oci_record o;

	arena_init(&a, 0);
	c = registry_find(&d->manager->registry, str_cstr(&a, id));
	if (c)
		drop(d, str_cstr(&a, str_from(c->pod->id)), str_dup(&a, str_from(c->pod->uid)),
		     str_dup(&a, str_from(c->name)));
	else if (oci_record_load(d->run_fd, id, &a, &o, NULL) == 0)
		drop_outside(d, &o);
	oci_record_delete(d->run_fd, id);
	arena_reset(&d->manager->scratch);
}

static bool is_expected(const struct oci_containers *d, const struct container_entry *c)
{
	CLEANUP(arena_done) struct arena a;
	struct oci_record o;

	arena_init(&a, 0);
	return oci_record_load(d->run_fd, str_from(c->id), &a, &o, NULL) == 0 && o.is_expected;
}

/* Whoever comes in the cgroup of a container that was promised is that container, though its
 * configuration told another id. */
static void drop_alias(struct oci_containers *d, const struct oci_record *o, struct arena *a)
{
	const char *cgroup = cgroup_path_of(o->on_linux.cgroups_path, a);
	const struct registry *r = &d->manager->registry;

	for (size_t i = r->n_containers; !o->is_expected && i-- > 0;) {
		const struct container_entry *c = r->containers[i];

		if (registry_is_oci_pod(c->pod->id) && strcmp(c->cgroup, cgroup) == 0 &&
		    strcmp(c->id, o->container.id) != 0 && is_expected(d, c)) {
			oci_containers_remove(d, str_dup(a, str_from(c->id)));
			return;
		}
	}
}

int oci_containers_add(struct oci_containers *d, struct str id, struct arena *a,
		       struct str *ret_text, struct err *err)
{
	struct container_entry *entry;
	struct oci_record o;
	int r;

	r = oci_record_load(d->run_fd, id, a, &o, err);
	if (r < 0)
		return r;
	drop_alias(d, &o, a);
	r = take_in(d, &o, &entry, err);
	manager_flush(d->manager);
	if (r == 0)
		*ret_text = placement_describe(
			&(struct placement){ entry->pool, entry->is_exclusive, entry->settings },
			a);
	else
		d->manager->counters.refused++;
	arena_reset(&d->manager->scratch);
	return r;
}

void oci_containers_load(struct oci_containers *d, struct str except)
{
	CLEANUP(arena_done) struct arena a;
	struct oci_record_list list = { 0 };
	struct container_entry *entry;
	struct err err = { 0 };

	arena_init(&a, 0);
	if (oci_records_load(d->run_fd, d->manager->cgroups, &a, &list, &err) < 0)
		log_warning("cannot read the records of OCI hooks", LOG_ERR(&err));
	for (size_t i = 0; i < list.n_gone; i++)
		drop_outside(d, list.gone[i]);
	for (size_t i = 0; i < list.n; i++)
		if (!str_eq(str_from(list.items[i]->container.id), except) &&
		    take_in(d, list.items[i], &entry, &err) < 0)
			log_error("a running container has no place",
				  LOG_STR("container", str_from(list.items[i]->container.id)),
				  LOG_ERR(&err));
	manager_flush(d->manager);
	arena_reset(&d->manager->scratch);
}

/* Of one that was promised and has come, without another word, the cgroup is ours to look after. */
static bool has_vanished(const struct oci_containers *d, struct container_entry *c)
{
	bool exists;

	if (!registry_is_oci_pod(c->pod->id))
		return false;
	exists = cgroup_exists(d->manager->cgroups, c->cgroup);
	if ((exists && c->is_started) || is_expected(d, c))
		return false;
	c->is_started = exists;
	return !exists;
}

void oci_containers_sweep(struct oci_containers *d)
{
	const struct registry *r = &d->manager->registry;

	for (size_t i = r->n_containers; i-- > 0;)
		if (i < r->n_containers && has_vanished(d, r->containers[i])) {
			CLEANUP(arena_done) struct arena a;

			arena_init(&a, 0);
			oci_containers_remove(d, str_dup(&a, str_from(r->containers[i]->id)));
		}
}

struct nri_inventory oci_containers_merge(const void *oci_containers,
					  const struct nri_inventory *all, struct arena *a)
{
	const struct oci_containers *d = oci_containers;
	struct nri_inventory both = *all;
	struct oci_record_list list = { 0 };
	struct nri_pod *pods;
	struct nri_container *containers;

	if (oci_records_load(d->run_fd, d->manager->cgroups, a, &list, NULL) < 0 || list.n == 0)
		return both;
	pods = arena_array(a, struct nri_pod, all->n_pods + list.n);
	containers = arena_array(a, struct nri_container, all->n_containers + list.n);
	if (all->n_pods)
		memcpy(pods, all->pods, all->n_pods * sizeof(*pods));
	if (all->n_containers)
		memcpy(containers, all->containers, all->n_containers * sizeof(*containers));
	for (size_t i = 0; i < list.n; i++) {
		pods[both.n_pods++] = list.items[i]->pod;
		containers[both.n_containers++] = list.items[i]->container;
	}
	both.pods = pods;
	both.containers = containers;
	return both;
}
