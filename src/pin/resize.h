#pragma once

/* Pools of another size while everything runs (spec/cpumanager.md 7.8). Decided first: who is in
 * the way, and in which order the pools shrink and grow so that no CPU is in two of them at any
 * moment. Then carried out: every write read back, and all of them taken back when one fails.
 *
 * The ledger's file is the journal. It gets the new pools after the last shrink and before the
 * first growth, so whoever starts after a crash finds the old pools or the new ones, and the
 * synchronisation with the runtime finishes or undoes the rest in the same order. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "codec/doc.h"
#include "pool/config.h"

struct arena;
struct manager;

/* Where the containers of the two pools that many share run, by enum pool. */
struct resize_sets {
	struct cpuset of[POOL_GUARANTEED];
};

struct resize_step {
	enum pool pool;
	struct cpuset before, cpus;
	bool is_shrink; /* all of these stand first */
};

struct resize_steps {
	struct resize_step items[2 * POOL_GUARANTEED];
	size_t n;
	bool overlaps; /* each wants all that the other has: no order avoids a moment of both */
};

/* Shrinks first, then the growths, each onto CPUs that nobody else has by then. Pure. */
void resize_order(const struct resize_sets *from, const struct resize_sets *to,
		  struct resize_steps *ret);

enum resize_state {
	RESIZE_NONE, /* nothing was ever asked for */
	RESIZE_DONE,
	RESIZE_REFUSED,	 /* somebody is in the way, or the pools make no sense */
	RESIZE_DEFERRED, /* somebody is in the way; tried again until he is gone */
	RESIZE_FAILED,	 /* the kernel refused, everything was taken back */
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

/* Makes `pools` true: in the ledger, in the Manager and in the kernel, or nowhere. When it returns
 * other than 0, the old pools go on and the report says why. */
int resize_apply(struct manager *m, const struct pool_config *pools, struct resize_report *ret);

/* The member "resize" of the status document; nothing when none was asked for. */
void resize_describe(const struct resize_report *report, yyjson_mut_doc *doc, yyjson_mut_val *root);
