#pragma once

/* What readers of real machines share. They name a group of CPUs by its lowest CPU, which no two
 * groups have in common; kernel ids repeat (dies, cores) or share a number space with others
 * (caches; spec/cpumanager.md 2.4). Inside the topology readers only. */

#include <stddef.h>

#include "topology.h"

/* Numbers dies and L3 groups from 0, in the order of their lowest CPUs. Dies that are nothing but
 * sockets are left out. CPUs without an L3 on a machine that has some form one group per socket;
 * on a machine without any, the socket stands in. */
void topology_normalize(struct topology_cpu *cpus, size_t n);
