/* The Manager's second half: everything at once after we were away, and looking again later. */

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/macro.h"
#include "cgroup/cgroup.h"
#include "cgroup/cgroup_path.h"
#include "change_watch.h"
#include "enforce.h"
#include "isolate.h"
#include "manager_private.h"

#define SYNC_MAX_UPDATES 64 /* told to the runtime as well; each costs it a process */

struct sync_item {
	const struct nri_pod *pod;
	const struct nri_container *container;
	struct container_class class;
	bool was_astray; /* and was moved off others' CPUs already */
};

struct sync {
	struct manager *m;
	struct sync_item *items;
	size_t n;
	size_t n_updates;
	struct nri_reply *reply;
};

static int compare_pods(const void *a, const void *b)
{
	const struct nri_pod *const *x = a, *const *y = b;

	return strcmp((*x)->id, (*y)->id);
}

/* Pods by id; a node has hundreds, a list of them comes in any order. */
static const struct nri_pod **sorted_pods(const struct nri_inventory *all, struct arena *a)
{
	const struct nri_pod **pods = arena_array(a, const struct nri_pod *, all->n_pods + 1);

	for (size_t i = 0; i < all->n_pods; i++)
		pods[i] = &all->pods[i];
	qsort(pods, all->n_pods, sizeof(void *), compare_pods);
	return pods;
}

static void collect(struct sync *s, const struct nri_inventory *all)
{
	struct arena *a = &s->m->scratch;
	const struct nri_pod **pods = sorted_pods(all, a);

	s->items = arena_array(a, struct sync_item, all->n_containers + 1);
	for (size_t i = 0; i < all->n_containers; i++) {
		const struct nri_pod key = { .id = all->containers[i].pod_id }, *key_p = &key;
		const struct nri_pod **pod =
			bsearch(&key_p, pods, all->n_pods, sizeof(void *), compare_pods);

		if (!pod || all->containers[i].state == NRI_STOPPED)
			continue;
		s->items[s->n] =
			(struct sync_item){ .pod = *pod, .container = &all->containers[i] };
		manager_classify_running(s->m, *pod, &all->containers[i], &s->items[s->n++].class);
	}
}

/* What the kernel says, or without it the runtime. */
static bool read_current(struct manager *m, const struct nri_container *c, struct cpuset *ret)
{
	const char *path = cgroup_path_of(nri_container_cgroups_path(c), &m->scratch);
	struct cgroup_cpu now;

	if (m->cgroups && *path && cgroup_exists(m->cgroups, path) &&
	    cgroup_read(m->cgroups, path, CGROUP_CPUS, &now, NULL) == 0) {
		*ret = cpuset_is_empty(&now.cpus) ? now.effective : now.cpus;
		return true;
	}
	return cpuset_parse(str_from(nri_container_cpu(c)->cpus), ret, NULL) == 0 &&
	       !cpuset_is_empty(ret);
}

/* All grants in one transaction: who is gone is released, who is there keeps or gets its CPUs. */
static struct ledger_live *ask_ledger(struct sync *s)
{
	struct manager *m = s->m;
	struct ledger_live *live = arena_array(&m->scratch, struct ledger_live, s->n + 1);
	struct err err = { 0 };

	for (size_t i = 0; i < s->n; i++) {
		const struct sync_item *item = &s->items[i];

		live[i].request = manager_request(item->pod, item->container, &item->class);
		if (!item->class.is_management)
			live[i].current_known = read_current(m, item->container, &live[i].current);
	}
	if (ledger_synchronize(m->ledger, live, s->n, &err) < 0) {
		log_error("cannot bring the ledger up to date", LOG_ERR(&err));
		return NULL;
	}
	for (size_t i = 0; i < s->n; i++)
		if (live[i].grant.size_differs)
			log_warning("a container was resized while we were away; it keeps its CPUs",
				    LOG_POD(s->items[i].pod),
				    LOG_STR("container", str_from(s->items[i].container->name)));
	for (size_t i = 0; i < s->n; i++)
		if (live[i].refused.code)
			log_error("a running container gets no CPUs of its own",
				  LOG_POD(s->items[i].pod),
				  LOG_STR("container", str_from(s->items[i].container->name)),
				  LOG_ERR(&live[i].refused));
	return live;
}

