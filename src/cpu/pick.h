#pragma once

/* Picks CPUs: from a machine, the available CPUs and a number it chooses the same CPUs as the
 * kubelet's static policy (docs/reference/cpu-manager.md#picking-cpus), with the same order and
 * tie-breaks, but without its known defects (D14). A pure function of its arguments. Recording the
 * owner of the CPUs is in src/pool. */

#include <stdbool.h>

#include "cpuset.h"
#include "pick_options.h"
#include "topology.h"

struct err;

struct pick_request {
	unsigned n_cpus;
	unsigned group;	      /* distributed: CPUs are distributed in groups of this; 0 means 1 */
	bool distributed;     /* evenly over NUMA nodes instead of packed */
	bool spread;	      /* one thread per core first, instead of whole cores */
	bool uncore;	      /* packed only: keep within one L3 cache where possible */
	bool align_by_socket; /* distributed only: prefer NUMA nodes of one socket */
};

/* The request for the given policy options (docs/reference/cpu-manager.md#dispatch). */
struct pick_request pick_request_for(const struct pick_options *o, const struct topology *t,
				     unsigned n_cpus);

/* Picks exactly n_cpus CPUs out of `available`; CPUs the topology does not have are never picked.
 * 0 CPUs are the empty set. Fails with the kubelet's own sentence: -ENOSPC, "not enough cpus
 * available to satisfy request: requested=5, available=4". *ret is untouched then, and may be
 * `available`. */
int pick_cpus(const struct topology *t, const struct cpuset *available,
	      const struct pick_request *request, struct cpuset *ret, struct err *err);

/* docs/reference/cpu-manager.md#full-pcpus-only: refuses (-EDOM) a number that is not whole cores
 * of `per_core` CPUs, and more than `n_free`, the number of free CPUs of cores that are not split,
 * with the kubelet's "SMT Alignment Error: ...". */
int pick_check_full_pcpus(unsigned per_core, unsigned n_cpus, unsigned n_free, struct err *err);
