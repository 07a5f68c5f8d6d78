/* The nodes of a profile are counted first, with the names for messages; each condition is then one
 * function of the counts. */

#include "profile_status.h"

#include "base/arena.h"
#include "base/macro.h"

#define NAMES_MAX 3 /* in a message */

/* Names of nodes for a message. */
struct names {
	size_t n;
	struct str first[NAMES_MAX];
};

struct tally {
	const struct operator_profile *profile;
	struct arena *a;
	struct rollout_settings settings;
	struct profile_nodes nodes;
	struct names conflicting, without_agent, overridden, outdated, failing, in_force;
	struct names waiting, active, reboot, lost, silent;
	struct str failure; /* of a failing node: "worker-3: reason: message" */
	struct str doing;   /* of an active node */
};

static void add_name(struct names *names, struct str name)
{
	if (names->n < NAMES_MAX)
		names->first[names->n] = name;
	names->n++;
}

/* "a, b, c and 4 more" */
static struct str list_names(const struct names *names, struct arena *a)
{
	struct strbuf b;

	strbuf_init(&b, a);
	for (size_t i = 0; i < names->n && i < NAMES_MAX; i++) {
		if (i)
			strbuf_add(&b, STR(", "));
		strbuf_add(&b, names->first[i]);
	}
	if (names->n > NAMES_MAX)
		strbuf_printf(&b, " and %zu more", names->n - NAMES_MAX);
	return strbuf_str(&b);
}

static struct str describe_step(const struct rollout_node *r, struct arena *a)
{
	struct str name = r->node->name;

	switch (r->step) {
	case ROLLOUT_DRAIN:
		return str_printf(a, "node " PRI_STR " is drained: " PRI_STR, FMT_STR(name),
				  FMT_STR(drain_describe(&r->drain, a)));
	case ROLLOUT_APPLIES:
		if (!r->change && r->node->is_ready)
			return str_printf(a,
					  "node " PRI_STR
					  " has not reported that a change is applied",
					  FMT_STR(name));
		if (!r->change)
			return str_printf(a, "node " PRI_STR " is not ready after a change",
					  FMT_STR(name));
		return str_printf(a, "node " PRI_STR " applies a change (" PRI_STR ")",
				  FMT_STR(name), FMT_STR(pending_change_what(r->change)));
	default:
		return str_printf(a, "node " PRI_STR " is prepared or released", FMT_STR(name));
	}
}

static void tally_rollout(struct tally *t, const struct rollout_node *r)
{
	if (r->is_active) {
		add_name(&t->active, r->node->name);
		if (!t->doing.n)
			t->doing = describe_step(r, t->a);
		if (r->step == ROLLOUT_APPLIES && !r->change && !r->node->is_ready)
			add_name(&t->lost, r->node->name);
	} else if (r->change && !r->node->is_silent) {
		add_name(&t->waiting, r->node->name);
	}
	if (r->reboot)
		add_name(&t->reboot, r->node->name);
	if (r->node->is_silent)
		add_name(&t->silent, r->node->name);
}

static void add_failure(struct tally *t, const struct operator_node *node,
			const struct condition *c)
{
	add_name(&t->failing, node->name);
	if (!t->failure.n)
		t->failure = str_printf(t->a, PRI_STR ": " PRI_STR ": " PRI_STR,
					FMT_STR(node->name), FMT_STR(c->reason),
					FMT_STR(c->message));
}

static void tally_partition(struct tally *t, const struct operator_node *node)
{
	const struct node_partition_status *status = &node->partition->status;
	const struct condition *ready = &status->conditions[PARTITION_READY];
	const struct condition *host = &status->conditions[PARTITION_HOST_CONFIGURED];
	const bool follows = status->origin == POOLS_FROM_PROFILE &&
			     str_eq(status->profile, t->profile->name);
	const bool is_current = follows && status->profile_generation == t->profile->generation;

	if (status->origin == POOLS_FROM_FLAGS || status->origin == POOLS_FROM_FILE) {
		add_name(&t->overridden, node->name);
		return;
	}
	if (follows && ready->status == CONDITION_TRUE)
		add_name(&t->in_force, node->name);
	if (is_current && ready->status == CONDITION_TRUE)
		t->nodes.ready++;
	if (ready->status == CONDITION_FALSE) {
		add_failure(t, node, ready);
	} else if (!is_current) {
		add_name(&t->outdated, node->name);
	} else if (str_eq(host->reason, STR(HOST_REASON_FILES_FAIL))) {
		add_failure(t, node, host);
	}
	t->nodes.pending += !is_current || status->n_pending > 0;
}

static void tally_node(struct tally *t, const struct rollout_node *r)
{
	const struct operator_node *node = r->node;

	t->nodes.selected++;
	tally_rollout(t, r);
	if (node->n_profiles > 1) {
		t->nodes.conflicting++;
		add_name(&t->conflicting, node->name);
	} else if (!node->partition || !node->partition->has_status) {
		t->nodes.pending++;
		add_name(&t->without_agent, node->name);
	} else {
		tally_partition(t, node);
	}
}

#define CONDITION(is_true, why, ...)                                                               \
	((struct condition){ .status = (is_true) ? CONDITION_TRUE : CONDITION_FALSE,               \
			     .reason = STR(why),                                                   \
			     .message = str_printf(t->a, __VA_ARGS__) })
#define NAMES(names) FMT_STR(list_names(&(names), t->a))

static struct condition available(const struct tally *t)
{
	const size_t missing = t->nodes.selected - t->in_force.n;

