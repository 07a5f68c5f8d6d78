/* Two parts. The first is pure: settings from a class, a grant or the kubelet's list, and the
 * difference to what the runtime has. Sets stay sets until settings_difference(), which makes the
 * text for the runtime. The second decides for one container, with the manager's state.
 *
 * A container that does not run yet can be refused, which is better than CPUs that are not its own.
 * A running one cannot: stopping it would do more harm than the wrong CPUs, so it gets what its
 * pool has. */

#include "placement.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/macro.h"
#include "codec/doc.h"
#include "manager_state.h"
#include "nri/nri.h"
#include "pod_demand.h"

/* --- settings: pure --- */

/* An empty list is never pushed: it means "no change" to the runtime, and every CPU to the kernel.
 */
static int no_cpu_left(enum pool pool, struct err *err)
{
	return err_set(err, ENOSPC, "no CPU left in the %s pool", pool_name(pool));
}

int placement_of_management(const struct cpu_settings *requested, struct str type,
			    const struct cpuset *type_cpus, struct placement *ret, struct err *err)
{
	if (cpuset_is_empty(type_cpus))
		return no_cpu_left(POOL_MANAGEMENT, err);
	if (!cpuset_is_subset(&requested->cpus, type_cpus)) {
		CLEANUP(arena_done) struct arena a;

		arena_init(&a, 0);
		return err_set(err, EPERM,
			       "annotation cpuset \"" PRI_STR "\" is not within the " PRI_STR
			       " CPUs " PRI_STR,
			       FMT_STR(cpuset_format(&requested->cpus, &a)), FMT_STR(type),
			       FMT_STR(cpuset_format(type_cpus, &a)));
	}
	*ret = (struct placement){ .pool = POOL_MANAGEMENT,
				   .names_cpus = !cpuset_is_empty(&requested->cpus),
				   .settings = *requested };
	if (cpuset_is_empty(&requested->cpus))
		ret->settings.cpus = *type_cpus;
	return 0;
}

int placement_of_grant(const struct ledger_grant *grant, struct placement *ret, struct err *err)
{
	const bool is_exclusive = grant->pool == POOL_GUARANTEED;

	if (cpuset_is_empty(&grant->cpus))
		return no_cpu_left(grant->pool, err);
	*ret = (struct placement){
		.pool = grant->pool,
		.is_exclusive = is_exclusive,
		/* D13: with a quota an exclusive container would be throttled on its own CPUs. */
		.settings = { .cpus = grant->cpus,
			      .mems = grant->memory_nodes,
			      .has_quota = is_exclusive,
			      .quota_us = is_exclusive ? CGROUP_UNLIMITED : 0 },
	};
	return 0;
}

int placement_in_kubelet_mode(const char *cpus, const struct cpuset *management,
			      const struct cpuset *shared, struct placement *ret, struct err *err)
{
	struct placement p = { .pool = POOL_SHARED };
	struct cpuset set, want;
	int r;

	r = cpuset_parse(str_from(cpus), &set, err);
	if (r < 0)
		return r;
	want = set;
	if (cpuset_intersects(&set, shared))
		cpuset_intersect(&want, shared);
	else
		cpuset_minus(&want, management);
	/* Otherwise no settings at all: the kubelet's own list stays in force. */
	if (!cpuset_eq(&want, &set))
		p.settings.cpus = want;
	*ret = p;
	return 0;
}

void placement_note_taken(const char *cpus, const struct cpuset *shared, struct cpuset *taken)
{
	struct cpuset set, other;

	if (cpuset_parse(str_from(cpus), &set, NULL) < 0 || !cpuset_intersects(&set, shared))
		return;
	other = set;
	cpuset_minus(&other, shared);
	/* A container with a part of the shared CPUs and no others owns them. Any other one is
	 * shared and has all that no container owns, so the rest has an owner. */
	if (cpuset_is_empty(&other) && !cpuset_eq(&set, shared)) {
		cpuset_union(taken, &set);
		return;
	}
	*taken = *shared;
	cpuset_minus(taken, &set);
}

