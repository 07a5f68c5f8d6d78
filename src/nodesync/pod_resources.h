#pragma once

/* The pods of the node and the exclusive CPUs of their containers, as the PodResources socket and
 * the NodeResourceTopology object report them. */

#include "podres/response.h"

struct arena;
struct manager;

/* A podres_snapshot_fn; `manager` is a struct manager. Texts and sets belong to the manager
 * and are valid until its next call. */
void pod_resources_snapshot(void *manager, struct arena *a, struct podres_snapshot *ret);
