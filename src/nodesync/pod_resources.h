#pragma once

/* What the agent knows, for the PodResources socket: every pod and the CPUs its containers own. */

#include "podres/response.h"

struct arena;
struct manager;

/* A podres_snapshot_fn; `manager` is a struct manager. Texts and sets are the manager's own, good
 * until it is next called. */
void pod_resources_snapshot(void *manager, struct arena *a, struct podres_snapshot *ret);
