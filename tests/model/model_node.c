/* Every interleaving of a runtime, an administrator and an agent on a node (node.h) with 2 changes
 * of the pools, with a crash of the agent, or a failing write, at every write to a cgroup or to the
 * state file.
 *
 * PINFOLD_MODEL=full (make model) explores the large scenarios too, PINFOLD_MODEL=TEXT those whose
 * name contains the text. */

#include <stdio.h>
#include <string.h>

#include "base/macro.h"
#include "explore.h"
#include "heap.h"
#include "node.h"
#include "seeded.h"

/* A state: the agent's memory, the structs of the node and the world. */
struct saved {
	struct heap_copy heap;
	struct node node;
	struct world world;
};

static void save(const struct node *n, struct saved *ret)
{
	heap_save(&ret->heap);
	ret->node = *n;
	ret->world = world_run.world;
}

static void restore(struct node *n, const struct saved *from)
{
	heap_restore(&from->heap);
	*n = from->node;
	world_run.world = from->world;
}

static void rebuild(struct node *n, const struct explore *e, size_t node, const struct saved *first)
{
	struct node_step path[EXPLORE_MAX_DEPTH];
	const size_t n_steps = explore_path(e, node, path);

	restore(n, first);
	for (size_t i = 0; i < n_steps; i++)
		(void)node_perform(n, &path[i]);
}

static void report_path(const struct node *n, const struct explore *e, size_t node,
			const struct node_step *last)
{
	struct node_step path[EXPLORE_MAX_DEPTH];
	size_t n_steps = explore_path(e, node, path);
	char text[96];

	path[n_steps++] = *last;
	TEST_NOTE("%s: %s (%s)", n->scenario->name, n->violation, n->detail);
	for (size_t i = 0; i < n_steps; i++) {
		node_print_step(&path[i], text, sizeof(text));
		TEST_NOTE("  %zu. %s", i + 1, text);
	}
}

/* The state whose transitions are tried. */
struct expansion {
	struct node *n;
	struct explore *e;
	size_t node;
	struct saved *at;
	bool is_quiet; /* report nothing: a seeded bug is expected to be found */
};

/* False after the first violation. */
static bool try_step(const struct expansion *x, struct node_step s, unsigned *ret_n_writes)
{
	struct node *n = x->n;
	unsigned n_writes;
	uint64_t hash;

	heap_use(true);
	restore(n, x->at);
	n_writes = node_perform(n, &s);
	hash = node_hash(n);
	heap_use(false);
	x->e->n_transitions++;
	if (ret_n_writes)
		*ret_n_writes = n_writes;
	if (!n->violation && explore_add(x->e, (uint32_t)x->node, s, hash)) {
		heap_use(true);
		node_check_quiet(n);
		heap_use(false);
	}
	if (!n->violation)
		return true;
	if (!x->is_quiet)
		report_path(n, x->e, x->node, &s);
	return false;
}

static bool try_action(const struct expansion *x, uint8_t action)
{
	const struct world *w = &x->at->world;
	const bool has_agent = x->at->node.state != AGENT_DOWN || action == ACT_BOOT;
	unsigned n_writes = 0;

	if (!try_step(x, (struct node_step){ action, FAULT_NONE, 0 }, &n_writes))
		return false;
	/* `<=`: also after the last write, before the reply. */
	for (unsigned i = 0; has_agent && w->crashes_left && action != ACT_CRASH && i <= n_writes;
	     i++)
		if (!try_step(x, (struct node_step){ action, FAULT_CRASH, (uint8_t)i }, NULL))
			return false;
	for (unsigned i = 0; has_agent && w->faults_left && i < n_writes; i++)
		if (!try_step(x, (struct node_step){ action, FAULT_FAIL, (uint8_t)i }, NULL))
			return false;
	return true;
}

