/* First every node is looked at alone: what it is in the middle of. Then free places are given to
 * nodes that wait, in the order of their names, so that a second look at the same objects decides
 * the same. */

#include "rollout.h"

#include "base/arena.h"
#include "kube/names.h"
#include "profile/change_settings.h"

struct rollout_settings rollout_settings_of(const struct operator_profile *p, size_t n_nodes)
{
	bool invalid[CHANGE_ANNOTATION__COUNT];
	struct rollout_settings ret = { 0 };
	struct change_settings changes;

	(void)change_settings_read(p ? p->annotations : NULL, &changes, invalid);
	ret.max_unavailable = changes.max_unavailable;
	if (changes.is_share) {
		/* Rounded down, as in Deployments, but a rollout never stops for that. */
		ret.max_unavailable = n_nodes * changes.max_unavailable / 100;
		if (!ret.max_unavailable)
			ret.max_unavailable = changes.max_unavailable > 0;
	}
	ret.is_paused = changes.is_paused;
	ret.operator_reboots = changes.operator_reboots;
	for (enum change_annotation c = 0; c < CHANGE_ANNOTATION__COUNT; c++)
		if (invalid[c])
			ret.invalid = change_annotation_name(c);
	/* An administrator who wanted to stop the rollout must not be surprised by a typo. */
	if (ret.invalid)
		ret.is_paused = true;
	return ret;
}

/* Nodes of one profile; NULL: nodes that no profile selects, which restore what a profile has
 * changed. */
struct pool_of_nodes {
	const struct operator_profile *profile;
	struct rollout_settings settings;
	size_t n_nodes, n_active, n_unavailable, n_waiting;
};

struct rollout_planner {
	const struct operator_snapshot *s;
	struct rollout *rollout;
	struct pool_of_nodes *pools; /* by profile; the last one is that of no profile */
	size_t n_pools;
};

static struct pool_of_nodes *pool_of(struct rollout_planner *p, const struct operator_node *node)
{
	if (!node->profile)
		return &p->pools[p->n_pools - 1];
	return &p->pools[node->profile - p->s->profiles];
}

static struct str granted_of(const struct operator_node *node)
{
	return node->partition ? node->partition->granted : STR("");
}

static struct str cordon_of(const struct operator_node *node)
{
	return operator_annotation(node->annotations, NAME_ROLLOUT);
}

static bool is_doubted(const struct operator_node *node)
{
	return node->node_doubt_ms || node->partition_doubt_ms;
}

/* Otherwise a reboot would bring nothing: the boot loader is not configured. */
static bool helps(const struct pending_change *reboot)
{
	return reboot->hash.n || str_eq(reboot->reason, STR(PENDING_BOOT_PARAMETER));
}

/* Restarts come before a reboot, which they may prepare. A resize happens without a grant. */
static void find_changes(struct rollout_node *r, const struct rollout_settings *settings)
{
	const struct node_partition *p = r->node->partition;

	/* While profiles conflict, nothing is changed. */
	if (!p || !p->has_status || r->node->n_profiles > 1)
		return;
	for (size_t i = 0; i < p->status.n_pending; i++) {
		const struct pending_change *c = &p->status.pending[i];

		/* Without a hash there is nothing that the agent would do itself. */
		if (c->need == NEED_REBOOT)
			r->reboot = r->reboot || !helps(c) ? r->reboot : c;
		else if (c->need != NEED_RESIZE && c->need != NEED_OTHER && c->hash.n && !r->change)
			r->change = c;
	}
	if (!r->change && r->reboot && r->reboot->hash.n && settings->operator_reboots) {
		r->change = r->reboot;
		r->reboot = NULL;
	}
}

/* What is left to do before the change can be granted. */
static enum rollout_step approach(const struct rollout_node *r)
{
	if (!r->drains)
		return ROLLOUT_GRANT;
	if (!cordon_of(r->node).n || !r->node->is_unschedulable)
		return ROLLOUT_CORDON;
	return drain_is_complete(&r->drain) ? ROLLOUT_GRANT : ROLLOUT_DRAIN;
}

/* While the agent has not looked at the host, or cannot, nothing waits in its status, and that
 * nothing is left to do is not known. */
static bool has_known_host(const struct operator_node *node)
{
	const struct condition *c;

	if (!node->partition || !node->partition->has_status)
		return false;
	c = &node->partition->status.conditions[PARTITION_HOST_CONFIGURED];
	return c->status != CONDITION_UNKNOWN && !str_eq(c->reason, STR(HOST_REASON_FILES_FAIL));
}