struct str placement_describe(const struct placement *p, struct arena *a)
{
	yyjson_mut_doc *m = doc_build(a);
	yyjson_mut_val *root = yyjson_mut_obj(m);
	struct str text = STR("{}");

	doc_put_str(m, root, STR("pool"), str_from(pool_name(p->pool)));
	doc_put_bool(m, root, STR("exclusive"), p->is_exclusive);
	cpu_settings_put(&p->settings, m, root, a);
	(void)doc_write(root, false, a, &text, NULL);
	return text;
}

static bool cpus_fit(const struct cpuset *ours, const char *theirs, enum runtime_values kind)
{
	struct cpuset set;

	if (!*theirs && kind == RUNTIME_UPDATE)
		return true;
	return cpuset_parse(str_from(theirs), &set, NULL) == 0 && cpuset_eq(&set, ours);
}

/* A container without a quota has 0, or a negative number. */
static bool quota_fits(int64_t ours, int64_t theirs, enum runtime_values kind)
{
	if (!theirs && kind == RUNTIME_UPDATE)
		return true;
	return ours < 0 ? theirs <= 0 : ours == theirs;
}

static bool number_fits(uint64_t ours, uint64_t theirs, enum runtime_values kind)
{
	return ours == theirs || (!theirs && kind == RUNTIME_UPDATE);
}

/* Like cpus_fit(); a text that is no list of nodes differs. */
static bool mems_fit(uint64_t ours, const char *theirs, enum runtime_values kind)
{
	if (kind == RUNTIME_UPDATE && (!theirs || !*theirs))
		return true;
	return placement_memory_nodes(theirs) == ours;
}

uint64_t placement_memory_nodes(const char *mems)
{
	struct cpuset nodes;

	return mems && cpuset_parse(str_from(mems), &nodes, NULL) == 0 ? nodes.w[0] : 0;
}

bool settings_difference(const struct cpu_settings *settings, const struct nri_cpu *theirs,
			 enum runtime_values kind, struct arena *a, struct nri_cpu *ret)
{
	struct nri_cpu d = { 0 };

	if (!cpuset_is_empty(&settings->cpus) && !cpus_fit(&settings->cpus, theirs->cpus, kind))
		d.cpus = str_cstr(a, cpuset_format(&settings->cpus, a));
	if (settings->mems && !mems_fit(settings->mems, theirs->mems, kind))
		d.mems = str_cstr(a, cpuset_format(&(struct cpuset){ .w = { settings->mems } }, a));
	if (settings->shares && !number_fits(settings->shares, theirs->shares, kind)) {
		d.has_shares = true;
		d.shares = settings->shares;
	}
	if (settings->has_quota && !quota_fits(settings->quota_us, theirs->quota_us, kind)) {
		d.has_quota = true;
		d.quota_us = settings->quota_us;
	}
	if (settings->period_us && !number_fits(settings->period_us, theirs->period_us, kind)) {
		d.has_period = true;
		d.period_us = settings->period_us;
	}
	*ret = d;
	return d.cpus || d.mems || d.has_shares || d.has_quota || d.has_period;
}

/* --- the decision about one container --- */

/* Where its devices and its memory are, as far as that is known when it starts: devices from the
 * kubelet's PodResources, memory nodes from the runtime's request, where the kubelet's memory
 * manager has written them. */
static void add_nodes(struct manager *m, const struct nri_pod *pod, const struct nri_container *c,
		      struct ledger_request *request)
{
	const bool whole_pod = m->ledger->now.config.topology.scope == HINT_SCOPE_POD;

