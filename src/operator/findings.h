#pragma once

/* What the cluster checks found: objects that keep workload partitioning from working as
 * configured. Pure. A new check is a row in findings.c. */

#include <stddef.h>

#include "base/str.h"

struct arena;

enum cluster_check {
	CLUSTER_NODE_RESOURCE,
	CLUSTER_PROFILE_NODES,
	CLUSTER_PROFILE_OVERLAP,
	CLUSTER_PROFILE_OBJECTS,
	CLUSTER_POD_UNCONVERTED,
	CLUSTER_AUTOSCALER,
	CLUSTER_LIMIT_RANGE,
	CLUSTER_QUOTA,
	CLUSTER_CHECK__COUNT
};

struct cluster_check_info {
	const char *reason; /* of Events, and the label of the metric */
	const char *remedy; /* a sentence */
};
extern const struct cluster_check_info cluster_checks[CLUSTER_CHECK__COUNT];

struct cluster_finding {
	enum cluster_check check;
	struct str api, kind, namespace, name, uid; /* the object */
	struct str problem;			    /* a sentence without its subject and its end */
};

/* Findings are counted, and the first of each check are kept. */
#define CLUSTER_FINDINGS_KEPT 50

struct cluster_findings {
	struct arena *arena;
	struct cluster_finding *items;
	size_t n;
	size_t counts[CLUSTER_CHECK__COUNT];
};

/* Copies the texts into the arena. */
void cluster_findings_add(struct cluster_findings *f, const struct cluster_finding *finding);

/* Adds all of `from`, which must live as long as `f`. */
void cluster_findings_append(struct cluster_findings *f, const struct cluster_findings *from);

/* A table for people, with the remedies. "no findings\n" when there are none. */
struct str cluster_findings_format(const struct cluster_findings *f, struct arena *a);
