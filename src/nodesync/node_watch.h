#pragma once

/* Watches the agent's own Node and hands every version of it to the owner. What follows from it is
 * decided by node_writer.h. */

#include "cluster/watch.h"

struct api_failures;

struct node_watch {
	struct watch watch;
	struct watch_config config;
	char selector[512];
	struct str name;
	struct api_failures *failures;

	/* `node` is NULL when the Node does not exist, also at the beginning of every list. */
	void (*on_node)(struct node_watch *w, yyjson_val *node);
	void (*on_synced)(struct node_watch *w); /* a list is complete */
};

/* on_node and on_synced are set by the owner; the rest is overwritten. Starts at once. `name` must
 * outlive it. */
void node_watch_start(struct node_watch *w, struct api *api, struct str name,
		      struct api_failures *failures);
