/* Which CPUs a container gets. */

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "manager_private.h"

struct ledger_request manager_request(const struct nri_pod *pod, const struct nri_container *c,
				      const struct container_class *class)
{
	return (struct ledger_request){
		.pod_uid = str_from(pod->uid),
		.pod_namespace = str_from(pod->pod_namespace),
		.pod_name = str_from(pod->name),
		.container = str_from(c->name),
		.demand = class->demand,
		.is_management = class->is_management,
	};
}

void manager_note_distrust(struct manager *m, const struct nri_pod *pod,
			   const struct nri_container *c, enum distrust_reason distrust)
{
	if (distrust == DISTRUST_NONE)
		return;
	m->counters.doubted++;
	log_warning("an annotation is not believed", LOG_POD(pod),
		    LOG_STR("container", str_from(c->name)),
		    LOG_STR("reason", str_from(distrust_text(distrust))));
	event_queue_add(m->events, EVENT_ANNOTATION_REJECTED, &SUBJECT_OF(pod, c),
			str_printf(&m->scratch,
				   "container %s: its annotations are not believed: %s", c->name,
				   distrust_text(distrust)));
}

void manager_management_cpus(const struct manager *m, struct cpuset *ret)
{
	(void)ledger_cpus(m->ledger, POOL_MANAGEMENT, ret);
}

int manager_place(struct manager *m, const struct nri_pod *pod, const struct nri_container *c,
		  const struct container_class *class, struct placement *ret, struct err *err)
{
	struct ledger_request request = manager_request(pod, c, class);
	struct ledger_grant grant;
	struct cpuset management;
	int r;

	manager_management_cpus(m, &management);
	if (class->is_management)
		return placement_of_management(&class->settings, &management, ret, err);
	if (m->kubelet_manages)
		return placement_in_kubelet_mode(nri_container_cpu(c)->cpus, &management, ret, err);
	r = ledger_allocate(m->ledger, &request, &grant, err);
	if (r < 0)
		return r;
	return placement_of_grant(&grant, ret, err);
}

/* In classic mode the shared set is what nobody owns: it shrinks and grows. Those who share must be
 * off a CPU before somebody gets it for himself, so this writes at once and not by the runtime. */
int manager_repin_shared(struct manager *m)
{
	struct cpuset shared;
	int worst = 0;

	(void)ledger_cpus(m->ledger, POOL_SHARED, &shared);
	if (cpuset_is_empty(&shared))
		return -ENOSPC;
	for (size_t i = 0; i < m->registry.n_containers; i++) {
		struct container_entry *c = m->registry.containers[i];
		int r;

		if (c->pool != POOL_SHARED || cpuset_eq(&c->settings.cpus, &shared))
			continue;
		c->settings.cpus = shared;
		r = manager_enforce(m, c, false);
		if (r < 0)
			worst = r;
	}
	m->is_changed = true;
	return worst;
}

int manager_give_place(struct manager *m, const struct nri_pod *pod, const struct nri_container *c,
		       const struct container_class *class, struct placement *ret, struct err *err)
{
	int r;

	r = manager_place(m, pod, c, class, ret, err);
	if (r < 0 && manager_sweep(m) > 0) /* who is over may hold what it needs */
		r = manager_place(m, pod, c, class, ret, err);
	if (r < 0)
		return r;
	if (!ret->is_exclusive || !m->ledger->now.config.is_classic || manager_repin_shared(m) >= 0)
		return 0;
	(void)ledger_release_container(m->ledger, str_from(pod->uid), str_from(c->name), NULL);
	(void)manager_repin_shared(m);
	return err_set(err, EBUSY, "cannot clear its CPUs of other containers");
}

int manager_find_place(struct manager *m, const struct nri_pod *pod, const struct nri_container *c,
		       struct placement *ret, struct err *err)
{
	struct container_class class;
	int r;

	r = classify_container(&m->rules, pod, c, &m->scratch, &class, err);
	if (r < 0)
		return r;
	manager_note_distrust(m, pod, c, class.distrust);
	return manager_give_place(m, pod, c, &class, ret, err);
}

void manager_classify_running(struct manager *m, const struct nri_pod *pod,
			      const struct nri_container *c, struct container_class *ret)
{
	struct err err = { 0 };

	if (classify_container(&m->rules, pod, c, &m->scratch, ret, &err) == 0) {
		manager_note_distrust(m, pod, c, ret->distrust);
		return;
	}
	*ret = (struct container_class){ .is_management = true };
	log_warning("a running container has a broken annotation", LOG_POD(pod),
		    LOG_STR("container", str_from(c->name)), LOG_ERR(&err));
}

int manager_find_place_of_running(struct manager *m, const struct nri_pod *pod,
				  const struct nri_container *c, struct placement *ret,
				  struct err *err)
{
	struct container_class class, humble;
	int r;

	manager_classify_running(m, pod, c, &class);
	r = manager_give_place(m, pod, c, &class, ret, err);
	if (r == 0)
		return 0;
	humble = (struct container_class){ .is_management = class.is_management };
	if (manager_give_place(m, pod, c, &humble, ret, NULL) < 0)
		return r;
	log_error("a running container does not get what it asks for", LOG_POD(pod),
		  LOG_STR("container", str_from(c->name)),
		  LOG_STR("cpus", cpuset_format(&ret->settings.cpus, &m->scratch)), LOG_ERR(err));
	return 0;
}
