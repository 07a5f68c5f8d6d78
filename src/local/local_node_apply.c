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

bool runs_place(const struct run *runs, size_t n, const struct run *run,
		struct local_container *ret)
{
	struct local_container c = *run->c;

	for (size_t i = 0; i < n; i++) {
		const struct run *leaving = &runs[i];

		if (leaving == run || !leaving->unwanted || !leaving->c->is_exclusive ||
		    !run_is_alive(leaving) || !cpuset_intersects(&leaving->at, &c.cpus))
			continue;
		if (c.is_exclusive)
			return false;
		cpuset_minus(&c.cpus, &leaving->at);
	}
	if (cpuset_is_empty(&c.cpus))
		return false;
	*ret = c;
	return true;
}

static uint64_t shares_of_pod(const struct run *runs, size_t n, const struct run *of)
{
	uint64_t sum = of->c->shares;

	for (size_t i = 0; i < n; i++)
		if (&runs[i] != of && !runs[i].unwanted && runs[i].c->kind != CONTAINER_INIT &&
		    local_container_same_pod(runs[i].c, of->c))
			sum += runs[i].c->shares;
	return sum < CPU_SHARES_MAX ? sum : CPU_SHARES_MAX;
}

int local_node_move(const struct local_node *node, const struct run *runs, size_t n,
		    struct run *run, const struct local_container *where, struct err *err)
{
	int r = container_cgroup_apply(&node->cgroup, where, shares_of_pod(runs, n, run), err);

	if (r >= 0)
		run->at = where->cpus;
	return r;
}

/* Whoever owns CPUs stays on them to the end. */
static bool is_moving(const struct run *run)
{
	return run_is_alive(run) && !(run->unwanted && run->c->is_exclusive);
}

/* What must be given up goes before anybody gets more. */
static int move_all(const struct local_node *node, struct run *runs, size_t n, struct err *err)
{
	struct local_container where;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < n; i++) {
		if (!is_moving(&runs[i]) || !runs_place(runs, n, &runs[i], &where))
			continue;
		cpuset_intersect(&where.cpus, &runs[i].at);
		if (!cpuset_is_empty(&where.cpus) && !cpuset_eq(&where.cpus, &runs[i].at))
			r = local_node_move(node, runs, n, &runs[i], &where, err);
	}
	for (size_t i = 0; r >= 0 && i < n; i++)
		if (is_moving(&runs[i]) && runs_place(runs, n, &runs[i], &where))
			r = local_node_move(node, runs, n, &runs[i], &where, err);
	return r;
}

/* Back to where everybody was. Adds to `err` how that went. */
static void move_back(const struct local_node *node, struct err *err)
{
	struct err why = *err;
	int r = 0;

	for (size_t i = 0; i < node->n; i++) {
		struct run *run = &node->runs[i];
		struct local_container where = *run->c;

		if (!is_moving(run))
			continue;
		where.cpus = run->at;
		if (local_node_move(node, node->runs, node->n, run, &where, err) < 0)
			r = -EIO;
	}
	if (r < 0) /* err says which one */
		(void)err_wrap(err, "%.100s; going back failed as well", why.msg);
	else
		(void)err_set(err, why.code, "%s; everything was put back", why.msg);
}

/* --- applying a plan --- */

/* An owner of CPUs cannot be moved: it is started anew when its CPUs change. */
static bool goes_on(const struct run *old, const struct local_container *wanted)
{
	return !old->unwanted && local_container_same_command(wanted, old->c) &&
	       wanted->is_exclusive == old->c->is_exclusive &&
	       (!wanted->is_exclusive || cpuset_eq(&wanted->cpus, &old->c->cpus));
}

/* The list of the plan, with what goes on as it was; what has no place there any more but still
 * runs stands behind, unwanted. Changes nothing yet. */
static struct run *carry_over(const struct local_node *node, const struct local_plan *plan,
			      struct arena *a, size_t *ret_n)
{
	struct run *runs = runs_new(plan->n + node->n);
	size_t total = plan->n;