	request->memory_nodes = placement_memory_nodes(nri_container_cpu(c)->mems);
	if (m->devices.nodes)
		request->device_nodes =
			m->devices.nodes(m->devices.data, pod, whole_pod ? NULL : c->name);
	if (whole_pod)
		pod_demand_read(pod, c, &m->scratch, &request->pod);
}

struct ledger_request place_request(struct manager *m, const struct nri_pod *pod,
				    const struct nri_container *c,
				    const struct container_class *class)
{
	struct ledger_request request = {
		.pod_uid = str_from(pod->uid),
		.pod_namespace = str_from(pod->pod_namespace),
		.pod_name = str_from(pod->name),
		.container = str_from(c->name),
		.demand = class->demand,
		.is_management = class->is_management,
		.is_running = class->is_running,
	};

	if (!class->is_management && demand_cpus(&class->demand) > 0)
		add_nodes(m, pod, c, &request);
	if (class->distrust != DISTRUST_NONE) /* the stamp is not to be believed */
		request.pod = (struct ledger_pod){ 0 };
	return request;
}

static void report_distrust(struct manager *m, const struct nri_pod *pod,
			    const struct nri_container *c, enum distrust_reason distrust)
{
	if (distrust == DISTRUST_NONE)
		return;
	m->counters.annotations_rejected++;
	log_warning("annotation rejected", LOG_POD(pod), LOG_STR("container", str_from(c->name)),
		    LOG_STR("reason", str_from(distrust_text(distrust))));
	event_queue_add(m->events, EVENT_ANNOTATION_REJECTED, &SUBJECT_OF(pod, c),
			str_printf(&m->scratch, "container %s: annotations rejected: %s", c->name,
				   distrust_text(distrust)));
}

void place_classify_running(struct manager *m, const struct nri_pod *pod,
			    const struct nri_container *c, struct container_class *ret)
{
	struct err err = { 0 };

	if (classify_container(&m->rules, pod, c, &m->scratch, ret, &err) == 0) {
		report_distrust(m, pod, c, ret->distrust);
		ret->is_running = true;
		return;
	}
	/* Only the annotation of a management container is read, so it is one. */
	*ret = (struct container_class){ .is_management = true,
					 .type = classify_claimed_type(&m->rules, pod) };
	log_warning("running container has a broken annotation, using the defaults", LOG_POD(pod),
		    LOG_STR("container", str_from(c->name)), LOG_ERR(&err));
}

/* Memory nodes that the kubelet's memory manager chose stay: it counts the memory of each node. */
static int place_grant(const struct nri_container *c, const struct ledger_grant *grant,
		       struct placement *ret, struct err *err)
{
	const uint64_t theirs = placement_memory_nodes(nri_container_cpu(c)->mems);
	int r = placement_of_grant(grant, ret, err);

	if (r == 0 && ret->settings.mems && theirs)
		ret->settings.mems = theirs;
	return r;
}

/* In pod scope the CPUs may have been assigned with another container of the pod, by a stamp that
 * turns out to be wrong about this one. */
static bool is_reservation(const struct manager *m, const struct nri_pod *pod,
			   const struct nri_container *c)
{
	if (m->ledger->now.config.topology.scope != HINT_SCOPE_POD)
		return false;
	for (size_t i = 0; i < m->registry.n_containers; i++) {
		const struct container_entry *e = m->registry.containers[i];

		if (strcmp(e->pod->uid, pod->uid) == 0 && strcmp(e->name, c->name) == 0)
			return false;
	}
	return true;
}

int place_class(struct manager *m, const struct nri_pod *pod, const struct nri_container *c,
		const struct container_class *class, const struct ledger_grant *grant,
		struct placement *ret, struct err *err)
{
	struct ledger_request request;
	struct ledger_grant granted;
	struct cpuset cpus;
	int r;