/* True when no state violates an invariant. */
static bool explore_scenario(const struct scenario *s, struct explore *e, bool is_quiet)
{
	static struct saved first, at; /* large */
	static struct node n;
	struct expansion x = { .n = &n, .e = e, .at = &at, .is_quiet = is_quiet };
	bool is_right = true, may_act[ACT__COUNT];
	uint64_t hash;

	node_init(&n, s);
	explore_init(e);
	heap_reset();
	heap_use(true);
	node_start(&n);
	hash = node_hash(&n);
	heap_use(false);
	save(&n, &first);
	(void)explore_add(e, 0, (struct node_step){ 0 }, hash);
	for (; is_right && x.node < e->n; x.node++) {
		heap_use(true);
		rebuild(&n, e, x.node, &first);
		heap_use(false);
		save(&n, &at);
		for (unsigned action = 0; action < ACT__COUNT; action++)
			may_act[action] = node_may_act(&n, (uint8_t)action);
		for (uint8_t action = 0; is_right && action < ACT__COUNT; action++)
			if (may_act[action])
				is_right = try_action(&x, action);
	}
	restore(&n, &first);
	heap_use(true);
	node_done(&n);
	heap_use(false);
	heap_copy_done(&first.heap);
	heap_copy_done(&at.heap);
	return is_right;
}

#define BUDGET(starts, resizes, crashes, faults, changes)                                          \
	{                                                                                          \
		.containers = { { .starts_left = (starts) } }, .resizes_left = (resizes),          \
		.crashes_left = (crashes), .faults_left = (faults), .changes_left = (changes)      \
	}

/* The small ones take some seconds together, the large ones some minutes each. */
static const struct scenario scenarios[] = {
	{ "an exclusive and a shared container, three pools, a resize and a crash",
	  { KIND_ONE_CPU, KIND_SHARED, KIND_NONE },
	  { { "0", "1", "2-3" }, { "0", "1-2", "3" }, { "0-1", "2", "3" } },
	  .budget = BUDGET(1, 1, 1, 0, 0) },
	{ "an exclusive and a shared container, classic mode, a resize and a crash",
	  { KIND_ONE_CPU, KIND_SHARED, KIND_NONE },
	  { { "0", NULL, NULL }, { "0-1", NULL, NULL } },
	  .budget = BUDGET(1, 1, 1, 0, 0) },
	{ "two exclusive containers, classic mode, a crash",
	  { KIND_ONE_CPU, KIND_NONE, KIND_TWO_CPUS },
	  { { "0", NULL, NULL } },
	  .budget = BUDGET(2, 0, 1, 0, 0) },
	{ "a management container, changes of permission, a crash",
	  { KIND_NONE, KIND_MANAGEMENT, KIND_SHARED },
	  { { "0", "1", "2-3" } },
	  .budget = BUDGET(1, 0, 1, 0, 1) },
	{ "three containers, a resize and a failing write",
	  { KIND_ONE_CPU, KIND_MANAGEMENT, KIND_NONE },
	  { { "0", "1", "2-3" }, { "0-1", "2", "3" } },
	  .budget = BUDGET(1, 1, 0, 1, 0) },
	{ "an exclusive and a shared container, classic mode, a crash and a failing write",
	  { KIND_ONE_CPU, KIND_SHARED, KIND_NONE },
	  { { "0", NULL, NULL } },
	  .budget = BUDGET(1, 0, 1, 1, 0) },
	{ "an exclusive and a shared container, two resizes, two crashes",
	  { KIND_ONE_CPU, KIND_SHARED, KIND_NONE },
	  { { "0", "1", "2-3" }, { "0", "1-2", "3" } },
	  .budget = BUDGET(1, 2, 2, 0, 0) },

	{ "large: two exclusive and a shared container, three pools, two resizes and a crash",
	  { KIND_ONE_CPU, KIND_SHARED, KIND_ONE_CPU },
	  { { "0", "1", "2-3" }, { "0", "1-2", "3" }, { "0-1", "2", "3" } },
	  .is_large = true,
	  .budget = BUDGET(1, 2, 1, 0, 0) },
	{ "large: deferred resizes",
	  { KIND_ONE_CPU, KIND_SHARED, KIND_ONE_CPU },
	  { { "0", "1", "2-3" }, { "0", "1-2", "3" }, { "0-1", "2", "3" } },
	  .defers = true,
	  .is_large = true,
	  .budget = BUDGET(1, 2, 1, 0, 0) },
	{ "large: two exclusive and a shared container, classic mode, two resizes and a crash",
	  { KIND_ONE_CPU, KIND_SHARED, KIND_ONE_CPU },
	  { { "0", NULL, NULL }, { "0-1", NULL, NULL } },
	  .is_large = true,
	  .budget = BUDGET(1, 2, 1, 0, 0) },
	{ "large: one of each pool, two changes of permission or connection, a crash",
	  { KIND_ONE_CPU, KIND_MANAGEMENT, KIND_SHARED },
	  { { "0", "1", "2-3" } },
	  .is_large = true,
	  .budget = BUDGET(1, 0, 1, 0, 2) },
	{ "large: one of each pool, a resize, a crash and a failing write",
	  { KIND_TWO_CPUS, KIND_MANAGEMENT, KIND_SHARED },
	  { { "0", "1", "2-3" }, { "1", "0", "2-3" }, { "0", "1-2", "3" } },
	  .is_large = true,
	  .budget = BUDGET(1, 1, 1, 1, 0) },
	{ "large: two starts of an exclusive and a shared container, two resizes, two crashes",
	  { KIND_ONE_CPU, KIND_SHARED, KIND_NONE },
	  { { "0", "1", "2-3" }, { "0", "1-2", "3" }, { "0-1", "2", "3" } },
	  .is_large = true,
	  .budget = BUDGET(2, 2, 2, 0, 0) },
	{ "large: exclusive containers of one and two CPUs, classic mode, a failing write",
	  { KIND_ONE_CPU, KIND_SHARED, KIND_TWO_CPUS },
	  { { "0", NULL, NULL }, { "0-1", NULL, NULL }, { "3", NULL, NULL } },
	  .is_large = true,
	  .budget = BUDGET(1, 2, 1, 1, 0) },
};

