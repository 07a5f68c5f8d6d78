#pragma once

/* Keeps the containers of a local node running: one loop that waits for ended processes, signals
 * and requests. SIGTERM and SIGINT stop the supervisor, and the containers if `down_at_end` is set;
 * SIGHUP applies the directory again. */

#include "local_node.h"

struct problem_list;

/* Reads the manifests of a directory. */
typedef int (*supervisor_read_fn)(const char *dir, struct manifests *ret, struct problem_list *p,
				  struct err *err);

struct supervisor_settings {
	struct local_node_settings node;
	const char *dir;
	supervisor_read_fn read;
	bool down_at_end; /* a signal also stops the containers */
	/* Called once, when the first plan is applied (0, or 1 with refused pods) or refused (2).
	 */
	void (*on_ready)(const struct local_node *node, const struct local_plan *plan,
			 struct str report, int outcome);
	void (*on_report)(struct str text); /* outcome of SIGHUP */
	local_node_failure_fn on_failure;
};

/* Returns when the supervisor is stopped. */
int supervisor_run(const struct supervisor_settings *s, struct err *err);

/* The notes, refusals and problems of a plan, one per line. */
struct str local_plan_report(const struct local_plan *plan, const struct problem_list *p,
			     struct arena *a);
