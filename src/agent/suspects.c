#include "suspects.h"

#include <errno.h>
#include <string.h>

#include "cgroup/cgroup.h"
#include "manager_internal.h"

void suspects_follow(struct manager *m, struct container_entry *c)
{
	if (m->cgroups)
		lookout_add(&m->lookout, m->cgroups, c->cgroup, CGROUP_ALL, &c->watch);
}

void suspects_follow_pod(struct manager *m, struct pod_entry *pod)
{
	if (!m->cgroups)
		return;
	if (pod->shares || pod->lift_quota)
		lookout_add(&m->lookout, m->cgroups, pod->cgroup, CGROUP_WEIGHT | CGROUP_QUOTA,
			    &pod->watch);
	lookout_add(&m->lookout, m->cgroups, pod->pause_cgroup, CGROUP_CPUS, &pod->pause_watch);
}

void suspects_drop(struct manager *m, struct container_entry *c)
{
	lookout_remove(&m->lookout, &c->watch);
}

static void forget_pod(struct manager *m, struct pod_entry *pod)
{
	lookout_remove(&m->lookout, &pod->watch);
	lookout_remove(&m->lookout, &pod->pause_watch);
}

void suspects_drop_pod(struct manager *m, struct pod_entry *pod)
{
	for (size_t i = 0; i < m->registry.n_containers; i++)
		if (m->registry.containers[i]->pod == pod)
			suspects_drop(m, m->registry.containers[i]);
	forget_pod(m, pod);
}

void suspects_drop_all(struct manager *m)
{
	for (size_t i = 0; i < m->registry.n_containers; i++)
		suspects_drop(m, m->registry.containers[i]);
	for (size_t i = 0; i < m->registry.n_pods; i++)
		forget_pod(m, m->registry.pods[i]);
}

static void on_write(void *data, int id)
{
	struct manager *m = data;

	for (size_t i = 0; i < m->registry.n_containers; i++) {
		struct container_entry *c = m->registry.containers[i];

		c->is_suspect = c->is_suspect || id < 0 || lookout_is(&c->watch, id);
	}
	for (size_t i = 0; i < m->registry.n_pods; i++) {
		struct pod_entry *p = m->registry.pods[i];

		p->is_suspect = p->is_suspect || id < 0 || lookout_is(&p->watch, id) ||
				lookout_is(&p->pause_watch, id);
	}
}

static const char *limit_of(int why)
{
	switch (why) {
	case EMFILE:
		return "fs.inotify.max_user_instances";
	case ENOSPC:
		return "fs.inotify.max_user_watches";
	default:
		return "";
	}
}

void suspects_mark(struct manager *m)
{
	const int why = m->lookout.why_short;

	lookout_read(&m->lookout, on_write, m);
	if (!why == !m->said_short)
		return;
	m->said_short = why != 0;
	if (why)
		log_warning("not every cgroup can be watched; what others write there is found "
			    "only when its turn comes",
			    LOG_STR("why", str_from(strerror(why))),
			    LOG_STR("limit", str_from(limit_of(why))));
	else
		log_info("every cgroup is watched again");
}