/* Without its agent a node would be drained for nothing. */
static enum rollout_step step_of_silent(const struct operator_node *node)
{
	if (granted_of(node).n)
		return ROLLOUT_APPLIES;
	return cordon_of(node).n ? ROLLOUT_UNCORDON : ROLLOUT_NOTHING;
}

static enum rollout_step step_of(const struct rollout_node *r,
				 const struct rollout_settings *settings)
{
	struct str granted = granted_of(r->node);

	if (is_doubted(r->node))
		return ROLLOUT_CHECK;
	if (r->node->is_silent)
		return step_of_silent(r->node);
	if (granted.n && r->change && str_eq(granted, r->change->hash))
		return ROLLOUT_APPLIES;
	if (granted.n && r->change)
		return approach(r); /* another change replaced the one that was granted */
	/* A node that does not come back keeps its place: the next one might not either. */
	if (granted.n)
		return r->node->is_ready && has_known_host(r->node) ? ROLLOUT_WITHDRAW :
								      ROLLOUT_APPLIES;
	if (cordon_of(r->node).n)
		return r->change && !settings->is_paused ? approach(r) : ROLLOUT_UNCORDON;
	return r->change ? ROLLOUT_WAITS : ROLLOUT_NOTHING;
}

static void look_at(struct rollout_planner *p, struct rollout_node *r)
{
	struct pool_of_nodes *pool = pool_of(p, r->node);

	r->is_active = granted_of(r->node).n || cordon_of(r->node).n || is_doubted(r->node);
	find_changes(r, &pool->settings);
	/* Containers survive the restart of their runtime. Where there is only one node, its pods
	 * have nowhere to go (D37). */
	r->drains = r->change && r->change->need != NEED_RUNTIME_RESTART && p->s->n_nodes > 1;
	if (r->drains)
		drain_plan(r->node->pods, p->s->arena, &r->drain);
	r->step = step_of(r, &pool->settings);
	pool->n_active += r->is_active;
	pool->n_unavailable += r->is_active || !r->node->is_ready || r->node->is_unschedulable;
	pool->n_waiting += r->step == ROLLOUT_WAITS;
}

/* The pool whose nodes may begin: one that has begun, otherwise the first with nodes that wait. */
static struct pool_of_nodes *choose_pool(struct rollout_planner *p)
{
	for (size_t i = 0; i < p->n_pools; i++)
		if (p->pools[i].n_active)
			return &p->pools[i];
	for (size_t i = 0; i < p->n_pools; i++)
		if (p->pools[i].n_waiting && !p->pools[i].settings.is_paused)
			return &p->pools[i];
	return NULL;
}

static void give_places(struct rollout_planner *p, struct pool_of_nodes *pool)
{
	const size_t max = pool->settings.max_unavailable;

	if (pool->settings.is_paused)
		return;
	for (size_t i = 0; i < p->rollout->n && pool->n_active < max; i++) {
		struct rollout_node *r = &p->rollout->nodes[i];
		const bool is_unavailable = !r->node->is_ready || r->node->is_unschedulable;

		if (r->step != ROLLOUT_WAITS || pool_of(p, r->node) != pool)
			continue;
		/* A node that is unavailable anyway takes no further one away. */
		if (!is_unavailable && pool->n_unavailable >= max)
			continue;
		r->step = approach(r);
		pool->n_active++;
		pool->n_unavailable += !is_unavailable;
	}
}

void rollout_plan(const struct operator_snapshot *s, struct arena *a, struct rollout *ret)
{
	struct rollout_planner p = { .s = s, .rollout = ret, .n_pools = s->n_profiles + 1 };
	struct pool_of_nodes *pool;

	*ret = (struct rollout){ .nodes = arena_array(a, struct rollout_node, s->n_nodes),
				 .n = s->n_nodes };
	p.pools = arena_array(a, struct pool_of_nodes, p.n_pools);
	for (size_t i = 0; i < s->n_nodes; i++)
		pool_of(&p, &s->nodes[i])->n_nodes++;
	for (size_t i = 0; i < p.n_pools; i++) {
		p.pools[i].profile = i < s->n_profiles ? &s->profiles[i] : NULL;
		p.pools[i].settings = rollout_settings_of(p.pools[i].profile, p.pools[i].n_nodes);
	}
	for (size_t i = 0; i < s->n_nodes; i++) {
		ret->nodes[i].node = &s->nodes[i];
		look_at(&p, &ret->nodes[i]);
	}
	pool = choose_pool(&p);
	if (pool)
		give_places(&p, pool);
}
