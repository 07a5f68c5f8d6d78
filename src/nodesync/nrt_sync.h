#pragma once

/* Keeps this node's NodeResourceTopology object (podres/nrt.h) as the ledger is, by server-side
 * apply: written when it changes, and now and then in case somebody removed it. Runs on the agent's
 * loop; while the API server is away nothing waits for it. */

#include <stdbool.h>
#include <stdint.h>

#include "cluster/api.h"
#include "podres/nrt.h"

struct err;
struct manager;

struct nrt_config {
	bool is_on;
	const char *policy, *scope; /* NULL: "none", "container" */
	bool cpu_is_every_cpu;
};

struct nrt_sync {
	const struct nrt_config *config;
	struct manager *manager;
	struct arena memory_arena;
	struct nrt_memories memories;
	struct api_call call;
	bool is_busy;
	bool is_failing;	   /* said so; the next success says that it is over */
	uint64_t sending, written; /* hashes of the document: under way, at the server */
	uint64_t refresh_ms;	   /* when it is written again, changed or not */
	uint64_t retry_ms;
};

void nrt_sync_init(struct nrt_sync *t, const struct nrt_config *config, struct manager *m);

/* Our Node: `uid` is "" until it is known. */
struct nrt_node {
	struct api *api;
	struct str name, uid;
};

void nrt_sync_tick(struct nrt_sync *t, const struct nrt_node *node);

/* Before the api is closed. */
void nrt_sync_close(struct nrt_sync *t);
