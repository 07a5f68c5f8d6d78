#pragma once

/* Keeps a node's containers running: one loop that waits for ended processes, signals and
 * questions. SIGTERM and SIGINT leave the containers running unless told to take them down;
 * SIGHUP reads the directory again. */

#include "local_node.h"

struct problem_list;

/* Reads the directory's manifests; reading files is the caller's business. */
typedef int (*supervisor_read_fn)(const char *dir, struct manifests *ret, struct problem_list *p,
				  struct err *err);

struct supervisor_settings {
	struct local_node_settings node;
	const char *dir;
	supervisor_read_fn read;
	bool down_at_end; /* a signal ends the containers, too */
	/* Called once the first plan is in place or refused (2), before anything waits. */
	void (*on_ready)(const struct local_node *node, const struct local_plan *plan,
			 struct str report, int outcome);
	void (*on_report)(struct str text); /* of a change that a signal asked for */
	local_node_failure_fn on_failure;
};

/* Runs until it is told to end. 0, or a negative errno with a sentence. */
int supervisor_run(const struct supervisor_settings *s, struct err *err);

/* Everything a plan says, for the answer to `apply` and the start of `up`: refusals, notes,
 * problems. */
struct str local_plan_report(const struct local_plan *plan, const struct problem_list *p,
			     struct arena *a);
