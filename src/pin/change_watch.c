/* The watches belong to the entries of the registry, so that an entry and its watches end together:
 * a watch whose entry is gone would never be removed, and their number is limited. */

#include "change_watch.h"

#include <errno.h>
#include <string.h>

#include "cgroup/cgroup.h"
#include "manager_state.h"

void change_watch_add(struct manager *m, struct container_entry *c)
{
	if (m->cgroups)
		cgroup_watch_add(&m->cgroup_watch, m->cgroups, c->cgroup, CGROUP_ALL, &c->watch);
}

void change_watch_add_pod(struct manager *m, struct pod_entry *pod)
{
	if (!m->cgroups)
		return;
	if (pod->shares || pod->lift_quota) /* otherwise all its values are the kubelet's */
		cgroup_watch_add(&m->cgroup_watch, m->cgroups, pod->cgroup,
				 CGROUP_WEIGHT | CGROUP_QUOTA, &pod->watch);
	cgroup_watch_add(&m->cgroup_watch, m->cgroups, pod->pause_cgroup, CGROUP_CPUS,
			 &pod->pause_watch);
}

void change_watch_remove(struct manager *m, struct container_entry *c)
{
	cgroup_watch_remove(&m->cgroup_watch, &c->watch);
}

static void remove_pod_watches(struct manager *m, struct pod_entry *pod)
{
	cgroup_watch_remove(&m->cgroup_watch, &pod->watch);
	cgroup_watch_remove(&m->cgroup_watch, &pod->pause_watch);
}

void change_watch_remove_pod(struct manager *m, struct pod_entry *pod)
{
	for (size_t i = 0; i < m->registry.n_containers; i++)
		if (m->registry.containers[i]->pod == pod)
			change_watch_remove(m, m->registry.containers[i]);
	remove_pod_watches(m, pod);
}

void change_watch_clear(struct manager *m)
{
	for (size_t i = 0; i < m->registry.n_containers; i++)
		change_watch_remove(m, m->registry.containers[i]);
	for (size_t i = 0; i < m->registry.n_pods; i++)
		remove_pod_watches(m, m->registry.pods[i]);
}

/* A search through all entries for each event: writes are rare, and some hundred comparisons cost
 * less than an index that has to follow every change of the registry. */
static void on_write(void *data, int id)
{
	struct manager *m = data;

	for (size_t i = 0; i < m->registry.n_containers; i++) {
		struct container_entry *c = m->registry.containers[i];

		c->was_written = c->was_written || id < 0 || cgroup_watch_is(&c->watch, id);
	}
	for (size_t i = 0; i < m->registry.n_pods; i++) {
		struct pod_entry *p = m->registry.pods[i];

		p->was_written = p->was_written || id < 0 || cgroup_watch_is(&p->watch, id) ||
				 cgroup_watch_is(&p->pause_watch, id);
	}
}

static const char *limit_name(int error)
{
	switch (error) {
	case EMFILE:
		return "fs.inotify.max_user_instances";
	case ENOSPC:
		return "fs.inotify.max_user_watches";
	default:
		return "";
	}
}

void change_watch_collect(struct manager *m)
{
	const int error = m->cgroup_watch.unwatched_errno; /* logged when it begins and ends */

	cgroup_watch_read(&m->cgroup_watch, on_write, m);
	if (!error == !m->reported_unwatched)
		return;
	m->reported_unwatched = error != 0;
	if (error)
		log_warning("cannot watch every cgroup, external changes are found by polling",
			    LOG_STR("reason", str_from(strerror(error))),
			    LOG_STR("limit", str_from(limit_name(error))));
	else
		log_info("watching every cgroup again");
}
