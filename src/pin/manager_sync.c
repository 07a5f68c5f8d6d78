/* A container may have started, ended or changed its CPUs while no agent was connected, so nothing
 * of the registry is trusted: it is built anew from the runtime's list, the ledger and the cgroups.
 * The runtime waits for the reply with one timeout for the whole node. */

#include "manager_sync.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "cgroup/cgroup.h"
#include "cgroup/cgroup_path.h"
#include "change_watch.h"
#include "isolate.h"
#include "manager_place.h"
#include "manager_state.h"

/* Updates that are sent to the runtime, too: each costs it a process of the OCI runtime, while it
 * waits for our reply with a timeout. The cgroups of the others are correct without them. */
#define SYNC_MAX_UPDATES 64

struct sync_item {
	const struct nri_pod *pod;
	const struct nri_container *container;
	struct placement placement;
	bool is_placed;
	bool had_other_cpus; /* it could run on CPUs outside its placement */
};

struct sync {
	struct manager *m;
	struct sync_item *items;
	struct ledger_live *live; /* one per item */
	size_t n;
	size_t n_updates;
	struct nri_reply *reply;
};

static int compare_pods(const void *a, const void *b)
{
	const struct nri_pod *const *x = a, *const *y = b;

	return strcmp((*x)->id, (*y)->id);
}

/* The runtime lists pods in any order; sorted by id each container finds its pod in log n steps. */
static const struct nri_pod **sorted_pods(const struct nri_inventory *all, struct arena *a)
{
	const struct nri_pod **pods = arena_array(a, const struct nri_pod *, all->n_pods + 1);

	for (size_t i = 0; i < all->n_pods; i++)
		pods[i] = &all->pods[i];
	qsort(pods, all->n_pods, sizeof(void *), compare_pods);
	return pods;
}

/* The CPUs a container has now: from the kernel, or without its cgroup from the runtime. */
static bool read_current(struct manager *m, const struct nri_container *c, struct cpuset *ret)
{
	const char *path = cgroup_path_of(nri_container_cgroups_path(c), &m->scratch);
	struct cgroup_cpu now;

	if (m->cgroups && *path && cgroup_exists(m->cgroups, path) &&
	    cgroup_read(m->cgroups, path, CGROUP_CPUS, &now, NULL) == 0) {
		/* On v2 an empty list means that the cgroup has its parent's CPUs. */
		*ret = cpuset_is_empty(&now.cpus) ? now.effective : now.cpus;
		return true;
	}
	return cpuset_parse(str_from(nri_container_cpu(c)->cpus), ret, NULL) == 0 &&
	       !cpuset_is_empty(ret);
}

/* Management containers, and in kubelet mode all, need no grant. */
static void place_without_grant(struct manager *m, struct sync_item *item,
				const struct container_class *class)
{
	static const struct container_class defaults = { .is_management = true };
	struct err err = { 0 };
	int r;

	r = place_class(m, item->pod, item->container, class, NULL, &item->placement, &err);
	if (r < 0 && class->is_management) /* its annotation names other CPUs */
		r = place_class(m, item->pod, item->container, &defaults, NULL, &item->placement,
				&err);
	item->is_placed = r == 0;
	if (r < 0)
		manager_log_unplaced(item->pod, item->container, &err);
}

static void collect(struct sync *s, const struct nri_inventory *all)
{
	struct manager *m = s->m;
	const struct nri_pod **pods = sorted_pods(all, &m->scratch);

	s->items = arena_array(&m->scratch, struct sync_item, all->n_containers + 1);
	s->live = arena_array(&m->scratch, struct ledger_live, all->n_containers + 1);
	for (size_t i = 0; i < all->n_containers; i++) {
		const struct nri_container *c = &all->containers[i];
		const struct nri_pod key = { .id = c->pod_id }, *key_p = &key;
		const struct nri_pod **pod =
			bsearch(&key_p, pods, all->n_pods, sizeof(void *), compare_pods);
		struct sync_item *item = &s->items[s->n];
		struct ledger_live *live = &s->live[s->n];
		struct container_class class;

		/* A finished container needs no CPUs. Its assignment stays when the list has
		 * another container of its pod. */
		if (!pod || c->state == NRI_STOPPED)
			continue;
		*item = (struct sync_item){ .pod = *pod, .container = c };
		place_classify_running(m, *pod, c, &class);
		live->request = place_request(*pod, c, &class);
		if (class.is_management || m->kubelet_manages)
			place_without_grant(m, item, &class);
		else
			live->current_known = read_current(m, c, &live->current);
		s->n++;
	}
}

/* All grants in one transaction: assignments of pods that are gone are released, the others are
 * kept or made. When the ledger cannot be written, each container is asked for alone. */
