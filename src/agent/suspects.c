#include "suspects.h"

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

void suspects_drop_pod(struct manager *m, struct pod_entry *pod)
{
	for (size_t i = 0; i < m->registry.n_containers; i++)
		if (m->registry.containers[i]->pod == pod)
			suspects_drop(m, m->registry.containers[i]);
	lookout_remove(&m->lookout, &pod->watch);
	lookout_remove(&m->lookout, &pod->pause_watch);
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

void suspects_mark(struct manager *m)
{
	lookout_read(&m->lookout, on_write, m);
	if (m->lookout.why_short && !m->said_short) {
		m->said_short = true;
		log_warning("not every cgroup can be watched; what others write there is found "
			    "only when its turn comes",
			    LOG_STR("why", str_from(strerror(m->lookout.why_short))));
	}
}
