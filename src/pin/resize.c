/* Only management and shared containers move. A guaranteed container keeps its CPUs as long as it
 * runs, because the application has pinned its threads to them, so a resize that takes one is
 * refused or deferred.
 *
 * Cgroups are written directly, not through the runtime: an update there costs a process of the OCI
 * runtime for each container, and shared containers have to leave a CPU before it is assigned. */

#include "resize.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "cgroup/cgroup.h"
#include "crio.h"
#include "enforce.h"
#include "manager_state.h"

const char *resize_state_name(enum resize_state state)
{
	static const char *const names[] = {
		[RESIZE_NONE] = "none",	      [RESIZE_DONE] = "done",
		[RESIZE_REFUSED] = "refused", [RESIZE_DEFERRED] = "deferred",
		[RESIZE_FAILED] = "failed",
	};

	return names[state];
}

/* --- order --- */

static void add_step(struct resize_steps *s, struct resize_sets *now, enum pool pool,
		     const struct cpuset *cpus)
{
	const bool is_shrink = cpuset_is_subset(cpus, &now->of[pool]);

	s->items[s->n++] = (struct resize_step){ pool, now->of[pool], *cpus, is_shrink };
	now->of[pool] = *cpus;
}

/* `1 - pool` is the other one: only the management and the shared pool have steps. */
static bool is_clear(const struct resize_sets *now, enum pool pool, const struct cpuset *cpus)
{
	return !cpuset_intersects(cpus, &now->of[1 - pool]);
}

void resize_order(const struct resize_sets *from, const struct resize_sets *to,
		  struct resize_steps *ret)
{
	struct resize_steps s = { 0 };
	struct resize_sets now = *from;

	/* Shrinks: each pool keeps what it has before and after. They only free CPUs, so their
	 * order does not matter. */
	for (enum pool p = 0; p < POOL_GUARANTEED; p++) {
		struct cpuset kept = now.of[p];

		cpuset_intersect(&kept, &to->of[p]);
		if (cpuset_is_empty(&kept)) { /* then at least off the other pool's future CPUs */
			kept = now.of[p];
			cpuset_minus(&kept, &to->of[1 - p]);
		}
		if (!cpuset_is_empty(&kept) && !cpuset_eq(&kept, &now.of[p]))
			add_step(&s, &now, p, &kept);
	}
	/* Growths: first the pool whose new CPUs the other one has left. When each waits for the
	 * other, one has to go first and overlaps until the second has moved. */
	for (size_t round = 0; round < POOL_GUARANTEED; round++) {
		enum pool next = POOL_GUARANTEED;

		for (enum pool p = 0; p < POOL_GUARANTEED; p++) {
			if (cpuset_eq(&now.of[p], &to->of[p]) || cpuset_is_empty(&to->of[p]))
				continue;
			if (next == POOL_GUARANTEED || is_clear(&now, p, &to->of[p]))
				next = p;
			if (is_clear(&now, next, &to->of[next]))
				break;
		}
		if (next == POOL_GUARANTEED)
			break;
		if (!is_clear(&now, next, &to->of[next]))
			s.overlaps = true;
		add_step(&s, &now, next, &to->of[next]);
	}
	*ret = s;
}

/* --- containers that prevent it --- */

static void add_obstacle(struct resize_report *r, const char *name, const struct cpuset *cpus,
			 struct arena *a)
{
	if (r->n_obstacles < RESIZE_MAX_NAMED) {
		struct resize_obstacle *o = &r->obstacles[r->n_obstacles];

		(void)snprintf(o->name, sizeof(o->name), "%s", name);
		(void)snprintf(o->cpus, sizeof(o->cpus), PRI_STR, FMT_STR(cpuset_format(cpus, a)));
	}
	r->n_obstacles++;
}

static void add_owners(const struct ledger_resize_plan *plan, struct resize_report *r,
		       struct arena *a)
{
	for (size_t i = 0; i < plan->n_conflicts; i++) {
		const struct assignment *who = plan->conflicts[i].assignment;

		add_obstacle(r,
			     str_cstr(a,
				      str_printf(a, PRI_STR "/" PRI_STR "/" PRI_STR,
						 FMT_STR(who->pod_namespace),
						 FMT_STR(who->pod_name), FMT_STR(who->container))),
			     &plan->conflicts[i].cpus, a);
	}
}

/* Management containers whose annotation names their CPUs. They are not moved: their creator chose
 * these CPUs. */
static void add_naming(const struct manager *m, const struct pool_config *pools,
		       const struct cpuset *management, struct resize_report *r, struct arena *a)
{
	for (size_t i = 0; i < m->registry.n_containers; i++) {
		const struct container_entry *c = m->registry.containers[i];
		struct cpuset cpus, after;

		if (!c->names_cpus)
			continue;
		cpus = c->settings->cpus;
		pool_config_type_cpus(pools, registry_type_of(c), management, &after);
		cpuset_minus(&cpus, &after);
		if (!cpuset_is_empty(&cpus))
			add_obstacle(r,
				     str_cstr(a, str_printf(a, "%s/%s/%s", c->pod->namespace,
							    c->pod->name, c->name)),
				     &cpus, a);
	}
}

