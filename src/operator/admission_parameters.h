#pragma once

/* A step of the reconcile: the parameters of the admission policies (D49), which cannot read Nodes
 * and the cluster flag themselves. What the webhook decides per pod from its caches is written as
 * facts: whether pods are converted, to which workload types, and whether pools are counted. Pure.
 */

#include <stdbool.h>

#include "base/str.h"

struct arena;
struct operator_snapshot;
struct operator_writes;

struct admission_parameters {
	struct str workloads; /* NAME_WORKLOADS_...; "" while the cluster is not known */
	struct str types, reported_types;
	bool pools;
	struct str taints_without_pool;
};

struct admission_parameters admission_parameters_of(const struct operator_snapshot *s);

void reconcile_admission_parameters(const struct operator_snapshot *s, struct operator_writes *w);
