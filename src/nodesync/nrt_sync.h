#pragma once

/* Publishes this node's NodeResourceTopology object (podres/nrt.h) by server-side apply: when it
 * changes, and once a minute in case it was deleted. Runs on the agent's loop; nothing waits for
 * the API server. */

#include <stdbool.h>
#include <stdint.h>

#include "cluster/api.h"
#include "podres/nrt.h"

struct err;
struct manager;

struct nrt_config {
	bool is_on;
	bool cpu_is_every_cpu;
};

struct nrt_sync {
	const struct nrt_config *config;
	struct manager *manager;
	struct arena memory_arena;
	struct nrt_memories memories;
	struct api_call call;
	bool is_busy;
	bool is_failing; /* logged; the next success is logged, too */
	uint64_t sending,
		written;     /* hashes of the document in flight and of the last one written */
	uint64_t refresh_ms; /* written again then, even without a change */
	uint64_t retry_ms;
};

void nrt_sync_init(struct nrt_sync *t, const struct nrt_config *config, struct manager *m);

/* The agent's Node. `uid` is "" until it is known. */
struct nrt_node {
	struct api *api;
	struct str name, uid;
};

void nrt_sync_tick(struct nrt_sync *t, const struct nrt_node *node);

/* Before the api is closed. */
void nrt_sync_close(struct nrt_sync *t);