static int refuse_for_obstacles(struct resize_report *r)
{
	char more[48] = "";

	if (r->n_obstacles > 1)
		(void)snprintf(more, sizeof(more), ", and %zu more are in the way",
			       r->n_obstacles - 1);
	return err_set(&r->why, EBUSY, "%s runs on CPUs %s, which would leave its pool%s",
		       r->obstacles[0].name, r->obstacles[0].cpus, more);
}

/* --- execution --- */

struct resize_work {
	struct manager *m;
	struct resize_report *report;
	const struct cpuset *cpus;	 /* of the present step */
	const struct pool_config *pools; /* in force at this step: the CPUs of workload types */
	struct pool_config before;	 /* the resize */
	bool is_undo;			 /* a failed write does not stop the others */
};

/* A cgroup that is gone, or not created yet, has no task to move. */
static int write_cpus(struct resize_work *w, const char *path, const struct cpuset *cpus)
{
	struct err err = { 0 };
	int r;

	if (!w->m->cgroups || !*path)
		return 0;
	r = cgroup_set_cpus(w->m->cgroups, path, cpus, &err);
	if (r == -ENOENT || r == -ENODEV)
		return 0;
	if (r < 0) {
		w->m->counters.write_failures++;
		w->report->why = err;
		return w->is_undo ? 0 : r;
	}
	w->report->n_writes++;
	return 0;
}

/* The CPUs of the step; of a management container those that its workload type has of them. */
static void cpus_in_step(const struct resize_work *w, const struct container_entry *c,
			 struct cpuset *ret)
{
	if (c->pool == POOL_MANAGEMENT)
		pool_config_type_cpus(w->pools, registry_type_of(c), w->cpus, ret);
	else
		*ret = *w->cpus;
}

