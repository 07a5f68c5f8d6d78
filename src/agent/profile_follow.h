#pragma once

/* Applies the profiles of the cluster to this node: decides which one is its own
 * (partition/node_profile.h), keeps it in the state directory, where the pools are read from
 * (pin/pools_source.h), and has the pools resized. Nothing here waits for the API server. */

#include <stdbool.h>

struct config_watch;
struct manager;
struct node_sync;

struct profile_follow {
	const char *state_dir;
	struct manager *manager;
	struct config_watch *pools;
	bool must_retry; /* the state directory could not be written */
};

/* The profiles, the labels of the node, or its online CPUs have changed. */
void profile_follow_update(struct profile_follow *f, const struct node_sync *sync);

/* Once a second. */
void profile_follow_tick(struct profile_follow *f, const struct node_sync *sync);
