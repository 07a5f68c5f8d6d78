/* Turns group names (lowest CPUs) into small consecutive ids, so that hwloc and sysfs give the same
 * topology, and the same hash, for one machine. */

#include "topology_normalize.h"

#include <string.h>

static size_t count_known(const struct topology_cpu *cpus, size_t n, enum topology_level level)
{
	size_t known = 0;

	for (size_t i = 0; i < n; i++)
		known += cpus[i].id[level] != TOPOLOGY_NO_ID;
	return known;
}

#define MAX_NAMES ((size_t)2 * CPUSET_MAX) /* CPUs, then sockets in place of an absent L3 */

/* Replaces names by their ranks. */
static void rank(struct topology_cpu *cpus, size_t n, enum topology_level level)
{
	/* A table indexed by name instead of a sort: names are below MAX_NAMES, and this runs once.
	 */
	uint32_t ranks[MAX_NAMES], next = 0;

	memset(ranks, 0, sizeof(ranks));
	for (size_t i = 0; i < n; i++)
		ranks[cpus[i].id[level]] = 1;
	for (size_t i = 0; i < MAX_NAMES; i++)
		ranks[i] = ranks[i] ? next++ : 0;
	for (size_t i = 0; i < n; i++)
		cpus[i].id[level] = ranks[cpus[i].id[level]];
}

/* True when some socket has CPUs of two dies. */
static bool dies_divide_sockets(const struct topology_cpu *cpus, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			if (cpus[i].id[TOPOLOGY_SOCKET] == cpus[j].id[TOPOLOGY_SOCKET]) {
				if (cpus[i].id[TOPOLOGY_DIE] != cpus[j].id[TOPOLOGY_DIE])
					return true;
				break; /* all earlier CPUs of this socket have the die of j */
			}
	return false;
}

void topology_normalize(struct topology_cpu *cpus, size_t n)
{
	if (count_known(cpus, n, TOPOLOGY_DIE) == n && dies_divide_sockets(cpus, n))
		rank(cpus, n, TOPOLOGY_DIE);
	else
		for (size_t i = 0; i < n; i++)
			cpus[i].id[TOPOLOGY_DIE] = TOPOLOGY_NO_ID;

	if (count_known(cpus, n, TOPOLOGY_UNCORE) == 0)
		return;
	for (size_t i = 0; i < n; i++)
		if (cpus[i].id[TOPOLOGY_UNCORE] == TOPOLOGY_NO_ID)
			cpus[i].id[TOPOLOGY_UNCORE] =
				/* Above all names of caches, so that a socket cannot collide with
				 * one (docs/reference/cpu-manager.md#cache-ids). */
				CPUSET_MAX + (cpus[i].id[TOPOLOGY_SOCKET] % CPUSET_MAX);
	rank(cpus, n, TOPOLOGY_UNCORE);
}
