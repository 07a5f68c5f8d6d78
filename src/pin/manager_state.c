/* The order of steps in here keeps CPUs from having two users: a CPU is in the ledger's file before
 * a cgroup gets it, and other containers have left it before its owner starts. */

#include "manager_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "cgroup/cgroup.h"
#include "change_watch.h"
#include "enforce.h"
#include "isolate.h"

void manager_management_cpus(const struct manager *m, struct cpuset *ret)
{
	(void)ledger_cpus(m->ledger, POOL_MANAGEMENT, ret);
}

bool manager_shared_is_empty(const struct manager *m, struct cpuset *ret)
{
	/* A kubelet that assigns CPUs also chooses those of shared containers. */
	return !ledger_cpus(m->ledger, POOL_SHARED, ret) && !m->kubelet_manages;
}

int manager_kubelet_placement(struct manager *m, const char *cpus, struct placement *ret,
			      struct err *err)
{
	struct cpuset management, shared = { 0 }, taken = m->kubelet_taken;

	manager_management_cpus(m, &management);
	/* In classic mode the shared pool is what the kubelet has not assigned. */
	if (!m->ledger->now.config.is_classic)
		(void)ledger_cpus(m->ledger, POOL_SHARED, &shared);
	placement_note_taken(cpus, &shared, &taken);
	if (!cpuset_eq(&taken, &m->kubelet_taken)) {
		if (!cpuset_is_empty(&taken))
			log_warning("kubelet assigns CPUs of the shared pool",
				    LOG_STR("cpus", cpuset_format(&taken, &m->scratch)));
		m->kubelet_taken = taken;
		m->is_changed = true;
	}
	return placement_in_kubelet_mode(cpus, &management, &shared, ret, err);
}

void manager_type_cpus(const struct manager *m, struct str type, struct cpuset *ret)
{
	struct cpuset management;

	manager_management_cpus(m, &management);
	pool_config_type_cpus(&m->ledger->now.config, type, &management, ret);
}

/* Names are kept for good: there are as few as an administrator configures. */
static const char *intern_type(struct manager *m, struct str type)
{
	for (size_t i = 0; i < m->n_types; i++)
		if (str_eq(str_from(m->types[i]), type))
			return m->types[i];
	m->types = reallocarray(m->types, m->n_types + 1, sizeof(*m->types));
	if (!m->types || !(m->types[m->n_types] = strndup(type.p, type.n)))
		abort();
	return m->types[m->n_types++];
}

struct pod_entry *manager_record_pod(struct manager *m, const struct nri_pod *pod)
{
	struct pod_entry *entry = registry_put_pod(&m->registry, pod, &m->scratch);
	enum distrust_reason distrust;

	entry->is_management = classify_is_management(&m->rules, pod, &distrust);
	/* A type that is not configured counts as none: the pod is classified again when it is. */
	entry->type = entry->is_management ||
				      (distrust != DISTRUST_NONE && distrust != DISTRUST_TYPE) ?
			      intern_type(m, classify_claimed_type(&m->rules, pod)) :
			      NULL;
	entry->is_local = classify_is_local(pod);
	entry->needs_write = true;
	if (entry->is_management) /* D13 */
		entry->shares = classify_pod_shares(&m->rules, pod, &m->scratch);
	return entry;
}

struct container_entry *manager_record_container(struct manager *m, const struct nri_pod *pod,
						 const struct nri_container *c,
						 const struct placement *p)
{
	const bool is_known = registry_find_pod(&m->registry, pod->id) != NULL;
	/* The annotations of a known pod are those of its sandbox and do not change, so they are
	 * not parsed again for each container. */
	struct pod_entry *owner = is_known ? registry_put_pod(&m->registry, pod, &m->scratch) :
					     manager_record_pod(m, pod);
	struct container_entry *entry = registry_put(&m->registry, owner, c, &m->scratch);

	refusals_remove(&m->refusals, pod->uid, c->name);
	entry->pool = p->pool;
	entry->is_exclusive = p->is_exclusive;
	entry->names_cpus = p->names_cpus;
	registry_set_settings(&m->registry, entry, &p->settings);
	if (p->is_exclusive && !owner->lift_quota) /* D13 */
		owner->lift_quota = owner->needs_write = true;
	m->is_changed = true;
	return entry;
}

void manager_log_unplaced(const struct nri_pod *pod, const struct nri_container *c,
			  const struct err *err)
{
	log_error("running container has no CPUs", LOG_POD(pod),
		  LOG_STR("container", str_from(c->name)), LOG_ERR(err));
}

