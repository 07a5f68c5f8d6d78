#pragma once

/* Shared by the readers of real machines. They name a group of CPUs by its lowest CPU, which is
 * unique; kernel ids repeat (dies, cores: docs/reference/cpu-manager.md#sibling-ids) or are shared
 * by caches of several levels (docs/reference/cpu-manager.md#cache-ids). Private to the topology
 * readers. */

#include <stddef.h>

#include "topology.h"

/* Numbers dies and L3 groups from 0, in the order of their lowest CPUs. Dies are dropped when every
 * socket has only one. On a machine with some L3 caches, CPUs without one form a group per socket;
 * on a machine without any, the socket is used. */
void topology_normalize(struct topology_cpu *cpus, size_t n);
