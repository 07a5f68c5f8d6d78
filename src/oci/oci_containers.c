/* To the manager a standalone container is a pod with one container. The pod's id is made from the
 * container's id (REGISTRY_OCI_PREFIX), and so is its UID unless annotations have one, so ledger
 * and registry need no other case. */

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
#include "pin/manager_state.h"
#include "pin/placement.h"

/* The registry may lack the container after a restart, so the ledger is released by name, too. In
 * classic mode released CPUs return to the shared pool, whose containers then have to be moved. */
static void remove_entry(struct oci_containers *oci, const char *pod_id, struct str uid,
			 struct str container)
{
	struct manager *m = oci->manager;
	struct pod_entry *pod = registry_find_pod(&m->registry, pod_id);
	struct err err = { 0 };

	if (pod)
		manager_remove_pod(m, pod);
	if (ledger_release_container(m->ledger, uid, container, &err) < 0)
		log_error("cannot release CPUs", LOG_STR("container", container), LOG_ERR(&err));
	else if (m->ledger->now.config.is_classic)
		(void)manager_repin_shared(m);
}

static void remove_record_entry(struct oci_containers *oci, const struct oci_record *o)
{
	remove_entry(oci, o->pod.id, str_from(o->pod.uid), str_from(o->container.name));
}

/* cpu_settings_enforce() returns a positive number after a write; the second call reads the result
 * back. The runtime starts the container as soon as the hook returns, so a later check is too late.
 */
static int enforce_and_verify(struct manager *m, struct container_entry *c, struct err *err)
{
	int r;

	if (!m->cgroups)
		return 0;
	change_watch_add(m, c);
	r = cpu_settings_enforce(c->settings, m->cgroups, c->cgroup, err);
	if (r > 0)
		r = cpu_settings_enforce(c->settings, m->cgroups, c->cgroup, err);
	if (r > 0)
		return err_set(err, EIO, "cgroup %s: the kernel did not keep the CPU settings",
			       c->cgroup);
	return r;
}

static int add_record(struct manager *m, const struct oci_record *o, struct container_entry **ret,
		      struct err *err)
{
	/* Precreate has added it already: then create must not count it again. */
	const bool is_known = registry_find(&m->registry, o->container.id) != NULL;
	struct container_entry *entry;
	struct placement p = { 0 };
	int r;

	r = place_container(m, &o->pod, &o->container, o->is_unnamed ? PLACE_UNNAMED : PLACE_NEW,
			    &p, err);
	if (r < 0)
		return r;
	entry = manager_record_container(m, &o->pod, &o->container, &p);
	entry->is_started = !o->is_pending; /* a pending container has no cgroup to write */
	if (entry->is_started)
		r = enforce_and_verify(m, entry, err);
	if (r < 0)
		return r;
	m->counters.placed[p.pool] += !is_known;
	*ret = entry;
	return 0;
}

/* A refused container also loses the CPUs that precreate assigned. */
static int add_or_release(struct oci_containers *oci, const struct oci_record *o,
			  struct container_entry **ret, struct err *err)
{
	int r = add_record(oci->manager, o, ret, err);

	if (r < 0)
		remove_record_entry(oci, o);
	return r;
}

void oci_containers_remove(struct oci_containers *oci, struct str id)
{
	CLEANUP(arena_done) struct arena a;
	const struct container_entry *c;
	struct oci_record o;

	arena_init(&a, 0);
	c = registry_find(&oci->manager->registry, str_cstr(&a, id));
	if (c) /* copies, because the texts of the entry are freed with it */
		remove_entry(oci, str_cstr(&a, str_from(c->pod->id)),
			     str_dup(&a, str_from(c->pod->uid)), str_dup(&a, str_from(c->name)));
	else if (oci_record_load(oci->run_fd, id, &a, &o, NULL) == 0)
		remove_record_entry(oci, &o);
	oci_record_delete(oci->run_fd, id);
	arena_reset(&oci->manager->scratch);
}

static bool is_pending(const struct oci_containers *oci, const struct container_entry *c)
{
	CLEANUP(arena_done) struct arena a;
	struct oci_record o;

	arena_init(&a, 0);
	return oci_record_load(oci->run_fd, str_from(c->id), &a, &o, NULL) == 0 && o.is_pending;
}