static bool is_selected(const struct scenario *s)
{
	const char *selected = getenv("PINFOLD_MODEL");

	if (!selected)
		return !s->is_large;
	return strcmp(selected, "full") == 0 || strstr(s->name, selected);
}

TEST(no_interleaving_of_runtime_administrator_and_crashes_gives_a_cpu_to_two_containers)
{
	for (size_t i = 0; i < ARRAY_LEN(scenarios); i++) {
		const struct scenario *s = &scenarios[i];
		struct explore e;
		bool is_right;

		if (!is_selected(s))
			continue;
		TEST_ROW("%s", s->name);
		is_right = explore_scenario(s, &e, false);
		TEST_NOTE("%s: %zu states, %" PRIu64 " transitions, depth %u", s->name, e.n,
			  e.n_transitions, e.max_depth);
		explore_done(&e);
		CHECK(is_right);
	}
}

/* A checker that finds nothing may not be looking. */
TEST(each_seeded_bug_is_found)
{
	for (int bug = 1; bug < BUG__COUNT; bug++) {
		bool is_found = false;

		TEST_ROW("%s", seeded_names[bug]);
		seeded_bug = (enum seeded_bug)bug;
		for (size_t i = 0; i < ARRAY_LEN(scenarios) && !is_found; i++) {
			struct explore e;

			if (scenarios[i].is_large)
				continue;
			is_found = !explore_scenario(&scenarios[i], &e, true);
			if (is_found)
				TEST_NOTE("%s: found after %zu states", seeded_names[bug], e.n);
			explore_done(&e);
		}
		seeded_bug = BUG_NONE;
		CHECK(is_found);
	}
}
