#include "manager.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "cgroup/cgroup.h"
#include "change_watch.h"
#include "enforce.h"
#include "isolate.h"
#include "manager_private.h"
#include "placement.h"

const uint64_t manager_bounds_ns[MANAGER_BUCKETS] = {
	10000, 25000, 50000, 100000, 200000, 500000, 1000000, 5000000, 50000000, 500000000
};

void manager_init(struct manager *m, struct ledger *ledger, const struct cgroup_fs *cgroups)
{
	*m = (struct manager){ .ledger = ledger, .cgroups = cgroups };
	arena_init(&m->scratch, 0);
	registry_init(&m->registry);
	cgroup_watch_init(&m->cgroup_watch);
	m->rules.management = workload_management();
}

void manager_done(struct manager *m)
{
	cgroup_watch_done(&m->cgroup_watch);
	registry_done(&m->registry);
	arena_done(&m->scratch);
}

/* Writes one container's cgroup; what is not there yet is the runtime's to write. */
int manager_enforce(struct manager *m, struct container_entry *c, bool is_drift)
{
	struct err err = { 0 };
	int r;

	if (!m->cgroups)
		return 0;
	if (c->is_started)
		change_watch_add(m, c);
	c->needs_check = false;
	r = enforce_settings(m->cgroups, c->cgroup, &c->settings, &err);
	if (r == -ENOENT)
		return 0;
	if (r < 0) {
		m->counters.write_failures++;
		log_warning("cannot write a cgroup", LOG_ENTRY(c), LOG_ERR(&err));
		return r;
	}
	if (r > 0 && is_drift) {
		const struct str cpus = cpuset_format(&c->settings.cpus, &m->scratch);

		m->counters.repaired++;
		c->n_repairs++;
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

/* What a pod's own cgroup shall have (DESIGN D13). */
void manager_note_pod(struct manager *m, struct pod_entry *entry, const struct nri_pod *pod)
{
	enum distrust_reason distrust;

	entry->is_management = classify_is_management(&m->rules, pod, &distrust);
	entry->is_static = classify_is_static(pod);
	entry->is_dirty = true;
	if (entry->is_management)
		entry->shares = workload_pod_shares(&m->rules.management, pod->annotations,
						    pod->n_annotations, &m->scratch);
}

struct container_entry *manager_note(struct manager *m, const struct nri_pod *pod,
				     const struct nri_container *c, const struct placement *p)
{
	struct pod_entry *known = registry_find_pod(&m->registry, pod->id);
	struct pod_entry *owner = registry_put_pod(&m->registry, pod, &m->scratch);
	struct container_entry *entry = registry_put(&m->registry, owner, c, &m->scratch);

	if (!known)
		manager_note_pod(m, owner, pod);
	entry->pool = p->pool;
	entry->is_exclusive = p->is_exclusive;
	entry->settings = p->settings;
	if (p->is_exclusive && !owner->lift_quota)
		owner->lift_quota = owner->is_dirty = true;
	m->is_changed = true;
	return entry;
}

static int refuse(struct manager *m, const struct nri_pod *pod, const struct nri_container *c,
		  const struct err *err, struct nri_reply *reply)
{
	m->counters.refused++;
	log_error("container refused", LOG_POD(pod), LOG_STR("container", str_from(c->name)),
		  LOG_ERR(err));
	event_queue_add(m->events, EVENT_CONTAINER_REFUSED, &SUBJECT_OF(pod, c),
			str_printf(&m->scratch, "container %s: %s", c->name, err->msg));
	return nri_refuse(reply, "pinfold: %s/%s, container %s: %s", pod->pod_namespace, pod->name,
			  c->name, err->msg);
}

static int on_create(void *user, const struct nri_pod *pod, const struct nri_container *c,
		     struct nri_reply *reply)
{
	struct manager *m = user;
	struct placement p = { 0 };
	struct err err = { 0 };
	struct nri_cpu cpu;

	if (manager_find_place(m, pod, c, &p, &err) < 0) {
		const int r = refuse(m, pod, c, &err, reply);

		arena_reset(&m->scratch);
		return r;
	}
	m->counters.placed[p.pool]++;
	(void)manager_note(m, pod, c, &p);
	if (settings_difference(&p.settings, nri_container_cpu(c), RUNTIME_CURRENT, &m->scratch,
				&cpu))
		nri_adjust_cpu(reply, &cpu);
	arena_reset(&m->scratch);
	return 0;
}

/* A resize that would change whose CPUs are whose is refused (spec/cpumanager.md 7.7). */
static int check_resize(struct manager *m, const struct nri_pod *pod, const struct nri_container *c,
			const struct nri_cpu *requested, struct err *err)
{
	const struct nri_cpu *now = nri_container_cpu(c);
	struct ledger_request request;
	struct container_class class;
	uint64_t period = requested->period_us ? requested->period_us : now->period_us;

	if (m->kubelet_manages || requested->shares == 0)
		return 0;
	if (classify_container(&m->rules, pod, c, &m->scratch, &class, err) < 0 ||
	    class.is_management)
		return 0;
	if (requested->shares == now->shares)
		return 0;
	class.demand.cpu_milli = classify_milli(requested->shares, requested->quota_us, period);
	request = manager_request(pod, c, &class);
	return ledger_check_update(m->ledger, &request, err);
}

/* Takes in a container that we have not seen being created; its cgroup is there. */
static struct container_entry *catch_up(struct manager *m, const struct nri_pod *pod,
					const struct nri_container *c, bool runs, struct err *err)
{
	struct container_entry *entry;
	struct placement p = { 0 };
	int r;

	r = runs ? manager_find_place_of_running(m, pod, c, &p, err) :
		   manager_find_place(m, pod, c, &p, err);
	if (r < 0)
		return NULL;
	m->counters.missed++;
	entry = manager_note(m, pod, c, &p);
	entry->is_started = true;
	return entry;
}

static void log_no_place(const struct nri_pod *pod, const struct nri_container *c,
			 const struct err *err)
{
	log_error("a container that started without us has no place", LOG_POD(pod),
		  LOG_STR("container", str_from(c->name)), LOG_ERR(err));
}

/* Nothing has changed: the runtime keeps what the container has, and so do we. */
static int refuse_resize(struct manager *m, const struct nri_pod *pod,
			 const struct nri_container *c, const struct err *err,
			 struct nri_reply *reply)
{
	m->counters.resizes_refused++;
	m->is_changed = true;
	log_warning("resize refused", LOG_POD(pod), LOG_STR("container", str_from(c->name)),
		    LOG_ERR(err));
	return nri_refuse(reply, "pinfold: %s/%s, container %s: %s", pod->pod_namespace, pod->name,
			  c->name, err->msg);
}

static int on_update(void *user, const struct nri_pod *pod, const struct nri_container *c,
		     const struct nri_cpu *requested, struct nri_reply *reply)
{
	struct manager *m = user;
	struct container_entry *entry = registry_find(&m->registry, c->id);
	struct err err = { 0 };
	struct nri_cpu cpu;

	if (!entry)
		entry = catch_up(m, pod, c, true, &err);
	if (!entry) {
		log_no_place(pod, c, &err);
		arena_reset(&m->scratch);
		return 0;
	}
	entry->pod->is_dirty = true; /* a kubelet resizes the pod's own cgroup before it asks */
	if (check_resize(m, pod, c, requested, &err) < 0) {
		const int r = refuse_resize(m, pod, c, &err, reply);

		arena_reset(&m->scratch);
		return r;
	}
	if (m->kubelet_manages && entry->pool != POOL_MANAGEMENT && *requested->cpus) {
		struct cpuset management;
		struct placement p = { 0 };

		manager_management_cpus(m, &management);
		if (placement_in_kubelet_mode(requested->cpus, &management, &p, &err) == 0)
			entry->settings = p.settings;
	}
	if (settings_difference(&entry->settings, requested, RUNTIME_UPDATE, &m->scratch, &cpu)) {
		m->counters.reasserted++;
		nri_update_cpu(reply, c->id, &cpu, false);
	}
	arena_reset(&m->scratch);
	return 0;
}

/* Events. */

void manager_drop_pod(struct manager *m, struct pod_entry *entry)
{
	isolate_release_pod(m, entry);
	change_watch_remove_pod(m, entry);
	registry_remove_pod(&m->registry, entry->id);
	m->is_changed = true;
}

void manager_forget_pod(struct manager *m, struct pod_entry *entry)
{
	const bool has_sibling = registry_has_sibling(&m->registry, entry);
	const struct str uid = str_dup(&m->scratch, str_from(entry->uid));
	struct err err = { 0 };

	manager_drop_pod(m, entry);
	if (has_sibling)
		return; /* the kubelet made a new sandbox; the pod goes on */
	if (ledger_release_pod(m->ledger, uid, &err) < 0)
		log_error("cannot release CPUs", LOG_STR("uid", uid), LOG_ERR(&err));
	else if (m->ledger->now.config.is_classic)
		(void)manager_repin_shared(m);
}

static void on_remove_container(struct manager *m, const char *id)
{
	struct container_entry *entry = registry_find(&m->registry, id);

	if (!entry)
		return;
	isolate_release(m, entry);
	change_watch_remove(m, entry);
	registry_remove(&m->registry, id);
	m->is_changed = true;
}

static void on_remove_pod(struct manager *m, const struct nri_pod *pod)
{
	struct pod_entry *entry = registry_find_pod(&m->registry, pod->id);

	if (entry)
		manager_forget_pod(m, entry);
}

void manager_pin_monitor(struct manager *m, uint32_t pid)
{
	struct err err = { 0 };
	struct cpuset management;

	if (!m->cgroups || strcmp(m->runtime_name, CRIO_RUNTIME_NAME) != 0)
		return;
	manager_management_cpus(m, &management);
	if (!cpuset_is_empty(&management) && enforce_monitor(pid, &management, &err) < 0)
		log_debug("cannot pin a monitor, ignoring", LOG_ERR(&err));
}

/* The window between registration and the first event (spec/runtime.md 2.6), and what CRI-O leaves
 * on all CPUs. */
static bool take_up(struct manager *m, const struct nri_pod *pod, const struct nri_container *c,
		    bool runs, struct err *err)
{
	struct container_entry *entry = registry_find(&m->registry, c->id);

	manager_pin_monitor(m, c->pid);
	if (!entry)
		entry = catch_up(m, pod, c, runs, err);
	if (!entry)
		return false;
	entry->is_started = true;
	entry->pod->is_dirty = true; /* all of its cgroups are there by now */
	(void)manager_enforce(m, entry, false);
	isolate_container(m, entry);
	return true;
}

/* One that was being created when we came was in no list, and nobody asked about it. It waits in
 * its cgroup, and need not begin on all CPUs, or begin at all. */
static int on_waiting(struct manager *m, enum nri_event event, const struct nri_pod *pod,
		      const struct nri_container *c, struct nri_reply *reply)
{
	struct err err = { 0 };

	if (registry_find(&m->registry, c->id) || take_up(m, pod, c, false, &err))
		return 0;
	return event == NRI_START_CONTAINER ? refuse(m, pod, c, &err, reply) : 0;
}

static void on_started(struct manager *m, const struct nri_pod *pod, const struct nri_container *c)
{
	struct err err = { 0 };

	if (!take_up(m, pod, c, true, &err))
		log_no_place(pod, c, &err);
}

static int on_event(void *user, enum nri_event event, const struct nri_pod *pod,
		    const struct nri_container *c, struct nri_reply *reply)
{
	struct manager *m = user;
	int r = 0;

	switch (event) {
	case NRI_RUN_POD:
		manager_note_pod(m, registry_put_pod(&m->registry, pod, &m->scratch), pod);
		manager_pin_monitor(m, pod->pid);
		break;
	case NRI_REMOVE_POD:
		on_remove_pod(m, pod);
		break;
	case NRI_POST_CREATE_CONTAINER:
	case NRI_START_CONTAINER:
		r = on_waiting(m, event, pod, c, reply);
		break;
	case NRI_POST_START_CONTAINER:
		on_started(m, pod, c);
		break;
	case NRI_REMOVE_CONTAINER:
		on_remove_container(m, c->id);
		break;
	default:
		break;
	}
	arena_reset(&m->scratch);
	return r;
}

/* A drop-in that puts management containers elsewhere is somebody's mistake; ours are the CPUs that
 * are kept free for them, so they go there, and whoever asks is told. */
static void look_at_crio(struct manager *m)
{
	struct crio_config config = { 0 };
	struct cpuset reserved;
	struct err err = { 0 };

	m->crio = CRIO_NO_WORKLOAD;
	m->crio_cpus[0] = 0;
	if (!m->crio_dir || strcmp(m->runtime_name, CRIO_RUNTIME_NAME) != 0)
		return;
	manager_management_cpus(m, &reserved);
	if (crio_config_read(m->crio_dir, &reserved, &m->scratch, &config, &err) < 0) {
		log_warning("cannot read CRI-O's configuration, ignoring", LOG_ERR(&err));
		return;
	}
	m->crio = config.state;
	(void)snprintf(m->crio_cpus, sizeof(m->crio_cpus), PRI_STR, FMT_STR(config.cpus));
	if (m->crio == CRIO_AGREES)
		log_info("CRI-O pins management containers itself; checking that it does",
			 LOG_STR("cpus", config.cpus));
	if (m->crio == CRIO_DIFFERS)
		log_error("CRI-O's drop-in puts management containers on other CPUs than ours",
			  LOG_STR("crio", config.cpus),
			  LOG_STR("management", cpuset_format(&reserved, &m->scratch)));
	if (m->crio == CRIO_CANNOT_START)
		log_error("CRI-O cannot start management pods: its drop-in gives them CPUs, and "
			  "its cgroup_manager is cgroupfs");
}

static int on_configure(void *user, const struct nri_runtime *runtime, uint32_t *events,
			struct nri_reply *reply)
{
	struct manager *m = user;

	(void)events;
	(void)reply;
	(void)snprintf(m->runtime_name, sizeof(m->runtime_name), "%s", runtime->name);
	(void)snprintf(m->runtime_version, sizeof(m->runtime_version), "%s", runtime->version);
	(void)snprintf(m->nri_version, sizeof(m->nri_version), "%s", runtime->nri_version);
	look_at_crio(m);
	arena_reset(&m->scratch);
	return 0;
}

static void on_connected(void *user)
{
	struct manager *m = user;

	if (m->counters.disconnects > 0)
		event_queue_add(m->events, EVENT_RUNTIME_BACK, &(struct event_subject){ 0 },
				STR("the container runtime is back; what it started meanwhile was "
				    "put right"));
	m->is_connected = m->is_changed = true;
	m->problem[0] = 0;
	log_info("synchronised with the runtime", LOG_STR("runtime", str_from(m->runtime_name)),
		 LOG_STR("version", str_from(m->runtime_version)),
		 LOG_INT("pods", m->registry.n_pods),
		 LOG_INT("containers", m->registry.n_containers));
}

static void on_disconnected(void *user, const char *why)
{
	struct manager *m = user;

	if (m->is_connected)
		event_queue_add(m->events, EVENT_RUNTIME_LOST, &(struct event_subject){ 0 },
				str_printf(&m->scratch, "lost the container runtime: %s", why));
	m->counters.disconnects += m->is_connected;
	m->is_connected = false;
	m->is_changed = true;
	(void)snprintf(m->problem, sizeof(m->problem), "%s", why);
	log_warning("not connected to the runtime, trying again", LOG_STR("reason", str_from(why)));
}

static void on_handled(void *user, const char *method, uint64_t ns)
{
	struct manager *m = user;
	size_t i = 0;

	(void)method;
	while (i < MANAGER_BUCKETS && ns > manager_bounds_ns[i])
		i++;
	m->latency.counts[i]++;
	m->latency.sum_ns += ns;
}

const struct nri_handlers manager_handlers = {
	.configure = on_configure,
	.synchronize = manager_on_synchronize,
	.create_container = on_create,
	.update_container = on_update,
	.event = on_event,
	.connected = on_connected,
	.disconnected = on_disconnected,
	.handled = on_handled,
};
