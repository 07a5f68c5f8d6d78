#pragma once

/* The CPUs of a machine and how they are grouped: cores, dies, sockets, NUMA nodes, last-level
 * (L3, "uncore") caches. The arrays are in the arena it was built in. Built once, then read-only,
 * so threads may share it. Use of CPUs by containers is in src/pool; reading topologies is in
 * topology_read.h. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpuset.h"

struct arena;
struct err;

/* The groupings of CPUs. */
enum topology_level {
	TOPOLOGY_CORE,
	TOPOLOGY_DIE,
	TOPOLOGY_SOCKET,
	TOPOLOGY_NUMA,
	TOPOLOGY_UNCORE, /* CPUs that share an L3 cache */
	TOPOLOGY__LEVELS,
};

enum topology_core_type { CORE_TYPE_UNKNOWN, CORE_TYPE_PERFORMANCE, CORE_TYPE_EFFICIENCY };

#define TOPOLOGY_NO_ID UINT32_MAX    /* an id that was not given */
#define TOPOLOGY_NO_INDEX UINT16_MAX /* a CPU that the topology does not have */

/* One online CPU. Ids are the kernel's: they may be sparse, and ties are broken by them. */
struct topology_cpu {
	uint16_t cpu;
	uint8_t core_type;	       /* enum topology_core_type */
	uint32_t id[TOPOLOGY__LEVELS]; /* of the core, die, ... it belongs to */
};

/* The elements of one level, in the order of their ids. */
struct topology_elements {
	unsigned n;
	const uint32_t *ids;   /* rising */
	const uint16_t *first; /* n + 1 of them: where the CPUs of an element begin in `cpus` */
	const uint16_t *cpus;  /* rising within an element */
	unsigned max_size;     /* CPUs of the largest element */
};

struct topology {
	unsigned n_cpus;
	unsigned n_words;		 /* words of a cpuset that can hold a CPU of this machine */
	const struct topology_cpu *cpus; /* rising by number */
	struct topology_elements level[TOPOLOGY__LEVELS];
	const uint16_t *index[TOPOLOGY__LEVELS]; /* CPU number, below n_words * 64, to element */

	struct cpuset online;	/* the CPUs above; only these are picked */
	struct cpuset offline;	/* present but offline */
	struct cpuset isolated; /* online, without load balancing by the scheduler (isolcpus=) */

	/* All NUMA nodes, also those that have memory and no CPU; rising. */
	unsigned n_nodes;
	const uint32_t *nodes;
	const uint32_t *distances; /* n_nodes x n_nodes, row by row; NULL when unknown */
	uint64_t memory_nodes; /* those that have memory, as a mask; ids from 64 on are left out */
};

/* The result of a reader. An id may be TOPOLOGY_NO_ID: the core is then the CPU itself, die, socket
 * and NUMA node are 0, and the uncore cache is the socket. */
struct topology_input {
	const struct topology_cpu *cpus; /* in any order */
	size_t n_cpus;
	struct cpuset offline;
	struct cpuset isolated;
	const uint32_t *nodes; /* in any order; nodes of CPUs need not be repeated */
	size_t n_nodes;
	const uint32_t *distances; /* n_nodes x n_nodes in the order of `nodes`, or NULL */
	uint64_t memory_nodes;	   /* a mask; 0: all nodes */
};

/* Refuses a machine without CPUs, duplicate CPUs, and CPUs that are both online and offline. */
int topology_build(const struct topology_input *in, struct arena *a, struct topology *ret,
		   struct err *err);

static inline unsigned topology_size(const struct topology *t, enum topology_level level,
				     unsigned element)
{
	const struct topology_elements *e = &t->level[level];

	return (unsigned)(e->first[element + 1] - e->first[element]);
}

/* The element of a level that a CPU belongs to; TOPOLOGY_NO_INDEX for an unknown CPU. */
static inline unsigned topology_index(const struct topology *t, enum topology_level level,
				      unsigned cpu)
{
	return cpu < t->n_words * 64 ? t->index[level][cpu] : TOPOLOGY_NO_INDEX;
}

/* The row of a CPU; NULL for an unknown one. */
const struct topology_cpu *topology_cpu_find(const struct topology *t, unsigned cpu);

/* The element with this id; false when there is none. */
bool topology_find(const struct topology *t, enum topology_level level, uint32_t id,
		   unsigned *ret_element);

/* CPUs per element on average, rounded down as in the kubelet; never 0. */
unsigned topology_average(const struct topology *t, enum topology_level level);

/* Adds the CPUs of one element to *s. */
void topology_add_element(const struct topology *t, enum topology_level level, unsigned element,
			  struct cpuset *s);

/* Extends a set to whole elements: with TOPOLOGY_CORE, the set and all SMT siblings. CPUs that are
 * not in the topology are dropped. `ret` may be `s`. */
void topology_whole(const struct topology *t, enum topology_level level, const struct cpuset *s,
		    struct cpuset *ret);

/* The CPUs of a set whose element is only partly in the set: with TOPOLOGY_CORE, split cores. */
void topology_split(const struct topology *t, enum topology_level level, const struct cpuset *s,
		    struct cpuset *ret);

/* How many CPUs of one element are in the set. */
unsigned topology_count_in(const struct topology *t, enum topology_level level, unsigned element,
			   const struct cpuset *s);

/* How many elements of a level a set touches. */
unsigned topology_span(const struct topology *t, enum topology_level level, const struct cpuset *s);

/* CPUs of the NUMA nodes whose id is a bit of the mask; ids from 64 on are in no mask. */
void topology_numa_cpus(const struct topology *t, uint64_t numa_mask, struct cpuset *ret);

/* NUMA nodes with CPUs (false) or all of them (true), as a mask; ids from 64 on are left out. */
uint64_t topology_numa_mask(const struct topology *t, bool also_without_cpus);

/* The NUMA nodes of these CPUs that have memory, as a mask; ids from 64 on are left out. */
uint64_t topology_memory_of(const struct topology *t, const struct cpuset *cpus);

/* Kernel distance between two node ids; 0 when unknown. */
uint32_t topology_distance(const struct topology *t, uint32_t from, uint32_t to);

/* FNV-1a over the CPUs and their ids: equal for equal machines, independent of the reader. */
uint64_t topology_hash(const struct topology *t);

const char *topology_core_type_name(enum topology_core_type type); /* "performance", ...; or "" */