	for (size_t i = 0; i < plan->n; i++)
		runs[i] = (struct run){ .c = &plan->containers[i], .pid_fd = -1 };
	for (size_t i = 0; i < node->n; i++) {
		const struct run *old = &node->runs[i];
		struct run *now = runs_find(runs, plan->n, old->c);

		if (now && goes_on(old, now->c)) {
			struct local_container *wanted = now->c;

			*now = *old;
			now->c = wanted;
			continue;
		}
		if (!run_is_alive(old))
			continue;
		runs[total] = *old;
		runs[total].c = local_container_copy(old->c, a);
		runs[total].unwanted = true;
		if (!old->c->is_exclusive) /* keeps off CPUs that were given to somebody */
			(void)ledger_cpus(&node->ledger, old->c->pool, &runs[total].c->cpus);
		total++;
	}
	*ret_n = total;
	return runs;
}

/* What can fail, in an order that can be undone: places, intent, ledger. */
static int commit(struct local_node *node, struct run *runs, size_t n, struct err *err)
{
	int r;

	r = move_all(node, runs, n, err);
	if (r >= 0)
		r = local_node_save(node, runs, n, err);
	if (r >= 0) {
		r = ledger_commit(&node->ledger, err); /* rolls back when it fails */
		if (r < 0 && node->has_plan)
			(void)local_node_save(node, node->runs, node->n, NULL);
	} else {
		ledger_rollback(&node->ledger);
	}
	if (r < 0)
		move_back(node, err);
	return r;
}

/* Beyond return: the new list is the list. */
static int take_effect(struct local_node *node, struct run *runs, size_t n, int64_t now_ms,
		       struct err *err)
{
	for (size_t i = 0; i < n; i++)
		if (runs[i].unwanted)
			run_begin_stop(&runs[i], now_ms);
	free(node->runs);
	node->runs = runs;
	node->n = n;
	node->has_plan = node->unsettled = true;
	return local_node_remove_strays(&node->cgroup, runs, n, err);
}

/* In a container we may have fewer CPUs than the machine. Whoever shares CPUs does with those it
 * can have; an owner needs all of its own. */
static bool keep_to_allowed(const struct local_node *node, struct local_plan *plan, struct arena *a,
			    struct problem_list *p)
{
	for (size_t i = 0; i < plan->n; i++) {
		struct local_container *c = &plan->containers[i];
		struct cpuset both = c->cpus;

		cpuset_intersect(&both, &node->cgroup.allowed);
		if (cpuset_eq(&both, &c->cpus))
			continue;
		if (!c->is_exclusive && !cpuset_is_empty(&both)) {
			c->cpus = both;
			continue;
		}
		problem_error(p, PROBLEM_AT(NULL, NULL, NULL),
			      PRI_STR ": is to run on CPUs " PRI_STR
				      ", but this machine gives us only " PRI_STR,
			      FMT_STR(local_container_id(c, a)),
			      FMT_STR(cpuset_format(&c->cpus, a)),
			      FMT_STR(cpuset_format(&node->cgroup.allowed, a)));
		return false;
	}
	return true;
}

/* On success the ledger's transaction is open. */
static int decide(struct local_node *node, struct arena *with, const struct manifests *manifests,
		  int64_t now_ms, struct local_plan *ret, struct problem_list *p)
{
	struct local_plan_input in = { .manifests = manifests, .topology = &node->topology };
	struct pool_config config;
	struct err err = { 0 };
	int r = 0;

	if (node->stopping)
		r = err_set(&err, EBUSY, "everything is being taken down");
	else if (!local_plan_config(&in, with, &config, p))
		return -EINVAL;
	else if (!node->has_ledger)
		r = local_node_move_in(node, &config, now_ms, &err);
	if (r < 0) {
		problem_error(p, PROBLEM_AT(NULL, NULL, NULL), "%s", err.msg);
		return r;
	}
	r = local_plan_make(&in, &config, &node->ledger, with, ret, p);
	if (r >= 0 && !keep_to_allowed(node, ret, with, p)) {
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

	r = decide(node, with, manifests, now_ms, &plan, p);
	if (r < 0)
		return r;
	runs = carry_over(node, &plan, with, &n);
	r = commit(node, runs, n, &err);
	if (r < 0) {
		free(runs);
		problem_error(p, PROBLEM_AT(NULL, NULL, NULL), "%s", err.msg);
		return r;
	}
	if (take_effect(node, runs, n, now_ms, &err) < 0)
		problem_warn(p, PROBLEM_AT(NULL, NULL, NULL), "%s", err.msg);
	arena_done(&node->plan);
	node->plan = *with;
	arena_init(with, 0);
	*ret = plan;
	return 0;
}
