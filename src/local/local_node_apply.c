/* Applies a plan to a local node. New runs are built next to the present ones, all steps that can
 * fail are carried out, and only then the new runs replace the old: until that point the old runs
 * say what to restore. */

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "codec/problems.h"
#include "kube/shares.h"
#include "local_node_private.h"
#include "local_plan.h"

/* --- moving containers --- */

struct run *runs_find(struct run *runs, size_t n, const struct local_container *c)
{
	for (size_t i = 0; i < n; i++)
		if (local_container_same(runs[i].c, c))
			return &runs[i];
	return NULL;
}

/* A container with exclusive CPUs gets all of them or waits; any other can run on a part of its
 * pool until the rest is released. */
bool runs_available_cpus(const struct run *runs, size_t n, const struct run *run,
			 struct local_container *ret)
{
	struct local_container c = *run->c;

	for (size_t i = 0; i < n; i++) {
		const struct run *other = &runs[i];

		if (other == run || !other->is_removed || !other->c->is_exclusive ||
		    !run_is_alive(other) ||
		    !cpuset_intersects(&other->current_cpus, &c.settings.cpus))
			continue;
		if (c.is_exclusive)
			return false;
		cpuset_minus(&c.settings.cpus, &other->current_cpus);
	}
	if (cpuset_is_empty(&c.settings.cpus))
		return false;
	*ret = c;
	return true;
}

/* As the kubelet: init containers do not count, except the one that is applied. */
static uint64_t pod_shares(const struct run *runs, size_t n, const struct run *of)
{
	uint64_t sum = of->c->settings.shares;

	for (size_t i = 0; i < n; i++)
		if (&runs[i] != of && !runs[i].is_removed && runs[i].c->kind != CONTAINER_INIT &&
		    local_container_same_pod(runs[i].c, of->c))
			sum += runs[i].c->settings.shares;
	return sum < CPU_SHARES_MAX ? sum : CPU_SHARES_MAX;
}

int local_node_move(const struct local_node *node, const struct run *runs, size_t n,
		    struct run *run, const struct local_container *target, struct err *err)
{
	int r = container_cgroup_apply(&node->cgroup, target, pod_shares(runs, n, run), err);

	if (r >= 0)
		run->current_cpus = target->settings.cpus;
	return r;
}

/* A removed container keeps its exclusive CPUs until it has ended. */
static bool can_move(const struct run *run)
{
	return run_is_alive(run) && !(run->is_removed && run->c->is_exclusive);
}

/* All cpusets shrink before any grows, so that no CPU is in two pools in between. A container whose
 * old and new CPUs are disjoint cannot shrink first, because a cpuset must not be empty; it moves
 * in the second pass. That pass also writes cpusets that seem unchanged: weight or quota may
 * differ, and after a crash the recorded CPUs may not be those of the kernel. */
static int move_all(const struct local_node *node, struct run *runs, size_t n, struct err *err)
{
	struct local_container target;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < n; i++) {
		if (!can_move(&runs[i]) || !runs_available_cpus(runs, n, &runs[i], &target))
			continue;
		cpuset_intersect(&target.settings.cpus, &runs[i].current_cpus);
		if (!cpuset_is_empty(&target.settings.cpus) &&
		    !cpuset_eq(&target.settings.cpus, &runs[i].current_cpus))
			r = local_node_move(node, runs, n, &runs[i], &target, err);
	}
	for (size_t i = 0; r >= 0 && i < n; i++)
		if (can_move(&runs[i]) && runs_available_cpus(runs, n, &runs[i], &target))
			r = local_node_move(node, runs, n, &runs[i], &target, err);
	return r;
}

/* Restores the CPUs before move_all(), which node->runs still has: move_all() changed copies.
 * Appends the outcome to `err`. */
static void move_back(const struct local_node *node, struct err *err)
{
	struct err cause = *err;
	int r = 0;

	for (size_t i = 0; i < node->n; i++) {
		struct run *run = &node->runs[i];
		struct local_container target = *run->c;

		if (!can_move(run))
			continue;
		target.settings.cpus = run->current_cpus;
		if (local_node_move(node, node->runs, node->n, run, &target, err) < 0)
			r = -EIO;
	}
	if (r < 0) /* err names the container */
		(void)err_wrap(err, "%.100s; restoring the previous CPUs failed, too", cause.msg);
	else
		(void)err_set(err, cause.code, "%s; the previous CPUs are restored", cause.msg);
}

/* --- applying a plan --- */

/* A container with exclusive CPUs is not moved: it is restarted when its CPUs change. */
static bool keeps_running(const struct run *old, const struct local_container *wanted)
{
	return !old->is_removed && local_container_same_command(wanted, old->c) &&
	       wanted->is_exclusive == old->c->is_exclusive &&
	       (!wanted->is_exclusive || cpuset_eq(&wanted->settings.cpus, &old->c->settings.cpus));
}

/* The runs of the plan, with the state of those that continue; runs that are no longer planned and
 * still have a process follow, as removed. In this order, because runs_find() must prefer a
 * planned run to a removed one of the same name. Changes nothing yet; a pidfd is in both lists
 * until one of them is freed. */
static struct run *build_runs(const struct local_node *node, const struct local_plan *plan,
			      struct arena *a, size_t *ret_n)
{
	struct run *runs = runs_new(plan->n + node->n);
	size_t total = plan->n;