/* A container in the cgroup of a pending one is that container, even if precreate derived another
 * id from its configuration. */
static void remove_pending_alias(struct oci_containers *oci, const struct oci_record *o,
				 struct arena *a)
{
	const char *cgroup = cgroup_path_of(o->on_linux.cgroups_path, a);
	const struct registry *r = &oci->manager->registry;

	for (size_t i = r->n_containers; !o->is_pending && i-- > 0;) {
		const struct container_entry *c = r->containers[i];

		if (registry_is_oci_pod(c->pod->id) && strcmp(c->cgroup, cgroup) == 0 &&
		    strcmp(c->id, o->container.id) != 0 && is_pending(oci, c)) {
			oci_containers_remove(oci, str_dup(a, str_from(c->id)));
			return;
		}
	}
}

int oci_containers_add(struct oci_containers *oci, struct str id, struct arena *a,
		       struct str *ret_text, struct err *err)
{
	struct container_entry *entry;
	struct oci_record o;
	int r;

	r = oci_record_load(oci->run_fd, id, a, &o, err);
	if (r < 0)
		return r;
	remove_pending_alias(oci, &o, a);
	r = add_or_release(oci, &o, &entry, err);
	manager_flush(oci->manager);
	if (r == 0)
		*ret_text =
			placement_describe(&(struct placement){ .pool = entry->pool,
								.is_exclusive = entry->is_exclusive,
								.settings = *entry->settings },
					   a);
	else
		oci->manager->counters.refused++;
	arena_reset(&oci->manager->scratch);
	return r;
}

void oci_containers_load(struct oci_containers *oci, struct str except)
{
	CLEANUP(arena_done) struct arena a;
	struct oci_record_list list = { 0 };
	struct container_entry *entry;
	struct err err = { 0 };

	arena_init(&a, 0);
	if (oci_records_load(oci->run_fd, oci->manager->cgroups, &a, &list, &err) < 0)
		log_warning("cannot read the records of standalone containers", LOG_ERR(&err));
	/* First, so that CPUs of ended containers can be assigned to the others. */
	for (size_t i = 0; i < list.n_gone; i++)
		remove_record_entry(oci, list.gone[i]);
	for (size_t i = 0; i < list.n; i++)
		if (!str_eq(str_from(list.items[i]->container.id), except) &&
		    add_or_release(oci, list.items[i], &entry, &err) < 0)
			log_error("cannot place a running standalone container",
				  LOG_STR("container", str_from(list.items[i]->container.id)),
				  LOG_ERR(&err));
	manager_flush(oci->manager);
	arena_reset(&oci->manager->scratch);
}

/* A pending container may start without a create hook: its cgroup then shows that it runs. */
static bool has_vanished(const struct oci_containers *oci, struct container_entry *c)
{
	bool exists;

	if (!registry_is_oci_pod(c->pod->id))
		return false;
	exists = cgroup_exists(oci->manager->cgroups, c->cgroup);
	if ((exists && c->is_started) || is_pending(oci, c))
		return false;
	c->is_started = exists;
	return !exists;
}

void oci_containers_sweep(struct oci_containers *oci)
{
	const struct registry *r = &oci->manager->registry;

	/* Backwards, because a removal moves the entries behind it. */
	for (size_t i = r->n_containers; i-- > 0;)
		if (i < r->n_containers && has_vanished(oci, r->containers[i])) {
			CLEANUP(arena_done) struct arena a;

			arena_init(&a, 0);
			oci_containers_remove(oci, str_dup(&a, str_from(r->containers[i]->id)));
		}
}

/* A synchronization releases the CPUs of pods that are not in the list
 * (docs/reference/pools.md#synchronization), and no runtime lists standalone containers. */
struct nri_inventory oci_containers_merge(const void *oci_containers,
					  const struct nri_inventory *all, struct arena *a)
{
	const struct oci_containers *oci = oci_containers;
	struct nri_inventory both = *all;
	struct oci_record_list list = { 0 };
	struct nri_pod *pods;
	struct nri_container *containers;

	if (oci_records_load(oci->run_fd, oci->manager->cgroups, a, &list, NULL) < 0 || list.n == 0)
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
