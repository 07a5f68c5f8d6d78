#pragma once

/* Changes the CPU lists of the pools while containers run. First decides which containers prevent
 * it, and in which order the pools shrink and grow, so that no CPU is in two pools at any time.
 * Then carries it out: each write is read back, and a failure undoes all of them.
 *
 * The ledger's file is the journal. It gets the new pools after the last shrink and before the
 * first growth, so an agent that starts after a crash has either the old pools or the new ones, and
 * the synchronization with the runtime finishes or undoes the rest in the same order
 * (docs/reference/pools.md#pool-resize). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "codec/doc.h"
#include "pool/config.h"

struct arena;
struct manager;

/* The CPUs of the management and the shared pool, by enum pool. */
struct resize_sets {
	struct cpuset of[POOL_GUARANTEED];
};

struct resize_step {
	enum pool pool;
	struct cpuset before, cpus;
	bool is_shrink; /* these steps come first */
};

struct resize_steps {
	struct resize_step items[2 * POOL_GUARANTEED];
	size_t n;
	bool overlaps; /* the pools swap all their CPUs: no order avoids an overlap */
};

/* Shrinks first, then growths, each onto CPUs that are free by then. Pure. */
void resize_order(const struct resize_sets *from, const struct resize_sets *to,
		  struct resize_steps *ret);

enum resize_state {
	RESIZE_NONE, /* never requested */
	RESIZE_DONE,
	RESIZE_REFUSED, /* a container uses CPUs that would leave its pool, or the pools are invalid
			 */
	RESIZE_DEFERRED, /* likewise; repeated until the container is finished */
	RESIZE_FAILED,	 /* the kernel refused a write, everything was undone */
};

#define RESIZE_MAX_NAMED 16

/* A container that runs on CPUs about to leave its pool. */
struct resize_obstacle {
	char name[192]; /* "namespace/pod/container" */
	char cpus[64];
};

struct resize_report {
	enum resize_state state;
	struct err why;
	struct resize_obstacle obstacles[RESIZE_MAX_NAMED];
	size_t n_obstacles; /* may be more than are named */
	uint64_t took_us;   /* from the request to the last write */
	uint64_t n_writes;  /* cgroups */
};

const char *resize_state_name(enum resize_state state);

/* Applies `pools` to the ledger, the registry and the cgroups, or to none of them: on failure the
 * old pools stay in force and the report has the reason. */
int resize_apply(struct manager *m, const struct pool_config *pools, struct resize_report *ret);

/* The member "resize" of the status document; none when no resize was requested. */
void resize_describe(const struct resize_report *report, yyjson_mut_doc *doc, yyjson_mut_val *root);