static void place_by_ledger(struct sync *s)
{
	struct manager *m = s->m;
	struct err err = { 0 };
	const bool has_grants = ledger_synchronize(m->ledger, s->live, s->n, &err) >= 0;

	if (!has_grants)
		log_error("cannot synchronize the ledger with the runtime", LOG_ERR(&err));
	for (size_t i = 0; i < s->n; i++) {
		const struct ledger_live *live = &s->live[i];
		const struct container_class class = { .demand = live->request.demand };
		struct sync_item *item = &s->items[i];

		if (has_grants && live->grant.size_differs)
			log_warning("container was resized while the agent was not connected, it "
				    "keeps its CPUs",
				    LOG_POD(item->pod),
				    LOG_STR("container", str_from(item->container->name)));
		if (has_grants && live->refused.code)
			log_error("running container gets no exclusive CPUs", LOG_POD(item->pod),
				  LOG_STR("container", str_from(item->container->name)),
				  LOG_ERR(&live->refused));
		if (live->request.is_management)
			continue;
		err = (struct err){ 0 };
		item->is_placed = place_class(m, item->pod, item->container, &class,
					      has_grants ? &live->grant : NULL, &item->placement,
					      &err) == 0;
		if (!item->is_placed)
			manager_log_unplaced(item->pod, item->container, &err);
	}
}

/* Takes the container off the CPUs that it is not to have. This is the first pass, over all
 * containers, so that no container gets a CPU that another one still has; it also finishes, or
 * undoes, a resize that was interrupted (resize.h). A failed write is repeated when the container
 * is adopted. */
static void release_other_cpus(struct manager *m, struct sync_item *item)
{
	const char *path = cgroup_path_of(nri_container_cgroups_path(item->container), &m->scratch);
	const struct cpuset *cpus = &item->placement.settings.cpus;
	struct cpuset kept;

	if (!m->cgroups || !*path || cpuset_is_empty(cpus) ||
	    !read_current(m, item->container, &kept) || cpuset_is_subset(&kept, cpus))
		return;
	item->had_other_cpus = true;
	cpuset_intersect(&kept, cpus);
	/* Nothing in common: an empty list is no option, so it moves when it is adopted. */
	if (!cpuset_is_empty(&kept))
		(void)cgroup_set_cpus(m->cgroups, path, &kept, NULL);
}

static void adopt(struct sync *s, const struct sync_item *item)
{
	struct container_entry *entry =
		manager_record_container(s->m, item->pod, item->container, &item->placement);
	struct nri_cpu cpu;

	entry->is_started = true;
	manager_pin_monitor(s->m, item->container->pid);
	if (manager_enforce(s->m, entry, false) > 0 || item->had_other_cpus)
		s->m->counters.adopted_late++;
	isolate_container(s->m, entry);
	if (!registry_is_oci_pod(item->pod->id) && /* the runtime does not know these */
	    settings_difference(&item->placement.settings, nri_container_cpu(item->container),
				RUNTIME_CURRENT, &s->m->scratch, &cpu) &&
	    s->n_updates++ < SYNC_MAX_UPDATES) /* may fail: it may have ended meanwhile */
		nri_update_cpu(s->reply, item->container->id, &cpu, true);
}

int manager_on_synchronize(void *user, const struct nri_inventory *all, struct nri_reply *reply)
{
	struct manager *m = user;
	struct sync s = { .m = m, .reply = reply };
	struct nri_inventory joined;

	m->counters.syncs++;
	change_watch_clear(m); /* the entries have the ids of the watches */
	registry_clear(&m->registry);
	if (m->add_inventory) {
		joined = m->add_inventory(m->add_inventory_data, all, &m->scratch);
		all = &joined;
	}
	collect(&s, all);
	if (!m->kubelet_manages)
		place_by_ledger(&s);
	for (size_t i = 0; i < all->n_pods; i++) {
		(void)manager_record_pod(m, &all->pods[i]);
		manager_pin_monitor(m, all->pods[i].pid);
	}
	for (size_t i = 0; i < s.n; i++)
		if (s.items[i].is_placed)
			release_other_cpus(m, &s.items[i]);
	/* Shared and management containers first, so that they have left the exclusive CPUs. */
	for (size_t i = 0; i < s.n; i++)
		if (s.items[i].is_placed && !s.items[i].placement.is_exclusive)
			adopt(&s, &s.items[i]);
	for (size_t i = 0; i < s.n; i++)
		if (s.items[i].is_placed && s.items[i].placement.is_exclusive)
			adopt(&s, &s.items[i]);
	isolate_remove_stale(m); /* by now the registry has all partitions that are in use */
	arena_done(&m->scratch); /* it grows with the number of containers; a call needs little */
	m->wants_trim = true;
	return 0;
}