void manager_remove_pod(struct manager *m, struct pod_entry *entry)
{
	isolate_release_pod(m, entry); /* needs the entries, like the next */
	change_watch_remove_pod(m, entry);
	registry_remove_pod(&m->registry, entry->id);
	m->is_changed = true;
}

void manager_release_pod(struct manager *m, struct pod_entry *entry)
{
	const bool has_sibling = registry_has_sibling(&m->registry, entry);
	const struct str uid = str_dup(&m->scratch, str_from(entry->uid)); /* the entry is freed */
	struct cpuset before, after;
	struct err err = { 0 };

	manager_remove_pod(m, entry);
	refusals_remove(&m->refusals, str_cstr(&m->scratch, uid), NULL);
	if (has_sibling) /* the kubelet has created another sandbox for the same pod */
		return;
	(void)ledger_cpus(m->ledger, POOL_SHARED, &before);
	if (ledger_release_pod(m->ledger, uid, &err) < 0) {
		log_error("cannot release the CPUs of a pod, trying again", LOG_STR("uid", uid),
			  LOG_ERR(&err));
		m->has_unreleased = true;
		return;
	}
	/* In classic mode the shared pool grows by released exclusive CPUs. Most pods own none, and
	 * comparing every shared container with the pool would dominate their removal. */
	(void)ledger_cpus(m->ledger, POOL_SHARED, &after);
	if (!cpuset_eq(&before, &after)) /* a failure leaves them on fewer CPUs only */
		(void)manager_repin_shared(m);
}

static bool has_pod_with_uid(const struct registry *r, struct str uid)
{
	for (size_t i = 0; i < r->n_pods; i++)
		if (str_eq(str_from(r->pods[i]->uid), uid))
			return true;
	return false;
}

void manager_release_unreleased(struct manager *m)
{
	struct ledger *l = m->ledger;
	struct err err = { 0 };

	if (!m->has_unreleased)
		return;
	m->has_unreleased = false;
	for (size_t i = 0; i < l->n;) {
		const struct str uid = str_dup(&m->scratch, l->items[i]->pod_uid);

		if (has_pod_with_uid(&m->registry, uid)) {
			i++;
		} else if (ledger_release_pod(l, uid, &err) < 0) {
			m->has_unreleased = true;
			return;
		}
	}
	(void)manager_repin_shared(m);
}

/* The kubelet creates a pod's cgroup before the sandbox and removes it after the last container. A
 * cgroup that was never seen may be somewhere else, unless those of other pods are where they are
 * to be. Such a pod ended before the agent connected, and the runtime still listed its sandbox. */
static bool has_vanished(const struct manager *m, const struct pod_entry *pod)
{
	if (cgroup_exists(m->cgroups, pod->cgroup))
		return false;
	if (!pod->was_seen && (!m->has_seen_pods || !*pod->cgroup || pod->n_containers > 0))
		return false;
	for (size_t i = 0; i < m->registry.n_containers; i++)
		if (m->registry.containers[i]->pod == pod && !m->registry.containers[i]->is_started)
			return false;
	return true;
}

size_t manager_release_vanished_pods(struct manager *m)
{
	size_t n = 0;

	if (!m->cgroups)
		return 0;
	for (size_t i = m->registry.n_pods; i-- > 0;) { /* backwards: the list shrinks */
		struct pod_entry *pod = m->registry.pods[i];

		if (!has_vanished(m, pod))
			continue;
		log_info("pod vanished without a removal event", LOG_POD_ENTRY(pod));
		manager_release_pod(m, pod);
		n++;
	}
	return n;
}

bool manager_is_own(const struct manager *m, const struct container_entry *c)
{
	return m->rules.own_pid && c->pid == m->rules.own_pid;
}

int manager_enforce(struct manager *m, struct container_entry *c, bool is_drift)
{
	struct err err = { 0 };
	int r;

	if (!m->cgroups || manager_is_own(m, c))
		return 0;
	/* Before that the runtime writes to the cgroup, and each write would be an event. */
	if (c->is_started)
		change_watch_add(m, c);
	c->was_written = false; /* before the cgroup is read, or a later write would be missed */
	r = cpu_settings_enforce(c->settings, m->cgroups, c->cgroup, &err);
	if (r == -ENOENT)
		return 0;
	if (r < 0) {
		m->counters.write_failures++;
		log_warning("cannot write the cgroup of a container", LOG_ENTRY(c), LOG_ERR(&err));
		return r;
	}
	if (r > 0 && is_drift) {
		const struct str cpus = cpuset_format(&c->settings->cpus, &m->scratch);

		m->counters.drift_corrected++;
		c->n_drift_corrected++;
		m->is_changed = true;
		log_warning("restored CPU settings changed externally", LOG_ENTRY(c),
			    LOG_STR("cpus", cpus), LOG_INT("drift", r));
		event_queue_add(m->events, EVENT_DRIFT_CORRECTED,
				&(struct event_subject){ c->pod->namespace, c->pod->name,
							 c->pod->uid, c->name },
				str_printf(&m->scratch,
					   "container %s: restored CPU settings changed "
					   "externally, CPUs " PRI_STR,
					   c->name, FMT_STR(cpus)));
	}
	return r;
}