	for (size_t i = 0; i < plan->n; i++)
		runs[i] = (struct run){ .c = &plan->containers[i], .pid_fd = -1 };
	for (size_t i = 0; i < node->n; i++) {
		const struct run *old = &node->runs[i];
		struct run *now = runs_find(runs, plan->n, old->c);

		if (now && keeps_running(old, now->c)) {
			struct local_container *wanted = now->c;

			*now = *old;
			now->c = wanted;
			continue;
		}
		if (!run_is_alive(old))
			continue;
		runs[total] = *old;
		/* A copy: the arena of the old plan is freed when the new one is in force. */
		runs[total].c = local_container_copy(old->c, a);
		runs[total].is_removed = true;
		if (!old->c->is_exclusive) /* it leaves CPUs that are now exclusive */
			local_container_set_cpus(runs[total].c, &node->ledger);
		total++;
	}
	*ret_n = total;
	return runs;
}

/* The steps that can fail, in an order that can be undone: cpusets, state file, ledger. The ledger
 * is last, because a committed transaction cannot be rolled back, while cpusets and the state file
 * can be written again. */
static int commit(struct local_node *node, struct run *runs, size_t n, struct err *err)
{
	int r;

	r = move_all(node, runs, n, err);
	if (r >= 0)
		r = local_node_save(node, runs, n, err);
	if (r >= 0) {
		r = ledger_commit(&node->ledger, err); /* rolls back on failure */
		if (r < 0 && node->has_plan)
			(void)local_node_save(node, node->runs, node->n, NULL);
	} else {
		ledger_rollback(&node->ledger);
	}
	if (r < 0)
		move_back(node, err);
	return r;
}

/* Nothing is undone from here on. */
static int switch_to_runs(struct local_node *node, struct run *runs, size_t n, int64_t now_ms,
			  struct err *err)
{
	for (size_t i = 0; i < n; i++)
		if (runs[i].is_removed)
			run_begin_stop(&runs[i], now_ms);
	free(node->runs); /* its pidfds are now in `runs` */
	node->runs = runs;
	node->n = n;
	/* The next step tries them; until then the plan has not converged. */
	node->has_plan = node->has_waiting_moves = true;
	return local_node_remove_unknown(&node->cgroup, runs, n, err);
}

/* Inside a container the supervisor may have fewer CPUs than the machine. Containers without
 * exclusive CPUs then use the allowed part of their pool. */
static bool restrict_to_allowed(const struct local_node *node, struct local_plan *plan,
				struct arena *a, struct problem_list *p)
{
	for (size_t i = 0; i < plan->n; i++) {
		struct local_container *c = &plan->containers[i];
		struct cpuset both = c->settings.cpus;

		cpuset_intersect(&both, &node->cgroup.allowed);
		if (cpuset_eq(&both, &c->settings.cpus))
			continue;
		if (!c->is_exclusive && !cpuset_is_empty(&both)) {
			c->settings.cpus = both;
			continue;
		}
		problem_error(p, PROBLEM_AT(NULL, NULL, NULL),
			      PRI_STR ": needs CPUs " PRI_STR ", but only CPUs " PRI_STR
				      " are allowed for pinfold here",
			      FMT_STR(local_container_id(c, a)),
			      FMT_STR(cpuset_format(&c->settings.cpus, a)),
			      FMT_STR(cpuset_format(&node->cgroup.allowed, a)));
		return false;
	}
	return true;
}

/* On success the ledger's transaction is open. */
static int make_plan(struct local_node *node, struct arena *with, const struct manifests *manifests,
		     int64_t now_ms, struct local_plan *ret, struct problem_list *p)
{
	struct local_plan_input in = { .manifests = manifests, .topology = &node->topology };
	struct pool_config config;
	struct err err = { 0 };
	int r = 0;

	if (node->is_stopping)
		r = err_set(&err, EBUSY, "the machine is being stopped");
	else if (!local_plan_config(&in, with, &config, p))
		return -EINVAL;
	else if (!node->has_ledger) /* after the profile: an invalid one leaves nothing behind */
		r = local_node_set_up(node, &config, now_ms, &err);
	if (r < 0) {
		problem_error(p, PROBLEM_AT(NULL, NULL, NULL), "%s", err.msg);
		return r;
	}
	r = local_plan_make(&in, &config, &node->ledger, with, ret, p);
	if (r >= 0 && !restrict_to_allowed(node, ret, with, p)) {
		ledger_rollback(&node->ledger);
		return -EINVAL;
	}
	return r;
}

int local_node_apply(struct local_node *node, struct arena *with, const struct manifests *manifests,
		     int64_t now_ms, struct local_plan *ret, struct problem_list *p)
{
	struct local_plan plan;
	struct err err = { 0 };
	struct run *runs;
	size_t n;
	int r;

	r = make_plan(node, with, manifests, now_ms, &plan, p);
	if (r < 0)
		return r;
	runs = build_runs(node, &plan, with, &n);
	r = commit(node, runs, n, &err);
	if (r < 0) {
		free(runs);
		problem_error(p, PROBLEM_AT(NULL, NULL, NULL), "%s", err.msg);
		return r;
	}
	if (switch_to_runs(node, runs, n, now_ms, &err) < 0)
		problem_warn(p, PROBLEM_AT(NULL, NULL, NULL), "%s", err.msg);
	/* The new runs point into `with`, and no run points into the old arena any more. */
	arena_done(&node->plan);
	node->plan = *with;
	arena_init(with, 0);
	*ret = plan;
	return 0;
}
