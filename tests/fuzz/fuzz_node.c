/* Sequences of NRI calls, pool changes, crashes and failing writes against the agent's own manager,
 * ledger and store, with the cgroups, the disk and the invariants of the model checker
 * (tests/model/node.h). It explores every short sequence; this finds long ones. The first bytes
 * choose pools, containers and how many faults there are; then two bytes are a step. */

#include <stdio.h>
#include <stdlib.h>

#include "base/macro.h"
#include "node.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEAD 6

static const struct pools_text layouts[] = {
	{ "0", "1", "2-3" }, { "0", "1-2", "3" },   { "0-1", "2", "3" },  { "1", "0", "2-3" },
	{ "3", "2", "0-1" }, { "0", "2-3", "1" },   { "0", "1-3", NULL }, { "0-2", "3", NULL },
	{ "0", NULL, NULL }, { "0-1", NULL, NULL }, { "3", NULL, NULL },  { "1-2", NULL, NULL },
};

static struct scenario scenario_of(const uint8_t *head)
{
	struct scenario s = { .name = "fuzz", .defers = head[0] & 1 };

	for (size_t i = 0; i < WORLD_CONTAINERS; i++)
		s.kinds[i] = (enum kind)((head[1] >> (2 * i) & 3) + KIND_SHARED);
	for (size_t i = 0; i < MAX_POOLS; i++)
		s.pools[i] = layouts[(head[2 + i]) % ARRAY_LEN(layouts)];
	s.budget.containers[0].starts_left = 3;
	s.budget.resizes_left = 8;
	s.budget.crashes_left = head[5] & 3;
	s.budget.faults_left = head[5] >> 2 & 3;
	s.budget.changes_left = head[5] >> 4 & 3;
	return s;
}

/* The step as far as the state allows it. */
static struct node_step step_of(const struct node *n, const uint8_t *bytes)
{
	const struct world *w = &world_run.world;
	struct node_step s = { .action = bytes[0] % ACT__COUNT, .fault_at = bytes[1] >> 2 };
	const bool has_agent = n->state != AGENT_DOWN || s.action == ACT_BOOT;

	switch (bytes[1] & 3) {
	case 1:
		s.fault = has_agent && w->crashes_left && s.action != ACT_CRASH ? FAULT_CRASH :
										  FAULT_NONE;
		break;
	case 2:
		s.fault = has_agent && w->faults_left ? FAULT_FAIL : FAULT_NONE;
		break;
	}
	return s;
}

static void check(const struct node *n, const uint8_t *steps, size_t n_steps)
{
	if (!n->violation)
		return;
	(void)fprintf(stderr, "%s (%s)\n", n->violation, n->detail);
	for (size_t i = 0; i < n_steps; i++)
		(void)fprintf(stderr, "  action %u, fault %u at %u\n",
			      (unsigned)steps[2 * i] % ACT__COUNT, steps[2 * i + 1] & 3u,
			      (unsigned)steps[2 * i + 1] >> 2);
	abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct node n;
	struct scenario s;
	size_t n_steps;

	if (size < HEAD)
		return 0;
	s = scenario_of(data);
	n_steps = (size - HEAD) / 2;
	node_init(&n, &s);
	node_start(&n);
	for (size_t i = 0; i < n_steps; i++) {
		const struct node_step step = step_of(&n, data + HEAD + 2 * i);

		if (node_may_act(&n, step.action))
			(void)node_perform(&n, &step);
		check(&n, data + HEAD, i + 1);
	}
	node_check_quiet(&n);
	check(&n, data + HEAD, n_steps);
	node_done(&n);
	return 0;
}