static int place_item(struct sync *s, size_t i, const struct ledger_live *live,
		      struct placement *ret, struct err *err)
{
	const struct sync_item *item = &s->items[i];
	struct container_class plain = { .is_management = true };
	int r;

	if (!item->class.is_management && live)
		return placement_of_grant(&live[i].grant, ret, err);
	r = manager_place(s->m, item->pod, item->container, &item->class, ret, err);
	if (r < 0 && item->class.is_management) /* it names CPUs it must not have */
		r = manager_place(s->m, item->pod, item->container, &plain, ret, err);
	return r;
}

/* Off the CPUs that it shall not have, before anybody gets onto others: a resize of the pools that
 * did not come to its end is finished, or undone, in the same order (resize.h). */
static void make_room(struct sync *s, struct sync_item *item, const struct placement *p)
{
	const char *path =
		cgroup_path_of(nri_container_cgroups_path(item->container), &s->m->scratch);
	struct cpuset now, kept;

	if (!s->m->cgroups || !*path || cpuset_is_empty(&p->settings.cpus) ||
	    !read_current(s->m, item->container, &now) || cpuset_is_subset(&now, &p->settings.cpus))
		return;
	item->was_astray = true;
	kept = now;
	cpuset_intersect(&kept, &p->settings.cpus);
	if (!cpuset_is_empty(&kept)) /* what cannot be written now is written, or said, later */
		(void)cgroup_set_cpus(s->m->cgroups, path, &kept, NULL);
}

static void take_in(struct sync *s, const struct sync_item *item, const struct placement *p)
{
	struct container_entry *entry = manager_note(s->m, item->pod, item->container, p);
	struct nri_cpu cpu;

	entry->is_started = true;
	manager_pin_monitor(s->m, item->container->pid);
	/* The cgroup first: it is quick. Then the runtime's own record, up to a bound. */
	if (manager_enforce(s->m, entry, false) > 0 || item->was_astray)
		s->m->counters.missed++;
	isolate_container(s->m, entry);
	if (!registry_is_oci_pod(item->pod->id) && /* of those it has no record */
	    settings_difference(&p->settings, nri_container_cpu(item->container), RUNTIME_CURRENT,
				&s->m->scratch, &cpu) &&
	    s->n_updates++ < SYNC_MAX_UPDATES)
		nri_update_cpu(s->reply, item->container->id, &cpu, true);
}

int manager_on_synchronize(void *user, const struct nri_inventory *all, struct nri_reply *reply)
{
	struct manager *m = user;
	struct sync s = { .m = m, .reply = reply };
	const struct ledger_live *live = NULL;
	struct nri_inventory joined;

	m->counters.syncs++;
	change_watch_clear(m);
	registry_clear(&m->registry);
	if (m->add_inventory) {
		joined = m->add_inventory(m->add_inventory_data, all, &m->scratch);
		all = &joined;
	}
	collect(&s, all);
	if (!m->kubelet_manages)
		live = ask_ledger(&s);
	for (size_t i = 0; i < all->n_pods; i++) {
		manager_note_pod(m, registry_put_pod(&m->registry, &all->pods[i], &m->scratch),
				 &all->pods[i]);
		manager_pin_monitor(m, all->pods[i].pid);
	}
	/* All make room, then those who share, then those who are alone: nobody is to be on two
	 * lists at once. */
	for (int pass = 0; pass <= 2; pass++)
		for (size_t i = 0; i < s.n; i++) {
			struct placement p;
			struct err err = { 0 };

			if (place_item(&s, i, live, &p, &err) < 0) {
				if (pass == 2)
					log_error("a running container has no place",
						  LOG_POD(s.items[i].pod), LOG_ERR(&err));
				continue;
			}
			if (pass == 0)
				make_room(&s, &s.items[i], &p);
			else if (p.is_exclusive == (pass == 2))
				take_in(&s, &s.items[i], &p);
		}
	isolate_sweep(m);
	arena_done(&m->scratch); /* it may have been large */
	m->wants_trim = true;
	return 0;
}

/* Later. */

