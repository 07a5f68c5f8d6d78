/* A container may have started, ended or changed its CPUs while no agent was connected, so nothing
 * of the registry is trusted: it is built anew from the runtime's list, the ledger and the cgroups.
 * The runtime waits for the reply with one timeout for the whole node, so the cgroups are written
 * after it. */

#include "manager_sync.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "cgroup/cgroup.h"
#include "cgroup/cgroup_path.h"
#include "change_watch.h"
#include "isolate.h"
#include "manager_state.h"

/* Updates that are sent to the runtime, too: each costs it a process of the OCI runtime, while it
 * waits for our reply with a timeout. The cgroups of the others are correct without them. */
#define SYNC_MAX_UPDATES 64

/* A container whose CPUs the ledger decides. */
struct sync_item {
	const struct nri_pod *pod;
	const struct nri_container *container;
};

struct sync {
	struct manager *m;
	struct sync_item *items;
	struct ledger_live *live; /* one per item */
	size_t n;
	struct str *uids; /* of all pods */
	size_t n_uids;
	size_t n_updates;
	bool moves_exclusive; /* the runtime is to give a container other exclusive CPUs */
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

/* The CPUs of a cgroup; false when there is none. */
static bool read_cgroup(const struct manager *m, const char *path, struct cpuset *ret)
{
	struct cgroup_cpu now;

	if (!m->cgroups || !*path || cgroup_read(m->cgroups, path, CGROUP_CPUS, &now, NULL) < 0)
		return false;
	/* On v2 an empty list means that the cgroup has its parent's CPUs. */
	*ret = cpuset_is_empty(&now.cpus) ? now.effective : now.cpus;
	return true;
}

/* The CPUs a container has now: from the kernel, or without its cgroup from the runtime. */
static bool read_current(struct manager *m, const struct nri_container *c, struct cpuset *ret)
{
	if (read_cgroup(m, cgroup_path_of(nri_container_cgroups_path(c), &m->scratch), ret))
		return true;
	return cpuset_parse(str_from(nri_container_cpu(c)->cpus), ret, NULL) == 0 &&
	       !cpuset_is_empty(ret);
}

static void adopt(struct sync *s, const struct sync_item *item, const struct placement *p)
{
	struct container_entry *entry =
		manager_record_container(s->m, item->pod, item->container, p);
	struct nri_cpu cpu;

	entry->is_started = entry->needs_write = true;
	entry->pid = item->container->pid;
	if (s->n_updates >= SYNC_MAX_UPDATES ||
	    registry_is_oci_pod(item->pod->id) || /* the runtime does not know these */
	    !settings_difference(&p->settings, nri_container_cpu(item->container), RUNTIME_CURRENT,
				 &s->m->scratch, &cpu))
		return;
	s->n_updates++;
	nri_update_cpu(s->reply, item->container->id, &cpu, true); /* it may have ended meanwhile */
	if (p->is_exclusive && cpu.cpus)
		s->moves_exclusive = true;
}

/* Management containers, and in kubelet mode all, need no grant. */
static void adopt_without_grant(struct sync *s, const struct sync_item *item,
				const struct container_class *class)
{
	const struct container_class defaults = { .is_management = true, .type = class->type };
	struct placement p;
	struct err err = { 0 };
	int r;

	r = place_class(s->m, item->pod, item->container, class, NULL, &p, &err);
	if (r < 0 && class->is_management) /* its annotation names other CPUs */
		r = place_class(s->m, item->pod, item->container, &defaults, NULL, &p, &err);
	if (r < 0)
		manager_log_unplaced(item->pod, item->container, &err);
	else
		adopt(s, item, &p);
}

static void add_for_ledger(struct sync *s, const struct sync_item *item,
			   const struct container_class *class)
{
	struct ledger_live *live = &s->live[s->n];

	*live = (struct ledger_live){
		.request = place_request(s->m, item->pod, item->container, class),
	};
	if (demand_cpus(&class->demand) > 0) /* only those can be adopted */
		live->current_known = read_current(s->m, item->container, &live->current);
	s->items[s->n++] = *item;
}

static void collect(struct sync *s, const struct nri_inventory *all)
{
	struct manager *m = s->m;
	const struct nri_pod **pods = sorted_pods(all, &m->scratch);

	s->items = arena_array(&m->scratch, struct sync_item, all->n_containers + 1);
	/* Not zeroed: with management containers, most of it is never used. */
	s->live = arena_alloc(&m->scratch, (all->n_containers + 1) * sizeof(*s->live), 16);
	s->uids = arena_array(&m->scratch, struct str, all->n_pods + 1);
	for (size_t i = 0; i < all->n_pods; i++)
		s->uids[s->n_uids++] = str_from(all->pods[i].uid);
	for (size_t i = 0; i < all->n_containers; i++) {
		const struct nri_container *c = &all->containers[i];
		const struct nri_pod key = { .id = c->pod_id }, *key_p = &key;
		const struct nri_pod **pod =
			bsearch(&key_p, pods, all->n_pods, sizeof(void *), compare_pods);
		struct container_class class;
		struct sync_item item;

		/* A finished container needs no CPUs. Its assignment stays as long as its pod. */
		if (!pod || c->state == NRI_STOPPED)
			continue;
		item = (struct sync_item){ *pod, c };
		place_classify_running(m, *pod, c, &class);
		if (class.is_management || m->kubelet_manages)
			adopt_without_grant(s, &item, &class);
		else
			add_for_ledger(s, &item, &class);
	}
}

static void log_grant(const struct sync_item *item, const struct ledger_live *live)
{
	if (live->grant.size_differs)
		log_warning("container was resized while the agent was not connected, it keeps its "
			    "CPUs",
			    LOG_POD(item->pod),
			    LOG_STR("container", str_from(item->container->name)));
	if (live->refused.code)
		log_error("running container gets no exclusive CPUs", LOG_POD(item->pod),
			  LOG_STR("container", str_from(item->container->name)),
			  LOG_ERR(&live->refused));
}

/* All grants in one transaction: assignments of pods that are gone are released, the others are
 * kept or made. */
static void adopt_by_ledger(struct sync *s)
{
	struct manager *m = s->m;
	struct err err = { 0 };

	if (ledger_synchronize(m->ledger, s->live, s->n, s->uids, s->n_uids, &err) < 0) {
		log_error("cannot synchronize the ledger with the runtime", LOG_ERR(&err));
		m->has_unreleased = true; /* pods that are gone may still have CPUs */
	}
	for (size_t i = 0; i < s->n; i++) {
		const struct ledger_live *live = &s->live[i];
		const struct container_class class = { .demand = live->request.demand,
						       .is_running = true };
		const struct sync_item *item = &s->items[i];
		struct placement p;

		log_grant(item, live);
		err = (struct err){ 0 };
		if (place_class(m, item->pod, item->container, &class, &live->grant, &p, &err) < 0)
			manager_log_unplaced(item->pod, item->container, &err);
		else
			adopt(s, item, &p);
	}
}

/* Takes the container off the CPUs that it is not to have. This is the first pass, over all
 * containers, so that no container gets a CPU that another one still has; it also finishes, or
 * undoes, a resize that was interrupted (resize.h). A failed write is repeated when the settings
 * are enforced. */
static bool release_other_cpus(struct manager *m, const struct container_entry *c)
{
	const struct cpuset *cpus = &c->settings->cpus;
	struct cpuset kept;

	if (cpuset_is_empty(cpus) || !read_cgroup(m, c->cgroup, &kept) ||
	    cpuset_is_subset(&kept, cpus))
		return false;
	cpuset_intersect(&kept, cpus);
	/* Nothing in common: an empty list is no option, so it moves in the second pass. */
	if (!cpuset_is_empty(&kept))
		(void)cgroup_set_cpus(m->cgroups, c->cgroup, &kept, NULL);
	return true;
}

void manager_enforce_synchronized(struct manager *m)
{
	const struct registry *r = &m->registry;
	bool *had_others;

	if (!m->is_sync_unwritten)
		return;
	m->is_sync_unwritten = false;
	had_others = arena_array(&m->scratch, bool, r->n_containers + 1);
	for (size_t i = 0; i < r->n_pods; i++)
		manager_pin_monitor(m, r->pods[i]->pause_pid);
	for (size_t i = 0; i < r->n_containers; i++)
		had_others[i] = release_other_cpus(m, r->containers[i]);
	/* Shared and management containers first, so that they have left the exclusive CPUs. */
	for (int exclusive = 0; exclusive < 2; exclusive++)
		for (size_t i = 0; i < r->n_containers; i++) {
			struct container_entry *c = r->containers[i];

			if (!c->needs_write || c->is_exclusive != (exclusive == 1))
				continue;
			c->needs_write = false;
			manager_pin_monitor(m, c->pid);
			if (manager_enforce(m, c, false) > 0 || had_others[i])
				m->counters.adopted_late++;
			isolate_container(m, c);
		}
	isolate_remove_stale(m); /* by now the registry has all partitions that are in use */
	arena_reset(&m->scratch);
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
	for (size_t i = 0; i < all->n_pods; i++)
		(void)manager_record_pod(m, &all->pods[i]);
	collect(&s, all);
	if (!m->kubelet_manages)
		adopt_by_ledger(&s);
	m->is_sync_unwritten = true;
	/* The runtime writes as soon as it has the reply: by then the others must have left. */
	if (s.moves_exclusive)
		manager_enforce_synchronized(m);
	arena_done(&m->scratch); /* it grows with the number of containers; a call needs little */
	m->wants_trim = true;
	return 0;
}
