/* The manager's periodic work: cgroups that wait to be written, drift, and CPUs that came or went.
 */

#include <malloc.h>

#include "change_watch.h"
#include "event_queue.h"
#include "isolate.h"
#include "manager_state.h"
#include "manager_sync.h"

void manager_flush(struct manager *m)
{
	manager_enforce_synchronized(m);
	if (m->wants_trim) {
		m->wants_trim = false;
		(void)malloc_trim(0); /* by now the NRI session has freed its list, too */
	}
	for (size_t i = 0; i < m->registry.n_pods; i++) {
		struct pod_entry *pod = m->registry.pods[i];

		if (!pod->needs_write)
			continue;
		pod->needs_write = false;
		if (m->cgroups)
			manager_enforce_pod(m, pod, false);
	}
}

/* Before the start the runtime itself writes the cgroup, and a difference is no drift. */
static void check_container(struct manager *m, struct container_entry *c)
{
	if (!c->is_started)
		return;
	(void)manager_enforce(m, c, true);
	isolate_container(m, c);
}

void manager_check_written(struct manager *m)
{
	const struct registry *r = &m->registry;

	if (!m->cgroups)
		return;
	change_watch_collect(m);
	for (size_t i = 0; i < r->n_containers; i++)
		if (r->containers[i]->was_written)
			check_container(m, r->containers[i]);
	for (size_t i = 0; i < r->n_pods; i++)
		if (r->pods[i]->was_written)
			manager_enforce_pod(m, r->pods[i], true);
}

/* When it begins, and when it ends. */
static void report_shared_pool(struct manager *m)
{
	struct cpuset cpus;
	const bool is_empty = manager_shared_is_empty(m, &cpus);
	struct str text;

	if (is_empty == m->reported_shared_empty)
		return;
	m->reported_shared_empty = is_empty;
	m->is_changed = true;
	text = cpuset_format(&cpus, &m->scratch);
	if (!is_empty) {
		log_info("the shared pool has CPUs again", LOG_STR("cpus", text));
		return;
	}
	log_warning("no CPU of the shared pool is left, its containers use management CPUs",
		    LOG_STR("cpus", text));
	event_queue_add(m->events, EVENT_SHARED_POOL_EMPTY, &(struct event_subject){ 0 },
			str_printf(&m->scratch, MANAGER_SHARED_EMPTY_TEXT PRI_STR, FMT_STR(text)));
}

void manager_reconcile(struct manager *m, size_t n)
{
	const struct registry *r = &m->registry;

	if (!m->cgroups)
		return;
	/* Known writes at once; the rest by turns, because inotify does not report everything. */
	manager_check_written(m);
	manager_release_unreleased(m);
	report_shared_pool(m);
	for (size_t i = 0; i < n; i++, m->next_check++) {
		/* One index for both lists. They may have become shorter since the last call. */
		if (m->next_check >= r->n_containers && m->next_check >= r->n_pods) {
			m->next_check = 0;
			cgroup_watch_end_round(&m->cgroup_watch);
			(void)manager_release_vanished_pods(m);
		}
		if (m->next_check < r->n_containers)
			check_container(m, r->containers[m->next_check]);
		if (m->next_check < r->n_pods)
			manager_enforce_pod(m, r->pods[m->next_check], true);
	}
	arena_reset(&m->scratch); /* texts of what was corrected */
}

/* Exclusive containers are left alone: no other CPU is substituted for one that is offline
 * (docs/reference/pools.md#offline-cpus). */
void manager_repin(struct manager *m)
{
	for (size_t i = 0; i < m->registry.n_containers; i++) {
		struct container_entry *c = m->registry.containers[i];
		struct cpuset cpus;

		if (c->pool != POOL_MANAGEMENT)
			continue;
		manager_type_cpus(m, registry_type_of(c), &cpus);
		if (cpuset_is_empty(&cpus))
			continue;
		/* Its own CPUs, also those that are offline: on v1 the kernel has removed them from
		 * the cpuset, and they are written again when they are back. */
		if (c->names_cpus && !cpuset_intersects(&c->settings->cpus, &cpus))
			continue;
		if (!c->names_cpus)
			registry_set_cpus(&m->registry, c, &cpus);
		(void)manager_enforce(m, c, false);
	}
	for (size_t i = 0; i < m->registry.n_pods; i++)
		m->registry.pods[i]->needs_write = true;
	(void)manager_repin_shared(m);
	arena_reset(&m->scratch);
}