	if (!t->nodes.selected)
		return CONDITION(false, "NoNodesSelected",
				 "no node has the labels of nodeSelector");
	if (t->overridden.n)
		return CONDITION(false, "NodesOverridden",
				 "flags or a pools file win over the profile on: " PRI_STR,
				 NAMES(t->overridden));
	if (missing && t->without_agent.n)
		return CONDITION(
			false, "NodesWithoutAgent",
			"%zu of %zu nodes are not partitioned, no agent reports from: " PRI_STR,
			missing, t->nodes.selected, NAMES(t->without_agent));
	if (missing)
		return CONDITION(false, "NodesNotReady", "%zu of %zu nodes are not partitioned",
				 missing, t->nodes.selected);
	return CONDITION(true, "AsExpected", "all %zu nodes are partitioned", t->nodes.selected);
}

static struct condition progressing(const struct tally *t)
{
	if (t->active.n)
		return CONDITION(true, "RolloutInProgress",
				 PRI_STR "; nodes that wait for their turn: %zu", FMT_STR(t->doing),
				 t->waiting.n);
	if (t->waiting.n && t->settings.is_paused)
		return CONDITION(false, "RolloutPaused",
				 "the rollout is paused; nodes that wait: " PRI_STR,
				 NAMES(t->waiting));
	if (t->waiting.n)
		return CONDITION(true, "RolloutPending", "nodes that wait for their turn: " PRI_STR,
				 NAMES(t->waiting));
	if (t->outdated.n + t->without_agent.n)
		return CONDITION(true, "NodesUpdating",
				 "%zu of %zu nodes have not applied generation %lld",
				 t->outdated.n + t->without_agent.n, t->nodes.selected,
				 (long long)t->profile->generation);
	if (t->reboot.n)
		return CONDITION(true, "RebootRequired", "nodes that wait for a reboot: " PRI_STR,
				 NAMES(t->reboot));
	return CONDITION(false, "AsExpected", "nothing is being changed");
}

static struct condition degraded(const struct tally *t)
{
	if (t->settings.invalid)
		return CONDITION(true, "InvalidAnnotation",
				 "the value of annotation %s is not understood, the rollout is "
				 "paused",
				 t->settings.invalid);
	if (t->conflicting.n)
		return CONDITION(true, "ProfilesConflict",
				 "nodes that another profile selects, too: " PRI_STR,
				 NAMES(t->conflicting));
	if (t->lost.n)
		return CONDITION(true, "NodeNotReady",
				 "nodes that are not ready after a change: " PRI_STR,
				 NAMES(t->lost));
	if (t->silent.n)
		return CONDITION(true, "AgentsSilent",
				 "agents that have not reported for 15 minutes: " PRI_STR,
				 NAMES(t->silent));
	if (t->failing.n)
		return CONDITION(true, "NodesFailing",
				 "%zu of %zu nodes report a failure, " PRI_STR, t->failing.n,
				 t->nodes.selected, FMT_STR(t->failure));
	return CONDITION(false, "AsExpected", "no node reports a failure");
}

static struct condition upgradeable(const struct tally *t, const struct condition *degraded)
{
	if (degraded->status == CONDITION_TRUE)
		return CONDITION(false, "Degraded", "the profile is degraded");
	if (t->active.n)
		return CONDITION(false, "RolloutInProgress", "a rollout is in progress");
	return CONDITION(true, "AsExpected", "nothing prevents an upgrade");
}

void profile_status_compute(const struct operator_snapshot *s, const struct rollout *r,
			    const struct operator_profile *p, struct profile_status *ret)
{
	struct tally tally = { .profile = p, .a = s->arena };
	const struct tally *t = &tally;

	for (size_t i = 0; i < r->n; i++) {
		const struct operator_node *node = r->nodes[i].node;

		if (operator_profile_selects(s, p, node))
			tally_node(&tally, &r->nodes[i]);
	}
	tally.settings = rollout_settings_of(p, t->nodes.selected);
	*ret = (struct profile_status){ .observed_generation = p->generation, .nodes = t->nodes };
	ret->conditions[PROFILE_AVAILABLE] = available(t);
	ret->conditions[PROFILE_PROGRESSING] = progressing(t);
	ret->conditions[PROFILE_DEGRADED] = degraded(t);
	ret->conditions[PROFILE_UPGRADEABLE] = upgradeable(t, &ret->conditions[PROFILE_DEGRADED]);
}

/* False for the conditions that are good when they are false. */
static bool is_good_when_true(enum profile_condition c)
{
	return c == PROFILE_AVAILABLE || c == PROFILE_UPGRADEABLE;
}

static bool is_bad(enum profile_condition c, const struct condition *condition)
{
	/* Progress is neither: it is reported as it is. */
	if (c == PROFILE_PROGRESSING)
		return false;
	return (condition->status == CONDITION_TRUE) != is_good_when_true(c);
}

void profile_status_settle(struct profile_status *now, const struct profile_status *old,
			   struct profile_settling *settling, uint64_t now_ms)
{
	const bool is_new = old->observed_generation != now->observed_generation;

	for (enum profile_condition c = 0; c < PROFILE_CONDITION__COUNT; c++) {
		const struct condition *before = &old->conditions[c];
		uint64_t *since_ms = &settling->since_ms[c];

		if (is_new || !is_bad(c, &now->conditions[c]) ||
		    before->status == CONDITION_ABSENT || is_bad(c, before)) {
			*since_ms = 0;
			continue;
		}
		if (!*since_ms)
			*since_ms = now_ms;
		if (now_ms - *since_ms < PROFILE_SETTLE_MS)
			now->conditions[c] = *before;
	}
}
