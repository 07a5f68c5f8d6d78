#pragma once

/* Reads what namespace_checks.h checks, in rounds: the metadata of the pods in every namespace that
 * allows a workload type, then the autoscalers, LimitRanges and ResourceQuotas of the cluster, a
 * page at a time and one request after the other. Nothing of it is watched or kept: pods change all
 * the time, and only the findings of the last complete round stay. */

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "cluster/api.h"
#include "namespace_checks.h"

#define NAMESPACE_SCAN_MS 300000      /* between rounds, at least */
#define NAMESPACE_SCAN_RETRY_MS 30000 /* after a failure; doubles with each one in a row */
#define NAMESPACE_SCAN_SHARE 20	      /* the pause is this many times as long as the round */

/* The pause after a round that took `took_ms`; `failures`: rounds that failed in a row, with this
 * one. A large cluster or a slow server is asked less often. Pure. */
uint64_t namespace_scan_pause_ms(uint64_t took_ms, unsigned failures);

struct namespace_scan {
	struct api *api;
	struct api_call call;
	struct buffer next_page; /* the server's continue token; empty: first page */
	struct arena arena, found_arena;
	struct namespace_checks round;
	struct cluster_findings found; /* of the last complete round */
	struct str *names;	       /* the namespaces of the round */
	size_t n_names, at;	       /* ...and the position in them */
	unsigned step;		       /* of the round */
	uint64_t began_ms, next_ms;    /* when the round began, and when the next one is due */
	unsigned failed_rounds;	       /* in a row */
	bool is_busy, is_complete;     /* a round runs; one was complete */
	bool was_partitioned;
	uint64_t rounds, requests, failures;

	void (*on_complete)(struct namespace_scan *s);
	void (*on_failure)(struct namespace_scan *s, const struct err *err);
};

/* The callbacks are set by the owner. */
void namespace_scan_start(struct namespace_scan *s, struct api *api);

/* With every reconcile: begins a round when it is due. In a cluster that does not partition its
 * nodes no pod is converted, and there is nothing to find. `allowed` outlives the scan. */
void namespace_scan_run(struct namespace_scan *s, const struct object_store *allowed,
			bool is_partitioned);
void namespace_scan_close(struct namespace_scan *s);
void namespace_scan_done(struct namespace_scan *s); /* after the loop is done */