static int move_containers(struct resize_work *w, enum pool pool)
{
	struct registry *all = &w->m->registry;

	for (size_t i = 0; i < all->n_containers; i++) {
		struct container_entry *c = all->containers[i];
		struct cpuset cpus;
		int r;

		if (c->pool != pool || cpuset_is_empty(&c->settings->cpus) || c->keeps_cpus)
			continue;
		cpus_in_step(w, c, &cpus);
		registry_set_cpus(all, c, &cpus);
		if (manager_is_own(w->m, c)) {
			w->m->wants_sync = true;
			continue;
		}
		r = write_cpus(w, c->cgroup, &cpus);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Types change within the pool, with or without a change of the pool: their CPUs may overlap, so
 * the order does not matter. */
static int move_types(struct resize_work *w, const struct cpuset *management)
{
	w->cpus = management;
	return move_containers(w, POOL_MANAGEMENT);
}

static int move_pauses(struct resize_work *w)
{
	const struct registry *all = &w->m->registry;

	for (size_t i = 0; i < all->n_pods; i++) {
		struct pod_entry *pod = all->pods[i];
		int r;

		if (!*pod->pause_cgroup && pod->pause_pid && w->m->cgroups)
			(void)enforce_pause(w->m->cgroups, pod, w->cpus, NULL);
		r = write_cpus(w, pod->pause_cgroup, w->cpus);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Monitors use little CPU time, so they follow after the containers. */
static void move_monitors(struct manager *m)
{
	const struct registry *all = &m->registry;
	pid_t *pids;
	size_t n;

	if (!m->cgroups || strcmp(m->runtime.name, CRIO_RUNTIME_NAME) != 0)
		return;
	for (size_t i = 0; i < all->n_pods; i++)
		manager_pin_monitor(m, all->pods[i]->pause_pid);
	for (size_t i = 0; i < all->n_containers; i++)
		if (*all->containers[i]->cgroup &&
		    cgroup_procs(m->cgroups, all->containers[i]->cgroup, &m->scratch, &pids, &n,
				 NULL) == 0)
			for (size_t k = 0; k < n; k++)
				manager_pin_monitor(m, (uint32_t)pids[k]);
}

static int move_pool(struct resize_work *w, enum pool pool, const struct cpuset *cpus)
{
	int r;

	w->cpus = cpus;
	r = move_containers(w, pool);
	if (r == 0 && pool == POOL_MANAGEMENT)
		r = move_pauses(w);
	return r;
}

/* In reverse order, so that no CPU is in two pools here either. A failed write is corrected by the
 * next reconciliation, because the settings are the old ones again. */
static void undo(struct resize_work *w, const struct resize_sets *from,
		 const struct resize_steps *steps, size_t n_taken)
{
	const struct err why = w->report->why;

	w->is_undo = true;
	while (n_taken-- > 0)
		(void)move_pool(w, steps->items[n_taken].pool, &steps->items[n_taken].before);
	(void)move_types(w, &from->of[POOL_MANAGEMENT]);
	w->report->why = why;
}

static void mark_unmoved(struct manager *m)
{
	for (size_t i = 0; i < m->registry.n_containers; i++) {
		struct container_entry *c = m->registry.containers[i];

		/* In kubelet mode the kubelet sets the CPUs of all but management containers. */
		c->keeps_cpus = c->names_cpus || (m->kubelet_manages && c->pool != POOL_MANAGEMENT);
	}
}

static int apply_steps(struct resize_work *w, const struct pool_config *pools,
		       const struct resize_sets *from, const struct resize_sets *to,
		       const struct resize_steps *steps)
{
	const struct pool_config *before = &w->before;
	bool is_in_ledger = false;
	size_t i;
	int r = 0;

	mark_unmoved(w->m);
	w->pools = before;
	/* One round more than steps: without a growth the ledger is written after the last shrink.
	 * A failed step counts as taken, because some of its cgroups may be written. */
	for (i = 0; r == 0 && i <= steps->n; i++) {
		if (!is_in_ledger && (i == steps->n || !steps->items[i].is_shrink)) {
			r = ledger_resize(w->m->ledger, pools, &w->report->why);
			is_in_ledger = r == 0;
			w->pools = pools;
		}
		if (r == 0 && i < steps->n)
			r = move_pool(w, steps->items[i].pool, &steps->items[i].cpus);
	}
	if (r == 0 && (before->n_types || pools->n_types))
		r = move_types(w, &to->of[POOL_MANAGEMENT]);
	if (r == 0)
		return 0;
	w->pools = before;
	undo(w, from, steps, i < steps->n ? i : steps->n);
	if (is_in_ledger)
		(void)ledger_resize(w->m->ledger, before, NULL);
	return r;
}

static uint64_t now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

int resize_apply(struct manager *m, const struct pool_config *pools, struct resize_report *ret)
{
	struct resize_report report = { 0 };
	struct resize_work w = { .m = m, .report = &report, .before = m->ledger->now.config };
	const uint64_t began = now_us();
	struct resize_steps steps;
	struct resize_sets from, to;
	struct ledger_resize_plan plan;
	int r;

	ledger_withhold(m->ledger, NULL); /* of an earlier attempt, which this one replaces */
	for (enum pool p = 0; p < POOL_GUARANTEED; p++)
		(void)ledger_cpus(m->ledger, p, &from.of[p]);
	r = ledger_plan_resize(m->ledger, pools, &m->scratch, &plan, &report.why);
	report.state = RESIZE_REFUSED;
	if (r == 0) {
		to = (struct resize_sets){
			{ [POOL_MANAGEMENT] = plan.reserved, [POOL_SHARED] = plan.shared }
		};
		add_owners(&plan, &report, &m->scratch);
		add_naming(m, pools, &plan.reserved, &report, &m->scratch);
		if (report.n_obstacles > 0) {
			r = refuse_for_obstacles(&report);
			if (pools->defers_resize) {
				report.state = RESIZE_DEFERRED;
				ledger_withhold(m->ledger,
						&plan.leaving); /* or new containers take them, and
								   it never completes */
			}
		}
	}
	if (r == 0) {
		resize_order(&from, &to, &steps);
		r = apply_steps(&w, pools, &from, &to, &steps);
		report.state = r < 0 ? RESIZE_FAILED : RESIZE_DONE;
		move_monitors(m);
		m->is_changed = true;
	}
	report.took_us = now_us() - began;
	*ret = report;
	arena_reset(&m->scratch);
	return r;
}

void resize_describe(const struct resize_report *report, yyjson_mut_doc *doc, yyjson_mut_val *root)
{
	yyjson_mut_val *v, *list;

	if (report->state == RESIZE_NONE)
		return;
	v = doc_put_obj(doc, root, STR("resize"));
	doc_put_str(doc, v, STR("state"), str_from(resize_state_name(report->state)));
	if (report->state == RESIZE_DONE) {
		doc_put_int(doc, v, STR("tookUs"), (int64_t)report->took_us);
		doc_put_int(doc, v, STR("writes"), (int64_t)report->n_writes);
		return;
	}
	doc_put_str(doc, v, STR("reason"), str_from(report->why.msg));
	if (report->n_obstacles == 0)
		return;
	doc_put_int(doc, v, STR("inTheWay"), (int64_t)report->n_obstacles);
	list = doc_put_arr(doc, v, STR("containers"));
	for (size_t i = 0; i < report->n_obstacles && i < RESIZE_MAX_NAMED; i++) {
		yyjson_mut_val *item = yyjson_mut_arr_add_obj(doc, list);

		doc_put_str(doc, item, STR("name"), str_from(report->obstacles[i].name));
		doc_put_str(doc, item, STR("cpus"), str_from(report->obstacles[i].cpus));
	}
}
