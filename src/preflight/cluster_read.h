#pragma once

/* Fetches what preflight_cluster() decides on, and tries to reach the webhook. Reads only: the pod
 * of the attempt is a dry run. */

#include "cluster/kubeconfig.h"
#include "preflight_cluster.h"

struct arena;
struct err;

/* An API server that does not answer is a fact; only local problems are errors. */
int cluster_facts_read(const struct kubeconfig *kubeconfig, struct str version, struct arena *a,
		       struct cluster_facts *ret, struct err *err);
