/* Called once a second: the texts must not contain anything that changes all the time, because
 * every difference is a write. Counters and the use of pools are exempt (partition_writer.h). */

#include "partition_desired.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/macro.h"
#include "cpu/topology.h"
#include "kube/names.h"
#include "kube/shares.h"
#include "pin/manager.h"

static const char *resize_reason(enum resize_state state)
{
	return state == RESIZE_DEFERRED ? "ResizeDeferred" :
	       state == RESIZE_FAILED	? "ResizeFailed" :
					  "ResizeRefused";
}

static struct condition condition(bool is_true, const char *reason, struct str message)
{
	return (struct condition){ .status = is_true ? CONDITION_TRUE : CONDITION_FALSE,
				   .reason = str_from(reason),
				   .message = message };
}

/* Whether the pools are those of the profile, whatever their source is. */
static bool has_profile_pools(const struct manager *m)
{
	struct pool_config c = m->ledger->now.config;

	/* A profile always folds; lists that name all CPUs are the same without it. */
	c.fold_rest = true;
	return m->status.profile.pools_hash == pool_config_hash(&c);
}

/* What keeps the node from being partitioned as its profile says, the cause before its effects. */
static struct condition ready_condition(const struct manager *m, enum node_reason health,
					struct arena *a)
{
	const struct profile_report *profile = &m->status.profile;
	const struct resize_report *resize = &m->status.resize;
	const struct pools_in_force *pools = &m->status.pools;
	struct cpuset shared;

	if (profile->state == PROFILE_CONFLICT)
		return condition(false, "ProfileConflict", str_from(profile->message));
	if (profile->state == PROFILE_INVALID)
		return condition(false, "ProfileInvalid",
				 str_printf(a, "profile %s: %s", profile->name, profile->message));
	if (resize->state > RESIZE_DONE)
		return condition(false, resize_reason(resize->state), str_from(resize->why.msg));
	if (health == NODE_RUNTIME_LOST || health == NODE_CGROUPS_FAIL)
		return condition(false, node_reason_name(health),
				 health == NODE_RUNTIME_LOST ?
					 STR("not connected to the container runtime") :
					 STR("cgroup control files could not be written"));
	if (profile->state == PROFILE_SELECTED && pools->origin != POOLS_FROM_PROFILE &&
	    !has_profile_pools(m))
		return condition(false, "Overridden",
				 str_printf(a, "the pools of %s come before those of profile %s",
					    pools->from, profile->name));
	if (manager_shared_is_empty(m, &shared))
		return condition(true, NAME_REASON_SHARED_EMPTY,
				 str_printf(a, MANAGER_SHARED_EMPTY_TEXT PRI_STR,
					    FMT_STR(cpuset_format(&shared, a))));
	if (pools->origin == POOLS_FROM_NOTHING)
		return condition(true, "NoProfile",
				 STR("no profile selects the node: containers may use all CPUs"));
	return condition(true, "Partitioned", STR(""));
}

static struct condition conflict_condition(const struct profile_report *profile)
{
	if (profile->state == PROFILE_UNKNOWN)
		return (struct condition){ 0 };
	if (profile->state == PROFILE_CONFLICT)
		return condition(true, "ProfilesOverlap", str_from(profile->message));
	return condition(false, "NoConflict", STR(""));
}

static void add_pending(const struct manager *m, struct node_partition_status *s, struct arena *a)
{
	const struct resize_report *resize = &m->status.resize;
	const struct reboot_notes *notes = &m->status.reboot;
	struct pending_change *items = arena_array(a, struct pending_change, notes->n + 1);
	size_t n = 0;

	if (resize->state > RESIZE_DONE)
		items[n++] =
			(struct pending_change){ .need = NEED_RESIZE,
						 .reason = str_from(resize_reason(resize->state)),
						 .message = str_from(resize->why.msg) };
	for (size_t i = 0; i < notes->n && n < NODE_PARTITION_PENDING_MAX; i++) {
		const struct reboot_note *note = &notes->items[i];
		const struct str message =
			str_printf(a, "%s has CPUs " PRI_STR " instead of " PRI_STR ": %s",
				   note->what, FMT_STR(cpuset_format(&note->have, a)),
				   FMT_STR(cpuset_format(&note->want, a)), note->why);

		/* No hash: the agent neither changes what the machine boots with nor reboots it, so
		 * there is nothing that an operator could grant (D37). */
		items[n++] = (struct pending_change){ .need = NEED_REBOOT,
						      .reason = STR(PENDING_BOOT_PARAMETER),
						      .message = message };
	}
	s->pending = items;
	s->n_pending = n;
}

/* CPUs that can be assigned exclusively and are not free. */
static void exclusive_cpus(const struct manager *m, struct cpuset *ret)
{
	*ret = (struct cpuset){ 0 };
	for (size_t i = 0; i < m->registry.n_containers; i++)
		if (m->registry.containers[i]->is_exclusive)
			cpuset_union(ret, &m->registry.containers[i]->settings->cpus);
}

