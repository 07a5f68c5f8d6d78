#pragma once

/* Removes what an agent wrote from a Node: resources, condition and taint. For commands; no agent
 * may run on the node. */

#include "base/str.h"
#include "cluster/api_sync.h"

struct arena;
struct err;

/* A Node that does not exist is no error. */
int node_clean(struct api_sync *s, struct str name, struct arena *a, struct err *err);
