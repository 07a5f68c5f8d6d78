#pragma once

/* Which CPUs: given a machine, the CPUs that may be used and a number, choose as the kubelet's
 * static policy chooses (spec/cpumanager.md 4), with the same order and the same tie-breaks, and
 * right where the kubelet is known to be wrong (4.9; DESIGN D14). Pure: the answer depends on the
 * arguments alone. Who owns the CPUs afterwards is src/pool's business. */

#include <stdbool.h>

#include "cpuset.h"
#include "pick_options.h"
#include "topology.h"

struct err;

struct pick_request {
	unsigned n_cpus;
	unsigned group;	      /* distributed: deal out this many CPUs at a time; 0 means 1 */
	bool distributed;     /* evenly over NUMA nodes instead of packed */
	bool spread;	      /* one thread per core first, instead of whole cores */
	bool uncore;	      /* packed only: keep within one L3 cache where possible */
	bool align_by_socket; /* distributed only: prefer NUMA nodes of one socket */
};

/* The request that the policy options stand for (4.1). */
struct pick_request pick_request_for(const struct pick_options *o, const struct topology *t,
				     unsigned n_cpus);

/* Picks exactly n_cpus CPUs out of `available`; CPUs the topology does not have are never picked.
 * 0 CPUs are the empty set. Fails with the kubelet's own sentence: -ENOSPC, "not enough cpus
 * available to satisfy request: requested=5, available=4". *ret is untouched then, and may be
 * `available`. */
int pick_cpus(const struct topology *t, const struct cpuset *available,
	      const struct pick_request *request, struct cpuset *ret, struct err *err);

/* full-pcpus-only (3.9): refuses a number that is not whole cores, and more than `n_free` CPUs, the
 * number of free CPUs outside of split cores. -EINVAL and -ENOSPC, "SMT Alignment Error: ...". */
int pick_check_full_pcpus(const struct topology *t, unsigned n_cpus, unsigned n_free,
			  struct err *err);

/* Elements of a level that have free CPUs, the best candidate first (4.3); with `whole`, only
 * those that are entirely free. CPUs come as their numbers, other elements as their ids. Writes at
 * most n_cpus of the topology and returns how many. */
size_t pick_order(const struct topology *t, const struct cpuset *available,
		  enum topology_level level, bool whole, uint32_t *ret_ids);
size_t pick_order_cpus(const struct topology *t, const struct cpuset *available, bool spread,
		       uint32_t *ret_cpus);
