#pragma once

/* The parts of `pinfold uninstall` that concern running pods and nodes: converted pods that wait,
 * agents that undo what they did on their node, and what they wrote to the Node objects. */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "cluster/api_sync.h"

struct arena;
struct err;

struct waiting_pods {
	struct str *names; /* "namespace/name" */
	size_t n, cap;
};

/* Deletes converted pods that wait for a node and have a controller, until none waits or the time
 * is over. *ret has those without a controller, and those that came back. */
int waiting_pods_settle(struct api_sync *s, unsigned timeout_s, struct arena *a,
			struct waiting_pods *ret, struct err *err);

/* A node that an agent has written to, or that has a pod of the DaemonSet. */
struct cluster_agent {
	struct str node;
	bool is_ready;	   /* the node: otherwise nothing can be done there */
	bool has_pod;	   /* of the DaemonSet */
	bool is_alive;	   /* an agent without such a pod reports */
	bool is_written;   /* the Node has something of an agent */
	bool is_cordoned;  /* by the operator */
	bool is_annotated; /* likewise */
	bool has_released;
};

struct cluster_agents {
	struct arena *a;
	struct cluster_agent *items;
	size_t n, cap;
	struct str daemonset; /* its name; "": there is none */
};

int cluster_agents_read(struct api_sync *s, struct arena *a, struct cluster_agents *ret,
			struct err *err);
bool cluster_agents_has_work(const struct cluster_agents *c);
void cluster_agent_print_plan(const struct cluster_agent *agent);

/* Lets the agents of the DaemonSet undo everything, and waits for those on ready nodes. */
int cluster_agents_release(struct api_sync *s, unsigned timeout_s, struct cluster_agents *c,
			   struct err *err);

/* Removes what agents and operator wrote from the Nodes, except where an agent still runs. */
int cluster_agents_clean(struct api_sync *s, struct cluster_agents *c, struct err *err);

/* Prints what is left on the node, if anything, and returns whether there is. */
bool cluster_agent_report(const struct cluster_agent *agent);
