/* The handlers of NRI calls. The runtime waits for each reply, holds a lock meanwhile
 * (docs/reference/nri.md#locking) and drops a plugin after 2 s (docs/reference/nri.md#replies). So
 * a handler calls no API server: Events are queued, and the pod's cgroups are written by
 * manager_flush() after the reply.
 *
 * The scratch arena is reset at the end of a call. Texts in it may go into the reply, the registry
 * or the queue of Events: each makes a copy. */

#include "manager.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "change_watch.h"
#include "isolate.h"
#include "manager_state.h"
#include "manager_sync.h"

/* Denser around the budget of 200 us (D22); the last ones show calls near the runtime's timeout. */
const uint64_t manager_bounds_ns[MANAGER_BUCKETS] = {
	10000, 25000, 50000, 100000, 200000, 500000, 1000000, 5000000, 50000000, 500000000
};

void manager_init(struct manager *m, struct ledger *ledger, const struct cgroup_fs *cgroups)
{
	*m = (struct manager){ .ledger = ledger, .cgroups = cgroups };
	arena_init(&m->scratch, 0);
	registry_init(&m->registry);
	cgroup_watch_init(&m->cgroup_watch);
	m->rules.pools = &ledger->now.config;
}

void manager_done(struct manager *m)
{
	free(m->runtime.crio_cpus);
	free(m->runtime.crio_type);
	for (size_t i = 0; i < m->n_types; i++)
		free(m->types[i]);
	free(m->types);
	refusals_done(&m->refusals);
	cgroup_watch_done(&m->cgroup_watch);
	registry_done(&m->registry);
	arena_done(&m->scratch);
}

static int refuse_container(struct manager *m, const struct nri_pod *pod,
			    const struct nri_container *c, const struct err *err,
			    struct nri_reply *reply)
{
	m->counters.refused++;
	log_error("container refused", LOG_POD(pod), LOG_STR("container", str_from(c->name)),
		  LOG_ERR(err));
	refusals_add(&m->refusals, &SUBJECT_OF(pod, c), err);
	m->is_changed = true;
	event_queue_add(m->events,
			err->code == EXDEV ? EVENT_TOPOLOGY_REFUSED : EVENT_CONTAINER_REFUSED,
			&SUBJECT_OF(pod, c),
			str_printf(&m->scratch, "container %s: %s", c->name, err->msg));
	return nri_refuse(reply, "pinfold: %s/%s, container %s: %s", pod->pod_namespace, pod->name,
			  c->name, err->msg);
}

static int on_create(void *user, const struct nri_pod *pod, const struct nri_container *c,
		     struct nri_reply *reply)
{
	struct manager *m = user;
	struct placement p;
	struct err err = { 0 };
	struct nri_cpu cpu;
	int r = 0;

	manager_enforce_synchronized(m);
	/* The runtime may have applied an update of the last synchronization after a resize of the
	 * pools: the containers in it leave CPUs before they are handed out here. */
	manager_check_written(m);
	/* The ledger's file has the CPUs before the reply hands them out. If the runtime fails to
	 * create the container after all, they stay assigned: the next attempt has the same pod UID
	 * and name and gets them again. */
	if (place_container(m, pod, c, PLACE_NEW, &p, &err) < 0) {
		r = refuse_container(m, pod, c, &err, reply);
	} else {
		m->counters.placed[p.pool]++;
		(void)manager_record_container(m, pod, c, &p);
		/* Only what differs: the creation fails when two plugins set the same field. */
		if (settings_difference(&p.settings, nri_container_cpu(c), RUNTIME_CURRENT,
					&m->scratch, &cpu))
			nri_adjust_cpu(reply, &cpu);
	}
	arena_reset(&m->scratch);
	return r;
}

/* Adopts a container whose creation was not reported; its cgroup exists. */
static struct container_entry *adopt_missed(struct manager *m, const struct nri_pod *pod,
					    const struct nri_container *c, enum place_mode mode,
					    struct err *err)
{
	struct container_entry *entry;
	struct placement p;

	if (place_container(m, pod, c, mode, &p, err) < 0)
		return NULL;
	m->counters.adopted_late++;
	entry = manager_record_container(m, pod, c, &p);
	entry->is_started = true;
	return entry;
}

/* A resize that would change the exclusive CPUs, or the pool, of a container is refused
 * (docs/reference/pools.md#in-place-resize). */
static int check_resize(struct manager *m, const struct nri_pod *pod, const struct nri_container *c,
			const struct nri_cpu *requested, struct err *err)
{
	const struct nri_cpu *now = nri_container_cpu(c);
	const uint64_t period = requested->period_us ? requested->period_us : now->period_us;
	struct ledger_request request;
	struct container_class class;

	/* Without new shares the CPU request does not change: 0 means "unchanged"
	 * (docs/reference/nri.md#unset-values). */
	if (m->kubelet_manages || requested->shares == 0 || requested->shares == now->shares)
		return 0;
	if (classify_container(&m->rules, pod, c, &m->scratch, &class, err) < 0 ||
	    class.is_management)
		return 0;
	class.demand.cpu_milli = classify_milli(requested->shares, requested->quota_us, period);
	request = place_request(m, pod, c, &class);
	return ledger_check_update(m->ledger, &request, err);
}