static void add_pools(const struct manager *m, struct node_partition_status *s, struct arena *a)
{
	struct pool_use *pools = arena_array(a, struct pool_use, POOL__COUNT);
	struct cpuset exclusive, unassigned;

	for (enum pool p = 0; p < POOL__COUNT; p++) {
		pools[p] = (struct pool_use){ .name = str_from(pool_name(p)), .free_cpus = -1 };
		if (p == POOL_GUARANTEED)
			pools[p].requested_millicores = -1;
	}
	for (size_t i = 0; i < m->registry.n_containers; i++) {
		const struct container_entry *c = m->registry.containers[i];

		pools[c->pool].containers++;
		if (c->pool != POOL_GUARANTEED)
			pools[c->pool].requested_millicores +=
				cpu_shares_to_milli(c->settings->shares);
	}
	exclusive_cpus(m, &exclusive);
	ledger_free(m->ledger, &unassigned);
	pools[POOL_GUARANTEED].exclusive_cpus = cpuset_format(&exclusive, a);
	pools[POOL_GUARANTEED].free_cpus = cpuset_count(&unassigned);
	s->pools = pools;
	s->n_pools = POOL__COUNT;
}

static void add_numa(const struct manager *m, struct node_partition_status *s, struct arena *a)
{
	const struct topology *t = m->ledger->now.topology;
	const size_t n = t->level[TOPOLOGY_NUMA].n < NODE_PARTITION_NUMA_MAX ?
				 t->level[TOPOLOGY_NUMA].n :
				 NODE_PARTITION_NUMA_MAX;
	struct numa_use *numa = arena_array(a, struct numa_use, n);
	struct cpuset exclusive;

	exclusive_cpus(m, &exclusive);
	for (size_t i = 0; i < n; i++) {
		struct cpuset cpus = { 0 }, taken;
		struct ledger_numa free;

		ledger_numa(m->ledger, i, &free);
		topology_add_element(t, TOPOLOGY_NUMA, (unsigned)i, &cpus);
		taken = cpus;
		cpuset_intersect(&taken, &exclusive);
		numa[i] = (struct numa_use){ .id = free.id,
					     .cpus = cpuset_format(&cpus, a),
					     .exclusive_cpus = cpuset_format(&taken, a),
					     .free_cpus = free.n_free };
	}
	s->numa = numa;
	s->n_numa = n;
}

/* A machine with more groups than the object may have reports none. */
static void add_topology(const struct manager *m, struct node_partition_status *s, struct arena *a)
{
	struct machine_group *groups;
	size_t n;

	if (machine_groups_of(m->ledger->now.topology, a, &groups, &n, NULL) < 0)
		return;
	s->topology = groups;
	s->n_topology = n;
}

static int by_container(const void *x, const void *y)
{
	const struct assigned_cpus *a = x, *b = y;
	int r = str_cmp(a->namespace, b->namespace);

	if (r == 0)
		r = str_cmp(a->pod, b->pod);
	return r ? r : str_cmp(a->container, b->container);
}

/* In an order of its own: that of the registry changes with every container that ends. */
static void add_assignments(const struct manager *m, struct node_partition_status *s,
			    struct arena *a)
{
	struct assigned_cpus *list = arena_array(a, struct assigned_cpus, m->registry.n_containers);
	size_t n = 0;

	for (size_t i = 0; i < m->registry.n_containers; i++) {
		const struct container_entry *c = m->registry.containers[i];

		if (c->is_exclusive)
			list[n++] = (struct assigned_cpus){ str_from(c->pod->namespace),
							    str_from(c->pod->name),
							    str_from(c->name),
							    cpuset_format(&c->settings->cpus, a) };
	}
	if (n)
		qsort(list, n, sizeof(*list), by_container);
	s->assignments = list;
	s->n_assignments = n < NODE_PARTITION_ASSIGNMENTS_MAX ? n : NODE_PARTITION_ASSIGNMENTS_MAX;
}

/* The pools as configured, not without the CPUs that are assigned exclusively at the moment.
 * Without management CPUs of its own the node has the whole set. */
static void add_cpus(const struct manager *m, struct node_partition_status *s, struct arena *a)
{
	const struct pool_config *c = &m->ledger->now.config;
	const struct topology *t = m->ledger->now.topology;
	struct cpuset cpus = cpuset_is_empty(&c->reserved) ? t->online : c->reserved;

	cpuset_intersect(&cpus, &t->online);
	s->management = cpuset_format(&cpus, a);
	pool_config_shared(c, t, &cpus);
	cpuset_intersect(&cpus, &t->online);
	s->shared = cpuset_format(&cpus, a);
	pool_config_guaranteed(c, t, &cpus);
	cpuset_intersect(&cpus, &t->online);
	s->guaranteed = cpuset_format(&cpus, a);
	s->online = cpuset_format(&t->online, a);
}

struct node_partition_status partition_desired(const struct partition_desired_source *source,
					       enum node_reason health, struct arena *a)
{
	const struct manager *m = source->manager;
	struct node_partition_status s = {
		.agent_version = source->version,
		.origin = m->status.pools.origin,
		.profile = str_from(m->status.pools.profile),
		.profile_generation = m->status.pools.generation,
		.drift_corrected = (int64_t)m->counters.drift_corrected,
		.drift_failed = (int64_t)m->counters.write_failures,
		.refused = (int64_t)m->counters.refused,
		.conditions = { [PARTITION_READY] = ready_condition(m, health, a),
				[PARTITION_CONFLICT] = conflict_condition(&m->status.profile) },
	};

	add_cpus(m, &s, a);
	add_pools(m, &s, a);
	add_numa(m, &s, a);
	add_topology(m, &s, a);
	add_assignments(m, &s, a);
	add_pending(m, &s, a);
	if (source->describe)
		source->describe(source->describe_data, &s, a);
	return s;
}