static void settle_pod(struct manager *m, struct pod_entry *pod, bool is_drift)
{
	struct cpuset management;
	struct err err = { 0 };
	int r;

	pod->needs_check = false;
	pod->had_cgroup = pod->had_cgroup || cgroup_exists(m->cgroups, pod->cgroup);
	change_watch_add_pod(m, pod);
	r = enforce_pod(m->cgroups, pod, &err);
	manager_management_cpus(m, &management);
	if (r >= 0 && !cpuset_is_empty(&management)) {
		const int pause = enforce_pause(m->cgroups, pod, &management, &err);

		r = pause < 0 ? pause : r | pause;
	}
	if (r == -ENOENT || r == -ESRCH)
		return;
	if (r < 0) {
		m->counters.write_failures++;
		log_warning("cannot write a pod's cgroup",
			    LOG_STR("namespace", str_from(pod->namespace)),
			    LOG_STR("pod", str_from(pod->name)), LOG_ERR(&err));
	} else if (r > 0 && is_drift) {
		m->counters.repaired++;
		log_warning("put a pod's cgroup right",
			    LOG_STR("namespace", str_from(pod->namespace)),
			    LOG_STR("pod", str_from(pod->name)), LOG_INT("drift", r));
	}
}

void manager_flush(struct manager *m)
{
	if (m->wants_trim) {
		m->wants_trim = false;
		(void)malloc_trim(0); /* by now the session has let go of the list, too */
	}
	for (size_t i = 0; i < m->registry.n_pods; i++) {
		struct pod_entry *pod = m->registry.pods[i];

		if (!pod->is_dirty)
			continue;
		pod->is_dirty = false;
		if (m->cgroups)
			settle_pod(m, pod, false);
	}
}

/* The cgroup of a pod is the kubelet's, which makes it before the sandbox and removes it after the
 * last container. */
static bool is_over(const struct manager *m, const struct pod_entry *pod)
{
	if (!pod->had_cgroup || cgroup_exists(m->cgroups, pod->cgroup))
		return false;
	for (size_t i = 0; i < m->registry.n_containers; i++)
		if (m->registry.containers[i]->pod == pod && !m->registry.containers[i]->is_started)
			return false;
	return true;
}

size_t manager_sweep(struct manager *m)
{
	size_t n = 0;

	if (!m->cgroups)
		return 0;
	for (size_t i = m->registry.n_pods; i-- > 0;) {
		struct pod_entry *pod = m->registry.pods[i];

		if (!is_over(m, pod))
			continue;
		log_info("a pod ended without a word",
			 LOG_STR("namespace", str_from(pod->namespace)),
			 LOG_STR("pod", str_from(pod->name)));
		manager_forget_pod(m, pod);
		n++;
	}
	return n;
}

static void look_at(struct manager *m, struct container_entry *c)
{
	if (!c->is_started)
		return;
	(void)manager_enforce(m, c, true);
	isolate_container(m, c);
}

static void look_at_suspects(struct manager *m)
{
	change_watch_collect(m);
	for (size_t i = 0; i < m->registry.n_containers; i++)
		if (m->registry.containers[i]->needs_check)
			look_at(m, m->registry.containers[i]);
	for (size_t i = 0; i < m->registry.n_pods; i++)
		if (m->registry.pods[i]->needs_check)
			settle_pod(m, m->registry.pods[i], true);
}

void manager_reconcile(struct manager *m, size_t n)
{
	const struct registry *r = &m->registry;

	if (!m->cgroups)
		return;
	look_at_suspects(m);
	for (size_t i = 0; i < n; i++, m->next++) {
		if (m->next >= r->n_containers && m->next >= r->n_pods) {
			m->next = 0;
			cgroup_watch_end_round(&m->cgroup_watch);
			(void)manager_sweep(m);
		}
		if (m->next < r->n_containers)
			look_at(m, r->containers[m->next]);
		if (m->next < r->n_pods)
			settle_pod(m, r->pods[m->next], true);
	}
}

void manager_repin(struct manager *m)
{
	struct cpuset management;

	manager_management_cpus(m, &management);
	for (size_t i = 0; i < m->registry.n_containers; i++) {
		struct container_entry *c = m->registry.containers[i];

		if (c->pool != POOL_MANAGEMENT || cpuset_is_empty(&management))
			continue;
		c->settings.cpus = management;
		(void)manager_enforce(m, c, false);
	}
	for (size_t i = 0; i < m->registry.n_pods; i++)
		m->registry.pods[i]->is_dirty = true;
	(void)manager_repin_shared(m);
	arena_reset(&m->scratch);
}