/* The container keeps its settings, in the runtime and here. */
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

static int update(struct manager *m, const struct nri_pod *pod, const struct nri_container *c,
		  const struct nri_cpu *requested, struct nri_reply *reply)
{
	struct container_entry *entry = registry_find(&m->registry, c->id);
	struct err err = { 0 };
	struct nri_cpu cpu;

	if (!entry)
		entry = adopt_missed(m, pod, c, PLACE_RUNNING, &err);
	if (!entry) {
		manager_log_unplaced(pod, c, &err);
		return 0; /* the kubelet repeats an update that fails, which helps nothing */
	}
	entry->pod->needs_write = true; /* the kubelet resizes the pod's cgroup before this call */
	if (check_resize(m, pod, c, requested, &err) < 0)
		return refuse_resize(m, pod, c, &err, reply);
	/* The kubelet's static policy sends the new CPUs of shared containers whenever it assigns
	 * or releases exclusive ones. In kubelet mode these are in force. */
	if (m->kubelet_manages && entry->pool != POOL_MANAGEMENT && *requested->cpus) {
		struct placement p;

		if (manager_kubelet_placement(m, requested->cpus, &p, &err) == 0)
			registry_set_settings(&m->registry, entry, &p.settings);
	}
	/* The kubelet does not check what was applied: it takes its own values for the present ones
	 * until it has new ones. */
	if (settings_difference(entry->settings, requested, RUNTIME_UPDATE, &m->scratch, &cpu)) {
		m->counters.updates_overridden++;
		nri_update_cpu(reply, c->id, &cpu, false);
	}
	return 0;
}

static int on_update(void *user, const struct nri_pod *pod, const struct nri_container *c,
		     const struct nri_cpu *requested, struct nri_reply *reply)
{
	struct manager *m = user;
	int r;

	manager_enforce_synchronized(m);
	r = update(m, pod, c, requested, reply);
	arena_reset(&m->scratch);
	return r;
}

/* Events. */

/* The ledger keeps the assignment: a container that is restarted gets the same CPUs, and the pod's
 * removal releases them (docs/reference/cpu-manager.md#release). */
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

/* Enforces the settings of a container whose cgroup exists by now, also of one that was created
 * between the registration and the first event (docs/reference/nri.md#missed-containers). */
static bool enforce_created(struct manager *m, const struct nri_pod *pod,
			    const struct nri_container *c, enum place_mode mode, struct err *err)
{
	struct container_entry *entry = registry_find(&m->registry, c->id);

	manager_pin_monitor(m, c->pid);
	if (!entry)
		entry = adopt_missed(m, pod, c, mode, err);
	if (!entry)
		return false;
	entry->is_started = true;
	entry->pod->needs_write = true; /* the pod's and the pause container's cgroup exist, too */
	(void)manager_enforce(m, entry, false);
	isolate_container(m, entry);
	return true;
}

/* A container that was being created when the agent connected is in no list, and its creation was
 * not reported. Its process does not run yet, so it is pinned, or refused, before it starts. */
static int on_not_started(struct manager *m, enum nri_event event, const struct nri_pod *pod,
			  const struct nri_container *c, struct nri_reply *reply)
{
	struct container_entry *entry = registry_find(&m->registry, c->id);
	struct err err = { 0 };

	/* Its CPUs may have changed since the reply to CreateContainer, when it had no cgroup to
	 * write: by a resize, or in classic mode by an exclusive assignment. */
	if (entry && event == NRI_START_CONTAINER && manager_enforce(m, entry, false) < 0)
		entry->is_started = true; /* it runs soon: the next round tries again */
	if (entry || enforce_created(m, pod, c, PLACE_NEW, &err))
		return 0;
	/* The runtime only logs an error reply to PostCreateContainer; StartContainer is next. */
	return event == NRI_START_CONTAINER ? refuse_container(m, pod, c, &err, reply) : 0;
}

