#pragma once

/* Taints nodes that joined without the cores resource while the mutating webhook was not called
 * (D7). Only nodes that are younger than the webhook configuration: those that were there before
 * partitioning are left as they are. */

#include <stdbool.h>

#include "api.h"
#include "cache.h"
#include "net/loop.h"

struct err;
struct node_recheck;

struct node_recheck_config {
	/* When the webhook was registered, as in creationTimestamp; "" while that is unknown. */
	const char *(*registered)(struct node_recheck *r);
	void (*on_tainted)(struct node_recheck *r, const char *node);
	void (*on_failure)(struct node_recheck *r, const char *node, const struct err *err);
};

struct node_recheck {
	struct api *api;
	struct cache *cache;
	const struct node_recheck_config *config;
	struct timer timer;
	struct api_call call;
	char node[256]; /* the one that is being read or written */
	bool is_busy;
};

void node_recheck_init(struct node_recheck *r, struct api *api, struct cache *cache,
		       const struct node_recheck_config *config);
void node_recheck_close(struct node_recheck *r);