static int enforce_pause_of(const struct manager *m, const struct pod_entry *pod, struct err *err)
{
	struct cpuset management;

	if (!*pod->pause_cgroup && !pod->pause_pid)
		return 0; /* before the CPUs are collected: pods are checked all the time */
	manager_management_cpus(m, &management);
	return cpuset_is_empty(&management) ? 0 : enforce_pause(m->cgroups, pod, &management, err);
}

void manager_enforce_pod(struct manager *m, struct pod_entry *pod, bool is_drift)
{
	struct err err = { 0 };
	int r;

	pod->was_written = false;
	pod->was_seen = pod->was_seen || cgroup_exists(m->cgroups, pod->cgroup);
	m->has_seen_pods = m->has_seen_pods || pod->was_seen;
	change_watch_add_pod(m, pod); /* before the cgroups are read, as above */
	r = enforce_pod(m->cgroups, pod, &err);
	if (r >= 0) {
		const int pause = enforce_pause_of(m, pod, &err);

		r = pause < 0 ? pause : r | pause;
	}
	if (r == -ENOENT || r == -ESRCH) /* not created yet, or the pause process has ended */
		return;
	if (r < 0) {
		m->counters.write_failures++;
		log_warning("cannot write the cgroup of a pod", LOG_POD_ENTRY(pod), LOG_ERR(&err));
	} else if (r > 0 && is_drift) {
		m->counters.drift_corrected++;
		log_warning("restored pod CPU settings changed externally", LOG_POD_ENTRY(pod),
			    LOG_INT("drift", r));
	}
}

void manager_pin_monitor(struct manager *m, uint32_t pid)
{
	struct err err = { 0 };
	struct cpuset management;

	if (!m->cgroups || strcmp(m->runtime.name, CRIO_RUNTIME_NAME) != 0)
		return;
	manager_management_cpus(m, &management);
	if (!cpuset_is_empty(&management) && enforce_monitor(pid, &management, &err) < 0)
		log_debug("cannot pin a container monitor, ignoring", LOG_ERR(&err));
}

/* The CPUs of a container that shares them with others. A management container is one where the
 * pool has no CPUs of its own: on a node without a profile it uses what is not exclusive. */
static bool shared_cpus(const struct manager *m, const struct container_entry *c,
			bool management_shares, const struct cpuset *shared, struct cpuset *ret)
{
	if (c->pool == POOL_MANAGEMENT && management_shares && !c->names_cpus)
		manager_type_cpus(m, registry_type_of(c), ret);
	else if (c->pool == POOL_SHARED)
		*ret = *shared;
	else
		return false;
	return true;
}

int manager_repin_shared(struct manager *m)
{
	struct cpuset shared, cpus;
	const bool management_shares = !ledger_cpus(m->ledger, POOL_MANAGEMENT, &cpus);
	int worst = 0;

	(void)ledger_cpus(m->ledger, POOL_SHARED, &shared);
	if (cpuset_is_empty(&shared)) /* to v2 an empty list means every CPU of the parent */
		return -ENOSPC;
	for (size_t i = 0; i < m->registry.n_containers; i++) {
		struct container_entry *c = m->registry.containers[i];
		int r;

		if (!shared_cpus(m, c, management_shares, &shared, &cpus) ||
		    cpuset_eq(&c->settings->cpus, &cpus))
			continue;
		/* Also when the write fails: the reconciliation repeats it. */
		registry_set_cpus(&m->registry, c, &cpus);
		r = manager_enforce(m, c, false);
		if (r < 0)
			worst = r;
	}
	/* Pause processes are where management containers are. */
	for (size_t i = 0; i < m->registry.n_pods && management_shares && m->cgroups; i++)
		manager_enforce_pod(m, m->registry.pods[i], false);
	m->is_changed = true;
	return worst;
}