static int on_event(void *user, enum nri_event event, const struct nri_pod *pod,
		    const struct nri_container *c, struct nri_reply *reply)
{
	struct manager *m = user;
	struct pod_entry *known;
	struct err err = { 0 };
	int r = 0;

	manager_enforce_synchronized(m);
	switch (event) {
	case NRI_RUN_POD:
		(void)manager_record_pod(m, pod);
		manager_pin_monitor(m, pod->pid);
		if (m->devices.expect && classify_is_guaranteed(pod))
			m->devices.expect(m->devices.data, pod);
		break;
	case NRI_REMOVE_POD:
		known = registry_find_pod(&m->registry, pod->id);
		if (known)
			manager_release_pod(m, known);
		break;
	case NRI_POST_CREATE_CONTAINER:
	case NRI_START_CONTAINER:
		manager_check_written(m); /* as in on_create() */
		r = on_not_started(m, event, pod, c, reply);
		break;
	case NRI_POST_START_CONTAINER:
		if (!enforce_created(m, pod, c, PLACE_RUNNING, &err))
			manager_log_unplaced(pod, c, &err);
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

/* Where CRI-O's drop-in names other CPUs for management containers, Pinfold's settings win: the
 * management CPUs are kept free for them. The status and verify report the difference.
 *
 * Read once per connection: CRI-O reads its workloads only when it starts, and a restart of CRI-O
 * is a new connection. */
static void read_crio_config(struct manager *m)
{
	struct crio_config config = { 0 };
	struct cpuset management, cpus;
	struct err err = { 0 };

	m->runtime.crio = CRIO_NO_WORKLOAD;
	free(m->runtime.crio_cpus);
	free(m->runtime.crio_type);
	m->runtime.crio_cpus = m->runtime.crio_type = NULL;
	if (!m->crio_dir || strcmp(m->runtime.name, CRIO_RUNTIME_NAME) != 0)
		return;
	manager_management_cpus(m, &management);
	if (crio_config_read(m->crio_dir,
			     &(struct crio_pools){ &m->ledger->now.config, &management,
						   m->rules.is_legacy },
			     &m->scratch, &config, &err) < 0) {
		log_warning("cannot read the configuration of CRI-O, ignoring", LOG_ERR(&err));
		return;
	}
	m->runtime.crio = config.state;
	m->runtime.crio_cpus = strndup(config.cpus.p ? config.cpus.p : "", config.cpus.n);
	m->runtime.crio_type = strndup(config.type.p ? config.type.p : "", config.type.n);
	if (!m->runtime.crio_cpus || !m->runtime.crio_type)
		abort();
	manager_type_cpus(m, config.type, &cpus);
	if (m->runtime.crio == CRIO_AGREES)
		log_info("CRI-O pins management containers itself, the agent checks it",
			 LOG_STR("cpus", config.cpus));
	if (m->runtime.crio == CRIO_DIFFERS)
		log_error("CRI-O's drop-in names other CPUs for a workload type",
			  LOG_STR("type", config.type), LOG_STR("crio", config.cpus),
			  LOG_STR("pools", cpuset_format(&cpus, &m->scratch)));
	if (m->runtime.crio == CRIO_CANNOT_START)
		log_error("CRI-O cannot start management pods: its drop-in sets a cpuset, and its "
			  "cgroup_manager is cgroupfs");
}

static int on_configure(void *user, const struct nri_runtime *runtime, uint32_t *events,
			struct nri_reply *reply)
{
	struct manager *m = user;

	(void)events;
	(void)reply;
	(void)snprintf(m->runtime.name, sizeof(m->runtime.name), "%s", runtime->name);
	(void)snprintf(m->runtime.version, sizeof(m->runtime.version), "%s", runtime->version);
	read_crio_config(m);
	arena_reset(&m->scratch);
	return 0;
}

static bool keep(void *user, enum nri_metadata kind, const char *key)
{
	const struct manager *m = user;

	if (kind == NRI_POD_LABEL)
		return classify_reads_label(&m->rules, key);
	return kind == NRI_POD_ANNOTATION && classify_reads(&m->rules, key);
}

static void on_connected(void *user)
{
	struct manager *m = user;

	if (m->counters.disconnects > 0)
		event_queue_add(m->events, EVENT_RUNTIME_BACK, &(struct event_subject){ 0 },
				STR("connected to the container runtime again; containers that it "
				    "started meanwhile were adopted"));
	m->runtime.is_connected = m->is_changed = true;
	m->runtime.problem[0] = 0;
	log_info("synchronized with the runtime", LOG_STR("runtime", str_from(m->runtime.name)),
		 LOG_STR("version", str_from(m->runtime.version)),
		 LOG_INT("pods", m->registry.n_pods),
		 LOG_INT("containers", m->registry.n_containers));
}

static void on_disconnected(void *user, const char *why)
{
	struct manager *m = user;

	if (m->runtime.is_connected)
		event_queue_add(m->events, EVENT_RUNTIME_LOST, &(struct event_subject){ 0 },
				str_printf(&m->scratch,
					   "lost the connection to the container runtime: %s",
					   why));
	/* Failed attempts to connect come here, too; only a lost connection counts. */
	m->counters.disconnects += m->runtime.is_connected;
	m->runtime.is_connected = false;
	m->is_changed = true;
	(void)snprintf(m->runtime.problem, sizeof(m->runtime.problem), "%s", why);
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
	.keep = keep,
	.connected = on_connected,
	.disconnected = on_disconnected,
	.handled = on_handled,
};