	/* Neither is an assignment, so neither is in the ledger. */
	if (class->is_management) {
		manager_type_cpus(m, class->type, &cpus);
		return placement_of_management(&class->settings, class->type, &cpus, ret, err);
	}
	if (m->kubelet_manages)
		return manager_kubelet_placement(m, nri_container_cpu(c)->cpus, ret, err);
	if (grant)
		return place_grant(c, grant, ret, err);
	request = place_request(m, pod, c, class);
	r = ledger_allocate(m->ledger, &request, &granted, err);
	if (r == 0 && granted.size_differs && is_reservation(m, pod, c)) {
		(void)ledger_release_container(m->ledger, request.pod_uid, request.container, NULL);
		r = ledger_allocate(m->ledger, &request, &granted, err);
	}
	return r < 0 ? r : place_grant(c, &granted, ret, err);
}

/* Places a container and clears its exclusive CPUs. First the ledger, then the shared containers
 * leave, then the caller lets the container start: a crash in between leaves an assignment
 * without its container, never a CPU with two users. With three pools (not classic) no shared
 * container is on a guaranteed CPU (I2). */
static int place_and_clear(struct manager *m, const struct nri_pod *pod,
			   const struct nri_container *c, const struct container_class *class,
			   struct placement *ret, struct err *err)
{
	int r;

	r = place_class(m, pod, c, class, NULL, ret, err);
	/* The removal of a pod may have gone unreported; the search costs a lookup per pod, so it
	 * is made only when CPUs are missing. */
	if (r < 0 && manager_release_vanished_pods(m) > 0)
		r = place_class(m, pod, c, class, NULL, ret, err);
	if (r < 0)
		return r;
	if (!ret->is_exclusive || !m->ledger->now.config.is_classic)
		return 0;
	r = manager_repin_shared(m);
	if (r >= 0)
		return 0;
	/* A shared container is still there: give the CPUs back, to the shared ones, too. */
	(void)ledger_release_container(m->ledger, str_from(pod->uid), str_from(c->name), NULL);
	(void)manager_repin_shared(m);
	if (r == -ENOSPC) /* without management CPUs (D23) */
		return err_set(err, ENOSPC,
			       "it would own every CPU, and no CPU is left for other containers");
	return err_set(err, EBUSY, "cannot move shared containers off its exclusive CPUs");
}

static int place_running(struct manager *m, const struct nri_pod *pod,
			 const struct nri_container *c, struct placement *ret, struct err *err)
{
	struct container_class class, fallback;
	int r;

	place_classify_running(m, pod, c, &class);
	r = place_and_clear(m, pod, c, &class, ret, err);
	if (r == 0)
		return 0;
	/* Without a demand and settings: the whole shared pool, or all CPUs of its type. */
	fallback = (struct container_class){ .is_management = class.is_management,
					     .type = class.type };
	if (place_and_clear(m, pod, c, &fallback, ret, NULL) < 0)
		return r;
	log_error("running container does not get the CPUs it requests", LOG_POD(pod),
		  LOG_STR("container", str_from(c->name)),
		  LOG_STR("cpus", cpuset_format(&ret->settings.cpus, &m->scratch)), LOG_ERR(err));
	return 0;
}

int place_container(struct manager *m, const struct nri_pod *pod, const struct nri_container *c,
		    enum place_mode mode, struct placement *ret, struct err *err)
{
	struct container_class class;
	int r;

	if (mode == PLACE_RUNNING)
		return place_running(m, pod, c, ret, err);
	r = classify_container(&m->rules, pod, c, &m->scratch, &class, err);
	if (r < 0)
		return r;
	report_distrust(m, pod, c, class.distrust);
	/* The ledger finds an assignment by pod and container: with an id that only this call knows
	 * it could never be released. */
	if (mode == PLACE_UNNAMED && !class.is_management && demand_cpus(&class.demand) > 0)
		return err_set(err, EPERM,
			       "exclusive CPUs need a container id, and linux.cgroupsPath has "
			       "none: pass --id");
	return place_and_clear(m, pod, c, &class, ret, err);
}
