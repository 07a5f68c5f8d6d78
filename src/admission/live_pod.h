#pragma once

/* A pod that an API server has stored: what admission did with it, as far as the pod shows it. The
 * annotation that opted in is missing from a skipped pod; the warning says why. Pure. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "codec/doc.h"
#include "decision.h"
#include "kube/pool.h"

struct arena;
struct pod;

enum live_outcome {
	LIVE_CONVERTED, /* it requests the workload resource instead of CPU */
	LIVE_SKIPPED,	/* its annotations were removed, and it has a warning */
	LIVE_MISSED,	/* it opted in, and admission did not decide about it */
	LIVE_COUNTED,	/* its CPU is counted in the pools */
	LIVE_UNCHANGED,
	LIVE__COUNT
};

const char *live_outcome_name(enum live_outcome outcome); /* "converted", "skipped"... */

struct live_container {
	struct str name;
	enum pool pool;	     /* where a node that trusts the pod runs it */
	int64_t milli;	     /* requested, as CPU or as cores; 0: none */
	uint64_t shares;     /* of a converted container; 0: none */
	int64_t limit_milli; /* likewise */
};

struct live_pod {
	enum live_outcome outcome;
	struct str uid, node; /* node: "" before it is scheduled */
	struct str type;      /* the workload type it opted in to; "" when the pod does not say */
	struct str warning;   /* of a skipped pod */
	enum admission_rule rule; /* that skipped it; RULE__COUNT when the warning is unknown */
	struct live_container *containers;
	size_t n;
};

/* False when no API server has stored the object, or it is a workload instead of a pod. */
bool live_pod_read(yyjson_val *object, struct arena *a, struct live_pod *ret);
bool live_pod_read_view(const struct pod *pod, struct arena *a, struct live_pod *ret);

/* What happened, as a sentence without a full stop. */
struct str live_pod_text(const struct live_pod *p, struct arena *a);

/* A skipped pod as its creator wrote it: with the annotation that opts in to `type`, without the
 * warning. NULL when memory ran out. */
yyjson_val *live_pod_restore(yyjson_val *object, struct str type, struct arena *a);
